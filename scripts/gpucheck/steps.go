package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A step is a piece of the check of under ten minutes; steps.txt says what it does.
type step struct {
	name string
	do   func(*check) error
}

// steps are those of all checks, in the order in which they are best done.
var steps = []step{
	{"ops", func(c *check) error { return c.tests("") }},
	{"memcheck", func(c *check) error { return c.tests("memcheck") }},
	{"racecheck", func(c *check) error { return c.tests("racecheck") }},
	{"table", (*check).table},
	{"parametric", (*check).parametric},
	{"simclr", (*check).simclr},
	{"simclr-run", (*check).simclrRun},
}

// onGPU sets the key that says where a run is computed.
const onGPU = "device.name=cuda"

// A check is a step that is being carried out.
type check struct {
	ctx      context.Context
	report   *report
	epochs   int      // 0: as the step has it
	packages []string // none: all
	stdout   io.Writer
}

// command prepares a command, which is interrupted when the step's time is over,
// and may then take a while to end.
func (c *check) command(name string, args ...string) *exec.Cmd {
	fmt.Fprintf(c.stdout, "+ %s %s\n", name, strings.Join(args, " "))
	cmd := exec.CommandContext(c.ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 40 * time.Second
	return cmd
}

// out runs a command and returns what it prints.
func (c *check) out(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if i := strings.Index(stderr.String(), "computing on"); i >= 0 && c.report.Device == "" {
		c.report.Device, _, _ = strings.Cut(stderr.String()[i:], "\n")
	}
	if c.ctx.Err() != nil {
		return stdout.String(), errors.New("the step's time was over")
	}
	if err != nil {
		return stdout.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, tail(stderr.String()+stdout.String(), 2000))
	}
	return stdout.String(), nil
}

// tail returns the end of a text.
func tail(s string, n int) string {
	if len(s) > n {
		s = "…" + s[len(s)-n:]
	}
	return strings.TrimSpace(s)
}

// tests runs the tests of all packages, under a tool of compute-sanitizer if one is
// named.
func (c *check) tests(tool string) error {
	sanitizer := ""
	if tool != "" {
		if sanitizer = findSanitizer(); sanitizer == "" {
			c.report.Note = "not done: there is no compute-sanitizer (which CUDA's toolkit has) in PATH, /usr/local/cuda or Python's packages"
			return nil
		}
	}
	if err := unpackPrograms(); err != nil {
		return err
	}
	packages := c.packages
	if len(packages) == 0 {
		list, err := os.ReadFile("programs/packages")
		if err != nil {
			return err
		}
		packages = strings.Fields(string(list))
	}
	for i, p := range packages {
		name, args := "./package.test", []string{"-test.v", "-test.run", "Device|Remote", "-test.timeout", "9m"}
		if tool != "" {
			name, args = sanitizer, append([]string{"--tool", tool, "--report-api-errors", "no", "--error-exitcode", "86", "./package.test"}, args...)
		}
		cmd := c.command(name, args...)
		cmd.Dir = filepath.Join("programs", "tests", p)
		cmd.Env = append(os.Environ(), "CUDA_TESTS=required")
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		begun := time.Now()
		err := cmd.Run()
		t := results(output.String())
		t.Package, t.Tool, t.Seconds = p, tool, time.Since(begun).Seconds()
		if c.ctx.Err() != nil {
			c.report.Tests = append(c.report.Tests, t)
			return fmt.Errorf("the step's time was over in %s; name the packages that are left: %s", p, strings.Join(packages[i:], " "))
		}
		if err != nil || len(t.Failed) > 0 {
			if len(t.Failed) == 0 {
				t.Failed = []string{err.Error()}
			}
			t.Output = tail(output.String(), 6000)
		}
		c.report.Tests = append(c.report.Tests, t)
		fmt.Fprintf(c.stdout, "%s: %d passed, %d skipped, failed: %s\n", p, len(t.Passed), len(t.Skipped), or(strings.Join(t.Failed, ", "), "none"))
	}
	return nil
}

// results reads what go test -v prints of the tests, without their parts.
func results(output string) (t tested) {
	t.Passed = []string{}
	running := ""
	for s := bufio.NewScanner(strings.NewReader(output)); s.Scan(); {
		word, rest, _ := strings.Cut(s.Text(), ": ")
		name, _, _ := strings.Cut(rest, " ")
		switch word {
		case "--- PASS":
			t.Passed = append(t.Passed, name)
		case "--- SKIP":
			t.Skipped = append(t.Skipped, name)
		case "--- FAIL":
			t.Failed = append(t.Failed, name)
		default:
			if name, ok := strings.CutPrefix(s.Text(), "=== RUN   "); ok && !strings.Contains(name, "/") {
				running = name
			}
			continue
		}
		running = ""
	}
	if running != "" { // the process ended in it
		t.Failed = append(t.Failed, running)
	}
	return t
}

