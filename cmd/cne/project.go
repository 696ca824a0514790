package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cne/data"
	"cne/internal/atomicfile"
	"cne/model"
	"cne/train"
)

func projectCmd() *cobra.Command {
	var p projection
	cmd := &cobra.Command{
		Use:   "project --model RUN_OR_FILE INPUT…",
		Short: "Place new points with a trained model",
		Long: `Place new points in the embedding of a finished run. The model is a run folder
or its model.safetensors; INPUT are files of points in any form that cne train
reads (IDX, npy, CSV and TSV, each also compressed with gzip, a folder with
MNIST, builtin:mnist10k). What was done to the points of the run is done to
them too. They are read in blocks, so that they need not fit into memory.

A network places a point by itself. A table places it beside the training
points, which the run has to have kept: train it with model.keep_data: true.

A network whose weights PyTorch has saved (linear layers with ReLU between
them) gets the points as they are in the files.`,
		Example: `  cne project --model runs/mnist t10k-images-idx3-ubyte.gz -o new.npy
  cne project --model runs/cells/model.safetensors new.csv --label-column type -o new.csv --plot new.png`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs an argument: the file with the points", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p.input = args
			if err := p.check(); err != nil {
				return &usageError{cmd.CommandPath(), err}
			}
			format := "text"
			if f := cmd.Flags().Lookup("log-format"); f != nil && f.Changed {
				format = f.Value.String()
			}
			p.talker = newTalker(cmd.ErrOrStderr(), format, isQuiet(cmd))
			return p.run(cmd.Context(), cmd.OutOrStdout())
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"npy", "csv", "tsv", "gz", "idx"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	flags := cmd.Flags()
	flags.StringVarP(&p.model, "model", "m", "", "run folder, or `file` with the model")
	flags.StringVarP(&p.output, "output", "o", "", "positions, a `file` that ends in .npy or .csv")
	flags.StringVar(&p.picture, "plot", "", "also draw them, in a `file` that ends in .png or .svg; this keeps all positions in memory")
	flags.BoolVar(&p.skipBad, "skip-bad", false, "write NaN for points with a value that is not finite, instead of refusing them")
	flags.StringVar(&p.data.LabelColumn, "label-column", "", "`column` of the table with labels, for the picture and for positions as .csv: its name, or its number counted from 1 (negative: from the end)")
	flags.StringArrayVar(&p.data.Drop, "drop", nil, "`column` of the table to leave out, by name or number (repeatable)")
	flags.StringVar(&p.header, "header", "auto", "whether tables begin with a line of column names: auto, yes or no")
	return cmd
}

// projection is one run of cne project.
type projection struct {
	model   string
	input   []string
	output  string
	picture string
	header  string
	skipBad bool
	data    data.Options
	*talker

	network model.Network
	before  *data.Preprocessing // nil: nothing is done to the points
	// positions and labels are kept for the picture, if there is one.
	positions []float32
	labels    []string
	count     int
	bad       int // points that were passed over
	elapsed   time.Duration
}

// check finds faults of the command line.
func (p *projection) check() error {
	switch {
	case p.model == "":
		return errors.New("--model is missing: name the run folder, or the file with the model")
	case p.output == "":
		return errors.New("--output is missing: name the file for the positions, such as -o positions.npy")
	case !slices.Contains([]string{".npy", ".csv"}, strings.ToLower(filepath.Ext(p.output))):
		return fmt.Errorf("--output is %s, but must end in .npy or .csv", quote(p.output))
	case p.picture != "" && !slices.Contains([]string{".png", ".svg"}, strings.ToLower(filepath.Ext(p.picture))):
		return fmt.Errorf("--plot is %s, but must end in .png or .svg", quote(p.picture))
	}
	header, ok := headers[p.header]
	if !ok {
		return fmt.Errorf("--header is %s, but must be auto, yes or no", quote(p.header))
	}
	p.data.Header = header
	return nil
}

func (p *projection) run(ctx context.Context, stdout io.Writer) error {
	if err := p.load(); err != nil {
		return err
	}
	for _, input := range p.input {
		for _, output := range []string{p.output, p.picture} {
			if sameFile(input, output) {
				return fmt.Errorf("%s holds the points and would be replaced by their positions; choose another file", input)
			}
		}
	}
	points, err := p.open()
	if err != nil {
		return err
	}
	defer points.Close()
	if err := p.checkWidth(points.D()); err != nil {
		return err
	}
	err = atomicfile.WriteSeek(p.output, func(w io.WriteSeeker) error { return p.project(ctx, points, w) })
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; nothing was written")
	case err != nil:
		return err
	}
	if p.bad > 0 {
		p.Log.Warn("points with values that are not finite have no position", "points", p.bad, "of", p.count)
	}
	if p.picture != "" {
		if err := p.draw(); err != nil {
			return fmt.Errorf("%w (the positions are in %s)", err, p.output)
		}
	}
	_, err = fmt.Fprintf(stdout, "%s: %d points placed in %.2f s, %.0f per second\n", p.output, p.count-p.bad, p.elapsed.Seconds(), float64(p.count)/max(p.elapsed.Seconds(), 1e-9))
	return err
}

