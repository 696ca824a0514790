// Package plot draws embeddings and curves as PNG, SVG or PDF. Scatter draws one embedding, and
// Strip draws several next to each other. They look like the paper's figures, with equal
// axes and a scale bar instead of ticks. Curves draws line charts as small multiples.
// Colour-blind readers can distinguish the colours.
//
// Text, lines and legends are drawn by gonum/plot's canvases. The points of an embedding
// are not, because one path per point takes seconds and megabytes for tens of thousands
// of points. raster.go sets them as anti-aliased discs, and svg.go writes them as dots of
// a few short paths. From 50 000 points on, density.go draws the number of points per
// pixel and colour.
package plot

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/simd"
)

// ErrInput is wrapped by errors about pictures that cannot be drawn: no points,
// labels that do not fit, sizes out of range.
var ErrInput = errors.New("cannot draw the plot")

// ErrNotFinite is wrapped by the error for a coordinate or value that is NaN
// or infinite where it may not be.
var ErrNotFinite = errors.New("not a finite number")

// ErrFormat is wrapped by the error for an image format other than PNG, SVG and PDF.
var ErrFormat = errors.New("unknown image format")

// A Format is a kind of image file.
type Format string

// The formats that Write knows.
const (
	PNG Format = "png" // pixels
	SVG Format = "svg" // vectors, without embedded fonts
	PDF Format = "pdf" // vectors, with embedded fonts
)

// A Colouring has the classes or the values of points, which give them colours, or neither.
type Colouring struct {
	// Classes[i] is the class of row i. A negative one means none: the point is grey and lies
	// below the others. Up to 40 classes get a legend; it also lists grey points.
	Classes []int32

	// ClassNames[c] is the name of class c in the legend; a class beyond the
	// slice, or with an empty name, is shown by its number.
	ClassNames []string

	// ClassColours[c] is the colour of class c, 0xRRGGBB; by default, it is ClassColour(c).
	ClassColours []int32

	// Values[i] is the number that colours row i; a colour bar shows the scale. NaN means
	// none: the point is grey and lies below the others. Values and Classes exclude each
	// other.
	Values []float64
	// Dates reports that Values are dates, as years with fractions (data.LabelValue).
	Dates bool
}

// A Scatter is a plot of an embedding. All fields except Embedding may be zero. The same
// Scatter gives the same bytes.
//
// If Classes is set, points have the colour of their class; if Values is set, the
// colour of their value on a continuous scale; otherwise all have the same colour. They
// are drawn in an order that Seed shuffles, so no class systematically covers
// another.
//
// The points fill the picture, except for the outliers that FrameOf leaves out. On each
// side with outliers, an arrow in the middle shows their number.
//
// From 50 000 points on, unless PointSize is set, they are drawn by density: a pixel has
// the mean colour of the classes of its points, or the colour of their mean value. Pixels
// with more points are more opaque, by histogram equalisation. The order of the points
// then makes no difference. An SVG or PDF holds them as an image.
type Scatter struct {
	// Embedding holds the points. Points of more than two coordinates are
	// projected to the plane of their first two principal axes. Points of a
	// single coordinate are scattered vertically between a line and the density
	// of points. A note above the points says so.
	Embedding *data.Matrix

	Colouring

	// NameClasses writes the name of each class that has one in ClassNames above its
	// points: at their median or, where names would meet, near it with a line to it. If
	// space is short, names of smaller classes are left out.
	NameClasses bool

	// HeldOut[i] reports whether row i was held out of training and placed by the trained
	// network. If some rows are held out and some are not, training points are drawn in
	// lighter colours, and held-out points above them: larger and with a dark rim, unless
	// there are so many (about 20 000) that only rims would be visible. A line below the
	// points explains both. If all rows are of one kind, they are drawn as usual. Points with
	// rims are drawn one by one even if others are drawn by density.
	HeldOut []bool

	// Below and Above are the names of the training points and the held-out points in the
	// key. By default they are called so.
	Below, Above string

	// Title stands above the points; none by default.
	Title string

	// Width and Height are the size of the image in inches, up to 100. Height defaults to
	// 5, or 2 for points of a single coordinate; Width to 5 plus the legend.
	Width, Height float64

	// DPI is the resolution in pixels per inch of a PNG, and of points drawn by
	// density in an SVG or PDF, up to 1200; 200 by default.
	DPI int

	// PointSize is a point's diameter in printer's points (1/72 inch), up to
	// 100. The default falls with the number of points, from 5 to 0.6. Next
	// to training points, held-out points are 1.3 to 3 times as large, the fewer the
	// larger. If a size is set, all points are drawn one by one.
	PointSize float64

	// Alpha is a point's opacity, over 0 and up to 1. The default falls with the number
	// of points, from 0.9 to 0.3. Next to training points, held-out points are opaque.
	// For points drawn by density, it is the opacity of a single point.
	Alpha float64

	// Seed determines the drawing order of points, and the vertical scatter of points of
	// a single coordinate.
	Seed uint64

	// beside, in a Strip, has the classes or values of all panels. They determine the scale
	// of the colours and the legend, which the Strip draws.
	beside *Scatter

	indent float64 // of the title in a Strip: room for a letter
}

