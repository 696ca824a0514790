package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data"
	"cne/internal/cli"
	"cne/internal/console"
	"cne/internal/ctxio"
	"cne/internal/device"
	"cne/internal/projection"
	"cne/internal/text"
	"cne/model"
)

func projectCmd() *cobra.Command {
	var p projectRun
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
them) gets the points as they are in the files.

Many points can be placed in parts, by several processes on one machine or on
many: --shard 0/4 places the first of four parts of the rows, 3/4 the last, and
writes it beside the output. A part that is interrupted keeps what it has, and
goes on when it is asked for again; one that is there is left as it is. --merge
then makes sure that the parts belong together and none is missing, and writes
the output, which is bit for bit that of one process. It needs --output alone;
with --model and INPUT it makes sure that the parts are of these.`,
		Example: `  cne project --model runs/mnist t10k-images-idx3-ubyte.gz -o new.npy
  cne project --model runs/cells/model.safetensors new.csv --label-column type -o new.csv --plot new.png
  cne project --model runs/mnist many.npy -o many-out.npy --shard 0/4   # to 3/4
  cne project --merge -o many-out.npy`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p.input = args
			if err := p.check(cmd); err != nil {
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
	flags.BoolVar(&p.SkipBad, "skip-bad", false, "write NaN for points with a value that is not finite, instead of refusing them")
	flags.StringVar(&p.data.LabelColumn, "label-column", "", "`column` of the table with labels, for the picture and for positions as .csv: its name, or its number counted from 1 (negative: from the end)")
	flags.StringArrayVar(&p.data.Drop, "drop", nil, "`column` of the table to leave out, by name or number (repeatable)")
	flags.StringVar(&p.part, "shard", "", "place one part of the points alone: `i/k` is the i-th of k, counted from 0")
	flags.BoolVar(&p.merge, "merge", false, "put the parts together that --shard has placed")
	cli.AddDeviceFlag(cmd, &p.deviceName)
	flags.StringVar(&p.header, "header", "auto", "whether tables begin with a line of column names: auto, yes or no")
	return cmd
}

// A projectRun is one run of cne project.
type projectRun struct {
	model   string
	input   []string
	output  string
	picture string
	header  string
	part    string // as it is given
	shard   *data.Shard
	merge   bool
	data    data.Options
	*console.Reporter

	deviceName string
	device     *model.Device // that places points
	files      []string      // of the model

	projection.Projection
}

// check finds faults of the command line.
func (p *projectRun) check(cmd *cobra.Command) error {
	switch {
	case len(p.input) == 0 && !p.merge:
		return fmt.Errorf("%s needs an argument: the file with the points", cmd.CommandPath())
	case p.model == "" && !p.merge:
		return errors.New("--model is missing: name the run folder, or the file with the model")
	case p.output == "":
		return errors.New("--output is missing: name the file for the positions, such as -o positions.npy")
	case p.merge && len(p.input) == 0 && (p.data.LabelColumn != "" || p.data.Drop != nil || p.SkipBad || cmd.Flags().Changed("header")):
		return errors.New("--merge is given with how the points are read (--label-column, --drop, --header, --skip-bad), but without these; name them, too, or leave that out")
	case p.part != "" && p.merge:
		return errors.New("--shard and --merge are given together; place all parts first, and then put them together")
	case p.part != "" && p.picture != "":
		return errors.New("--plot is given with --shard, but one part is no picture; give it with --merge")
	}
	if err := cli.CheckEnding("--output", p.output, ".npy", ".csv"); err != nil {
		return err
	}
	if p.picture != "" {
		if err := cli.CheckEnding("--plot", p.picture, ".png", ".svg"); err != nil {
			return err
		}
		p.Picture = new(projection.Picture)
	}
	if p.part != "" {
		shard, err := projection.ParseShard(p.part)
		if err != nil {
			return fmt.Errorf("--shard is %s, %w", text.Quote(p.part), err)
		}
		p.shard = &shard
	}
	if err := device.CheckName(p.deviceName); err != nil {
		return fmt.Errorf("--device: %w", err)
	}
	if err := p.data.Header.UnmarshalText([]byte(p.header)); err != nil {
		return fmt.Errorf("--header is %s, but must be %s", text.Quote(p.header), text.Enumerate(p.data.Header.Words()))
	}
	return nil
}

func (p *projectRun) run(ctx context.Context, stdout io.Writer) error {
	if err := p.checkOutputs(); err != nil {
		return err
	}
	switch {
	case p.merge:
		return p.putTogether(ctx, stdout)
	case p.shard != nil:
		return p.placePart(ctx, stdout)
	}
	// Reading may have to wait for the other end of a pipe.
	points, err := ctxio.Await(ctx, func() (projection.Source, error) {
		if err := p.load(ctx); err != nil {
			return nil, err
		}
		return p.open(ctx)
	})
	if ctx.Err() != nil {
		return errUnwritten
	}
	if err != nil {
		return err
	}
	err = projection.CheckWidth(p.Embedding, p.input[0], points.D())
	if err == nil {
		err = p.Write(ctx, p.output, points)
	}
	if err != nil && ctx.Err() != nil {
		return errUnwritten // the input may still be in use; it ends with the program
	}
	if err := errors.Join(err, points.Close()); err != nil {
		return err
	}
	p.warnOfBad()
	if err := p.draw(ctx); err != nil {
		return err
	}
	return p.report(stdout, p.output, p.Count-p.Bad)
}

// errUnwritten is the error of a projection that was interrupted.
var errUnwritten = errors.New("interrupted; nothing was written")

// report says how many points have been placed now.
func (p *projectRun) report(stdout io.Writer, path string, placed int) error {
	seconds := max(p.Elapsed.Seconds(), 1e-9)
	_, err := fmt.Fprintf(stdout, "%s: %d points placed in %.2f s, %.0f per second\n", text.Escape(path), placed, seconds, float64(placed)/seconds)
	return err
}

func (p *projectRun) warnOfBad() {
	if p.Bad > 0 {
		p.Log.Warn("points with values that are not finite have no position", "points", p.Bad, "of", p.Count)
	}
}

// draw makes the picture, if there is to be one.
func (p *projectRun) draw(ctx context.Context) error {
	if p.Picture == nil {
		return nil
	}
	_, err := ctxio.Await(ctx, func() (struct{}, error) { return struct{}{}, p.Picture.Draw(p.picture) })
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted before the picture was drawn")
	}
	return fmt.Errorf("%w (the positions are in %s)", err, p.output)
}

// placePart places one part of the points.
func (p *projectRun) placePart(ctx context.Context, stdout io.Writer) error {
	if _, err := ctxio.Await(ctx, func() (struct{}, error) { return struct{}{}, p.load(ctx) }); err != nil {
		if ctx.Err() != nil {
			err = errUnwritten
		}
		return err
	}
	placed, there, err := p.WritePart(ctx, p.request(), *p.shard, func() (projection.Source, error) { return p.open(ctx) })
	if ctx.Err() != nil && err != nil && !errors.Is(err, projection.ErrInterrupted) {
		return errUnwritten
	}
	if err != nil {
		return err
	}
	p.warnOfBad()
	path := projection.Name(p.output, *p.shard)
	if there {
		_, err := fmt.Fprintf(stdout, "%s: %d points had been placed before\n", text.Escape(path), p.Count-p.Bad)
		return err
	}
	return p.report(stdout, path, placed)
}

// putTogether makes the output of its parts.
func (p *projectRun) putTogether(ctx context.Context, stdout io.Writer) error {
	if p.model != "" {
		if err := p.load(ctx); err != nil {
			return err
		}
	}
	parts := 0
	var err error
	if p.Count, p.Bad, parts, err = projection.Merge(ctx, p.request(), p.Picture); err != nil {
		if ctx.Err() != nil {
			err = errUnwritten
		}
		return err
	}
	p.warnOfBad()
	if err := p.draw(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d points of %d parts\n", text.Escape(p.output), p.Count, parts)
	return err
}

// request describes the projection.
func (p *projectRun) request() *projection.Request {
	on := "cpu"
	if p.device != nil {
		on = nameOf(p.device)
	}
	return &projection.Request{
		Output: p.output, ModelFiles: p.files, Inputs: p.input, Device: on, Log: p.Log,
		Reading: projection.Reading{LabelColumn: p.data.LabelColumn, Drop: p.data.Drop, Header: p.header, SkipBad: p.SkipBad},
	}
}

// open opens the points.
func (p *projectRun) open(ctx context.Context) (projection.Source, error) {
	p.data.Log = p.Log
	return projection.Open(ctx, p.Embedding, p.input, p.data, p.shard)
}

// checkOutputs finds what would keep the results from being written, and what
// they would replace, before any work is done.
func (p *projectRun) checkOutputs() error {
	inputs := append([]string{p.model}, p.input...)
	if err := (cli.Output{Flag: "--output", Path: p.output}).Check(inputs...); err != nil || p.picture == "" {
		return err
	}
	return cli.Output{Flag: "--plot", Path: p.picture}.Check(inputs...)
}

// load reads the model, and opens the device that places points.
func (p *projectRun) load(ctx context.Context) (err error) {
	if p.Embedding, p.files, err = projection.Load(p.model, p.Log); err != nil || p.merge {
		return err
	}
	if p.Embedding.Positions == nil {
		mapper, err := p.Embedding.Mapper(ctx)
		if _, ok := mapper.(*model.MLP[float32]); !ok {
			return err
		}
	}
	if p.device, err = openDevice(p.Log, configs.Device{Name: p.deviceName}); err != nil {
		return err
	}
	if err := p.Embedding.UseDevice(p.device); err != nil {
		return err
	}
	if _, err := p.Embedding.Mapper(ctx); err != nil {
		return fmt.Errorf("%s: %w", p.model, err)
	}
	return nil
}
