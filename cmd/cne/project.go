package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/internal/app/cli"
	"cne/internal/app/points"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/model"
)

func projectCmd() *cobra.Command {
	var p projectRun
	cmd := &cobra.Command{
		Use:   "project --model RUN_OR_FILE INPUT…",
		Short: "Place new points with a trained model",
		Long: `Place new points in the map of a finished run, and write their positions. New
points are processed exactly as the training points were. --model is a run
folder, its model.safetensors, or a network that PyTorch has saved (linear
layers with ReLU), which gets the points as they are in the files.

INPUT names files of points in any form that cne train takes, or is
builtin:mnist10k. Counts of cells need a model trained on counts. Points are
read in blocks, so they need not fit into memory; of counts, the sparse matrix
must fit.

A network places each point by itself. A map without a network places it next to
the training points. cne reads these again from where the run found them, unless
the run has kept them (model.keep_data: true).

--rows places a part of the points, so several processes or machines can share
them: --rows :1000000 places the first million, --rows 1000000: the rest. One
process gives the same positions, bit for bit. Parts need no merging: commands
that read points take several files, and cne plot and cne evaluate take --join.`,
		Example: `  cne project --model runs/mnist t10k-images-idx3-ubyte.gz -o new.npy
  cne project --model runs/cells/model.safetensors new.csv --label-column type -o new.csv --plot new.png
  cne project --model runs/mnist many.npy -o first.npy --rows :1000000
  cne project --model runs/mnist many.npy -o rest.npy --rows 1000000:`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p.input = args
			if err := p.check(cmd); err != nil {
				return cli.Usage(cmd, err)
			}
			p.Reporter = cli.NewReporter(cmd, cli.LogFormat(cmd))
			if p.serves {
				return p.serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
			}
			return p.run(cmd.Context(), cmd.OutOrStdout())
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"npy", "npz", "csv", "tsv", "gz", "idx", "mtx"},
			cobra.ShellCompDirectiveFilterFileExt),
	}
	flags := cmd.Flags()
	flags.StringVarP(&p.model, "model", "m", "", "run `folder`, or file with the model")
	flags.StringVarP(&p.output, "output", "o", "", "`file` for the positions, .npy or .csv")
	flags.StringVar(&p.picture, "plot", "", "also draw the new points on the map, in a .png, .svg or .pdf `file` (needs memory for all)")
	flags.BoolVar(&p.skipBad, "skip-bad", false, "write NaN for points with values that are not finite, instead of refusing them")
	flags.StringVar(&p.reading.Layer, "layer", "", "`layer` of a .h5ad file to read, X or raw; genome of a .h5 file (default: as in training)")
	flags.StringVar(&p.reading.LabelColumn, "label-column", "", "`column` of the table with labels, by name or number, for .csv and --plot")
	flags.StringSliceVar(&p.reading.Drop, "drop", nil, "`column` of the table to leave out, by name or number; a list, or repeatable")
	flags.StringVar(&p.rowsText, "rows", "", "`range` of the rows to place, from 0: 0:1000 are the first 1000, 1000: all others")
	flags.BoolVar(&p.serves, "serve", false, "place the files that lines of stdin name, for the Python package")
	_ = flags.MarkHidden("serve") // fails without the flag
	flags.StringVar(&p.deviceName, "device", "auto", "`device` to compute on: auto (a GPU if there is one), cpu, cuda or cuda:1")
	cli.MustComplete(cmd, "device", cobra.FixedCompletions(configs.Train.Words("device.name"), cobra.ShellCompDirectiveNoFileComp))
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
	rows     rowRange
	skipBad  bool
	serves   bool
	reading  file.Options
	*cli.Reporter

	deviceName string
	device     *model.Device // that places points
	drawnOver  *data.Dataset // the embedding of the run, below the picture's points; nil for none
}

