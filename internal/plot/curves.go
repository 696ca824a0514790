package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"cne/internal/atomicfile"
	"cne/internal/kind"
	"cne/internal/simd"
)

// Curves is a picture of line charts next to and below each other, such as the partition
// function and the loss of several runs against the epoch. All fields except Panels may
// be zero. The same Curves give the same bytes.
//
// Series of one name have one colour in all panels, and an entry in the legend above
// them. Colours follow the order of the names' first occurrence; colour-blind readers can
// distinguish the first ten.
type Curves struct {
	// Title stands above the panels; none by default.
	Title string

	// Panels are the charts, row by row; at least one.
	Panels []Panel

	// Columns is the number of panels in a row; by default up to 3.
	Columns int

	// Letters writes a, b, c … in the upper left corners of the panels.
	Letters bool

	// Width and Height are the size of the image in inches, up to 100; by
	// default each panel gets 3 × 2.2 inches.
	Width, Height float64

	// DPI is the resolution of a PNG in pixels per inch, up to 1200; 200 by
	// default.
	DPI int
}

// A Panel is one chart. Its axes include all points of its series, with bands and error
// bars, and all marks.
type Panel struct {
	Title          string // above the panel
	XLabel, YLabel string // what the axes show
	// LogX and LogY make an axis logarithmic; its numbers must be positive.
	LogX, LogY bool
	Series     []Series // at least one with a point
	Marks      []Mark   // at finite values, positive ones on a logarithmic axis
}

// A Series is one line of a Panel.
type Series struct {
	// Name is the name in the legend; a series without a name has no entry.
	Name string

	// X and Y, of one length, are the points, joined by a line in order. A NaN in Y leaves a gap.
	X, Y []float64

	// Low and High, if not nil, are bounds below and above Y, one for each point, such as a
	// standard deviation or the extremes of several runs, drawn as error bars. NaN means no
	// bound at that point.
	Low, High []float64

	// Marker draws a dot at each point.
	Marker bool

	// Dashed draws a dashed line, as for a curve to compare with.
	Dashed bool
}

// A Mark is a value of the horizontal axis, shown by a vertical line with its
// name at the upper end.
type Mark struct {
	X    float64
	Name string
}

// Distances of the charts, in printer's points.
const (
	panelWidth    = 3 * 72
	panelHeight   = 2.2 * 72
	smallestChart = 40 // least width and height between the axes
	panelGap      = 14
	sampleLength  = 16 // of a line in the legend
)

var (
	panelStyle = style(10, text.XCenter, text.YBottom)
	tickStyle  = style(8, text.XLeft, text.YCenter)
	markStyle  = style(7, text.XLeft, text.YBottom)
	axisLine   = draw.LineStyle{Color: ink, Width: 0.75}
	gridLine   = draw.LineStyle{Color: color.NRGBA{0xe6, 0xe6, 0xe6, 0xff}, Width: 0.5}
	markLine   = draw.LineStyle{Color: color.NRGBA{0x80, 0x80, 0x80, 0xff}, Width: 0.75, Dashes: []vg.Length{1, 2}}
)

// Save draws the charts into the file at path, in the format that its extension names.
func (c *Curves) Save(path string) error {
	format := Format(strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), "."))
	if err := atomicfile.Write(path, func(w io.Writer) error { return c.Write(w, format) }); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Write draws the charts as an image of that format. Errors of w are returned. Other
// errors wrap ErrInput, ErrNotFinite or ErrFormat, and nothing is written.
func (c *Curves) Write(w io.Writer, format Format) error { return drawAs(w, format, c, c.DPI) }

func (c *Curves) check() {
	need(len(c.Panels) > 0, "panels: got none")
	checkSizes(size{"Width", c.Width, maxInches}, size{"Height", c.Height, maxInches}, size{"DPI", float64(c.DPI), maxDPI})
	for i := range c.Panels {
		err := c.Panels[i].check()
		kind.Checkf(err, "panel %d (%q): %w", i+1, cmp.Or(c.Panels[i].Title, c.Panels[i].YLabel), err)
	}
}

func (p *Panel) check() (err error) {
	defer kind.Catch(&err)
	some := false
	for k := range p.Series {
		s := &p.Series[k]
		for _, values := range []struct {
			name         string
			of           []float64
			log, missing bool
		}{
			{"X", s.X, p.LogX, false}, {"Y", s.Y, p.LogY, true}, {"Low", s.Low, p.LogY, true}, {"High", s.High, p.LogY, true},
		} {
			for i, v := range values.of {
				switch {
				case values.missing && math.IsNaN(v):
				case !simd.IsFinite(v):
					return fmt.Errorf("%w: series %d (%q): got %v in %s at point %d (counted from 0)", ErrNotFinite, k+1, s.Name, v, values.name, i)
				case values.log && v <= 0:
					return fmt.Errorf("%w: series %d (%q): got %v in %s at point %d (counted from 0), want a positive number on a logarithmic axis",
						ErrInput, k+1, s.Name, v, values.name, i)
				}
			}
		}
		some = some || slices.ContainsFunc(s.Y, func(v float64) bool { return !math.IsNaN(v) })
	}
	need(some, "points: got none")
	return nil
}

