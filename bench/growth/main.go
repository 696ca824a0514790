// Command growth says how time and memory of cne's runs grow with the number of points.
//
//	go run ./growth [-config FILE] [-images] [-out FOLDER] [-programs FOLDER] [N...]
//
// For each N (10 000, 100 000 and 1 000 000 unless given) it makes deformed images of
// MNIST (bench/deformed-mnist), embeds their 50 principal components or, with -images,
// the N×784 bytes, with the configuration (../configs/million.yaml), and adds a row to a
// Markdown table: of every phase the seconds and, where the system is Linux, the largest
// resident memory meanwhile; the whole; recall of the graph and kNN accuracy in the plane.
// The data stay in FOLDER (../runs/growth), and are not made again. Points take 200 bytes
// each on disk there, images 784.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// A grower makes data, runs cne and prints.
type grower struct {
	programs string // folder of cne and deformed-mnist
	out      string
	config   string
	images   bool
	stderr   io.Writer
}

// run is the program without its process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("growth", flag.ContinueOnError)
	flags.SetOutput(stderr)
	g := grower{stderr: stderr}
	flags.StringVar(&g.config, "config", "../configs/million.yaml", "configuration, a YAML `file`")
	flags.BoolVar(&g.images, "images", false, "embed images of 784 bytes instead of their 50 principal components")
	flags.StringVar(&g.out, "out", "../runs/growth", "`folder` of the data and runs")
	flags.StringVar(&g.programs, "programs", "", "`folder` of cne and deformed-mnist; they are built if none is given")
	if err := flags.Parse(args); err != nil {
		return err
	}
	sizes := flags.Args()
	if len(sizes) == 0 {
		sizes = []string{"10000", "100000", "1000000"}
	}
	for _, size := range sizes {
		if n, err := strconv.Atoi(size); err != nil || n < 1000 {
			return fmt.Errorf("%q is no number of points; give whole numbers of at least 1000", size)
		}
	}
	if g.programs == "" {
		if g.programs, err = os.MkdirTemp("", "growth"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(g.programs)) }()
		for _, from := range [][2]string{{"..", "./cmd/cne"}, {".", "./deformed-mnist"}} {
			if err := g.command(ctx, "go", "build", "-C", from[0], "-o", g.programs+"/", from[1]).Run(); err != nil {
				return fmt.Errorf("the programs cannot be built: %w; run this in the folder bench", err)
			}
		}
	}
	return g.table(ctx, sizes, stdout)
}

// table prints a row for each number of points.
func (g *grower) table(ctx context.Context, sizes []string, stdout io.Writer) error {
	fmt.Fprint(stdout, heading)
	for _, size := range sizes {
		r, err := g.measure(ctx, size)
		if err != nil {
			return fmt.Errorf("%s points: %w", size, err)
		}
		fmt.Fprintln(stdout, r.row())
	}
	return nil
}

// command returns a command that writes to standard error.
func (g *grower) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = g.stderr, g.stderr
	return c
}

