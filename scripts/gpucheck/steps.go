package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cne/internal/device/roofline"
	"cne/internal/process"
)

// A step is a piece of the check; steps.txt says what it does.
type step struct {
	name string
	part func(context.Context) error // sees to the data that it needs
	ask  bool                        // it is done only if it is named
	// run is the folder of a run that cannot be carried to another folder, where it
	// begins again.
	run string
	do  func(*check) error
}

// steps are those of all checks, in the order in which they tell most.
var steps = []step{
	{name: "ops", do: func(c *check) error { return c.tests("") }},
	{name: "table", part: mnist, do: (*check).table},
	{name: "parametric", part: mnist, do: (*check).parametric},
	{name: "kernels", do: (*check).kernels},
	{name: "simclr", part: cifar10, run: folderOfRun("simclr"), do: (*check).simclr},
	{name: "memcheck", do: func(c *check) error { return c.tests("memcheck") }},
	{name: "synccheck", do: func(c *check) error { return c.tests("synccheck") }},
	{name: longest, part: cifar10, do: (*check).simclrRun},
	{name: "racecheck", ask: true, do: func(c *check) error { return c.tests("racecheck") }},
}

// sanitized are the packages whose tests run under compute-sanitizer, under which they
// take many times as long: those that launch all kernels.
var sanitized = []string{"internal/device/kernels", "model/op", "train"}

// onGPU sets the key that says where a run is computed.
const onGPU = "device.name=cuda"

// A check is a step that is being carried out.
type check struct {
	*visit
	ctx     context.Context
	begun   time.Time
	report  *report
	earlier *report // nil: there was none
}

func reportName(step string) string { return "report-" + step + ".json" }

func (c *check) path() string { return filepath.Join(c.out, reportName(c.report.Step)) }

// save writes the report as far as it is known. It is called again and again, so that
// what is known is there if the process is killed.
func (c *check) save() error {
	c.report.Seconds = time.Since(c.begun).Seconds()
	text, err := json.MarshalIndent(c.report, "", "  ")
	if err != nil {
		return err
	}
	return replace(c.path(), append(text, '\n'))
}

// replace writes a file that is there whole or not at all.
func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o666); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// leaves notes in the report what would be left if the process ended now; "" for
// nothing.
func (c *check) leaves(what string) error {
	c.report.Left = what
	return c.save()
}

// errOver says that the visit's time is over, or that it was interrupted.
var errOver = errors.New("the time was over")

// command prepares a command, which is interrupted when the visit's time is over,
// and may then take a while to end.
func (c *check) command(name string, args ...string) *exec.Cmd {
	fmt.Fprintf(c.stdout, "+ %s %s\n", name, strings.Join(args, " "))
	cmd := exec.CommandContext(c.ctx, name, args...)
	cmd.WaitDelay = 15 * time.Second
	process.Separate(cmd)
	return cmd
}

// run runs a command and returns what it prints.
func (c *check) run(cmd *exec.Cmd) (string, error) {
	return c.runWatched(cmd, func() error { return nil })
}

// runWatched is run, and calls look every few seconds while the command runs.
func (c *check) runWatched(cmd *exec.Cmd, look func() error) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait(cmd) }()
	ticks := time.NewTicker(5 * time.Second)
	defer ticks.Stop()
	var err error
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-ticks.C:
			if err := look(); err != nil {
				// What is seen in the middle of a write is whole the next time.
				fmt.Fprintln(c.stdout, err)
			}
		}
	}
	c.note(stderr.String())
	if c.ctx.Err() != nil {
		return stdout.String(), errOver
	}
	if err != nil {
		return stdout.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, tail(stdout.String()+stderr.String(), 2000))
	}
	return stdout.String(), nil
}

// telling begin the lines in which cne says how it computes, and what it misses.
var telling = []string{"convolutions are ", "products of matrices are ", "small batches of the table are ", "cuDNN ", "nothing can be written to ", "there is no home folder"}

// note puts into the report what cne says of the device.
func (c *check) note(stderr string) {
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "computing on") && c.report.Device == "":
			c.report.Device = line
		case slices.ContainsFunc(telling, func(s string) bool { return strings.HasPrefix(line, s) }) && !slices.Contains(c.report.Notes, line):
			c.report.Notes = append(c.report.Notes, line)
		}
	}
}

