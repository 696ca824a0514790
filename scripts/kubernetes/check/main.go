// Command check reads manifests of jobs as Kubernetes would, with its own types, and
// refuses fields that it does not know, or that have values of another type. With -root
// it then carries out what every pod would, one after the other, in a folder that has the
// contents of the image and of the volume, as the user of the manifest.
//
//	go run . ../*.yaml
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	root := flag.String("root", "", "carry out the pods in this `folder`")
	flag.Parse()
	for _, path := range flag.Args() {
		job, err := check(path)
		if err == nil && *root != "" {
			err = carryOut(job, *root)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

// check reads a job, and finds what Kubernetes would refuse in its fields, and some of
// what it would in their values.
func check(path string) (*batch.Job, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var job batch.Job
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		return nil, err
	}
	spec, pod := job.Spec, job.Spec.Template.Spec
	indexed := spec.CompletionMode != nil && *spec.CompletionMode == batch.IndexedCompletion
	switch {
	case pod.SecurityContext == nil || pod.SecurityContext.RunAsUser == nil || pod.SecurityContext.FSGroup == nil:
		return nil, fmt.Errorf("it does not say as which user and group it runs, and images without users have none")
	case job.APIVersion != "batch/v1" || job.Kind != "Job" || job.Name == "":
		return nil, fmt.Errorf("it is no job with a name, but %s %s %q", job.APIVersion, job.Kind, job.Name)
	case len(pod.Containers) != 1:
		return nil, fmt.Errorf("it has %d containers in place of one", len(pod.Containers))
	case pod.RestartPolicy != core.RestartPolicyNever:
		return nil, fmt.Errorf("restartPolicy is %q, but failures are counted by pods only if it is Never", pod.RestartPolicy)
	case spec.CompletionMode != nil && !indexed:
		return nil, fmt.Errorf("completionMode is %q", *spec.CompletionMode)
	case indexed && (spec.Completions == nil || spec.Parallelism == nil || *spec.Parallelism > *spec.Completions):
		return nil, fmt.Errorf("it is indexed, but has no completions, or more pods at once than these")
	case spec.BackoffLimitPerIndex != nil && !indexed:
		return nil, fmt.Errorf("backoffLimitPerIndex has a meaning in indexed jobs alone")
	case spec.PodReplacementPolicy != nil && *spec.PodReplacementPolicy != batch.Failed:
		return nil, fmt.Errorf("podReplacementPolicy is %q, but a pod policy of failures wants Failed", *spec.PodReplacementPolicy)
	}
	if spec.PodFailurePolicy != nil {
		for _, rule := range spec.PodFailurePolicy.Rules {
			for _, condition := range rule.OnPodConditions {
				if rule.Action != batch.PodFailurePolicyActionIgnore || condition.Type != core.DisruptionTarget {
					return nil, fmt.Errorf("the rule of podFailurePolicy is %s at %s", rule.Action, condition.Type)
				}
			}
		}
	}
	c := pod.Containers[0]
	for _, mount := range c.VolumeMounts {
		known := false
		for _, v := range pod.Volumes {
			known = known || v.Name == mount.Name && v.PersistentVolumeClaim != nil
		}
		if !known {
			return nil, fmt.Errorf("the volume %q is mounted, but there is none", mount.Name)
		}
	}
	if strings.Contains(strings.ReplaceAll(strings.Join(c.Args, " "), index, ""), "$(") {
		return nil, fmt.Errorf("an argument names what is not set: %q", c.Args)
	}
	return &job, nil
}

// index stands for the number of a pod in arguments.
const index = "$(JOB_COMPLETION_INDEX)"

// carryOut runs the program of a job as each of its pods.
func carryOut(job *batch.Job, root string) error {
	pods := 1
	if job.Spec.Completions != nil {
		pods = int(*job.Spec.Completions)
	}
	pod := job.Spec.Template.Spec
	user, group := uint32(*pod.SecurityContext.RunAsUser), uint32(*pod.SecurityContext.FSGroup)
	c := pod.Containers[0]
	for i := range pods {
		var args []string
		for _, arg := range c.Args {
			args = append(args, strings.ReplaceAll(arg, index, strconv.Itoa(i)))
		}
		fmt.Println(job.Name, strings.Join(args, " "))
		cmd := exec.Command("/cne", args...)
		cmd.Dir, cmd.Env = c.WorkingDir, []string{}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: group}}
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("pod %d: %w", i, err)
		}
	}
	return nil
}
