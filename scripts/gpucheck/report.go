package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A report is what came of a step.
type report struct {
	Step    string    `json:"step"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Machine machine   `json:"machine"`
	// Check says of which sources the programs are, and Version what cne says of itself;
	// Sources is the checksum by which they are told apart.
	Check   string `json:"check"`
	Sources string `json:"sources"`
	Version string `json:"version,omitempty"`
	// Allotted is how many seconds the visit had for the step.
	Allotted float64 `json:"allotted"`
	// Device is the sentence in which cne says where it computes.
	Device string `json:"device,omitempty"`
	// Notes is what else it says of how it computes, such as which library has the
	// convolutions.
	Notes []string `json:"notes,omitempty"`
	Tests []tested `json:"tests,omitempty"`
	Runs  []ran    `json:"runs,omitempty"`
	// Benchmarks are those of kernels.
	Benchmarks []benchmark `json:"benchmarks,omitempty"`
	// Note says what was not done, and why that is no failure.
	Note string `json:"note,omitempty"`
	// Left says what a next visit has to do, since the time of this one was over, or
	// its process ended. Empty: the step is at its end.
	Left  string `json:"left,omitempty"`
	Error string `json:"error,omitempty"`
}

// A machine is what the step ran on.
type machine struct {
	GPU    string `json:"gpu"`    // as nvidia-smi names it; empty if that is not there
	Driver string `json:"driver"` //
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
}

// tested is what came of a package's tests.
type tested struct {
	Package string   `json:"package"`
	Tool    string   `json:"tool,omitempty"` // of compute-sanitizer, or benchmarks
	Seconds float64  `json:"seconds"`
	Passed  []string `json:"passed"`
	Skipped []string `json:"skipped,omitempty"`
	Failed  []string `json:"failed,omitempty"`
	// FailedAlone are those of Failed that fail in a process of their own as well, and
	// FailedAfter those that do not, so that it was a test before them that left the
	// device unusable. For the rest there was no time, or they name no test.
	FailedAlone []string `json:"failed_alone,omitempty"`
	FailedAfter []string `json:"failed_after,omitempty"`
	// Output is the end of what was printed, if not all is well.
	Output string `json:"output,omitempty"`
}

// benchmark is what came of a benchmark.
type benchmark struct {
	Name    string             `json:"name"`
	Seconds float64            `json:"seconds"` // of an operation
	Rates   map[string]float64 `json:"rates,omitempty"`
	// Best is how many seconds the GPU takes at best, its roofline, and By what takes
	// them. 0: nothing is known of it.
	Best float64 `json:"best,omitempty"`
	By   string  `json:"by,omitempty"`
}

// roofline prints the roofline, and which share of it was reached; "" if there is none.
func (b benchmark) roofline() string {
	if b.Best == 0 || b.Seconds == 0 {
		return ""
	}
	return fmt.Sprintf("%s, %.2g %% reached: %s", duration(b.Best), 100*b.Best/b.Seconds, b.By)
}

// duration prints seconds with three digits.
func duration(seconds float64) string {
	switch {
	case seconds >= 1:
		return fmt.Sprintf("%.3g s", seconds)
	case seconds >= 1e-3:
		return fmt.Sprintf("%.3g ms", 1e3*seconds)
	}
	return fmt.Sprintf("%.3g µs", 1e6*seconds)
}

// limits are the benchmarks that measure what the GPU can do at most, by the unit of
// their rates.
var limits = map[string]string{"GB/s": "DeviceCopy", "TFLOP/s": "DeviceProduct", "TFLOP/s-tf32": "DeviceProduct", "TFLOP/s-bf16": "DeviceProduct"}

// ran is a run that was measured.
type ran struct {
	Name string `json:"name"`
	// Goal says what Figure, in Unit, should be: at most so much, or, if AtLeast, at
	// least; 0 where there is none.
	Goal    float64 `json:"goal,omitempty"`
	AtLeast bool    `json:"at_least,omitempty"`
	Figure  float64 `json:"figure"`
	Unit    string  `json:"unit"`
	// Like names a benchmark that does the same, for Times times its time: the run's
	// roofline is that of so many.
	Like  string  `json:"like,omitempty"`
	Times float64 `json:"times,omitempty"`
	// More is what else was measured.
	More    map[string]float64 `json:"more,omitempty"`
	Command string             `json:"command,omitempty"`
}

// reached tells whether a run is as good as it should be.
func (r ran) reached() bool {
	return r.Goal == 0 || r.AtLeast && r.Figure >= r.Goal || !r.AtLeast && r.Figure <= r.Goal
}

// ended tells whether there is nothing left of a step that would be done unasked.
func (r *report) ended() bool { return r.Left == "" || r.Error != "" }

// failures prints which tests have failed.
func (t tested) failures() string {
	if len(t.FailedAlone)+len(t.FailedAfter) == 0 {
		return or(strings.Join(t.Failed, ", "), "0")
	}
	rest := slices.DeleteFunc(slices.Clone(t.Failed), func(s string) bool {
		return slices.Contains(t.FailedAlone, s) || slices.Contains(t.FailedAfter, s)
	})
	var parts []string
	for _, part := range []struct {
		how   string
		names []string
	}{{"alone", t.FailedAlone}, {"after another", t.FailedAfter}, {"not tried alone", rest}} {
		if len(part.names) > 0 {
			parts = append(parts, part.how+": "+strings.Join(part.names, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// well tells whether everything worked. Whether it was fast enough is another
// matter.
func (r *report) well() bool {
	for _, t := range r.Tests {
		if len(t.Failed) > 0 {
			return false
		}
	}
	return r.Error == ""
}

func thisMachine(ctx context.Context) machine {
	m := machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU()}
	if out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").Output(); err == nil {
		first, _, _ := strings.Cut(string(out), "\n")
		m.GPU, m.Driver, _ = strings.Cut(strings.TrimSpace(first), ", ")
	}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if key, value, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(key) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	return m
}

// The marks between which figures stand in a Markdown file.
const (
	beginMark = "<!-- gpu-check: begin -->"
	endMark   = "<!-- gpu-check: end -->"
)

// writeDown puts the reports of a folder into a Markdown file.
func writeDown(folder, file string) error {
	var all []*report
	for _, s := range steps {
		text, err := os.ReadFile(filepath.Join(folder, "report-"+s.name+".json"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		r := new(report)
		if err := json.Unmarshal(text, r); err != nil {
			return fmt.Errorf("%s is no report: %w", filepath.Join(folder, "report-"+s.name+".json"), err)
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no report-*.json in %s; run a step on a machine with a GPU first", folder)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return fmt.Errorf("%s lacks the lines %s and %s, between which the figures go", file, beginMark, endMark)
	}
	return os.WriteFile(file, []byte(before+beginMark+"\n"+markdown(all)+endMark+after), 0o666)
}

// markdown prints reports.
func markdown(all []*report) string {
	var b strings.Builder
	fmt.Fprint(&b, "| step | when | on | driver | processor | took |\n|---|---|---|---|---|---|\n")
	for _, r := range all {
		gpu := r.Machine.GPU
		if gpu == "" {
			gpu = "no GPU that nvidia-smi knows"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s, %d cores | %.0f s |\n", r.Step, r.Started.Format("2006-01-02 15:04"), gpu, r.Machine.Driver, r.Machine.CPU, r.Machine.Cores, r.Seconds)
	}
	for _, r := range all {
		if r.Device != "" {
			fmt.Fprintf(&b, "\ncne %s: %s\n", or(r.Version, r.Check), r.Device)
			break
		}
	}
	// A sentence that several steps have is said once.
	var sentences []string
	steps := map[string][]string{}
	for _, r := range all {
		for _, s := range r.Notes {
			if len(steps[s]) == 0 {
				sentences = append(sentences, s)
			}
			steps[s] = append(steps[s], r.Step)
		}
	}
	for _, s := range sentences {
		fmt.Fprintf(&b, "\n%s: %s.\n", strings.Join(steps[s], ", "), strings.TrimSuffix(s, "."))
	}

	rows := 0
	for _, r := range all {
		for _, x := range r.Runs {
			if rows == 0 {
				fmt.Fprint(&b, "\n| run | measured | goal | reached | at best |\n|---|---|---|---|---|\n")
			}
			rows++
			goal, reached := "", ""
			if x.Goal != 0 {
				word := "at most"
				if x.AtLeast {
					word = "at least"
				}
				goal, reached = fmt.Sprintf("%s %.4g %s", word, x.Goal, x.Unit), "no"
				if x.reached() {
					reached = "yes"
				}
			}
			fmt.Fprintf(&b, "| %s | %.4g %s | %s | %s | %s |\n", x.Name, x.Figure, x.Unit, goal, reached, atBest(x, all))
		}
	}

	rows = 0
	for _, r := range all {
		for _, t := range r.Tests {
			if rows == 0 {
				fmt.Fprint(&b, "\n| tests of | under | passed | skipped | failed | took |\n|---|---|---|---|---|---|\n")
			}
			rows++
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %s | %.1f s |\n", t.Package, t.Tool, len(t.Passed), len(t.Skipped), t.failures(), t.Seconds)
		}
	}
	b.WriteString(benchmarkTable(all))
	for _, r := range all {
		left := ""
		if r.Left != "" {
			left = "not at its end; left are " + r.Left
		}
		for _, s := range []string{r.Note, left, r.Error} {
			if s != "" {
				fmt.Fprintf(&b, "\n%s: %s.\n", r.Step, strings.TrimSuffix(s, "."))
			}
		}
	}
	return b.String()
}

// atBest prints the roofline of a run from the benchmark that does the same, if one of
// the reports has it.
func atBest(x ran, all []*report) string {
	for _, r := range all {
		for _, b := range r.Benchmarks {
			if x.Like != "" && b.Name == x.Like {
				return benchmark{Seconds: x.Figure, Best: x.Times * b.Best, By: b.By}.roofline()
			}
		}
	}
	return ""
}

// benchmarkTable prints the benchmarks, with the share of the limits that their rates
// are where there are both.
func benchmarkTable(all []*report) string {
	var b strings.Builder
	most := map[string]float64{}
	for _, r := range all {
		for _, x := range r.Benchmarks {
			for unit, rate := range x.Rates {
				if name := limits[unit]; name != "" && strings.HasPrefix(x.Name, name) {
					most[unit] = max(most[unit], rate)
				}
			}
		}
	}
	for _, r := range all {
		if len(r.Benchmarks) > 0 {
			fmt.Fprint(&b, "\n| kernel | time | rate | at best |\n|---|---|---|---|\n")
		}
		for _, x := range r.Benchmarks {
			var rates []string
			for _, unit := range slices.Sorted(maps.Keys(x.Rates)) {
				text := fmt.Sprintf("%.4g %s", x.Rates[unit], unit)
				if of := most[unit]; of > 0 {
					text += fmt.Sprintf(" (%.0f %%)", 100*x.Rates[unit]/of)
				}
				rates = append(rates, text)
			}
			fmt.Fprintf(&b, "| %s | %.4g µs | %s | %s |\n", x.Name, 1e6*x.Seconds, strings.Join(rates, ", "), x.roofline())
		}
	}
	if len(most) > 0 {
		fmt.Fprint(&b, "\nPer cent are of the largest rate of DeviceCopy or DeviceProduct in the same unit; TFLOP/s-tf32 are of products that round to TF32, TFLOP/s-bf16 of those of bfloat16.\n")
	}
	return b.String()
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