// layout places everything. All charts have the same size, and their axes are aligned.
func (c *Curves) layout() (_ *layout, err error) {
	defer kind.Catch(&err)
	c.check()
	n := len(c.Panels)
	columns := min(n, cmp.Or(c.Columns, map[int]int{4: 2}[n], 3))
	rows := (n + columns - 1) / columns
	l := &layout{width: cmp.Or(72*c.Width, 2*margin+float64(columns)*(panelWidth+panelGap)-panelGap)}
	head := 0. // height of the title and the legend
	title := fit(titleStyle, Printable(c.Title), l.width-2*margin)
	if title != "" {
		head = titleHeight
	}
	colours, legend, legendHeight := c.colours(l.width - 2*margin)
	beforeLegend := head
	if head += legendHeight; head > 0 {
		head += panelGap / 2
	}
	l.height = cmp.Or(72*c.Height, 2*margin+head+float64(rows)*(panelHeight+panelGap)-panelGap)

	tiles := draw.Tiles{Cols: columns, Rows: rows, PadX: panelGap, PadY: panelGap}
	all := draw.Canvas{Rectangle: vg.Rectangle{
		Min: vg.Point{X: margin, Y: margin},
		Max: vg.Point{X: vg.Length(l.width - margin), Y: vg.Length(l.height - margin - head)},
	}}
	charts := slices.Collect(slices.Chunk(make([]*gonum.Plot, rows*columns), columns))
	size := tiles.At(all, 0, 0).Size()
	for i := range c.Panels {
		charts[i/columns][i%columns] = c.Panels[i].chart(colours, size)
	}
	canvases := gonum.Align(charts, tiles, all)
	inner := charts[0][0].DataCanvas(canvases[0][0]).Size()
	need(min(inner.X, inner.Y) >= smallestChart, "size: got %.3g × %.3g cm, too small for %d × %d panels with numbers, titles and legend",
		l.width/72*2.54, l.height/72*2.54, columns, rows)

	l.add(func(to draw.Canvas) {
		to.FillText(titleStyle, vg.Point{X: vg.Length(l.width / 2), Y: vg.Length(l.height - margin - 0.4*titleHeight)}, title)
		for _, draw := range legend {
			draw(to, vg.Point{X: margin, Y: vg.Length(l.height - margin - beforeLegend)})
		}
		for i := range c.Panels {
			at := canvases[i/columns][i%columns].Rectangle
			charts[i/columns][i%columns].Draw(draw.Canvas{Canvas: to.Canvas, Rectangle: at})
			if c.Letters {
				to.FillText(letterStyle, vg.Point{X: at.Min.X, Y: at.Max.Y - letterStyle.Font.Size/2}, letterOf(i))
			}
		}
	})
	return l, nil
}

// nameOf identifies series that are drawn alike: by their name, or in different panels by
// their number, which no name can be.
func nameOf(p *Panel, k int) string {
	return cmp.Or(Printable(p.Series[k].Name), "\x00"+strconv.Itoa(k))
}

// colours returns the colour of every series, and the legend of the series with a name, in
// rows of the given width above the charts: gonum's legend of each series, drawn with the
// upper left corner of all at a place.
func (c *Curves) colours(width float64) (colours map[string]color.NRGBA, legend []func(to draw.Canvas, at vg.Point), height float64) {
	colours = make(map[string]color.NRGBA)
	x := width
	for i := range c.Panels {
		p := &c.Panels[i]
		for k := range p.Series {
			name, s := nameOf(p, k), &p.Series[k]
			if _, known := colours[name]; known {
				continue
			}
			colours[name] = ClassColour(len(colours))
			if name[0] == 0 {
				continue
			}
			thumbs := []gonum.Thumbnailer{s.line(colours[name], nil)}
			if s.Marker {
				thumbs = append(thumbs, dots(colours[name], nil))
			}
			entry := gonum.NewLegend()
			entry.TextStyle, entry.ThumbnailWidth, entry.Left, entry.Top = legendStyle, sampleLength, true, true
			entry.TextStyle.YAlign = text.YBottom
			entry.Add(fit(legendStyle, name, min(width-2*sampleLength, 2*longestName)), thumbs...)
			w := entry.Rectangle(draw.Canvas{}).Size().X.Points()
			if x+w > width {
				x = 0
				height += legendLine
			}
			corner := vg.Point{X: vg.Length(x), Y: vg.Length(legendLine - height)}
			legend = append(legend, func(to draw.Canvas, at vg.Point) {
				entry.Draw(draw.Canvas{Canvas: to.Canvas, Rectangle: vg.Rectangle{Min: at.Add(corner), Max: at.Add(corner)}})
			})
			x += w + columnGap
		}
	}
	return colours, legend, height
}