// findSanitizer returns the path of compute-sanitizer, or nothing.
func findSanitizer() string {
	if p, err := exec.LookPath("compute-sanitizer"); err == nil {
		return p
	}
	for _, pattern := range []string{"/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	for _, site := range filepath.SplitList(os.Getenv("GPUCHECK_SITES")) {
		if found, _ := filepath.Glob(filepath.Join(site, "nvidia/*/*/compute-sanitizer")); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// unpack unpacks a compressed archive, whose files are all below a folder named as
// the last part of to, unless it has done so before.
func unpack(archive, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if _, err := os.Stat(archive); err != nil {
		return fmt.Errorf("there is no %s: scripts/gpu-check, which fills this folder, was not given it", archive)
	}
	into := to + ".part"
	if err := errors.Join(os.RemoveAll(into), os.MkdirAll(into, 0o777)); err != nil {
		return err
	}
	// tar needs xz; Python has its own.
	out, err := exec.Command("tar", "-xJf", archive, "-C", into).CombinedOutput()
	if err != nil {
		var more []byte
		more, err = exec.Command(or(os.Getenv("PYTHON"), "python3"), "-c", "import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])", archive, into).CombinedOutput()
		out = append(out, more...)
	}
	if err != nil {
		return fmt.Errorf("%s is unpacked neither by tar and xz nor by Python: %s", archive, tail(string(out), 500))
	}
	return errors.Join(os.Rename(filepath.Join(into, filepath.Base(to)), to), os.RemoveAll(into))
}

func unpackPrograms() error { return unpack("programs.tar.xz", "programs") }

func unpackImages() error { return unpack("data/cifar10-jpeg.tar.xz", "data/cifar10") }

// train runs cne train and returns its figures, and the seconds of each epoch.
func (c *check) train(folder string, args ...string) (command string, figures metrics, epochs []float64, err error) {
	args = append([]string{"train", "--force", "--output", folder, "--set", onGPU}, args...)
	if c.epochs > 0 {
		args = append(args, "--epochs", strconv.Itoa(c.epochs))
	}
	if err := unpackPrograms(); err != nil {
		return "", figures, nil, err
	}
	if _, err := c.out(c.command("programs/cne", args...)); err != nil {
		return "", figures, nil, err
	}
	if err := readJSON(filepath.Join(folder, "metrics.json"), &figures); err != nil {
		return "", figures, nil, err
	}
	c.report.Version = figures.Version
	epochs, _, err = epochSeconds(folder)
	return "cne " + strings.Join(args, " "), figures, epochs, err
}

// metrics are those of metrics.json that are written down.
type metrics struct {
	Recall   float64 `json:"knn_recall"`
	Spearman float64 `json:"spearman"`
	Accuracy float64 `json:"accuracy"`
	Epochs   int     `json:"epochs"`
	Seconds  struct {
		Graph    float64 `json:"graph"`
		PCA      float64 `json:"pca"`
		Optimize float64 `json:"optimize"`
		Quality  float64 `json:"quality"`
		Total    float64 `json:"total"`
	} `json:"seconds"`
	Version string `json:"version"`
}

func (m metrics) more() map[string]float64 {
	return map[string]float64{
		"epochs": float64(m.Epochs), "kNN recall": m.Recall, "Spearman": m.Spearman, "accuracy": m.Accuracy,
		"seconds of PCA": m.Seconds.PCA, "seconds of the graph": m.Seconds.Graph, "seconds of the optimisation": m.Seconds.Optimize,
		"seconds of the quality": m.Seconds.Quality, "seconds of the run": m.Seconds.Total,
	}
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// epochSeconds returns how long each epoch of a run took, and the last record.
func epochSeconds(folder string) (seconds []float64, last record, err error) {
	f, err := os.Open(filepath.Join(folder, "metrics.jsonl"))
	if err != nil {
		return nil, last, err
	}
	defer f.Close()
	before := 0.
	for s := bufio.NewScanner(f); s.Scan(); {
		if err := json.Unmarshal(s.Bytes(), &last); err != nil {
			return nil, last, fmt.Errorf("%s: %w", f.Name(), err)
		}
		seconds = append(seconds, last.Seconds-before)
		before = last.Seconds
	}
	if len(seconds) == 0 {
		return nil, last, fmt.Errorf("%s is empty", f.Name())
	}
	return seconds, last, nil
}

// A record is a line of metrics.jsonl; Seconds counts from the start of the run.
type record struct {
	Epoch   int     `json:"epoch"`
	Loss    float64 `json:"loss"`
	Seconds float64 `json:"seconds"`
}

// usual returns the median of the epochs but the first, in which kernels are loaded.
func usual(seconds []float64) float64 {
	if len(seconds) > 1 {
		seconds = seconds[1:]
	}
	s := slices.Sorted(slices.Values(seconds))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

func (c *check) table() error {
	for _, b := range []struct {
		size int
		name string
		goal float64
	}{{1024, "1024", 10}, {1 << 19, "2¹⁹", 1}} {
		command, m, _, err := c.train(fmt.Sprintf("runs/table-%d", b.size), "--config", "configs/mnist-negtsne.yaml",
			"--set", "data.path=data/mnist", "--set", fmt.Sprintf("train.batch_size=%d", b.size))
		if err != nil {
			return err
		}
		c.report.Runs = append(c.report.Runs, ran{
			Name: fmt.Sprintf("Neg-t-SNE of MNIST, table, b=%s, %d epochs", b.name, m.Epochs), Goal: b.goal, Figure: m.Seconds.Optimize, Unit: "s",
			More: m.more(), Command: command,
		})
	}
	return nil
}

func (c *check) parametric() error {
	command, m, epochs, err := c.train("runs/parametric", "--config", "configs/mnist-parametric-negtsne.yaml",
		"--set", "data.path=data/mnist/train-images-idx3-ubyte.gz", "--set", "data.labels=data/mnist/train-labels-idx1-ubyte.gz",
		"--set", "data.holdout=data/mnist/t10k-images-idx3-ubyte.gz", "--set", "data.holdout_labels=data/mnist/t10k-labels-idx1-ubyte.gz",
		"--set", "train.batch_size=32768")
	if err != nil {
		return err
	}
	c.report.Runs = append(c.report.Runs, ran{
		Name: "Neg-t-SNE of MNIST, network, b=2¹⁵, an epoch", Goal: 0.5, Figure: usual(epochs), Unit: "s", More: m.more(), Command: command,
	})
	return nil
}

// batches is the number of whole batches in an epoch of SimCLR, of so many views.
const (
	images  = 60000
	views   = 2048
	batches = images / (views / 2)
)

func (c *check) simclr() error {
	if err := errors.Join(unpackPrograms(), unpackImages()); err != nil {
		return err
	}
	const folder = "runs/simclr-epochs"
	epochs := "5"
	if c.epochs > 0 {
		epochs = strconv.Itoa(c.epochs)
	}
	var theirs []float64
	var version string
	for turn := range 2 {
		seconds, v, err := c.torch()
		if err != nil {
			// Python says last what is wrong.
			text := err.Error()
			c.report.Note = "PyTorch was not measured: " + text[strings.LastIndex(text, "\n")+1:]
		} else {
			theirs, version = append(theirs, seconds), v
		}
		if turn > 0 {
			break
		}
		args := []string{"simclr", "pretrain", "--force", "--config", "configs/simclr-cifar10.yaml", "--output", folder, "--epochs", epochs,
			"--set", "data.path=data/cifar10", "--set", onGPU, "--set", "monitor.every=0", "--set", "evaluate.at_end=false"}
		if _, err := c.out(c.command("programs/cne", args...)); err != nil {
			return err
		}
		each, last, err := epochSeconds(folder)
		if err != nil {
			return err
		}
		c.report.Runs = append(c.report.Runs, ran{
			Name: "SimCLR on CIFAR-10, ResNet18, b=1024, an epoch with its views", Goal: 8, Figure: usual(each), Unit: "s",
			More: map[string]float64{"epochs": float64(last.Epoch), "loss": last.Loss, "first epoch": each[0]}, Command: "cne " + strings.Join(args, " "),
		})
	}
	if len(theirs) > 0 {
		slices.Sort(theirs)
		ours := c.report.Runs[0].Figure
		c.report.Runs = append(c.report.Runs,
			ran{Name: "PyTorch " + version + ", the same steps on images that are there already, TF32, channels last", Figure: theirs[0], Unit: "s", More: map[string]float64{"slowest": theirs[len(theirs)-1]}},
			ran{Name: "PyTorch's time as a multiple of cne's", Figure: theirs[0] / ours, Unit: "×", Goal: 1, AtLeast: true})
	}
	return nil
}

// torch measures PyTorch's steps and returns the seconds that an epoch of them takes.
func (c *check) torch() (seconds float64, version string, err error) {
	python := or(os.Getenv("PYTHON"), "python3")
	cmd := c.command(python, "-c", "import torch; assert torch.cuda.is_available(), 'it sees no GPU'; print(torch.__version__)")
	cmd.Env = ownLibraries()
	version, err = c.out(cmd)
	if err != nil {
		return 0, "", err
	}
	cmd = c.command(python, "torch_resnet.py", "--device", "cuda", "--tf32", "--channels-last", "--views", strconv.Itoa(views), "--rounds", "30")
	cmd.Env = ownLibraries()
	text, err := c.out(cmd)
	if err != nil {
		return 0, "", err
	}
	var count, rate float64
	if _, err := fmt.Sscan(text, &count, &rate); err != nil || rate <= 0 {
		return 0, "", fmt.Errorf("torch_resnet.py printed %q", text)
	}
	return batches * views / rate, strings.TrimSpace(version), nil
}

// ownLibraries is the environment without the libraries that ./run has found for
// cne: PyTorch brings its own.
func ownLibraries() []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "LD_LIBRARY_PATH=") })
	if before := os.Getenv("GPUCHECK_LD_LIBRARY_PATH"); before != "" {
		env = append(env, "LD_LIBRARY_PATH="+before)
	}
	return env
}

