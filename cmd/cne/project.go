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

	"cne/configs"
	"cne/data"
	"cne/internal/atomicfile"
	"cne/internal/device"
	"cne/internal/finite"
	"cne/internal/parallel"
	"cne/internal/rundir"
	"cne/internal/text"
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
reads (IDX, npy, CSV and TSV, each also compressed with gzip, npz, a folder with
MNIST, builtin:mnist10k), or counts of single-cell sequencing for a model that
was trained on counts. What was done to the points of the run is done to them
too. They are read in blocks, so that they need not fit into memory; of counts,
the sparse matrix has to.

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
			format, err := logFormat(cmd)
			if err != nil {
				return err
			}
			p.reporter = newReporter(cmd.ErrOrStderr(), format, isQuiet(cmd))
			err = p.run(cmd.Context(), cmd.OutOrStdout())
			if p.device != nil {
				err = errors.Join(err, p.device.Close())
			}
			return err
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"npy", "npz", "csv", "tsv", "gz", "idx", "mtx"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	flags := cmd.Flags()
	flags.StringVarP(&p.model, "model", "m", "", "run folder, or `file` with the model")
	flags.StringVarP(&p.output, "output", "o", "", "positions, a `file` that ends in .npy or .csv")
	flags.StringVar(&p.picture, "plot", "", "also draw them, in a `file` that ends in .png or .svg; this keeps all positions in memory")
	flags.BoolVar(&p.skipBad, "skip-bad", false, "write NaN for points with a value that is not finite, instead of refusing them")
	flags.StringVar(&p.data.LabelColumn, "label-column", "", "`column` of the table with labels, for the picture and for positions as .csv: its name, or its number counted from 1 (negative: from the end)")
	flags.StringArrayVar(&p.data.Drop, "drop", nil, "`column` of the table to leave out, by name or number (repeatable)")
	addDeviceFlag(cmd, &p.deviceName)
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
	*reporter

	deviceName string
	device     *model.Device // of a network

	network model.Mapper
	before  *data.Preprocessing // nil: nothing is done to the points
	// positions and labels are those of the picture, if there is to be one.
	positions []float32
	labels    []string
	count     int // points written
	bad       int // of them, those without a position
	elapsed   time.Duration
}

// check finds faults of the command line.
func (p *projection) check() error {
	switch {
	case p.model == "":
		return errors.New("--model is missing: name the run folder, or the file with the model")
	case p.output == "":
		return errors.New("--output is missing: name the file for the positions, such as -o positions.npy")
	}
	if err := checkEnding("--output", p.output, ".npy", ".csv"); err != nil {
		return err
	}
	if p.picture != "" {
		if err := checkEnding("--plot", p.picture, ".png", ".svg"); err != nil {
			return err
		}
	}
	if err := device.CheckName(p.deviceName); err != nil {
		return fmt.Errorf("--device: %w", err)
	}
	if err := p.data.Header.UnmarshalText([]byte(p.header)); err != nil {
		return fmt.Errorf("--header is %s, but must be %s", text.Quote(p.header), text.Enumerate(p.data.Header.Words()))
	}
	return nil
}

func (p *projection) run(ctx context.Context, stdout io.Writer) error {
	if err := p.checkOutputs(); err != nil {
		return err
	}
	// Reading may have to wait for the other end of a pipe.
	interrupted := errors.New("interrupted; nothing was written")
	points, err := await(ctx, func() (pointSource, error) {
		if err := p.load(); err != nil {
			return nil, err
		}
		return p.open()
	})
	if ctx.Err() != nil {
		return interrupted
	}
	if err != nil {
		return err
	}
	err = p.checkWidth(points.D())
	if err == nil {
		err = p.write(ctx, points)
	}
	if err != nil && ctx.Err() != nil {
		return interrupted // the input may still be in use; it ends with the program
	}
	if err := errors.Join(err, points.Close()); err != nil {
		return err
	}
	if p.bad > 0 {
		p.Log.Warn("points with values that are not finite have no position", "points", p.bad, "of", p.count)
	}
	if p.picture != "" {
		if _, err := await(ctx, func() (struct{}, error) { return struct{}{}, p.draw() }); err != nil {
			if ctx.Err() != nil {
				err = errors.New("interrupted before the picture was drawn")
			}
			return fmt.Errorf("%w (the positions are in %s)", err, p.output)
		}
	}
	placed, seconds := p.count-p.bad, max(p.elapsed.Seconds(), 1e-9)
	_, err = fmt.Fprintf(stdout, "%s: %d points placed in %.2f s, %.0f per second\n", p.output, placed, seconds, float64(placed)/seconds)
	return err
}

