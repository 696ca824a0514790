package cne

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"cne/data"
	"cne/data/images"
	"cne/data/neighbors"
	"cne/internal/explorer"
	"cne/internal/kind"
	"cne/internal/plot"
	"cne/train/quality"
)

// PictureOptions describe a picture of n points. The zero value is a PNG of points of one
// colour.
type PictureOptions struct {
	// Format is "png" (or empty), or vector graphics: "svg", in which the points are an image
	// from 50 000 on, or "pdf", from 20 000 on, with embedded fonts.
	Format string
	// Title is written above the points.
	Title string
	// Labels [n] colour the points: with a legend if they are Categorical, otherwise on a
	// continuous scale. Points with a missing label (data.Labels.Known) are grey.
	Labels *data.Labels
	// NameClasses writes the name of each class at its points.
	NameClasses bool
	// HeldOut [n] reports which points were held out of training. They are drawn above the
	// others, larger and with a rim. A key explains both kinds, by the names Trained and Held,
	// if they are not empty.
	HeldOut       []bool
	Trained, Held string
	// Panels are several embeddings, which replace Positions, Labels and HeldOut. They are
	// drawn side by side, Columns in a row (0: chosen from their number), with one legend.
	Panels  []PicturePanel
	Columns int
	// Cells [len(Panels)], ascending and counted row by row from 0, are where Panels are; nil
	// leaves no gaps.
	Cells []int
	// ColumnTitles stand above the columns of Panels, and RowTitles to the left of the rows.
	ColumnTitles, RowTitles []string
	// Letters writes a, b, c … in the upper left corners of Panels.
	Letters bool
	// Width and Height are in inches. Height defaults to 5, Width to 5 plus the legend. Each
	// of Panels is as high as it is wide, by default 2.4; Height is then not used.
	Width, Height float64
	// DPI is the number of pixels per inch, 200 by default.
	DPI int
	// PointSize is the diameter of a point in 1/72 inch. By default it falls with the number
	// of points, and 50 000 points or more are drawn by density.
	PointSize float64
}

// A PicturePanel is one of several embeddings in a picture, with the labels of its points
// or nil.
type PicturePanel struct {
	Title     string
	Embedding *data.Matrix
	Labels    *data.Labels
}

// WritePicture draws Positions as the program does, and writes the picture to w.
// Outliers, at most 1 % of the points, may lie outside the picture; arrows then show how
// many. Positions of more than two coordinates are projected to the plane of their first
// two principal axes; a single coordinate is drawn with the density of points as height.
//
// The same positions and options give the same bytes. Errors of w are returned. Other
// errors wrap ErrPoints or ErrOption, and nothing is written.
func (e *Embedding) WritePicture(w io.Writer, o PictureOptions) (err error) {
	defer kind.Catch(&err)
	format := plot.Format(cmp.Or(o.Format, "png"))
	if len(o.Panels) > 0 {
		strip := kind.Got(o.strip())
		return showError(strip.Write(w, format))
	}
	kind.Check(e.shown())
	s := &plot.Scatter{
		Embedding: e.Positions, Title: o.Title, NameClasses: o.NameClasses, HeldOut: o.HeldOut, Below: o.Trained, Above: o.Held,
		Width: o.Width, Height: o.Height, DPI: o.DPI, PointSize: o.PointSize,
	}
	s.Colouring = kind.Got(colouring("Labels", o.Labels, e.Positions.N))
	return showError(s.Write(w, format))
}

// Undrawn returns the characters of titles and classes that no font of the program or the
// system can draw, and for which the picture has boxes; "" if there are none, and for SVG.
func (o *PictureOptions) Undrawn() string {
	if o.Format == "svg" {
		return ""
	}
	texts := slices.Concat([]string{o.Title}, o.ColumnTitles, o.RowTitles, o.Labels.ClassNames())
	for _, p := range o.Panels {
		texts = append(append(texts, p.Title), p.Labels.ClassNames()...)
	}
	return string(plot.Undrawn(texts))
}

// strip returns the picture of the panels. A class has one colour in all of them.
func (o *PictureOptions) strip() (*plot.Strip, error) {
	strip := &plot.Strip{Title: o.Title, Cells: o.Cells, Columns: o.Columns, ColumnTitles: o.ColumnTitles, RowTitles: o.RowTitles,
		Letters: o.Letters, Width: o.Width, DPI: o.DPI}
	labels, several := make([]*data.Labels, len(o.Panels)), false
	for i, p := range o.Panels {
		if p.Embedding == nil {
			return nil, badOption("Panels: got no embedding for panel %d (counted from 0)", i)
		}
		if err := p.Labels.Check(p.Embedding.N); err != nil {
			return nil, fmt.Errorf("%w: Panels: panel %d (counted from 0): %w", ErrOption, i, err)
		}
		labels[i], several = p.Labels.OrMissing(p.Embedding.N), several || p.Labels != o.Panels[0].Labels
	}
	all := o.Panels[0].Labels
	if several {
		all = data.JoinLabels(labels...)
	}
	rest := plot.OfLabels(all)
	for _, p := range o.Panels {
		panel := &plot.Scatter{Embedding: p.Embedding, Colouring: rest, Title: p.Title, PointSize: o.PointSize, NameClasses: o.NameClasses}
		if n := p.Embedding.N; several && rest.Classes != nil {
			panel.Classes, rest.Classes = rest.Classes[:n], rest.Classes[n:]
		} else if several && rest.Values != nil {
			panel.Values, rest.Values = rest.Values[:n], rest.Values[n:]
		}
		strip.Panels = append(strip.Panels, panel)
	}
	return strip, nil
}