// together runs a command to its end and returns all that it prints.
func together(cmd *exec.Cmd) (output string, err error) {
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		return "", err
	}
	err = process.Wait(cmd)
	return text.String(), err
}

// tail returns the end of a text.
func tail(s string, n int) string {
	if len(s) > n {
		s = "…" + s[len(s)-n:]
	}
	return strings.TrimSpace(s)
}

// eachPackage calls do with each that the earlier visit has not done, and keeps
// the report up to date.
func (c *check) eachPackage(packages []string, do func(p string) error) error {
	if len(c.packages) > 0 {
		packages = c.packages
	}
	if c.earlier != nil && c.earlier.Left != "" && len(c.packages) == 0 {
		c.report.Tests, c.report.Benchmarks = c.earlier.Tests, c.earlier.Benchmarks
		c.report.Note = "begun on " + c.earlier.Started.Format("2006-01-02 15:04")
	}
	done := map[string]bool{}
	for _, t := range c.report.Tests {
		done[t.Package] = true
	}
	packages = slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return done[p] })
	for i, p := range packages {
		if err := c.leaves(strings.Join(packages[i:], ", ")); err != nil {
			return err
		}
		if err := do(p); errors.Is(err, errOver) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return c.leaves("")
}

// testsFolder is where the tests of a package run.
func testsFolder(p string) string { return filepath.Join("programs", "of", p) }

// hasTests returns an error if the programs have no tests of a package.
func hasTests(p string) error {
	if _, err := os.Stat(testsFolder(p)); err != nil {
		return fmt.Errorf("the programs have no tests of %s; scripts/gpu-check --packages says of which packages they are built", p)
	}
	return nil
}

// inTests prepares the tests of a package, under a command if one is given.
func (c *check) inTests(p string, args ...string) (*exec.Cmd, error) {
	// They run where their testdata are.
	program, err := filepath.Abs("programs/tests")
	if err != nil {
		return nil, err
	}
	for i, a := range args {
		if a == "" {
			args[i] = program
		}
	}
	cmd := c.command(args[0], args[1:]...)
	cmd.Dir = testsFolder(p)
	cmd.Env = append(os.Environ(), "CUDA_TESTS=required")
	return cmd, nil
}

// tests runs the tests of packages, under a tool of compute-sanitizer if one is named.
func (c *check) tests(tool string) error {
	packages, err := builtPackages()
	if err != nil {
		return err
	}
	var under []string
	if tool != "" {
		sanitizer := findSanitizer()
		if sanitizer == "" {
			c.report.Note = "not done: there is no compute-sanitizer (which CUDA's toolkit has) in PATH, /usr/local/cuda or Python's packages"
			return nil
		}
		under = []string{sanitizer, "--tool", tool, "--error-exitcode", "86"}
		if tool == "memcheck" {
			// Calls that fail on purpose are no errors of a kernel.
			under = append(under, "--report-api-errors", "no")
		}
		packages = slices.DeleteFunc(packages, func(p string) bool { return !slices.Contains(sanitized, p) })
	}
	// test runs those tests of a package of which the names match, for so long at most.
	test := func(p, names, most string) (output string, err error) {
		args := append(slices.Clone(under), "", p, "-test.v", "-test.run", names, "-test.timeout", most)
		if tool != "" {
			args = append(args, "-test.short")
		}
		cmd, err := c.inTests(p, args...)
		if err != nil {
			return "", err
		}
		if tool != "" {
			cmd.Env = append(cmd.Env, "CNE_LIBCUDNN=none") // its kernels are not ours to check
		}
		return together(cmd)
	}
	return c.eachPackage(packages, func(p string) error {
		if err := hasTests(p); err != nil {
			return err
		}
		begun := time.Now()
		// A test that hangs is to be named before the visit's time is over.
		output, err := test(p, "Device", "6m")
		t := results(output)
		if c.ctx.Err() != nil {
			if n := len(t.Failed); n > 0 {
				c.report.Note = fmt.Sprintf("interrupted in %s of %s", t.Failed[n-1], p)
			}
			return errOver
		}
		t.Package, t.Tool, t.Seconds = p, tool, time.Since(begun).Seconds()
		named := slices.Clone(t.Failed)
		if err != nil || len(t.Failed) > 0 {
			if len(t.Failed) == 0 {
				t.Failed = []string{err.Error()}
			}
			t.Output = tail(output, 6000)
		}
		at := len(c.report.Tests)
		c.report.Tests = append(c.report.Tests, t)
		fmt.Fprintf(c.stdout, "%s: %d passed, %d skipped, failed: %s\n", p, len(t.Passed), len(t.Skipped), or(strings.Join(t.Failed, ", "), "none"))
		// A kernel that fails leaves a process without its device, so that all tests
		// after it fail, too: each is tried in a process of its own.
		for _, name := range named {
			if err := c.save(); err != nil {
				return err
			}
			output, err := test(p, "^"+name+"$", "1m")
			if c.ctx.Err() != nil {
				return nil
			}
			t := &c.report.Tests[at]
			if alone := results(output); err == nil && len(alone.Failed) == 0 {
				t.FailedAfter = append(t.FailedAfter, name)
			} else {
				t.FailedAlone = append(t.FailedAlone, name)
				t.Output += "\n\n" + name + " alone:\n" + tail(output, 2000)
			}
		}
		if len(named) > 0 {
			t := c.report.Tests[at]
			fmt.Fprintf(c.stdout, "%s: failed alone: %s; failed after another: %s\n", p, or(strings.Join(t.FailedAlone, ", "), "none"), or(strings.Join(t.FailedAfter, ", "), "none"))
		}
		return nil
	})
}

