package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/data/images"
	"cne/internal/app/cli"
	"cne/internal/app/points"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
)

func plotCmd() *cobra.Command {
	p := plotting{wanted: report.Wanted{NamesFrom: "--names", ColumnsFrom: "--color"}}
	cmd := &cobra.Command{
		Use:   "plot INPUT...",
		Short: "Draw embeddings and curves of runs",
		Long: `Draw an embedding as PNG, SVG or PDF, or write a page to explore it (--html), and
print the path of the file. INPUT is an array (.npy), a table (.csv, .tsv), or a
run folder; files may be compressed with gzip. A run folder gives its
embedding.csv, or else embedding.npy, with the held-out points. More than two
dimensions are drawn in the plane of the first two principal axes. Several
inputs are drawn side by side, each at its own scale, without held-out points;
with --join they are the parts of one embedding, one below the other. The titles
of runs are the settings in which they differ. SWEEP/* means the runs of a
sweep; --grid arranges them by two keys.

Labels are the column "label" of a table, as cne train writes it, another column
(--label-column), or files (--labels). Words, and whole numbers that look like
classes, are drawn as classes with a legend, other numbers on a continuous
scale. Points with an empty label, or nan, are grey.

The page is one file that works offline. --names gives names to show and to
search. --color gives classes or values to colour the points instead of their
labels. Such columns of INPUT are not coordinates; for a run folder, they are
columns of the table that the run has read. --auto-labels writes the words of
the names that distinguish a region there. --images takes CIFAR-10, a folder of
images, an array (IDX, .npy, .npz), or the folder of MNIST or Kuzushiji, in the
order of the points. Without it, the page of a run folder shows the images that
the run was trained on. --data says where a run's points are now.

--metrics draws how the loss, the partition function, the KL divergence and the
learnt Z change with the epochs, for one or more run folders or files such as
their metrics.jsonl. What was not recorded is left out
(output.metrics_every).

Without --output, the file is named after INPUT, or it is embedding.png,
embedding.html or curves.png in the run folder.`,
		Example: `  cne plot runs/mnist10k
  cne plot runs/mnist10k/embedding.npy --labels labels.txt -o mnist.svg
  cne plot runs/mnist10k --html
  cne plot table.csv --label-column species --drop id --title Penguins
  cne plot runs/s0 runs/s0.5 runs/s1 -o spectrum.png
  cne plot runs/s/* --grid loss.s,seed --letters --width 180mm -o s.pdf
  cne plot --join part1.npy part2.npy part3.npy -o all.png
  cne plot --metrics runs/neg runs/nc -o curves.svg`,
		Args: cli.AtLeastOne("the file with the embedding, or the run folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.inputs = configs.WithoutMarks(args)
			p.input = p.inputs[0]
			if err := p.check(); err != nil {
				return cli.Usage(cmd, err)
			}
			if err := p.chooseOutput(); err != nil {
				return err
			}
			err := p.draw(cmd.Context(), cli.NewReporter(cmd, cli.LogFormat(cmd)).Log)
			if errors.Is(err, errNoTexts) {
				return cli.Usage(cmd, err)
			} else if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text.Escape(p.output))
			return err
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"npy", "csv", "tsv", "gz"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	flags := cmd.Flags()
	flags.StringVarP(&p.output, "output", "o", "", "`file` for the result: .png, .svg, .pdf or .html")
	flags.BoolVar(&p.metrics, "metrics", false, "draw curves of the training of one or more runs")
	flags.BoolVar(&p.html, "html", false, "write a page instead of a picture")
	flags.StringArrayVar(&p.images, "images", nil, "`path` of the images of the points, for the page; none: no images; repeatable")
	flags.StringArrayVar(&p.wanted.Data, "data", nil, "`path` of the points of a run that have moved, for the page; repeatable")
	flags.StringVar(&p.wanted.Names, "names", "", "`column` with names for the page, a file with a name per line, or FILE:COLUMN")
	flags.BoolVar(&p.wanted.AutoLabels, "auto-labels", false, "label regions of the page by words of the --names of their points")
	flags.StringSliceVar(&p.wanted.Columns, "color", nil, "`column` that colours the page, a file (.npy, too), or FILE:COLUMN; a list, or repeatable")
	flags.StringArrayVar(&p.data.Labels, "labels", nil, "`file` with a label per point (text, .npy or IDX), FILE:COLUMN, or a column of the table; repeatable")
	flags.StringVar(&p.data.LabelColumn, "label-column", "", "`column` of the table with the labels, by name or number (1: first, -1: last)")
	flags.StringSliceVar(&p.data.Drop, "drop", nil, "`column` of the table to leave out, by name or number; a list, or repeatable")
	flags.StringArrayVar(&p.titles, "title", nil, "`text` above the picture, or repeated: above each input (default: settings or names)")
	flags.BoolVar(&p.join, "join", false, "the inputs are the parts of one embedding, in this order")
	flags.IntVar(&p.plot.Columns, "columns", 0, "`number` of panels in a row; 0: automatic")
	flags.StringVar(&p.grid, "grid", "", "`keys` of the rows and the columns of runs, such as loss.s,seed")
	flags.BoolVar(&p.plot.Letters, "letters", false, "write a, b, c … in the corners of the panels")
	flags.Float64Var(&p.plot.PointSize, "point-size", 0, "diameter in typographic `points`, at most 100; 0: automatic, density from 50 000 points")
	flags.Var((*cli.Length)(&p.plot.Width), "width", "width of the picture, a `length` such as 180mm, 7in, 18cm or 18; 0: automatic")
	flags.Var((*cli.Length)(&p.plot.Height), "height", "height of the picture, a `length`; 0: automatic")
	flags.BoolVar(&p.plot.NameClasses, "class-names", false, "write the name of each class at the median of its points, where there is room")
	_ = flags.SetAnnotation("title", cli.MayBeEmpty, nil) // fails without the flag
	return cmd
}

// isStrip reports whether several embeddings are drawn.
func (p *plotting) isStrip() bool { return len(p.inputs) > 1 && !p.join && !p.metrics }

// plotting is one run of cne plot.
type plotting struct {
	input  string   // as on the command line
	inputs []string // all of them
	output string   // "" for the default
	data   file.Options
	plot   cne.PictureOptions
	grid   string

	titles  []string
	join    bool // the inputs are parts of one
	metrics bool // curves of runs
	html    bool
	images  []string // paths, or only noImages
	wanted  report.Wanted
}

// endings returns the allowed endings of the output.
func (p *plotting) endings() []string {
	switch {
	case p.metrics || p.isStrip():
		return []string{".png", ".svg", ".pdf"}
	case p.html:
		return []string{".html"}
	}
	return []string{".png", ".svg", ".pdf", ".html"}
}

// check checks the command line.
func (p *plotting) check() error {
	strip, page, n := p.isStrip(), p.isHTML(), len(p.inputs)
	p.grid = strings.ReplaceAll(p.grid, " ", "") // no key has a blank
	if rows, columns, ok := strings.Cut(p.grid, ","); p.grid != "" && (!ok || rows == columns || strings.Contains(columns, ",")) {
		return fmt.Errorf("--grid: got %s, want two keys, such as loss.s,seed", text.Quote(p.grid))
	} else if err := cmp.Or(configs.Train.CheckKey("--grid", rows), configs.Train.CheckKey("--grid", columns)); p.grid != "" && err != nil {
		return err
	}
	if !(p.plot.PointSize >= 0 && p.plot.PointSize <= 100) {
		return fmt.Errorf("--point-size: got %v, want a number from 0 to 100", p.plot.PointSize)
	}
	hasLabels := len(p.data.Labels) > 0 || p.data.LabelColumn != "" || len(p.data.Drop) > 0
	for _, fault := range []struct {
		found bool
		what  string
	}{
		{len(p.data.Labels) > 0 && p.data.LabelColumn != "", "--labels and --label-column: got both, want one of them"},
		{p.join && p.metrics, "--join is for the parts of an embedding, not for curves"},
		{p.join && p.output == "", "--join needs --output, the file for the picture"},
		{p.metrics && (hasLabels || p.plot.PointSize != 0), "--labels, --label-column, --drop and --point-size are for points, not for the curves of --metrics"},
		{p.plot.NameClasses && (p.metrics || page), "--class-names is for pictures of embeddings, not for curves or pages"},
		{p.metrics && n > 1 && p.output == "", "--metrics of several runs needs --output, the file for their picture"},
		{p.html && p.metrics, "--html and --metrics: got both, want one of them"},
		{p.html && strip, fmt.Sprintf("--html: got %d embeddings, want one", n)},
		{page && (p.plot.Width != 0 || p.plot.Height != 0 || p.plot.PointSize != 0),
			"--width, --height and --point-size are for pictures; a page fits its window"},
		{p.plot.Columns < 0, fmt.Sprintf("--columns: got %d, want 1 or more, or 0 (automatic)", p.plot.Columns)},
		{p.grid != "" && !strip, "--grid is for several embeddings"},
		{p.grid != "" && p.plot.Columns > 0, "--grid and --columns: got both, want one of them"},
		{(p.plot.Columns > 0 || p.plot.Letters) && !strip && !p.metrics, "--columns and --letters are for several embeddings, or curves"},
		{strip && p.plot.Height > 0, "--height is for one embedding, or curves; several are as high as wide"},
		{len(p.titles) > 1 && (!strip || p.grid != ""), fmt.Sprintf("--title: got %d for one picture, want 1", len(p.titles))},
		{strip && p.output == "", fmt.Sprintf("%d embeddings need --output, the file for their picture", n)},
		{strip && len(p.titles) > 1 && len(p.titles) != n,
			fmt.Sprintf("--title: got %d for %d embeddings, want one for each, or one for all", len(p.titles), n)},
		{!page && len(p.images) > 0, "--images is for pages; add --html"},
		{!page && p.wanted.AutoLabels, "--auto-labels is for pages; add --html"},
		{!page && (p.wanted.Names != "" || len(p.wanted.Columns)+len(p.wanted.Data) > 0),
			"--names, --color and --data are for pages; add --html, or colour a picture by --labels or --label-column"},
	} {
		if fault.found {
			return errors.New(fault.what)
		}
	}
	if len(p.titles) == 1 {
		p.plot.Title, p.titles = p.titles[0], nil
	}
	return cli.CheckEnding("--output", p.output, p.endings()...)
}

// isHTML reports whether cne plot writes a page instead of a picture.
func (p *plotting) isHTML() bool {
	return p.html || strings.EqualFold(filepath.Ext(p.output), ".html")
}

// chooseOutput fills in the output, if it is not given, and checks it.
func (p *plotting) chooseOutput() error {
	folder := p.input // of the run, if it is one
	info, err := os.Stat(p.input)
	if err == nil && !info.IsDir() {
		folder = filepath.Dir(p.input)
	}
	switch {
	case p.output != "":
	case err != nil:
		return nil // reading it reports the error
	case p.metrics:
		p.output = filepath.Join(folder, "curves.png")
	default:
		found, err := rundir.EmbeddingFile(p.input)
		if err != nil {
			return err
		}
		p.output = file.TrimEnding(found) + selection.If(p.html, ".html", ".png")
	}
	inputs := file.Paths(slices.Concat(p.inputs, p.data.Labels, p.images, p.wanted.Columns, []string{p.wanted.Names}))
	return cli.Output{Flag: "--output", Path: p.output, Runs: append(p.inputs, folder)}.Check(inputs...)
}

// draw writes the picture or page.
func (p *plotting) draw(ctx context.Context, log *slog.Logger) (err error) {
	defer func() {
		if errors.As(err, new(*file.TextError)) {
			err = fmt.Errorf("%w; leave them out with --drop, or show one as labels with --label-column", err)
		}
	}()
	defer kind.Catch(&err)
	o := p.plot
	named := (&configs.Data{Path: p.inputs, Options: file.Options{Labels: p.data.Labels, Drop: p.data.Drop}}).Reading()
	if named.LabelColumn != "" {
		if _, err := file.FindColumn(ctx, p.inputs, named.LabelColumn, named); err == nil { // --labels names a column
			p.data = named
		}
	}
	switch {
	case p.metrics:
		return kind.Got(report.OpenCurves(ctx, p.inputs, o)).Save(p.output)
	case p.isStrip():
		inputs := p.inputs
		if rows, columns, ok := strings.Cut(p.grid, ","); ok {
			inputs = kind.Got(report.Grid(&o, inputs, rows, columns))
			p.titles = make([]string, len(inputs))
		}
		o.Panels = kind.Got(report.OpenPanels(ctx, inputs, p.titles, p.data))
		for _, panel := range o.Panels {
			warnOfCounts(log, panel.Embedding)
		}
		return report.Map{}.SavePicture(log, p.output, o)
	}
	p.leaveOut(ctx)
	files, m, err := report.OpenMap(ctx, p.inputs, p.data)
	kind.Check(err)
	warnOfCounts(log, m.Positions)
	if p.isHTML() {
		return m.SavePage(p.output, kind.Got(p.page(ctx, log, &m, files)))
	}
	return m.SavePicture(log, p.output, o)
}

func warnOfCounts(log *slog.Logger, m *data.Matrix) {
	points.WarnOfCounts(log, m, func(name string) string { return "--drop " + text.Quote(name) + " leaves it out" })
}

// leaveOut drops the columns that --names and --color name, except the column of labels.
func (p *plotting) leaveOut(ctx context.Context) {
	label, _ := file.FindColumn(ctx, p.inputs, cmp.Or(p.data.LabelColumn, file.LabelColumn), p.data)
	for _, spec := range append(slices.Clone(p.wanted.Columns), p.wanted.Names) {
		path, _ := file.SplitColumn(spec)
		if at, err := file.FindColumn(ctx, p.inputs, spec, p.data); err == nil && at != label && path == "" && spec != "" {
			p.data.Drop = append(p.data.Drop, spec)
		}
	}
}

// page returns the page of an embedding that was read from files.
func (p *plotting) page(ctx context.Context, log *slog.Logger, m *report.Map, files []string) (page *cne.PageOptions, err error) {
	defer kind.Catch(&err)
	name := kind.Got(filepath.Abs(p.input))
	var images *images.Set
	if len(p.images) > 0 && !slices.Equal(p.images, []string{noImages}) {
		images = kind.Got(report.GivenImages(ctx, log, p.images, m.Positions.N))
	}
	if p.join && len(p.inputs) > 1 || files[0] == p.input {
		if p.wanted.Data != nil {
			return nil, fmt.Errorf("--data is for the folder of a run; %s is none", text.Quote(p.input))
		}
		page, err = report.FilePage(ctx, log, files, m, images, p.wanted, p.data)
	} else {
		page, err = report.RunPage(ctx, log, p.input, m, images, len(p.images) == 0, p.wanted)
	}
	kind.Check(err)
	page.Title = cmp.Or(p.plot.Title, file.TrimEnding(filepath.Base(name)))
	if page.AutoLabels && page.Names == nil && (page.Images == nil || page.Images.Names == nil) {
		return nil, errNoTexts
	}
	return page, nil
}

var errNoTexts = errors.New("--auto-labels needs --names that are texts")

// noImages is the argument of --images for a page without images.
const noImages = "none"