// checkOutputs finds what would keep the results from being written, and what
// they would replace, before any work is done.
func (p *projection) checkOutputs() error {
	inputs := append([]string{p.model}, p.input...)
	if err := checkOutput("--output", p.output, inputs...); err != nil || p.picture == "" {
		return err
	}
	return checkOutput("--plot", p.picture, inputs...)
}

// load reads the model.
func (p *projection) load() error {
	path := p.model
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, rundir.ModelFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder %s holds no %s; name the folder of a finished run, or the file", p.model, rundir.ModelFile)
		}
	}
	saved, err := model.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the model cannot be read (%w); check --model", err)
	}
	if err != nil {
		return err
	}
	if saved.ResNet != nil {
		return fmt.Errorf("%s is a network for images, which places no points; name a model that \"cne train\" has made", path)
	}
	p.before, p.network = saved.Preprocessing, saved.Network
	if saved.Foreign {
		p.Log.Warn("the file does not say how points were scaled for training; they are taken as they are")
	}
	if p.network == nil {
		p.network, err = p.loadTable(path, saved)
		return err
	}
	network, ok := p.network.(*model.MLP[float32])
	if !ok {
		return nil
	}
	if p.device, err = openDevice(p.Log, configs.Device{Name: p.deviceName}); err != nil {
		return err
	}
	return network.UseDevice(p.device)
}

// loadTable returns what places points beside those of a table.
func (p *projection) loadTable(path string, saved *model.Saved) (model.Mapper, error) {
	beside := filepath.Join(filepath.Dir(path), rundir.PointsFile)
	points, err := model.LoadPoints(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is a table, which places new points only beside its training points, and there is no %s with them; train again with model.keep_data: true, or with model.kind: mlp", path, beside)
	}
	if err != nil {
		return nil, err
	}
	if points.N != saved.N {
		return nil, fmt.Errorf("%s has %d points, but %s has %d; they are not of the same run, so name the folder of one", path, saved.N, beside, points.N)
	}
	if p.before != nil && p.before.Out() != points.D {
		return nil, fmt.Errorf("%s prepares points of %d values, but those of %s have %d; they are not of the same run, so name the folder of one", path, p.before.Out(), beside, points.D)
	}
	projector, err := train.NewProjector(points, saved.Table, saved.D, saved.Training)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return projector, nil
}

// A pointSource is where points come from, in blocks: see data.Blocks.
type pointSource interface {
	D() int
	Labeled() bool
	Next(dst *data.Matrix) (int, error)
	Labels() []string
	Row(i int) string
	Close() error
}

// open opens the input.
func (p *projection) open() (pointSource, error) {
	if p.before != nil && p.before.Counts != nil {
		return p.openCounts()
	}
	if err := p.checkCounts(); err != nil {
		return nil, err
	}
	builtin := slices.IndexFunc(p.input, func(path string) bool { return strings.HasPrefix(path, configs.BuiltinPrefix) })
	if builtin < 0 {
		return data.OpenBlocks(p.input, p.data)
	}
	name := p.input[builtin]
	if len(p.input) > 1 {
		return nil, fmt.Errorf("%s goes with no other file; place them one after the other", name)
	}
	if p.data.LabelColumn != "" || len(p.data.Drop) > 0 || p.data.Header != data.HeaderAuto {
		return nil, fmt.Errorf("%s has labels and no columns; leave --label-column, --drop and --header out", name)
	}
	set, err := data.Builtin(strings.TrimPrefix(name, configs.BuiltinPrefix))
	if err != nil {
		return nil, err
	}
	return &datasetSource{set: set}, nil
}

