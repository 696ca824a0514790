package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/internal/atomicfile"
	"cne/internal/cli"
	"cne/internal/console"
	"cne/internal/ctxio"
	"cne/internal/device"
	"cne/internal/figures"
	"cne/internal/parallel"
	"cne/internal/rundir"
	"cne/internal/text"
	"cne/model"
)

func projectCmd() *cobra.Command {
	var p projection
	cmd := &cobra.Command{
		Use:   "project --model RUN_OR_FILE INPUT…",
		Short: "Place new points with a trained model",
		Long: `Place new points in the embedding of a finished run. The model is a run folder
or its model.safetensors; INPUT are files of points in any form that cne train
reads (IDX, npy, CSV and TSV, each also compressed with gzip, npz, scipy's CSR,
Parquet, a folder with MNIST, builtin:mnist10k), or counts of single-cell
sequencing for a model that was trained on counts. What was done to the points
of the run is done to them too. They are read in blocks, so that they need not
fit into memory; of counts, the sparse matrix has to.

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
				return cli.Usage(cmd, err)
			}
			p.Reporter = cli.Reporter(cmd, cli.LogFormat(cmd))
			err := p.run(cmd.Context(), cmd.OutOrStdout())
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
	cli.AddDeviceFlag(cmd, &p.deviceName)
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
	*console.Reporter

	deviceName string
	device     *model.Device // of a network

	embedding *cne.Embedding
	positions []float32 // of the picture, if there is to be one,
	labels    []string  // as are these
	count     int       // points written
	bad       int       // of them, those without a position
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
	if err := cli.CheckEnding("--output", p.output, ".npy", ".csv"); err != nil {
		return err
	}
	if p.picture != "" {
		if err := cli.CheckEnding("--plot", p.picture, ".png", ".svg"); err != nil {
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
	points, err := ctxio.Await(ctx, func() (pointSource, error) {
		if err := p.load(ctx); err != nil {
			return nil, err
		}
		return p.open(ctx)
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
		if _, err := ctxio.Await(ctx, func() (struct{}, error) { return struct{}{}, p.draw() }); err != nil {
			if ctx.Err() != nil {
				err = errors.New("interrupted before the picture was drawn")
			}
			return fmt.Errorf("%w (the positions are in %s)", err, p.output)
		}
	}
	placed, seconds := p.count-p.bad, max(p.elapsed.Seconds(), 1e-9)
	_, err = fmt.Fprintf(stdout, "%s: %d points placed in %.2f s, %.0f per second\n", text.Escape(p.output), placed, seconds, float64(placed)/seconds)
	return err
}

// checkOutputs finds what would keep the results from being written, and what
// they would replace, before any work is done.
func (p *projection) checkOutputs() error {
	inputs := append([]string{p.model}, p.input...)
	if err := (cli.Output{Flag: "--output", Path: p.output}).Check(inputs...); err != nil || p.picture == "" {
		return err
	}
	return cli.Output{Flag: "--plot", Path: p.picture}.Check(inputs...)
}

// load reads the model.
func (p *projection) load(ctx context.Context) error {
	path := p.model
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, rundir.ModelFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder %s holds no %s; name the folder of a finished run, or the file", p.model, rundir.ModelFile)
		}
	}
	e, err := cne.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the model cannot be read (%w); check --model", err)
	case errors.Is(err, cne.ErrImages):
		return fmt.Errorf("%s is a network for images, which places no points; name a model that \"cne train\" has made", path)
	case err != nil:
		return err
	}
	p.embedding = e
	if e.Foreign {
		p.Log.Warn("the file does not say how points were scaled for training; they are taken as they are")
	}
	if e.Positions != nil {
		return p.loadTrainingPoints(ctx, path)
	}
	mapper, err := e.Mapper(ctx)
	if _, ok := mapper.(*model.MLP[float32]); !ok {
		return err
	}
	if p.device, err = openDevice(p.Log, configs.Device{Name: p.deviceName}); err != nil {
		return err
	}
	return e.UseDevice(p.device)
}

// loadTrainingPoints gives a table the points beside which it places new ones.
func (p *projection) loadTrainingPoints(ctx context.Context, path string) error {
	e := p.embedding
	if _, err := e.Mapper(ctx); !errors.Is(err, cne.ErrNoTrainingPoints) {
		return err
	}
	beside := filepath.Join(filepath.Dir(path), rundir.PointsFile)
	points, err := model.LoadPoints(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is a table, which places new points only beside its training points, and there is no %s with them; train again with model.keep_data: true, or with model.kind: mlp", path, beside)
	}
	if err != nil {
		return err
	}
	if n := e.Positions.N; points.N != n {
		return fmt.Errorf("%s has %d points, but %s has %d; they are not of the same run, so name the folder of one", path, n, beside, points.N)
	}
	if before := e.Description.Preprocessing; before != nil && before.Out() != points.D {
		return fmt.Errorf("%s prepares points of %d values, but those of %s have %d; they are not of the same run, so name the folder of one", path, before.Out(), beside, points.D)
	}
	if err := e.UseTrainingPoints(points); err != nil {
		return err
	}
	if _, err := e.Mapper(ctx); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// checkWidth compares the points with those that the model takes.
func (p *projection) checkWidth(d int) error {
	want, err := p.embedding.Width()
	if err != nil {
		return err
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
	d := p.embedding.Dim()
	out, err := newPositionWriter(p.output, w, d, points.Labeled())
	if err != nil {
		return p.notWritten(err)
	}
	current, next := newPointBlock(points.D(), d), newPointBlock(points.D(), d)
	for current.err == nil {
		// A block is read while the one before it is placed.
		_, err := ctxio.Await(ctx, func() (_ struct{}, err error) {
			parallel.For(2, 1, func(piece, _, _ int) {
				if piece == 0 {
					next.read(points)
				} else {
					err = p.place(ctx, current)
				}
			})
			return
		})
		var bad *cne.PointError
		if errors.As(err, &bad) {
			return fmt.Errorf("%s: %s; mend the values, or give --skip-bad to pass over such points", points.Row(p.count+bad.Row), bad.Fault)
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

// place finds the positions of a block of points, which it prepares in place.
func (p *projection) place(ctx context.Context, b *pointBlock) error {
	if b.n == 0 {
		return nil
	}
	var skipped []bool
	if p.skipBad {
		skipped = b.bad[:b.n]
	}
	_, err := p.embedding.ProjectBlock(ctx, b.positions.Rows(0, b.n), b.points.Rows(0, b.n), skipped)
	return err
}

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
	d := p.embedding.Dim()
	if len(p.positions) == 0 {
		return errors.New("there is nothing to draw: no point has a position")
	}
	var labels *data.Labels
	if p.labels != nil {
		labels = data.NewLabels(p.labels)
	}
	return figures.Scatter(&data.Matrix{N: len(p.positions) / d, D: d, X: p.positions}, labels, configs.Plot{}).Save(p.picture)
}