// load reads the model.
func (p *projection) load() error {
	path := p.model
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, modelFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder %s holds no %s; name the folder of a finished run, or the file", p.model, modelFile)
		}
	}
	saved, err := model.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the model cannot be read: %w", err)
	}
	if err != nil {
		return err
	}
	p.before, p.network = saved.Preprocessing, saved.Network
	if saved.Foreign {
		p.Log.Warn("the file does not say how points were scaled for training; they are taken as they are")
	}
	if p.network != nil {
		return nil
	}
	beside := filepath.Join(filepath.Dir(path), pointsFile)
	points, err := model.LoadPoints(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is a table, which places new points only beside its training points, and there is no %s with them; train again with model.keep_data: true, or with model.kind: mlp", path, beside)
	}
	if err != nil {
		return err
	}
	if points.N != saved.N {
		return fmt.Errorf("%s has %d points, but %s has %d; they are not of the same run", path, saved.N, beside, points.N)
	}
	if p.before != nil && p.before.Out() != points.D {
		return fmt.Errorf("%s prepares points of %d values, but those of %s have %d; they are not of the same run", path, p.before.Out(), beside, points.D)
	}
	p.network, err = train.NewProjector(points, saved.Table, saved.D, saved.Training)
	return err
}

// A pointSource is where points come from, in blocks.
type pointSource interface {
	D() int
	Next(dst *data.Matrix) (int, error)
	Row(i int) string
	Labels() []string
	Close() error
}

// open opens the input.
func (p *projection) open() (pointSource, error) {
	name, ok := strings.CutPrefix(p.input[0], builtinPrefix)
	if !ok {
		return data.OpenBlocks(p.input, p.data)
	}
	if len(p.input) > 1 || p.data.LabelColumn != "" {
		return nil, fmt.Errorf("%s has labels of its own and goes with no other file", p.input[0])
	}
	set, err := data.Builtin(name)
	if err != nil {
		return nil, err
	}
	return &datasetSource{set: set}, nil
}

// A datasetSource is a data set in memory as a pointSource.
type datasetSource struct {
	set      *data.Dataset
	from, to int // the last block
}

func (s *datasetSource) D() int { return s.set.Points.D }

func (s *datasetSource) Next(dst *data.Matrix) (int, error) {
	s.from, s.to = s.to, min(s.set.Points.N, s.to+dst.N)
	if s.from == s.to {
		return 0, io.EOF
	}
	copy(dst.X, s.set.Points.X[s.from*dst.D:s.to*dst.D])
	return s.to - s.from, nil
}

func (s *datasetSource) Row(i int) string { return fmt.Sprintf("%s: row %d", s.set.Name, i+1) }

func (s *datasetSource) Labels() []string {
	var names []string
	for _, c := range s.set.Labels.Class[s.from:s.to] {
		names = append(names, s.set.Labels.Names[c])
	}
	return names
}

func (s *datasetSource) Close() error { return nil }

// checkWidth compares the points with those that the model takes.
func (p *projection) checkWidth(d int) error {
	want, _ := p.network.Size()
	if p.before != nil {
		want = p.before.Width
	}
	if d == want {
		return nil
	}
	return fmt.Errorf("the points of %s have %d values, but the model takes points of %d; give points of the same kind (--label-column and --drop leave columns of a table out)", p.input[0], d, want)
}

// projectBlock is how many values of points are read at a time, about.
const projectBlock = 1 << 22