// A datasetSource is a data set in memory, with labels, as a pointSource.
type datasetSource struct {
	set      *data.Dataset
	from, to int // the last block
}

func (s *datasetSource) D() int { return s.set.Points.D }

func (s *datasetSource) Labeled() bool { return true }

func (s *datasetSource) Next(dst *data.Matrix) (int, error) {
	s.from, s.to = s.to, min(s.set.Points.N, s.to+dst.N)
	if s.from == s.to {
		return 0, io.EOF
	}
	copy(dst.X, s.set.Points.X[s.from*dst.D:s.to*dst.D])
	return s.to - s.from, nil
}

func (s *datasetSource) Labels() []string {
	var names []string
	for _, c := range s.set.Labels.Class[s.from:s.to] {
		names = append(names, s.set.Labels.Names[c])
	}
	return names
}

func (s *datasetSource) Row(i int) string { return fmt.Sprintf("%s: row %d", s.set.Name, i+1) }

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

// write writes the positions of all points.
func (p *projection) write(ctx context.Context, points pointSource) error {
	var errProject error
	err := atomicfile.WriteSeek(p.output, func(w io.WriteSeeker) error {
		errProject = p.project(ctx, points, w)
		return errProject
	})
	if err != nil && errProject == nil {
		return p.notWritten(err)
	}
	return err
}

func (p *projection) notWritten(err error) error {
	return fmt.Errorf("the positions cannot be written to %s (%w); make room, or choose another --output", p.output, err)
}

// A pointBlock is some points of the input that follow each other.
type pointBlock struct {
	n         int // rows in use
	points    *data.Matrix
	positions *data.Matrix
	labels    []string
	bad       []bool // points without a position
	err       error  // why there are no more points; io.EOF after the last
}

// Sizes of a block: about how many values, so that what is done to them finds
// them in the cache, and how many rows at least and at most.
const (
	blockValues  = 1 << 21
	minBlockRows = 16
	maxBlockRows = 1 << 15
)

func newPointBlock(width, d int) *pointBlock {
	rows := min(max(minBlockRows, blockValues/width), maxBlockRows)
	return &pointBlock{points: data.NewMatrix(rows, width), positions: data.NewMatrix(rows, d), bad: make([]bool, rows)}
}

// read fills the block.
func (b *pointBlock) read(points pointSource) {
	if b.n, b.err = points.Next(b.points); b.err == nil {
		b.labels = slices.Clone(points.Labels())
	}
}

// project reads, places and writes all points.
func (p *projection) project(ctx context.Context, points pointSource, w io.WriteSeeker) error {
	start := time.Now()
	defer func() { p.elapsed = time.Since(start) }()
	_, d := p.network.Size()
	out, err := newPositionWriter(p.output, w, d, points.Labeled())
	if err != nil {
		return p.notWritten(err)
	}
	current, next := newPointBlock(points.D(), d), newPointBlock(points.D(), d)
	for current.err == nil {
		// A block is read while the one before it is placed.
		_, err := await(ctx, func() (_ struct{}, err error) {
			parallel.For(2, 1, func(piece, _, _ int) {
				if piece == 0 {
					next.read(points)
				} else {
					err = p.place(ctx, current)
				}
			})
			return
		})
		var bad *badPoint
		if errors.As(err, &bad) {
			return fmt.Errorf("%s: %s; mend the values, or give --skip-bad to pass over such points", points.Row(p.count+bad.row), bad.fault)
		}
		if err != nil {
			return err
		}
		if err := p.record(out, current); err != nil {
			return p.notWritten(err)
		}
		current, next = next, current
	}
	if current.err != io.EOF {
		return current.err
	}
	if err := out.close(); err != nil {
		return p.notWritten(err)
	}
	return nil
}

// A badPoint is a point of a block that has no position, and why.
type badPoint struct {
	row   int
	fault string
}

func (e *badPoint) Error() string { return e.fault }