// A drawable returns its layout, or an error.
type drawable interface{ layout() (*layout, error) }

// drawAs draws a picture in a format, with dpi pixels per inch, or the default for 0.
func drawAs(w io.Writer, format Format, p drawable, dpi int) (err error) {
	defer kind.Catch(&err)
	write, known := map[Format]func(*layout, io.Writer, int) error{PNG: (*layout).writePNG, SVG: (*layout).writeSVG, PDF: (*layout).writePDF}[format]
	if !known {
		return fmt.Errorf("%w: got %q, want png, svg or pdf", ErrFormat, string(format))
	}
	return write(kind.Got(p.layout()), w, cmp.Or(dpi, defaultDPI))
}

// Write draws the plot as an image of that format. Errors of w are returned. Other errors
// wrap ErrInput, ErrNotFinite or ErrFormat, and nothing is written.
func (s *Scatter) Write(w io.Writer, format Format) error { return drawAs(w, format, s, s.DPI) }

// Bounds of what is drawn.
const (
	maxInches   = 100
	maxDPI      = 1200
	maxDiameter = 100
)

// defaultDPI is the resolution of a PNG in pixels per inch.
const defaultDPI = 200

// A size is a field that may be from 0, for the default, up to max.
type size struct {
	name       string
	value, max float64
}

// need fails, as kind.Need does, with an error that wraps ErrInput, unless ok. So do the checks
// below that return no error.
func need(ok bool, format string, args ...any) {
	if !ok {
		kind.Check(fmt.Errorf("%w: %s", ErrInput, fmt.Sprintf(format, args...)))
	}
}

func checkSizes(sizes ...size) {
	for _, s := range sizes {
		need(s.value >= 0 && s.value <= s.max, "%s: got %v, want a number up to %v, or 0 for the default", s.name, s.value, s.max)
	}
}

func (s *Scatter) check() {
	m := s.Embedding
	need(m != nil && m.N != 0, "points: got none")
	need(m.N > 0 && m.D > 0 && len(m.X)%m.D == 0 && len(m.X)/m.D == m.N,
		"embedding: got %d numbers, want %d points of %d coordinates", len(m.X), m.N, m.D)
	need(s.HeldOut == nil || len(s.HeldOut) == m.N, "HeldOut: got %d, want %d, one for each point", len(s.HeldOut), m.N)
	checkSizes(size{"Width", s.Width, maxInches}, size{"Height", s.Height, maxInches}, size{"DPI", float64(s.DPI), maxDPI},
		size{"PointSize", s.PointSize, maxDiameter}, size{"Alpha", s.Alpha, 1})
	if at := simd.FirstNotFinite(m.X); at >= 0 {
		kind.Check(fmt.Errorf("%w: row %d of the embedding (counted from 0): got %v as coordinate %d", ErrNotFinite, at/m.D, m.X[at], at%m.D))
	}
	kind.Check(s.Colouring.Check(m.N))
}