// PageOptions describe a page of n points. The zero value is a page with only the points.
type PageOptions struct {
	// Title is the heading, "Embedding" by default.
	Title string
	// Labels [n] colour the points, as in PictureOptions.
	Labels *data.Labels
	// Names [n] are the points' names or texts, of one or more lines. The page shows the name
	// of the point under the cursor and searches all names. The default is the names of
	// Images.
	Names []string
	// AutoLabels labels the regions of the map by the words that distinguish their Names.
	AutoLabels bool
	// Columns are further properties by which the reader can colour the points.
	Columns []PageColumn
	// Images has a picture of each point.
	Images *images.Set
	// HeldOut [n] reports which points were held out of training.
	HeldOut []bool
	// Neighbors [n, k] are the nearest neighbours in the data. The page shows the neighbours
	// of the point under the cursor: up to 10, fewer above 100 000 points, and none above 333
	// 333. The default is Neighborhood.Nearest if it has n points.
	Neighbors *neighbors.Neighbors
	// Facts are shown below the points. The function Facts returns some.
	Facts []Fact
	// Views are several embeddings of the points, which replace Positions and Facts. A slider
	// moves from one view to the next.
	Views []PageView
	// Slider is the name of the quantity in which the Views differ, such as "epoch". With Rows
	// above 1, they are a grid, row by row, with a second slider for the rows.
	Slider string
	Rows   int
}

// A PageColumn has a property [n] of the points. Labels with a missing entry are grey.
type PageColumn struct {
	Name   string
	Labels *data.Labels
}

// A PageView is one of several embeddings on a page. Its fields are the Name that distinguishes
// it from the others, such as "s = 0.5", the Embedding [n, d], a *data.Matrix, and Facts.
type PageView = explorer.View

// A Fact is a statement about an embedding, such as a quality figure. Its fields, of type string,
// are Name, Value and Meaning, which explains Name; the page shows it on hover.
type Fact = explorer.Fact

// Facts returns quality figures as the program's pages show them.
func Facts(f *quality.Figures) []Fact {
	if f == nil {
		return nil
	}
	var facts []Fact
	for _, x := range quality.DisplayTable() {
		value, standardError := x.Of(f)
		if value == nil {
			continue
		}
		text := fmt.Sprintf("%.3f", *value)
		if x.Wide {
			text = plot.Rounded(*value)
		}
		facts = append(facts, Fact{Name: x.Heading(), Value: text + quality.PlusMinus(standardError), Meaning: x.Meaning})
	}
	return facts
}

// WritePage writes an HTML page to explore Positions in a browser, as the program does.
// The page is one file that needs no network connection, with search, selection and a
// legend that hides classes. The file has about 190 kB, 8 bytes per point and embedding,
// and up to 30 bytes per point for neighbours, which it has by default after Embed.
//
// The same positions and options give the same bytes. Errors of w are returned. Other
// errors wrap ErrPoints or ErrOption, and nothing is written.
func (e *Embedding) WritePage(w io.Writer, o PageOptions) (err error) {
	defer kind.Catch(&err)
	views := o.Views
	if len(views) == 0 {
		kind.Check(e.shown())
		views = []PageView{{Embedding: e.Positions, Facts: o.Facts}}
	}
	p := explorer.Page{Title: o.Title, Slider: o.Slider, Rows: o.Rows, Names: o.Names, HeldOut: o.HeldOut, Images: o.Images, AutoLabels: o.AutoLabels,
		Neighbors: o.Neighbors, Views: views}
	for i, v := range views {
		if v.Embedding == nil {
			return badOption("Views: got no embedding for view %d (counted from 0)", i)
		}
	}
	n := views[0].Embedding.N
	if h := e.Neighborhood; p.Neighbors == nil && h != nil && h.Nearest != nil && h.Nearest.N == n {
		p.Neighbors = h.Nearest
	}
	p.Colouring = kind.Got(colouring("Labels", o.Labels, n))
	for _, c := range o.Columns {
		colours := kind.Got(colouring(fmt.Sprintf("column %q", c.Name), c.Labels, n))
		p.Columns = append(p.Columns, explorer.Column{Name: c.Name, Colouring: colours})
	}
	if o.Names == nil && o.Images != nil {
		p.Names = o.Images.Names
	}
	return showError(p.Write(w))
}

// shown returns an error if there are no positions.
func (e *Embedding) shown() error {
	if e.Positions == nil || e.Positions.N == 0 {
		return fmt.Errorf("%w: got no Positions to show; after Load of a network, set them to what Project returns", ErrPoints)
	}
	return nil
}

// colouring checks the labels of n points, and returns their colouring.
func colouring(what string, l *data.Labels, n int) (plot.Colouring, error) {
	if err := l.Check(n); err != nil {
		return plot.Colouring{}, fmt.Errorf("%w: %s: %w", ErrOption, what, err)
	}
	return plot.OfLabels(l), nil
}

// showError converts an error of a picture or page to an error of this package.
func showError(err error) error {
	switch {
	case errors.Is(err, plot.ErrNotFinite):
		return fmt.Errorf("%w: %w", ErrPoints, err)
	case errors.Is(err, plot.ErrInput), errors.Is(err, plot.ErrFormat):
		return fmt.Errorf("%w: %w", ErrOption, err)
	}
	return err
}