// place finds the positions of a block of points, which it scales in place.
func (p *projection) place(ctx context.Context, b *pointBlock) error {
	if b.n == 0 {
		return nil
	}
	clear(b.bad)
	points, positions := b.points.Rows(0, b.n), b.positions.Rows(0, b.n)
	if err := p.reject(b, points, func(row []float32) string {
		at := finite.First(row)
		return fmt.Sprintf("value %d (counted from 1) is %v", at+1, row[at])
	}); err != nil {
		return err
	}
	const tooLarge = "the values are too large for this model"
	x := points
	if p.before != nil {
		var err error
		if x, err = p.before.Apply(ctx, points, nil); err != nil {
			return err
		}
		if err := p.reject(b, x, func([]float32) string { return tooLarge }); err != nil {
			return err
		}
	}
	if err := p.network.ProjectTo(positions.X, x.X); err != nil {
		return err
	}
	if err := p.reject(b, positions, func([]float32) string { return tooLarge }); err != nil {
		return err
	}
	for i, bad := range b.bad[:b.n] {
		if bad {
			row := positions.Row(i)
			for j := range row {
				row[j] = float32(math.NaN())
			}
		}
	}
	return nil
}

// reject marks the rows of m with a value that is not finite as bad, and clears
// them; or, unless such points are to be passed over, returns the first as a
// badPoint, with its fault.
func (p *projection) reject(b *pointBlock, m *data.Matrix, fault func(row []float32) string) error {
	first := make([]int, parallel.Pieces(m.N, rowsPerCheck(m.D)))
	parallel.For(m.N, rowsPerCheck(m.D), func(piece, lo, hi int) {
		first[piece] = -1
		for i := lo; i < hi; i++ {
			row := m.Row(i)
			if finite.All(row) {
				continue
			}
			if first[piece] < 0 {
				first[piece] = i
			}
			if p.skipBad {
				b.bad[i] = true
				clear(row)
			}
		}
	})
	at := slices.IndexFunc(first, func(i int) bool { return i >= 0 })
	if at < 0 || p.skipBad {
		return nil
	}
	return &badPoint{first[at], fault(m.Row(first[at]))}
}

// rowsPerCheck is how many rows of d values are looked at in one piece.
func rowsPerCheck(d int) int { return max(1, 1<<16/d) }

// record writes the positions of a block, and keeps them for the picture.
func (p *projection) record(out *positionWriter, b *pointBlock) error {
	if b.n == 0 {
		return nil
	}
	if err := out.write(b.positions.Rows(0, b.n), b.labels); err != nil {
		return err
	}
	p.count += b.n
	for i, bad := range b.bad[:b.n] {
		switch {
		case bad:
			p.bad++
		case p.picture != "":
			p.positions = append(p.positions, b.positions.Row(i)...)
			if b.labels != nil {
				p.labels = append(p.labels, b.labels[i])
			}
		}
	}
	return nil
}

// draw makes the picture of the points that have a position.
func (p *projection) draw() error {
	_, d := p.network.Size()
	if len(p.positions) == 0 {
		return errors.New("there is nothing to draw: no point has a position")
	}
	var labels *data.Labels
	if p.labels != nil {
		labels = data.NewLabels(p.labels)
	}
	return scatterOf(&data.Matrix{N: len(p.positions) / d, D: d, X: p.positions}, labels, configs.Plot{}).Save(p.picture)
}

// A positionWriter writes positions block by block, as an array or a table.
type positionWriter struct {
	array *data.NPYWriter
	table *data.CSVWriter
}

func newPositionWriter(path string, w io.WriteSeeker, d int, labelled bool) (*positionWriter, error) {
	var p positionWriter
	var err error
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		p.table, err = data.NewCSVWriter(w, d, labelled)
	} else {
		p.array, err = data.NewNPYWriter(w, d)
	}
	return &p, err
}

func (p *positionWriter) write(m *data.Matrix, labels []string) error {
	if p.array != nil {
		return p.array.Write(m)
	}
	return p.table.Write(m, labels)
}

func (p *positionWriter) close() error {
	if p.array != nil {
		return p.array.Close()
	}
	return p.table.Close()
}