// line returns the line through some points of the series.
func (s *Series) line(colour color.NRGBA, points plotter.XYs) *plotter.Line {
	style := draw.LineStyle{Color: colour, Width: 1.25}
	if s.Dashed {
		style.Dashes = []vg.Length{4, 2.5}
	}
	return &plotter.Line{XYs: points, LineStyle: style}
}

func dots(colour color.NRGBA, points plotter.XYs) *plotter.Scatter {
	return &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: colour, Radius: 2.2, Shape: draw.CircleGlyph{}}}
}

// chart returns gonum's plot of the panel, for the given size.
func (p *Panel) chart(colours map[string]color.NRGBA, size vg.Point) *gonum.Plot {
	chart := gonum.New()
	chart.BackgroundColor = nil
	chart.Add(&plotter.Grid{Vertical: gridLine, Horizontal: gridLine})
	for _, m := range p.Marks {
		chart.Add(Mark{scaled(m.X, p.LogX), m.Name})
	}
	for k := range p.Series { // below all lines
		for i := range p.Series[k].Low {
			if s := &p.Series[k]; !math.IsNaN(s.Y[i] + s.Low[i] + s.High[i]) {
				bar := plotter.XYs{p.point(s.X[i], s.Low[i]), p.point(s.X[i], s.High[i])}
				chart.Add(&plotter.Line{XYs: bar, LineStyle: draw.LineStyle{Color: colours[nameOf(p, k)], Width: 0.75}})
			}
		}
	}
	for k := range p.Series {
		p.addLines(chart, &p.Series[k], colours[nameOf(p, k)])
	}
	if title := Printable(p.Title); title != "" {
		chart.Add(heading{title, len(p.Marks) > 0})
	}
	setAxis(&chart.X, p.XLabel, ticks{log: p.LogX, length: size.X - 60, horizontal: true})
	setAxis(&chart.Y, p.YLabel, ticks{log: p.LogY, length: size.Y - 40})
	return chart
}

// setAxis gives an axis its style, and a margin at both ends.
func setAxis(a *gonum.Axis, label string, t ticks) {
	a.LineStyle, a.Tick.LineStyle, a.Tick.Length, a.Padding = axisLine, axisLine, tickLength, 0
	a.Tick.Marker, a.Tick.Label.Font, a.Tick.Label.Color, a.Tick.Label.Handler = t, tickStyle.Font, ink, fonts
	a.Label.Text, a.Label.Padding = fit(legendStyle, Printable(label), t.length.Points()), 3
	a.Label.TextStyle.Font, a.Label.TextStyle.Color, a.Label.TextStyle.Handler = legendStyle.Font, ink, fonts

	const margin = 0.04
	pad := margin*a.Max - margin*a.Min
	if !(pad > 1e-12*max(math.Abs(a.Min), math.Abs(a.Max))) { // one value
		switch {
		case t.log:
			pad = 0.5
		case a.Min == 0:
			pad = 1
		default:
			pad = max(math.Abs(a.Min)/10, 4*math.SmallestNonzeroFloat64)
		}
	}
	a.Min, a.Max = max(a.Min-pad, -math.MaxFloat64), min(a.Max+pad, math.MaxFloat64)
	a.Scale = linear{}
}

// scaled returns where a value is on an axis: a logarithmic one shows exponents of ten.
// (gonum's own scale makes room for the name at the middle of the values, not of the axis.)
func scaled(v float64, log bool) float64 {
	if log {
		return math.Log10(v)
	}
	return v
}

// linear is a linear scale whose range may overflow.
type linear struct{}

// Normalize returns how far x is from low to high.
func (linear) Normalize(low, high, x float64) float64 { return (x/2 - low/2) / (high/2 - low/2) }

func (p *Panel) point(x, y float64) plotter.XY {
	return plotter.XY{X: scaled(x, p.LogX), Y: scaled(y, p.LogY)}
}

