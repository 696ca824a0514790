package plot

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"cne/data"
)

// A Strip is several plots next to each other, each with its own scale bar, and one
// legend for all of them, as in the paper's figures of a spectrum.
type Strip struct {
	// Panels are the plots, from left to right and then from top to bottom.
	// Their titles stand above them; their Width, Height and DPI are not used.
	// All of them have Classes, or Values, or neither. The first panel's
	// ClassNames and ClassColours are for the classes of all, and values have one scale of colours.
	Panels []*Scatter

	// Columns is the number of plots in a row; by default there are as many,
	// up to 5, as give rows of nearly equal length.
	Columns int

	// Side is the height of a panel in inches, and its width without the
	// legend, up to 20; 2.4 by default.
	Side float64

	// DPI is the resolution in pixels per inch of a PNG, and of points drawn by
	// density in an SVG or PDF, up to 1200; 200 by default.
	DPI int
}

// Write draws the strip as an image of that format, as Scatter.Write does.
func (s *Strip) Write(w io.Writer, format Format) error { return drawAs(w, format, s, s.DPI) }

// maxSide bounds Strip.Side, in inches.
const maxSide = 20

// columns returns the number of panels in a row.
func (s *Strip) columns() int {
	n := len(s.Panels)
	if s.Columns > 0 {
		return min(s.Columns, n)
	}
	const most = 5
	rows := (n + most - 1) / most
	return (n + rows - 1) / rows
}

func (s *Strip) layout() (*layout, error) {
	n := len(s.Panels)
	switch {
	case n == 0:
		return nil, fmt.Errorf("%w: panels: got none", ErrInput)
	case s.Columns < 0:
		return nil, fmt.Errorf("%w: columns: got %d, want a positive number, or 0 for the default", ErrInput, s.Columns)
	}
	if err := checkSizes([]size{{"Side", s.Side, maxSide}, {"DPI", float64(s.DPI), maxDPI}}); err != nil {
		return nil, err
	}
	all, err := s.together()
	if err != nil {
		return nil, err
	}
	side, columns := cmp.Or(72*s.Side, 72*2.4), s.columns()
	rows := (n + columns - 1) / columns
	whole := &layout{width: float64(columns) * side, height: float64(rows) * side}
	// If some panels have a title, all are as high as with one.
	hasTitle := func(p *Scatter) bool { return strings.TrimSpace(p.Title) != "" }
	titled := slices.ContainsFunc(s.Panels, hasTitle)
	for i, p := range s.Panels {
		panel := *p
		panel.beside = all
		panel.Width, panel.Height = side/72, side/72
		if titled && !hasTitle(p) {
			panel.Height -= titleHeight / 72.
		}
		l, err := panel.layout()
		if err != nil {
			return nil, fmt.Errorf("panel %d (counted from 0): %w", i, err)
		}
		whole.insert(l, float64(i%columns)*side, whole.height-float64(i/columns+1)*side)
	}
	_, _, legend := all.colour(whole.height - 2*margin)
	if legend.draw != nil {
		left := whole.width + legendGap - margin
		top := whole.height - margin
		if titled {
			top -= titleHeight
		}
		whole.add(func(c draw.Canvas) { legend.draw(c, left, top) })
		whole.width = left + legend.width + margin
	}
	return whole, nil
}

// together returns one plot with the classes or values of all panels.
func (s *Strip) together() (*Scatter, error) {
	first, all := s.Panels[0], &Scatter{Embedding: new(data.Matrix)}
	for i, p := range s.Panels {
		if p == nil {
			return nil, fmt.Errorf("%w: panel %d (counted from 0): got nil", ErrInput, i)
		}
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("panel %d (counted from 0): %w", i, err)
		}
		if (p.Classes == nil) != (first.Classes == nil) || (p.Values == nil) != (first.Values == nil) {
			return nil, fmt.Errorf("%w: panel %d (counted from 0): got other labels than the first, want one legend for all", ErrInput, i)
		}
		all.Embedding.N += p.Embedding.N
		all.Classes = append(all.Classes, p.Classes...)
		all.Values = append(all.Values, p.Values...)
	}
	all.ClassNames, all.ClassColours = first.ClassNames, first.ClassColours
	return all, nil
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
		for _, f := range other.furniture {
			f(c)
		}
		c.Pop()
	})
}