// Check returns an error if the colouring is not one of n points.
func (c *Colouring) Check(n int) (err error) {
	defer kind.Catch(&err)
	need(c.Classes == nil || c.Values == nil, "Classes and Values: got both, want one of them")
	need(c.Classes == nil || len(c.Classes) == n, "classes: got %d, want %d, one for each point", len(c.Classes), n)
	need(c.Values == nil || len(c.Values) == n, "values: got %d, want %d, one for each point", len(c.Values), n)
	if i := slices.IndexFunc(c.Values, func(v float64) bool { return math.IsInf(v, 0) }); i >= 0 {
		return fmt.Errorf("%w: row %d (counted from 0): got the value %v", ErrNotFinite, i, c.Values[i])
	}
	return nil
}

// heldOut returns the number of held-out points, or 0 if all points are.
func (s *Scatter) heldOut() int {
	n := selection.Count(s.HeldOut, func(held bool) bool { return held })
	if n == len(s.HeldOut) {
		return 0
	}
	return n
}

func (s *Scatter) height() float64 {
	switch {
	case s.Height > 0:
		return s.Height
	case s.Embedding.D == 1:
		return 2
	}
	return 5
}

// diameter returns the diameter of n points in printer's points on an area of
// that many square points: their discs together would fill 40 % of it.
func (s *Scatter) diameter(area float64, n int) float64 {
	if s.PointSize > 0 {
		return s.PointSize
	}
	d := math.Sqrt(0.4 * area / float64(n) * 4 / math.Pi)
	return math.Round(10*min(5, max(0.6, d))) / 10
}

func (s *Scatter) alpha() float64 {
	if s.Alpha > 0 {
		return s.Alpha
	}
	a := 1.35 - 0.15*math.Log10(float64(s.Embedding.N))
	return math.Round(100*min(0.9, max(0.3, a))) / 100
}

// Printable makes text safe for every format. Control characters become spaces, because
// XML cannot hold them. Bytes that are not UTF-8 become a replacement character.
func Printable(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, text))
}

// A Strip is several plots next to each other, each with its own scale bar, and one
// legend for all of them, as in the paper's figures of a spectrum.
type Strip struct {
	// Title stands above all panels; none by default.
	Title string

	// Panels are the plots, from left to right and then from top to bottom.
	// Their titles stand above them; their Width, Height and DPI are not used.
	// All of them have Classes, or Values, or neither. The first panel's
	// ClassNames and ClassColours are for the classes of all, and values have one scale of colours.
	Panels []*Scatter

	// Columns is the number of plots in a row; by default there are as many,
	// up to 5, as give rows of nearly equal length.
	Columns int

	// Cells, one for each of Panels, ascending and counted row by row from 0, are where they
	// are; nil leaves no gaps.
	Cells []int

	// ColumnTitles stand above the columns, and RowTitles to the left of the rows; none by
	// default.
	ColumnTitles, RowTitles []string

	// Letters writes a, b, c … in the upper left corners of the panels.
	Letters bool

	// Width is the width of the image in inches, up to 100. A panel is as high as it is wide;
	// by default 2.4 inches.
	Width float64

	// DPI is the resolution in pixels per inch of a PNG, and of points drawn by
	// density in an SVG or PDF, up to 1200; 200 by default.
	DPI int
}

// Write draws the strip as an image of that format, as Scatter.Write does.
func (s *Strip) Write(w io.Writer, format Format) error { return drawAs(w, format, s, s.DPI) }

// stripSide is the height of a panel of a Strip, and its width without the legend, in
// printer's points.
const stripSide = 2.4 * 72

// columns returns the number of panels in a row.
func (s *Strip) columns() int {
	n := len(s.Panels)
	if s.Cells != nil {
		return max(1, s.Columns)
	}
	if s.Columns > 0 {
		return min(s.Columns, n)
	}
	const most = 5
	rows := (n + most - 1) / most
	return (n + rows - 1) / rows
}