// check checks the command line.
func (p *projectRun) check(cmd *cobra.Command) (err error) {
	defer kind.Catch(&err)
	switch {
	case len(p.input) == 0 && !p.serves:
		return fmt.Errorf("%s needs an argument: the file with the points", cmd.CommandPath())
	case p.model == "":
		return errors.New("--model: got none, want a run folder, or the file of a model")
	case p.serves:
		return nil
	case p.output == "":
		return errors.New("--output: got none, want a file for the positions, such as -o positions.npy")
	}
	kind.Check(cli.CheckEnding("--output", p.output, ".npy", ".csv"))
	kind.Check(cli.CheckEnding("--plot", p.picture, ".png", ".svg", ".pdf"))
	if p.rowsText != "" {
		var ok bool
		if p.rows, ok = parseRows(p.rowsText); !ok {
			return fmt.Errorf("--rows: got %s, want a range of rows from 0: 0:1000, :1000 or 1000: for example", text.Quote(p.rowsText))
		}
	}
	if err := device.CheckName(p.deviceName); err != nil {
		return fmt.Errorf("--device: %w", err)
	}
	if err := p.reading.Header.UnmarshalText([]byte(p.header)); err != nil {
		return fmt.Errorf("--header: got %s, want %s", text.Quote(p.header), text.Enumerate(p.reading.Header.Words()))
	}
	return nil
}

func (p *projectRun) run(ctx context.Context, stdout io.Writer) (err error) {
	defer func() { err = errors.Join(explained(err), p.device.Close()) }()
	defer kind.Catch(&err)
	for _, o := range []cli.Output{{Flag: "--output", Path: p.output}, {Flag: "--plot", Path: p.picture}} {
		if o.Path != "" {
			kind.Check(o.Check(append([]string{p.model}, p.input...)...))
		}
	}
	e := kind.Got(p.load(ctx))
	if p.picture != "" {
		kind.Check(p.openMap(ctx, e.Dim()))
	}
	rows := kind.Got(p.open(ctx, e.Description.Preprocessing))
	defer rows.Close()
	return p.place(ctx, e, rows, stdout)
}

// explained returns an error with what to do about it.
func explained(err error) error {
	bad := new(cne.PointError)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; nothing was written")
	case errors.As(err, &bad):
		return fmt.Errorf("%s: %s; fix the values, or give --skip-bad", bad.Name, bad.Fault)
	}
	return err
}

// serve places points until stdin ends. Each of its lines is the path of a file, as JSON. The
// answer is a line of JSON and, without an error, the positions as float32. An answer
// without points says that the model is loaded.
func (p *projectRun) serve(ctx context.Context, stdin io.Reader, stdout io.Writer) (err error) {
	type answer struct {
		N     int    `json:"n"`
		D     int    `json:"d"`
		Error string `json:"error,omitempty"`
		Errno int    `json:"errno,omitempty"`
	}
	defer func() { err = errors.Join(err, p.device.Close()) }()
	defer kind.Catch(&err)
	e := kind.Got(p.load(ctx))
	requests, answers := bufio.NewScanner(stdin), json.NewEncoder(stdout)
	for err = answers.Encode(answer{}); err == nil && requests.Scan(); {
		p.input = make([]string, 1)
		var placed *data.Matrix
		if err = json.Unmarshal(requests.Bytes(), &p.input[0]); err == nil {
			placed, err = p.placeAll(ctx, e)
		}
		if err != nil {
			a := answer{Error: explained(err).Error()}
			if errno, ok := errors.AsType[syscall.Errno](err); ok {
				a.Errno = int(errno)
			}
			err = answers.Encode(a)
			continue
		}
		if err = answers.Encode(answer{N: placed.N, D: placed.D}); err == nil {
			err = binary.Write(stdout, binary.LittleEndian, placed.X)
		}
	}
	return errors.Join(err, requests.Err())
}