// measure embeds size points.
func (g *grower) measure(ctx context.Context, size string) (*result, error) {
	kind, file, more := "points", "points.npy", []string{"-pca", "50"}
	if g.images {
		kind, file, more = "images", "images.npy", nil
	}
	folder := filepath.Join(g.out, kind+"-"+size)
	if _, err := os.Stat(filepath.Join(folder, "labels.npy")); err != nil { // written last
		if err := g.command(ctx, filepath.Join(g.programs, "deformed-mnist"), append(more, size, "1", folder)...).Run(); err != nil {
			return nil, fmt.Errorf("the data cannot be made: %w", err)
		}
	}
	into := filepath.Join(folder, "run")
	c := exec.CommandContext(ctx, filepath.Join(g.programs, "cne"), "train", "--force", "--log-format", "json", "--config", g.config,
		"--set", "data.path="+filepath.Join(folder, file), "--set", "data.labels="+filepath.Join(folder, "labels.npy"),
		"--set", "graph.cache=false", "--output", into)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	log, err := c.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	w := watch{process: c.Process.Pid, peak: map[string]int64{}}
	w.begin("load")
	follow(log, w.begin, g.stderr)
	if err := c.Wait(); err != nil {
		return nil, fmt.Errorf("cne train: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(into, "metrics.json"))
	if err != nil {
		return nil, err
	}
	r := &result{peak: w.peak}
	err = json.Unmarshal(text, r)
	if len(r.peak) > 0 { // the last phase, which ends with the process, is the one that cne itself sees
		r.peak[w.phase] = r.PeakRSS
	}
	return r, err
}

// phases are the parts of a run in their order, which metrics.json knows by these names.
var phases = []string{"load", "pca", "graph", "start", "optimize", "quality"}

// begins says which message of cne's begins which phase.
var begins = map[string]string{
	"computing principal components":   "pca",
	"searching the nearest neighbours": "graph",
	"computing the initial positions":  "start",
	"training starts":                  "optimize",
	"training ends":                    "quality",
}

// follow reads cne's messages, and says when phases begin. Warnings and errors go to
// stderr.
func follow(log io.Reader, begin func(phase string), stderr io.Writer) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var record struct{ Msg, Level string }
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil || record.Level == "WARN" || record.Level == "ERROR" {
			fmt.Fprintln(stderr, lines.Text())
			continue
		}
		if phase, ok := begins[record.Msg]; ok {
			begin(phase)
		}
	}
}

// A watch knows the largest resident memory of a process in each of its phases.
type watch struct {
	process int
	phase   string
	peak    map[string]int64 // bytes, by phase
}

// begin ends one phase and begins the next.
func (w *watch) begin(phase string) {
	w.look()
	w.phase = phase
	// From now on the system reports the largest of this phase.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", w.process), []byte("5"), 0)
}

// look takes note of what the system says: nothing where it is not Linux, or where the
// process has ended.
func (w *watch) look() {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.process))
	for line := range strings.Lines(string(text)) {
		if field := strings.Fields(line); len(field) == 3 && field[0] == "VmHWM:" && w.phase != "" {
			if kB, err := strconv.ParseInt(field[1], 10, 64); err == nil {
				w.peak[w.phase] = 1024 * kB
			}
		}
	}
}

// A result is what metrics.json and the watch know of a run.
type result struct {
	N           int                `json:"n"`
	GraphRecall *float64           `json:"graph_recall"`
	Accuracy    *float64           `json:"accuracy"`
	Seconds     map[string]float64 `json:"seconds"`
	PeakRSS     int64              `json:"peak_rss_bytes"`
	peak        map[string]int64
}

// heading begins the table.
const heading = `| points | reading | PCA | graph | start | optimisation | quality and files | whole run | recall of the graph | accuracy |
|---|---|---|---|---|---|---|---|---|---|
`

// row is a line of the table: seconds, and memory in MB.
func (r *result) row() string {
	cells := []string{strconv.Itoa(r.N)}
	rest := r.Seconds["total"]
	var most int64
	for _, phase := range phases {
		seconds := r.Seconds[phase]
		rest -= seconds
		if phase == "quality" {
			seconds += rest // pictures and files
		}
		cells = append(cells, cell(seconds, r.peak[phase]))
		most = max(most, r.peak[phase])
	}
	cells = append(cells, cell(r.Seconds["total"], max(most, r.PeakRSS)))
	for _, v := range []*float64{r.GraphRecall, r.Accuracy} {
		text := ""
		if v != nil {
			text = fmt.Sprintf("%.4f", *v)
		}
		cells = append(cells, text)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// cell is a time and, where it is known, a memory.
func cell(seconds float64, bytes int64) string {
	text := fmt.Sprintf("%.1f s", seconds)
	if bytes > 0 {
		text += fmt.Sprintf(", %.0f MB", float64(bytes)/1e6)
	}
	return text
}
