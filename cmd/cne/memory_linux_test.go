package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The estimate is at most 30 % below and 60 % above the memory that a run has resident.
func TestMemoryEstimate(t *testing.T) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		t.Skip("GOGC or GOMEMLIMIT is set, which changes when memory is freed")
	}
	t.Chdir(t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The peak of a process includes its parent's at the fork, here a small shell.
	program := func(args string) string {
		cmd := exec.Command("sh", "-c", `"$0" "$@"; exit $?`, self)
		cmd.Args = append(cmd.Args, strings.Fields(args)...)
		cmd.Env = append(os.Environ(), mainVariable+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", args, err, out)
		}
		return string(out)
	}
	const settings = " --set train.epochs=1 --set quality.spearman_sample=4000 --set quality.partition=false --set quality.kl=false"
	report := program("config --check" + settings)
	var estimate float64
	if _, err := fmt.Sscanf(report, "memory: about %f MB", &estimate); err != nil {
		t.Fatalf("%v: %s", err, report)
	}
	program("train --quiet -o run" + settings)
	took := readMetrics(t, "run/metrics.json")["peak_rss_bytes"].(float64) / 1e6
	t.Logf("estimated %.0f MB, took %.0f", estimate, took)
	if ratio := estimate / took; ratio < 0.7 || ratio > 1.6 {
		t.Errorf("the estimate is %.2f times what the run took", ratio)
	}
}

// What does not fit is refused in a sentence, before anything is written.
func TestTooLittleMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	writeRandom(t, "images.npy", "|u1", 48, 32, 32, 3)
	writeRandom(t, "many.npy", "|u1", 1000000, 12)
	writeRandom(t, "large.npy", "|u1", 48, 400, 400, 3)
	images := func(settings ...string) string {
		return "simclr pretrain --quiet -o run --set data.path=images.npy --set train.batch_size=48 --set monitor.every=0 --set evaluate.at_end=false --set " + strings.Join(settings, " --set ")
	}
	mustRun(t, append(strings.Fields(images("network.width=4", "views.size=8", "train.epochs=1", "train.warm_up=0")), "-o", "trained")...)
	finished := func(args string) string { return "simclr " + args + " --quiet --set views.whole_size=4096" }
	const whole = "lower views.whole_size (the network at work: "
	for name, tc := range map[string]struct {
		limit, args, want string // limit is a command of the shell
	}{
		"large views":        {"true", images("views.size=4096"), "lower views.size (a batch: "},
		"large whole images": {"export GOMEMLIMIT=500MiB", images("simclr.method=tsimcne", "network.width=4", "views.whole_size=4096"), whole},
		"to be represented":  {"export GOMEMLIMIT=500MiB", finished("features trained images.npy -o run.npy"), whole},
		"to be placed":       {"export GOMEMLIMIT=500MiB", finished("project --model trained/model.safetensors images.npy -o run.csv"), whole},
		"to be evaluated":    {"export GOMEMLIMIT=500MiB", finished("evaluate trained"), whole},
		"to be classified":   {"export GOMEMLIMIT=200MiB", "simclr evaluate trained --quiet --pixels --set data.path=large.npy", "; give fewer data, or give more memory"},
		"of wide pixels":     {"export GOMEMLIMIT=200MiB", "simclr evaluate trained --quiet --pixels", "lower data.size (the covariance: 226 MB), or give more memory"},
		"a wide network":     {"true", images("network.width=4096"), "lower network.width (the network's weights with their gradients and copies: "},
		"a wide head":        {"true", images("network.out=65536", "network.hidden=65536"), "lower network.out (the output's weights with their gradients and copies: "},
		"many rows":          {"export GOMEMLIMIT=300MiB", "train --quiet -o run --set data.path=many.npy --set model.init=random", "give at most some "},
		"wide layers":        {"true", "train --quiet -o run --set model.kind=mlp --set model.hidden=[65536,30000,30000]", "model.hidden"},
		"many distances":     {"export GOMEMLIMIT=500MiB", "train --quiet -o run --set quality.spearman_sample=20000", ", with 10000 rows of data), but GOMEMLIMIT leaves"},
		"a soft limit":       {"export GOMEMLIMIT=150MiB", "config --check --set quality.spearman_sample=5000", "lower quality.spearman_sample (distances for the rank correlation: 401 MB)"},
		"address space":      {"ulimit -v 2000000", "train --quiet -o run --set quality.spearman_sample=20000", "(ulimit -v)"},
		"less than it takes": {"ulimit -d 400000", "train --quiet -o run --set quality.spearman_sample=20000", "(ulimit -d)"},
	} {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", fmt.Sprintf("%s && exec %s %s", tc.limit, self, tc.args))
			cmd.Env = append(os.Environ(), mainVariable+"=1")
			out, err := cmd.CombinedOutput()
			lines := strings.TrimSpace(string(out))
			code := cmd.ProcessState.ExitCode()
			if code != exitFailure && code != exitUsage || !strings.HasPrefix(lines, "cne: ") || strings.Contains(lines, "\n") || !strings.Contains(lines, tc.want) {
				t.Errorf("%v: %.600s\nwant one line with %q", err, lines, tc.want)
			}
			if _, err := os.Stat("run"); err == nil {
				t.Error("it has made a folder")
			}
		})
	}
}