// placeAll returns the positions of the input.
func (p *projectRun) placeAll(ctx context.Context, e *cne.Embedding) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	rows := kind.Got(p.open(ctx, e.Description.Preprocessing))
	defer rows.Close()
	placed, o := &data.Matrix{D: e.Dim()}, cne.Projection{}
	o.Most, _ = rows.Len()
	return placed, e.ProjectRows(ctx, rows, o, func(b *cne.ProjectedBlock) error {
		placed.N, placed.X = placed.N+b.Positions.N, append(placed.X, b.Positions.X...)
		return nil
	})
}

// loadModel is cne.Load, and says of a spectrum how to make a model.
func loadModel(path string) (*cne.Embedding, error) {
	e, err := cne.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = cmp.Or(rundir.RefuseSpectrum(path), rundir.RefuseStop(path), err)
	}
	return e, err
}

// load reads the model, and opens the device that places points.
func (p *projectRun) load(ctx context.Context) (_ *cne.Embedding, err error) {
	defer kind.Catch(&err)
	e, err := loadModel(p.model)
	switch {
	case errors.Is(err, cne.ErrImages):
		return nil, fmt.Errorf("%s: got a network for images, want a model of \"cne train\"; cne simclr project places images", p.model)
	case errors.As(err, new(*fs.PathError)) && errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--model: %w", err)
	case err != nil:
		return nil, err
	case e.FromPyTorch:
		p.Log.Warn("the file does not say how the training points were scaled; new points are not scaled")
	}
	p.device = kind.Got(openDevice(p.Log, configs.Device{Name: p.deviceName}))
	if !e.HasTrainingPoints() {
		points, err := points.ReadAgain(ctx, p.Log, p.runFolder(), e.Description.Preprocessing)
		kind.Checkf(err, "%s: the training points, which a map without a network needs, cannot be read again (%w); restore them, or train again with model.keep_data: true", p.model, err)
		err = e.UseTrainingPoints(points)
		kind.Checkf(err, "%s: %w", p.model, err)
	}
	kind.Check(e.UseDevice(p.device))
	_, err = e.Projector(ctx)
	kind.Checkf(err, "%s: %w", p.model, err)
	return e, nil
}

// runFolder returns the folder of the model.
func (p *projectRun) runFolder() string {
	if info, err := os.Stat(p.model); err == nil && info.IsDir() {
		return p.model
	}
	return filepath.Dir(p.model)
}

// watchedRows note, while they are read, what tells the scale of the values.
type watchedRows struct {
	file.Rows
	scaler  *data.Scaler // of the training; may be nil
	values  int
	far     int     // values more than ten standard deviations from the mean of their column
	largest float32 // magnitude, of the finite values
	between bool    // whether a magnitude is between 0 and 1
}

func (r *watchedRows) Next(dst *data.Matrix) (n int, err error) {
	n, err = r.Rows.Next(dst)
	block := dst.X[:n*dst.D]
	r.values += len(block)
	if s := r.scaler; s != nil && s.Kind == data.ScaleStandard {
		for row := range slices.Chunk(block, dst.D) {
			for j, v := range row {
				if s.SD[j] > 0 && math.Abs(float64(v)-s.Mean[j]) > 10*s.SD[j] {
					r.far++
				}
			}
		}
	}
	// Most blocks need no second look at each of their values.
	if most := data.LargestMagnitude(block); most <= r.largest && (most > 1 || r.between) {
		return n, err
	}
	for _, v := range block {
		if v = max(v, -v); v > r.largest && v <= math.MaxFloat32 {
			r.largest = v
		}
		r.between = r.between || 0 < v && v < 1
	}
	return n, err
}

