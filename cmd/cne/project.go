package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data"
	"cne/internal/app/cli"
	"cne/internal/app/console"
	"cne/internal/app/projection"
	"cne/internal/ctxio"
	"cne/internal/device"
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
many: --rows 0:1000000 places the first million rows, 1000000: all others. Their
positions are those of one process, bit for bit. The files need no merging: what
reads points takes several, and so do cne plot and cne evaluate with --join.`,
		Example: `  cne project --model runs/mnist t10k-images-idx3-ubyte.gz -o new.npy
  cne project --model runs/cells/model.safetensors new.csv --label-column type -o new.csv --plot new.png
  cne project --model runs/mnist many.npy -o first.npy --rows :1000000
  cne project --model runs/mnist many.npy -o rest.npy --rows 1000000:`,
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
	flags.StringVar(&p.rowsText, "rows", "", "`range` of the rows to place, counted from 0: 0:1000 are the first 1000, 1000: all after them")
	cli.AddDeviceFlag(cmd, &p.deviceName)
	flags.StringVar(&p.header, "header", "auto", "whether tables begin with a line of column names: auto, yes or no")
	return cmd
}

// A projectRun is one run of cne project.
type projectRun struct {
	model    string
	input    []string
	output   string
	picture  string
	header   string
	rowsText string // as it is given
	rows     projection.Rows
	data     data.Options
	*console.Reporter

	deviceName string
	device     *model.Device // that places points

	projection.Projection
}

// check finds faults of the command line.
func (p *projectRun) check(cmd *cobra.Command) error {
	switch {
	case len(p.input) == 0:
		return fmt.Errorf("%s needs an argument: the file with the points", cmd.CommandPath())
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
		p.Picture = new(projection.Picture)
	}
	if p.rowsText != "" {
		var ok bool
		if p.rows, ok = projection.ParseRows(p.rowsText); !ok {
			return fmt.Errorf("--rows is %s, but must be a range such as 0:1000, :1000 or 1000: of rows counted from 0", text.Quote(p.rowsText))
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

func (p *projectRun) run(ctx context.Context, stdout io.Writer) error {
	if err := p.checkOutputs(); err != nil {
		return err
	}
	// Reading may have to wait for the other end of a pipe.
	points, err := ctxio.Await(ctx, func() (projection.Source, error) {
		if err := p.load(ctx); err != nil {
			return nil, err
		}
		p.data.Log = p.Log
		return projection.Open(ctx, p.Embedding, p.input, p.data, p.rows)
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
	if p.Bad > 0 {
		p.Log.Warn("points with values that are not finite have no position", "points", p.Bad, "of", p.Count)
	}
	if err := p.draw(ctx); err != nil {
		return err
	}
	seconds, placed := max(p.Elapsed.Seconds(), 1e-9), p.Count-p.Bad
	_, err = fmt.Fprintf(stdout, "%s: %d points placed in %.2f s, %.0f per second\n", text.Escape(p.output), placed, seconds, float64(placed)/seconds)
	return err
}

// errUnwritten is the error of a projection that was interrupted.
var errUnwritten = errors.New("interrupted; nothing was written")

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
	if p.Embedding, err = projection.Load(p.model, p.Log); err != nil {
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