// simclrRun starts the run, or goes on with it, until it is done or the time is over.
func (c *check) simclrRun() error {
	if err := errors.Join(unpackPrograms(), unpackImages()); err != nil {
		return err
	}
	const folder = "runs/simclr-run"
	epochs := 100
	if c.epochs > 0 {
		epochs = c.epochs
	}
	args := []string{"simclr", "pretrain", "--epochs", strconv.Itoa(epochs), "--set", onGPU,
		"--set", "monitor.every=0", "--set", "evaluate.at_end=false", "--set", "checkpoint.minutes=2"}
	if _, err := os.Stat(filepath.Join(folder, "checkpoint.safetensors")); err == nil {
		args = append(args, "--resume", folder)
	} else {
		args = append(args, "--force", "--config", "configs/simclr-cifar10.yaml", "--output", folder, "--set", "data.path=data/cifar10")
	}
	if _, err := os.Stat(filepath.Join(folder, "metrics.json")); err != nil {
		_, err := c.out(c.command("programs/cne", args...))
		if err != nil && c.ctx.Err() == nil {
			return err
		}
	}
	each, last, err := epochSeconds(folder)
	if err != nil {
		return err
	}
	progress := ran{
		Name: fmt.Sprintf("SimCLR on CIFAR-10, m=16, epochs of %d that are done", epochs), Figure: float64(last.Epoch), Unit: "epochs",
		More: map[string]float64{"loss": last.Loss, "seconds of an epoch": usual(each), "seconds": last.Seconds}, Command: "cne " + strings.Join(args, " "),
	}
	c.report.Runs = append(c.report.Runs, progress)
	if last.Epoch < epochs || c.ctx.Err() != nil {
		c.report.Note = "the run is not at its end: the same step goes on with it"
		return nil
	}
	if _, err := c.out(c.command("programs/cne", "simclr", "evaluate", folder, "--set", onGPU)); err != nil {
		if c.ctx.Err() != nil {
			c.report.Note = "the accuracies are not there yet: the same step measures them"
			return nil
		}
		return err
	}
	var e struct {
		KNN    struct{ Mean, Std float64 } `json:"knn"`
		Linear struct{ Mean, Std float64 } `json:"linear"`
	}
	if err := readJSON(filepath.Join(folder, "evaluation.json"), &e); err != nil {
		return err
	}
	c.report.Runs = append(c.report.Runs,
		ran{Name: fmt.Sprintf("kNN accuracy after %d epochs", epochs), Figure: 100 * e.KNN.Mean, Unit: "%", Goal: 80, AtLeast: true, More: map[string]float64{"standard deviation": 100 * e.KNN.Std}},
		ran{Name: fmt.Sprintf("accuracy of the linear probe after %d epochs", epochs), Figure: 100 * e.Linear.Mean, Unit: "%", More: map[string]float64{"standard deviation": 100 * e.Linear.Std}})
	return nil
}