// addLines adds the line and its markers. A point without neighbours is a dot, because no
// line shows it.
func (p *Panel) addLines(to *gonum.Plot, s *Series, colour color.NRGBA) {
	var points plotter.XYs
	for i, y := range s.Y {
		if !math.IsNaN(y) {
			points = append(points, p.point(s.X[i], y))
		}
		if points != nil && (math.IsNaN(y) || i == len(s.Y)-1) {
			to.Add(s.line(colour, points))
			if s.Marker || len(points) == 1 {
				to.Add(dots(colour, points))
			}
			points = nil
		}
	}
}

// Plot draws the mark. Its name stands above the chart.
func (m Mark) Plot(c draw.Canvas, p *gonum.Plot) {
	x := c.X(p.X.Norm(m.X))
	c.StrokeLine2(markLine, x, c.Min.Y, x, c.Max.Y)
	name := fit(markStyle, Printable(m.Name), c.Size().X.Points())
	w := markStyle.Width(name)
	c.FillText(markStyle, vg.Point{X: max(c.Min.X, min(c.Max.X-w, x-w/2)), Y: c.Max.Y + 2}, name)
}

// DataRange makes the horizontal axis include the mark.
func (m Mark) DataRange() (xmin, xmax, ymin, ymax float64) {
	return m.X, m.X, math.Inf(1), math.Inf(-1)
}

// GlyphBoxes keeps the room for the name.
func (m Mark) GlyphBoxes(*gonum.Plot) []gonum.GlyphBox { return above(9) }

// above is room above a chart.
func above(height vg.Length) []gonum.GlyphBox {
	return []gonum.GlyphBox{{Y: 1, Rectangle: vg.Rectangle{Max: vg.Point{Y: height}}}}
}

// A heading is the title above the chart of a panel, and the names of its marks.
type heading struct {
	text  string
	marks bool
}

func (h heading) lift() vg.Length {
	if h.marks {
		return 12
	}
	return 5
}

// Plot writes the title.
func (h heading) Plot(c draw.Canvas, _ *gonum.Plot) {
	c.FillText(panelStyle, vg.Point{X: c.Center().X, Y: c.Max.Y + h.lift()}, fit(panelStyle, h.text, c.Size().X.Points()))
}

// GlyphBoxes keeps the room for the title.
func (h heading) GlyphBoxes(*gonum.Plot) []gonum.GlyphBox {
	return above(h.lift() + panelStyle.Font.Size)
}

// ticks finds the ticks of an axis of some length, as many as there is room for.
type ticks struct {
	log        bool
	length     vg.Length
	horizontal bool
}

// Ticks returns the ticks from the low end of the axis to the high one.
func (t ticks) Ticks(low, high float64) []gonum.Tick {
	all := round(low, high)
	if t.log {
		all = powers(low, high)
	}
	for {
		var taken vg.Length
		numbers := 0
		for _, tick := range all {
			if tick.Label != "" {
				numbers++
				taken += 12
				if t.horizontal {
					taken += tickStyle.Width(tick.Label) - 8
				}
			}
		}
		if taken <= t.length || numbers == 1 {
			return all
		}
		keep := true // every second number
		for i := range all {
			if all[i].Label != "" {
				if !keep {
					all[i].Label = ""
				}
				keep = !keep
			}
		}
	}
}

// round returns ticks at round numbers, or one tick in the middle if there are none.
func round(low, high float64) (all []gonum.Tick) {
	for _, v := range Ticks(low, high) {
		all = append(all, gonum.Tick{Value: v, Label: Number(v)})
	}
	if all == nil {
		middle := low/2 + high/2
		all = []gonum.Tick{{Value: middle, Label: strconv.FormatFloat(middle, 'g', 6, 64)}}
	}
	return all
}

// powers returns the ticks of a logarithmic axis between two exponents of ten: at the
// powers of ten; if there are fewer than two of them, at 1, 2 and 5 times these powers;
// and on an even shorter axis, at round numbers.
func powers(low, high float64) (all []gonum.Tick) {
	high = min(high, math.Log10(math.MaxFloat64))
	first, last := int(math.Ceil(low)), int(math.Floor(high))
	numbered := 0
	for e := first - 1; e <= last; e++ {
		for m := 1; m < 10; m++ {
			tick := gonum.Tick{Value: float64(e) + math.Log10(float64(m))}
			switch {
			case tick.Value < low || tick.Value > high, m > 1 && last-first > 10:
				continue
			case last > first && m == 1:
				tick.Label = "10" + raise.Replace(strconv.Itoa(e))
			case last <= first && (m == 1 || m == 2 || m == 5):
				tick.Label = Number(decimal(m, e))
			}
			if tick.Label != "" {
				numbered++
			}
			all = append(all, tick)
		}
	}
	if numbered < 2 {
		all = round(math.Pow(10, low), min(math.Pow(10, high), math.MaxFloat64))
		for i := range all {
			all[i].Value = math.Log10(all[i].Value)
		}
	}
	return all
}