// place writes the positions of points, and draws them.
func (p *projectRun) place(ctx context.Context, e *cne.Embedding, rows file.Rows, stdout io.Writer) (err error) {
	defer kind.Catch(&err)
	if want, d := kind.Got(e.Width()), rows.Width(); d != want {
		remedy := selection.If(d > want, " (--label-column and --drop leave columns of a table out)", "")
		return fmt.Errorf("%s: got points of %d values, want %d as in training%s", p.input[0], d, want, remedy)
	}
	begun, count, bad := time.Now(), 0, 0
	before := cmp.Or(e.Description.Preprocessing, new(model.Preprocessing))
	drawn, watched := &data.Matrix{D: e.Dim()}, &watchedRows{Rows: rows, scaler: before.Scaler}
	var labels []string
	kind.Check(rundir.WritePositions([]string{p.output}, e.Dim(), rows.Labeled(), false, func(write rundir.PositionWriter) error {
		o := cne.Projection{SkipBad: p.skipBad, First: p.rows.first, Most: max(0, p.rows.end-p.rows.first)}
		err := e.ProjectRows(ctx, watched, o, func(b *cne.ProjectedBlock) error {
			count, bad = count+b.Positions.N, bad+b.Bad
			for i := range b.Positions.N {
				if row := b.Positions.Row(i); p.picture != "" && row[0] == row[0] { // no NaN
					drawn.N, drawn.X = drawn.N+1, append(drawn.X, row...)
					if b.Labels != nil {
						labels = append(labels, b.Labels[i])
					}
				}
			}
			return write(b.Positions, b.Labels, nil)
		})
		if err == nil && p.rows != (rowRange{}) && (count == 0 || count < o.Most) {
			err = p.rows.beyond(p.rows.first + count)
		}
		return err
	}))
	seconds := max(time.Since(begun).Seconds(), 1e-9)
	if bad > 0 {
		p.Log.Warn("points with values that are not finite have no position", "points", bad, "of", count)
	}
	if s := before.Scaler; s != nil && before.Counts == nil && !before.Metric.Angular() && (!before.Metric.Direct() || before.Metric == data.Manhattan) {
		const otherScale = "the new points have another scale than those of training, so their positions may mean nothing"
		// Values may well be far below the largest, but not pixels of 0 to 1 beside 255.
		switch {
		case s.Kind == data.ScaleUnit && (watched.largest/10 > s.Divisor || s.Offset == nil && s.Divisor >= 100 && watched.largest <= 1 && watched.between):
			p.Log.Warn(otherScale, "largest value", watched.largest, "in training", s.Divisor)
		case 2*watched.far > watched.values: // a few points may well have rare values
			p.Log.Warn(otherScale, "values ten standard deviations from the mean", watched.far, "of", watched.values)
		}
	}
	if p.picture != "" {
		if err := p.draw(drawn, labels); err != nil {
			return fmt.Errorf("%w (the positions are in %s)", err, p.output)
		}
	}
	_, err = fmt.Fprintf(stdout, "%s: %d points placed in %.2f s, %.0f per second\n", text.Escape(p.output), count-bad, seconds,
		float64(count-bad)/seconds)
	return err
}

// openMap reads the embedding of the run, if there is one, to draw new points over it.
func (p *projectRun) openMap(ctx context.Context, dim int) (err error) {
	if _, err := os.Stat(filepath.Join(p.model, "embedding.npy")); err != nil {
		return nil
	}
	files, set, err := rundir.OpenEmbedding(ctx, []string{p.model}, file.Options{})
	if err == nil && set.Points.D != dim {
		err = fmt.Errorf("%s: got %d coordinates, want %d as the model has", files[0], set.Points.D, dim)
	}
	p.drawnOver = set
	return err
}

// draw makes the picture.
func (p *projectRun) draw(positions *data.Matrix, labels []string) error {
	if positions.N == 0 {
		return errors.New("there is nothing to draw: no point has a position")
	}
	var classes *data.Labels
	if labels != nil {
		classes = data.NewLabels(labels)
	}
	m := report.Map{Positions: positions, Labels: classes}
	if p.drawnOver != nil {
		m = report.WithHeldOut(report.Map{Positions: p.drawnOver.Points, Labels: p.drawnOver.Labels}, positions, classes)
	}
	m.Labels.Arrange(file.Categories(p.input[0], p.reading.LabelColumn))
	report.ArrangeLikeRun(m.Labels, p.runFolder())
	return m.SavePicture(p.Log, p.picture, cne.PictureOptions{Trained: "map", Held: "new"})
}
