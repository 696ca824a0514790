package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/configs"
	"cne/model/op"
)

// peakVariable names the file to which the test binary, as the program, writes the most
// memory that it has had resident. (What the system tells of a child that has ended
// counts its parent, too.)
const peakVariable = "TELL_THE_PEAK"

func init() {
	path := os.Getenv(peakVariable)
	if path == "" {
		return
	}
	op.Accelerate()
	code := run(context.Background(), commands, os.Args[1:], os.Stdout, os.Stderr)
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		err = os.WriteFile(path, status, 0o666)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

// peakOf returns the most memory that the program has resident with some arguments.
func peakOf(t *testing.T, args ...string) int64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "status")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), peakVariable+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(readText(t, path)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kilobytes); err == nil {
			return kilobytes * 1024
		}
	}
	t.Fatal("the system does not tell the peak")
	return 0
}

// bare returns what the program takes for nothing: the least of some trials.
func bare(t *testing.T) int64 {
	t.Helper()
	var trials []int64
	for range 3 {
		trials = append(trials, peakOf(t, "version"))
	}
	return slices.Min(trials)
}

// The estimate is at most 30 % below and 40 % above the memory that real runs take beyond the
// bare program, whatever else keeps the machine busy, on which collecting garbage depends.
func TestMemoryEstimate(t *testing.T) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		t.Skip("GOGC or GOMEMLIMIT is set, which changes when memory is freed")
	}
	t.Chdir(t.TempDir())
	const named = 80000
	writeRandom(t, "large.npy", "<f4", 150000, 6)
	writeRandom(t, "many.npy", "<f4", named, 6) // enough where all are compared with all
	writeRandom(t, "images.npy", "|u1", 256, 32, 32, 3)
	writeRandom(t, "stored.npy", "|u1", 30000, 400)
	var names, ages strings.Builder
	for i := range named {
		fmt.Fprintf(&names, "the point with number %d\n", i)
		fmt.Fprintf(&ages, "%d.5\n", i%1000)
	}
	writeTestFile(t, "names.txt", names.String())
	writeTestFile(t, "ages.txt", ages.String())
	base := bare(t)
	set := func(settings ...string) (args []string) {
		for _, s := range settings {
			args = append(args, "--set", s)
		}
		return args
	}
	for name, tc := range map[string]struct {
		long bool
		args []string
	}{
		"table":            {false, set("train.epochs=1", "quality.spearman=0")},
		"approximate":      {false, set("data.path=large.npy", "graph.search=approximate", "train.epochs=1", "quality.spearman=0", "quality.partition=false", "quality.kl=false", "quality.recall=false")},
		"network":          {false, set("model.kind=mlp", "train.epochs=1", "quality.spearman=0")},
		"wide network":     {true, set("model.kind=mlp", "train.epochs=1", "quality.spearman=0", "quality.recall=false", "quality.partition=false", "quality.kl=false", "model.hidden=[800,800]", "train.batch_size=65536")},
		"many points":      {true, set("data.path=many.npy", "train.epochs=1", "quality.spearman=0", "quality.partition=false", "quality.kl=false")},
		"stored points":    {false, set("data.path=stored.npy", "train.epochs=1", "quality.spearman=0", "quality.recall=false", "quality.partition=false", "quality.kl=false", "graph.search=approximate")},
		"names, columns":   {false, set("data.path=many.npy", "data.names=names.txt", "output.html_color=[ages.txt]", "output.html=true", "graph.search=approximate", "train.epochs=1", "quality.spearman=0", "quality.partition=false", "quality.kl=false", "quality.recall=false")},
		"all negatives":    {true, set("train.epochs=1", "quality.spearman=0", "loss.negatives=full", "train.batch_size=16384")},
		"listed":           {true, set("train.epochs=1", "quality.spearman=0", "loss.negatives=200", "loss.draw=singly", "train.batch_size=100000")},
		"rank correlation": {true, set("train.epochs=1", "quality.spearman=5000", "quality.recall=false", "quality.partition=false", "quality.kl=false")},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.long && testing.Short() {
				t.Skip("it takes long")
			}
			compareMemory(t, configs.Train, base, append([]string{"train", "-o", strings.ReplaceAll(name, " ", "-")}, tc.args...))
		})
	}
	t.Run("images", func(t *testing.T) {
		compareMemory(t, configs.Pretrain, base, append([]string{"simclr", "pretrain", "-o", "images"}, set("data.path=images.npy", "network.width=16",
			"train.batch_size=128", "train.epochs=1", "train.warm_up=0", "monitor.every=0", "evaluate.at_end=false")...))
	})
}

// compareMemory compares the estimate of a run with what it takes beyond the base.
func compareMemory[C any](t *testing.T, s *configs.Schema[C], base int64, args []string) {
	t.Helper()
	var settings []configs.Setting
	for i, a := range args {
		if a == "--set" {
			x, err := configs.ParseSetting("--set", args[i+1])
			if err != nil {
				t.Fatal(err)
			}
			settings = append(settings, x)
		}
	}
	c, _, err := s.Load(configs.Sources{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Memory(c, s.DataSize(t.Context(), c), configs.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	took := peakOf(t, args...) - base
	ratio := float64(e.Peak) / float64(took)
	t.Logf("estimated %d MB, took %d MB beyond %d MB: %.2f", e.Peak>>20, took>>20, base>>20, ratio)
	if ratio < 0.7 || ratio > 1.4 {
		t.Errorf("estimated %d bytes, took %d: %.2f times as much", e.Peak, took, ratio)
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
		"to be classified":   {"export GOMEMLIMIT=200MiB", "simclr evaluate trained --quiet --pixels --set data.path=large.npy", "give fewer images (their directions: 184 MB), or more memory"},
		"of wide pixels":     {"export GOMEMLIMIT=200MiB", "simclr evaluate trained --quiet --pixels", "make the images smaller by data.size (their covariance: 226 MB), or give more memory"},
		"a wide network":     {"true", images("network.width=4096"), "lower network.width (the network's weights with their gradients and copies: "},
		"a wide head":        {"true", images("network.out=65536", "network.hidden=65536"), "lower network.out (the network's weights with their gradients and copies: "},
		"many rows":          {"export GOMEMLIMIT=300MiB", "train --quiet -o run --set data.path=many.npy --set model.init=random", "give at most some "},
		"wide layers":        {"true", "train --quiet -o run --set model.kind=mlp --set model.hidden=[65536,30000,30000]", "model.hidden"},
		"many distances":     {"export GOMEMLIMIT=500MiB", "train --quiet -o run --set quality.spearman=20000", ", with 10000 rows of data), but GOMEMLIMIT leaves"},
		"a soft limit":       {"export GOMEMLIMIT=150MiB", "config --check", "lower quality.spearman (distances for the rank correlation: 201 MB)"},
		"address space":      {"ulimit -v 2000000", "train --quiet -o run --set quality.spearman=20000", "(ulimit -v)"},
		"less than it takes": {"ulimit -d 400000", "train --quiet -o run --set quality.spearman=20000", "(ulimit -d)"},
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