func (s *Strip) layout() (_ *layout, err error) {
	defer kind.Catch(&err)
	n := len(s.Panels)
	need(n > 0, "panels: got none")
	need(s.Cells == nil || len(s.Cells) == n && s.Cells[0] >= 0 && slices.IsSorted(s.Cells), "cells: got %v, want %d in ascending order", s.Cells, n)
	need(s.Columns >= 0, "columns: got %d, want a positive number, or 0 for the default", s.Columns)
	checkSizes(size{"Width", s.Width, maxInches}, size{"DPI", float64(s.DPI), maxDPI})
	all, columns, cells := s.together(), s.columns(), s.Cells
	for i := 0; s.Cells == nil && i < n; i++ {
		cells = append(cells, i)
	}
	// If some panels have a title or a letter, all are as high as with one.
	hasTitle := func(p *Scatter) bool { return strings.TrimSpace(p.Title) != "" || s.Letters }
	titled, title, room := slices.ContainsFunc(s.Panels, hasTitle), Printable(s.Title), map[bool]float64{true: titleHeight}
	head, left := room[title != ""]+room[s.ColumnTitles != nil], room[s.RowTitles != nil] // above the panels, and next to them
	side, legend, height, across := float64(stripSide), legend{}, 0., float64(columns)
	for before := 0.; side != before; { // smaller panels have a lower and wider legend
		before, height = side, float64(cells[n-1]/columns+1)*side
		if _, _, legend = all.colour(height - 2*margin - room[titled]); legend.draw != nil {
			legend.width += legendGap
		}
		if s.Width > 0 {
			side = max(1, (72*s.Width-left-legend.width)/across)
		}
	}
	whole := &layout{width: cmp.Or(72*s.Width, left+across*side+legend.width), height: height + head}
	write := func(sty text.Style, txt string, x, y, width float64) {
		txt = fit(sty, Printable(txt), width-2*margin)
		whole.add(func(c draw.Canvas) { c.FillText(sty, vg.Point{X: vg.Length(x), Y: vg.Length(y)}, txt) })
	}
	for i, p := range s.Panels {
		panel, x, y := *p, left+float64(cells[i]%columns)*side, height-float64(cells[i]/columns+1)*side
		panel.beside, panel.Width, panel.Height = all, side/72, (side-room[titled && !hasTitle(p)])/72
		if s.Letters {
			panel.indent = letterStyle.Width(letterOf(i)).Points() + markerGap
			write(letterStyle, letterOf(i), x+margin, y+side-margin-0.4*titleHeight, side)
		}
		l, err := panel.layout()
		kind.Checkf(err, "panel %d, of %d in a row: %w", i+1, columns, err)
		whole.insert(l, x, y)
	}
	write(titleStyle, title, left+across*side/2, whole.height-0.6*titleHeight, across*side)
	for i, title := range s.ColumnTitles {
		write(titleStyle, title, left+(float64(i)+0.5)*side, height+0.3*titleHeight, side)
	}
	upright := titleStyle
	upright.Rotation = math.Pi / 2
	for i, title := range s.RowTitles {
		write(upright, title, 0.6*titleHeight, height-(float64(i)+0.5)*side, side)
	}
	if legend.draw != nil {
		whole.add(func(c draw.Canvas) {
			legend.draw(c, whole.width+legendGap-margin-legend.width, height-margin-room[titled])
		})
	}
	return whole, nil
}

// letterOf returns the letter of a panel, counted from 0: a to z, then aa to zz and so on.
func letterOf(panel int) string { return strings.Repeat(string(rune('a'+panel%26)), panel/26+1) }

// together returns one plot with the classes or values of all panels.
func (s *Strip) together() *Scatter {
	all := &Scatter{Embedding: new(data.Matrix), Colouring: s.Panels[0].Colouring}
	all.Classes, all.Values = nil, nil
	for _, p := range s.Panels {
		all.Embedding.N += p.Embedding.N
		all.Classes = append(all.Classes, p.Classes...)
		all.Values = append(all.Values, p.Values...)
	}
	return all
}

// insert puts another layout into l, with its lower left corner at x, y.
func (l *layout) insert(other *layout, x, y float64) {
	for _, layer := range other.layers {
		for i := range layer.x {
			layer.x[i] += x
			layer.y[i] += y
		}
		l.layers = append(l.layers, layer)
	}
	l.add(func(c draw.Canvas) {
		c.Push()
		c.Translate(vg.Point{X: vg.Length(x), Y: vg.Length(y)})
		other.furnish(c)
		c.Pop()
	})
}