// project reads, places and writes all points.
func (p *projection) project(ctx context.Context, points pointSource, w io.WriteSeeker) error {
	start := time.Now()
	defer func() { p.elapsed = time.Since(start) }()
	_, d := p.network.Size()
	out, err := newPositionWriter(p.output, w, d)
	if err != nil {
		return err
	}
	rows := max(16, projectBlock/points.D())
	block := data.NewMatrix(rows, points.D())
	dst := data.NewMatrix(rows, d)
	for ctx.Err() == nil {
		n, err := points.Next(block)
		if err == io.EOF {
			return out.close()
		}
		if err != nil {
			return err
		}
		here := &data.Matrix{N: n, D: d, X: dst.X[:n*d]}
		if err := p.place(here, &data.Matrix{N: n, D: block.D, X: block.X[:n*block.D]}, points); err != nil {
			return err
		}
		labels := points.Labels()
		if err := out.write(here, labels); err != nil {
			return err
		}
		if p.picture != "" {
			p.positions, p.labels = append(p.positions, here.X...), append(p.labels, labels...)
		}
		p.count += n
	}
	return ctx.Err()
}

// place finds the positions of one block of points, which it scales in place.
func (p *projection) place(dst, block *data.Matrix, points pointSource) error {
	bad := p.badRows(block)
	if len(bad) > 0 && !p.skipBad {
		at := bad[0]
		column := slices.IndexFunc(block.Row(at), notFinite)
		return fmt.Errorf("%s, column %d (counted from 1) is %v; mend the value, or give --skip-bad to pass over such points", points.Row(p.count+at), column+1, block.Row(at)[column])
	}
	for _, i := range bad {
		clear(block.Row(i))
	}
	x := block
	if p.before != nil {
		var err error
		if x, err = p.before.Apply(block); err != nil {
			return err
		}
	}
	if err := p.network.ProjectTo(dst.X, x.X); err != nil {
		return err
	}
	for _, i := range bad {
		row := dst.Row(i)
		for j := range row {
			row[j] = float32(math.NaN())
		}
	}
	p.bad += len(bad)
	return nil
}

func notFinite(v float32) bool { return v-v != 0 }

// badRows returns the rows with a value that is not finite.
func (p *projection) badRows(m *data.Matrix) []int {
	var bad []int
	for i := range m.N {
		var sum float32
		for _, v := range m.Row(i) {
			sum += v - v // 0, or NaN if v is not finite
		}
		if sum != 0 {
			bad = append(bad, i)
		}
	}
	return bad
}

// draw makes the picture.
func (p *projection) draw() error {
	_, d := p.network.Size()
	m := &data.Matrix{N: len(p.positions) / d, D: d, X: p.positions}
	var labels *data.Labels
	if len(p.labels) > 0 {
		labels = data.NewLabels(p.labels)
	}
	// Points without a position are left out.
	kept, names := data.NewMatrix(0, d), []string(nil)
	for i := range m.N {
		if slices.ContainsFunc(m.Row(i), notFinite) {
			continue
		}
		kept.X = append(kept.X, m.Row(i)...)
		kept.N++
		if labels != nil {
			names = append(names, p.labels[i])
		}
	}
	if labels != nil {
		labels = data.NewLabels(names)
	}
	if kept.N == 0 {
		return errors.New("there is nothing to draw: no point has a position")
	}
	return scatterOf(kept, labels, Plot{}).Save(p.picture)
}

// A positionWriter writes positions block by block.
type positionWriter struct {
	array *data.NPYWriter
	table *data.CSVWriter
	d     int
	w     io.Writer
}

func newPositionWriter(path string, w io.WriteSeeker, d int) (*positionWriter, error) {
	p := &positionWriter{d: d, w: w}
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		return p, nil // its head depends on whether there are labels
	}
	var err error
	p.array, err = data.NewNPYWriter(w, d)
	return p, err
}

func (p *positionWriter) write(m *data.Matrix, labels []string) error {
	if p.array != nil {
		return p.array.Write(m)
	}
	if p.table == nil {
		var err error
		if p.table, err = data.NewCSVWriter(p.w, p.d, labels != nil); err != nil {
			return err
		}
	}
	return p.table.Write(m, labels)
}

func (p *positionWriter) close() error {
	if p.array != nil {
		return p.array.Close()
	}
	return p.table.Close()
}