// builtPackages returns the packages of which the tests are here.
func builtPackages() ([]string, error) {
	list, err := os.ReadFile("programs/packages")
	if err != nil {
		return nil, errors.New("there is no programs/packages beside run; make the programs again with scripts/gpu-check --parts programs, and copy them here")
	}
	return strings.Fields(string(list)), nil
}

// kernels runs the benchmarks.
func (c *check) kernels() error {
	packages, err := builtPackages()
	if err != nil {
		return err
	}
	return c.eachPackage(packages, func(p string) error {
		if err := hasTests(p); err != nil {
			return err
		}
		args := []string{"", p, "-test.run", "^$", "-test.bench", "Device", "-test.timeout", "6m"}
		if c.short {
			args = append(args, "-test.short", "-test.benchtime", "1x")
		} else {
			args = append(args, "-test.benchtime", "300ms")
		}
		cmd, err := c.inTests(p, args...)
		if err != nil {
			return err
		}
		begun := time.Now()
		output, err := together(cmd)
		if c.ctx.Err() != nil {
			return errOver
		}
		found := benchmarks(output)
		c.report.Benchmarks = append(c.report.Benchmarks, found...)
		t := tested{Package: p, Tool: "benchmarks", Seconds: time.Since(begun).Seconds(), Passed: []string{}}
		for _, b := range found {
			t.Passed = append(t.Passed, b.Name)
		}
		if err != nil {
			t.Failed, t.Output = []string{err.Error()}, tail(output, 6000)
		}
		c.report.Tests = append(c.report.Tests, t)
		fmt.Fprintf(c.stdout, "%s: %d benchmarks\n", p, len(found))
		for _, b := range found {
			fmt.Fprintf(c.stdout, "  %s: %s; at best %s\n", b.Name, duration(b.Seconds), or(b.roofline(), "unknown"))
		}
		return nil
	})
}

// benchmarks reads what go test -bench prints.
func benchmarks(output string) (found []benchmark) {
	for line := range strings.Lines(output) {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		// The number of cores is part of the name.
		name := strings.TrimPrefix(words[0], "Benchmark")
		if i := strings.LastIndex(name, "-"); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		b := benchmark{Name: name, Rates: map[string]float64{}}
		var roofs []roofline.Roof
		for i := 2; i+1 < len(words); i += 2 {
			v, err := strconv.ParseFloat(words[i], 64)
			roof, isRoof := roofline.Parse(v, words[i+1])
			switch unit := words[i+1]; {
			case err != nil:
			case isRoof:
				roofs = append(roofs, roof)
			case unit == "ns/op":
				b.Seconds = v * 1e-9
			case strings.Contains(unit, "/s"):
				b.Rates[unit] = v
			}
		}
		b.Best, b.By = roofline.Best(roofs)
		found = append(found, b)
	}
	return found
}

// results reads what go test -v prints of the tests, without their parts.
func results(output string) (t tested) {
	t.Passed = []string{}
	running := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, ": ")
		name, _, _ := strings.Cut(rest, " ")
		switch word {
		case "--- PASS":
			t.Passed = append(t.Passed, name)
		case "--- SKIP":
			t.Skipped = append(t.Skipped, name)
		case "--- FAIL":
			t.Failed = append(t.Failed, name)
		default:
			if name, ok := strings.CutPrefix(line, "=== RUN   "); ok && !strings.Contains(name, "/") {
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

// mnist sees to the four files of MNIST, of which two are among the programs.
func mnist(context.Context) error {
	for _, name := range []string{"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"} {
		path := filepath.Join("data/mnist", name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("programs/mnist", name))
		if err != nil {
			return fmt.Errorf("the part mnist is missing (there is no %s beside run); make it with scripts/gpu-check --parts mnist, and copy it here", path)
		}
		if err := os.MkdirAll("data/mnist", 0o777); err != nil {
			return err
		}
		if err := replace(path, text); err != nil {
			return err
		}
	}
	return nil
}

// cifar10 unpacks the images of CIFAR-10, unless that was done before.
func cifar10(ctx context.Context) error {
	const archive, to = "data/cifar10-jpeg.tar.xz", "data/cifar10"
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	const again = "make it with scripts/gpu-check --parts cifar10, and copy it here"
	if _, err := os.Stat(archive); err != nil {
		return fmt.Errorf("the part cifar10 is missing (there is no %s beside run); %s", archive, again)
	}
	const into = to + ".part"
	if err := errors.Join(os.RemoveAll(into), os.MkdirAll(into, 0o777)); err != nil {
		return err
	}
	// tar needs xz; Python has its own.
	if exec.CommandContext(ctx, "tar", "-xJf", archive, "-C", into).Run() != nil && ctx.Err() == nil {
		python := or(os.Getenv("PYTHON"), "python3")
		const unpack = "import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])"
		if exec.CommandContext(ctx, python, "-c", unpack, archive, into).Run() != nil && ctx.Err() == nil {
			return fmt.Errorf("%s is unpacked neither by tar with xz nor by %s: it is damaged, or neither is here; %s", archive, python, again)
		}
	}
	if ctx.Err() != nil {
		return errOver
	}
	if err := os.Rename(filepath.Join(into, "cifar10"), to); err != nil {
		return fmt.Errorf("%s has no folder cifar10; %s", archive, again)
	}
	return os.RemoveAll(into)
}

// train runs cne train, for so many epochs if that is not 0, and returns its figures,
// and the seconds of each epoch.
func (c *check) train(folder string, epochs int, args ...string) (command string, figures metrics, seconds []float64, err error) {
	args = append([]string{"train", "--force", "--output", folder, "--set", onGPU}, args...)
	args = append(args, c.set...)
	if epochs > 0 {
		args = append(args, "--epochs", strconv.Itoa(epochs))
	}
	if _, err := c.run(c.command("programs/cne", args...)); err != nil {
		return "", figures, nil, err
	}
	if err := readJSON(filepath.Join(folder, "metrics.json"), &figures); err != nil {
		return "", figures, nil, err
	}
	c.report.Version = figures.Version
	seconds, _, err = epochSeconds(folder)
	return "cne " + strings.Join(args, " "), figures, seconds, err
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
		if err := c.leaves("b=" + b.name); err != nil {
			return err
		}
		folder := fmt.Sprintf("runs/table-%d", b.size)
		args := []string{"--config", "programs/configs/mnist-negtsne.yaml", "--set", "data.path=data/mnist", "--set", fmt.Sprintf("train.batch_size=%d", b.size)}
		// The driver compiles what kernels it meets for the first time, and keeps them.
		few := 2
		if c.epochs > 0 {
			few = min(few, c.epochs)
		}
		_, _, _, err := c.train(folder+"-before", few, args...)
		if errors.Is(err, errOver) {
			return nil
		} else if err != nil {
			return err
		}
		command, m, epochs, err := c.train(folder, c.epochs, args...)
		if errors.Is(err, errOver) {
			return nil
		} else if err != nil {
			return err
		}
		more := m.more()
		more["first epoch"] = epochs[0]
		c.report.Runs = append(c.report.Runs, ran{
			Name: fmt.Sprintf("Neg-t-SNE of MNIST, table, b=%s, %d epochs", b.name, m.Epochs), Goal: b.goal, Figure: m.Seconds.Optimize, Unit: "s",
			Like: fmt.Sprintf("EpochOnDevice/table/b=%d/m=5", b.size), Times: float64(m.Epochs),
			More: more, Command: command,
		})
	}
	return c.leaves("")
}

func (c *check) parametric() error {
	if err := c.leaves("all of it"); err != nil {
		return err
	}
	command, m, epochs, err := c.train("runs/parametric", c.epochs, "--config", "programs/configs/mnist-parametric-negtsne.yaml",
		"--set", "data.path=data/mnist/train-images-idx3-ubyte.gz", "--set", "data.labels=data/mnist/train-labels-idx1-ubyte.gz",
		"--set", "data.holdout=data/mnist/t10k-images-idx3-ubyte.gz", "--set", "data.holdout_labels=data/mnist/t10k-labels-idx1-ubyte.gz",
		"--set", "train.batch_size=32768")
	if errors.Is(err, errOver) {
		return nil
	} else if err != nil {
		return err
	}
	c.report.Runs = append(c.report.Runs, ran{
		Name: "Neg-t-SNE of MNIST, network, b=2¹⁵, an epoch", Goal: 0.5, Figure: usual(epochs), Unit: "s", Like: "EpochOnDevice/network/b=32768/m=5", Times: 1, More: m.more(), Command: command,
	})
	return c.leaves("")
}

// batches is the number of whole batches in an epoch of SimCLR, of so many views.
const (
	images  = 60000
	views   = 2048
	batches = images / (views / 2)
)

// simclr measures steps, in turn with PyTorch's, and then trains and evaluates the
// network of the paper as far as the time goes. What an earlier visit has measured is
// not measured again.
func (c *check) simclr() error {
	if c.earlier != nil && c.earlier.Left != "" && c.earlier.Left != allSteps {
		c.report.Runs, c.report.Note = c.earlier.Runs, c.earlier.Note
		if i := slices.IndexFunc(c.report.Runs, ran.isProgress); i >= 0 {
			c.report.Runs = c.report.Runs[:i]
		}
		if c.report.Version, c.report.Notes = c.earlier.Version, c.earlier.Notes; !strings.Contains(c.report.Note, measuredOn) {
			c.report.Note = strings.TrimPrefix(c.report.Note+"; "+measuredOn+c.earlier.Started.Format("2006-01-02 15:04"), "; ")
		}
	} else if done, err := c.simclrSteps(); err != nil || !done {
		return err
	}
	l := c.longRun("simclr", "")
	l.goal = 80
	if err := l.progress(); err != nil {
		return err
	}
	if done, err := l.goOn(c.set); err != nil || done {
		return err
	}
	return c.leaves(c.report.Left + "; it begins again in another folder, where the run is not, and goes on in this one")
}

// allSteps is what simclr leaves until it has measured steps, and measuredOn is how it
// says that an earlier visit has.
const (
	allSteps   = "all of it"
	measuredOn = "steps were measured on "
)

// simclrSteps measures steps. It is not done when the time is over.
func (c *check) simclrSteps() (done bool, err error) {
	if err := c.leaves(allSteps); err != nil {
		return false, err
	}
	const folder, few = "runs/simclr-epochs", 3
	epochs := few
	if c.epochs > 0 {
		epochs = min(epochs, c.epochs)
	}
	var theirs []float64
	var version string
	for turn := range 2 {
		seconds, v, err := c.torch()
		switch {
		case errors.Is(err, errOver):
			return false, nil
		case err != nil:
			// Python says last what is wrong.
			text := err.Error()
			c.report.Note = "PyTorch was not measured: " + text[strings.LastIndex(text, "\n")+1:]
		default:
			theirs, version = append(theirs, seconds), v
		}
		if turn > 0 {
			break
		}
		args := append([]string{"simclr", "pretrain", "--force", "--config", "programs/configs/simclr-cifar10.yaml", "--output", folder, "--epochs", strconv.Itoa(epochs),
			"--set", "data.path=data/cifar10", "--set", onGPU, "--set", "monitor.every=0", "--set", "evaluate.at_end=false"}, c.set...)
		// So few epochs have none to warm up in.
		args = append(args, "--set", "train.warm_up=0")
		if _, err := c.run(c.command("programs/cne", args...)); errors.Is(err, errOver) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		each, last, err := epochSeconds(folder)
		if err != nil {
			return false, err
		}
		c.report.Runs = append(c.report.Runs, ran{
			Name: "SimCLR on CIFAR-10, ResNet18, b=1024, an epoch with its views", Goal: 8, Figure: usual(each), Unit: "s",
			More: map[string]float64{"epochs": float64(last.Epoch), "loss": last.Loss, "first epoch": each[0]}, Command: "cne " + strings.Join(args, " "),
		})
		if err := c.save(); err != nil {
			return false, err
		}
	}
	if len(theirs) > 0 {
		slices.Sort(theirs)
		ours := c.report.Runs[0].Figure
		c.report.Runs = append(c.report.Runs,
			ran{Name: "PyTorch " + version + ", the same steps on images that are there already, TF32, channels last", Figure: theirs[0], Unit: "s", More: map[string]float64{"slowest": theirs[len(theirs)-1]}},
			ran{Name: "PyTorch's time as a multiple of cne's", Figure: theirs[0] / ours, Unit: "×", Goal: 1, AtLeast: true})
	}
	return true, nil
}

// torch measures PyTorch's steps and returns the seconds that an epoch of them takes.
func (c *check) torch() (seconds float64, version string, err error) {
	python := or(os.Getenv("PYTHON"), "python3")
	cmd := c.command(python, "programs/torch_resnet.py", "--device", "cuda", "--tf32", "--channels-last", "--views", strconv.Itoa(views), "--rounds", "30")
	cmd.Env = ownLibraries()
	text, err := c.run(cmd)
	if err != nil {
		return 0, "", err
	}
	var count, rate float64
	if _, err := fmt.Sscanf(text, "PyTorch %s\n%g %g", &version, &count, &rate); err != nil || rate <= 0 {
		return 0, "", fmt.Errorf("torch_resnet.py printed %q", text)
	}
	return batches * views / rate, version, nil
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

// simclrRun starts the run with the narrow network, or goes on with it, until it is at
// its end or the time is over. It leaves what the next visit needs as pieces.
func (c *check) simclrRun() error {
	l := c.longRun(longest, fmt.Sprintf(", width %d", c.width))
	// The run is in the folder, or in pieces, or it begins.
	p := pieces{run: longest, width: c.width, epochs: l.epochs}
	if !begun(l.folder) {
		epoch, err := p.join(l.folder, c.out, c.resume)
		if err != nil {
			return err
		}
		if epoch > 0 {
			fmt.Fprintf(c.stdout, "going on after epoch %d\n", epoch)
		}
	}
	l.kept = func(epoch int) error {
		size, err := p.split(l.folder, c.out, epoch, c.part, c.carry)
		if err == nil && size > c.carry {
			c.report.Note = fmt.Sprintf("the run's state has %.1f MiB and travels only up to %.1f (-carry-mib): in another folder the run begins again; a smaller -width makes it smaller", float64(size)/(1<<20), float64(c.carry)/(1<<20))
		}
		return err
	}
	done, err := l.goOn(append([]string{"--set", fmt.Sprintf("network.width=%d", c.width)}, c.set...))
	if err != nil || !done {
		return err
	}
	return p.remove(c.out)
}

// narrow is the width of the network of simclr-run: the largest multiple of 8 of which
// the state, of 13 MiB, travels beside this repository, the programs and CIFAR-10 where
// all of them may have 64 MiB. The paper's network has 64, and a state of 90 MiB.
const narrow = 24

// A longRun is a run of SimCLR that may be interrupted, and is then continued.
type longRun struct {
	*check
	folder  string
	suffix  string // of the names of its figures
	epochs  int
	goal    float64               // of the kNN accuracy in per cent; 0: none
	kept    func(epoch int) error // called when there is a new checkpoint; may be nil
	before  int                   // figures that the report has already
	trained string                // the command
}

func (c *check) longRun(name, suffix string) *longRun {
	l := &longRun{check: c, folder: folderOfRun(name), suffix: suffix, epochs: 100, before: len(c.report.Runs)}
	if c.epochs > 0 {
		l.epochs = c.epochs
	}
	return l
}

// folderOfRun is where the run of a step is.
func folderOfRun(step string) string { return "runs/" + step }

// checkpoint returns when the state of the run in a folder was last saved.
func checkpoint(folder string) (at time.Time, ok bool) {
	info, err := os.Stat(filepath.Join(folder, "checkpoint.safetensors"))
	if err != nil {
		return at, false
	}
	return info.ModTime(), true
}

// begun tells whether the run in a folder can go on.
func begun(folder string) bool {
	_, ok := checkpoint(folder)
	return ok
}

// goOn trains, with these flags if the run begins, and evaluates. It is not done when
// the time is over, which the report then says.
func (l *longRun) goOn(set []string) (done bool, err error) {
	args := []string{"simclr", "pretrain", "--epochs", strconv.Itoa(l.epochs), "--set", onGPU,
		"--set", "monitor.every=0", "--set", "evaluate.at_end=false", "--set", "checkpoint.minutes=1"}
	if begun(l.folder) {
		args = append(args, "--resume", l.folder)
	} else {
		args = append(append(args, "--force", "--config", "programs/configs/simclr-cifar10.yaml", "--output", l.folder, "--set", "data.path=data/cifar10"), set...)
	}
	l.trained = "cne " + strings.Join(args, " ")
	if _, err := os.Stat(filepath.Join(l.folder, "metrics.json")); err != nil {
		var saved time.Time
		look := func() error {
			if err := l.progress(); err != nil {
				return err
			}
			at, ok := checkpoint(l.folder)
			if !ok || at.Equal(saved) || l.kept == nil {
				return nil
			}
			saved = at
			return l.kept(l.epoch())
		}
		_, err := l.runWatched(l.command("programs/cne", args...), look)
		if err := errors.Join(err, look()); err != nil && !errors.Is(err, errOver) {
			return false, err
		}
		if err != nil {
			return false, nil
		}
	}
	if err := l.progress(); err != nil {
		return false, err
	}
	if l.epoch() < l.epochs || l.ctx.Err() != nil {
		return false, nil
	}
	if err := l.leaves("the accuracies"); err != nil {
		return false, err
	}
	if _, err := l.run(l.command("programs/cne", append([]string{"simclr", "evaluate", l.folder, "--set", onGPU}, l.set...)...)); errors.Is(err, errOver) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	var e struct {
		KNN    struct{ Mean, Std float64 } `json:"knn"`
		Linear struct{ Mean, Std float64 } `json:"linear"`
	}
	if err := readJSON(filepath.Join(l.folder, "evaluation.json"), &e); err != nil {
		return false, err
	}
	l.report.Runs = append(l.report.Runs,
		ran{Name: fmt.Sprintf("kNN accuracy after %d epochs%s", l.epochs, l.suffix), Figure: 100 * e.KNN.Mean, Unit: "%", Goal: l.goal, AtLeast: true, More: map[string]float64{"standard deviation": 100 * e.KNN.Std}},
		ran{Name: fmt.Sprintf("accuracy of the linear probe after %d epochs%s", l.epochs, l.suffix), Figure: 100 * e.Linear.Mean, Unit: "%", More: map[string]float64{"standard deviation": 100 * e.Linear.Std}})
	return true, l.leaves("")
}

// epoch returns how many epochs are done.
func (l *longRun) epoch() int {
	_, last, err := epochSeconds(l.folder)
	if err != nil {
		return 0 // there is no record yet
	}
	return last.Epoch
}

// epochsDone is the unit of the figure that says how far a run has come.
const epochsDone = "epochs"

func (r ran) isProgress() bool { return r.Unit == epochsDone }

// progress writes down how far the run has come.
func (l *longRun) progress() error {
	each, last, err := epochSeconds(l.folder)
	if err != nil {
		return l.leaves("all of its epochs") // there is no record yet
	}
	l.report.Runs = append(l.report.Runs[:l.before], ran{
		Name: fmt.Sprintf("SimCLR on CIFAR-10, m=16%s, epochs of %d that are done", l.suffix, l.epochs), Figure: float64(last.Epoch), Unit: epochsDone,
		More: map[string]float64{"loss": last.Loss, "seconds of an epoch": usual(each), "seconds": last.Seconds}, Command: l.trained,
	})
	if last.Epoch >= l.epochs {
		return l.leaves("the accuracies")
	}
	return l.leaves(fmt.Sprintf("epochs %d to %d, and the accuracies", last.Epoch+1, l.epochs))
}
