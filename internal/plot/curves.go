package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"cne/internal/finite"
)

// Curves is a picture of line charts beside and below each other, such as the
// partition function and the loss of several runs against the epoch. All fields
// but Panels may be left at their zero values. The same Curves give the same
// bytes.
//
// Series of one name have one colour in all panels, and an entry in the legend
// above them. Colours follow the order in which names first occur; the first
// ten can be told apart by colour-blind eyes.
type Curves struct {
	// Title stands above the panels; none by default.
	Title string

	// Panels are the charts, row by row; at least one.
	Panels []Panel

	// Columns is the number of panels in a row, up to 100. By default it is 1
	// to 3, and 2 for four panels.
	Columns int

	// Width and Height are the size of the image in inches, up to 100; by
	// default each panel gets 3 × 2.2 inches.
	Width, Height float64

	// DPI is the resolution of a PNG in pixels per inch, up to 1200; 200 by
	// default.
	DPI int

	// Transparent leaves the background out; it is white by default.
	Transparent bool
}

// A Panel is one chart. Its axes hold all points of its series, with bands and
// error bars, and all marks.
type Panel struct {
	Title          string // above the panel
	XLabel, YLabel string // what the axes show
	// LogX and LogY make an axis logarithmic, on which there must be positive
	// numbers only.
	LogX, LogY bool
	Series     []Series // at least one with a point
	Marks      []Mark
}

// A Series is one line of a Panel.
type Series struct {
	// Name is what the legend calls it; a series without a name has no entry.
	Name string

	// X and Y are the points, which a line joins in their order. Where Y is
	// NaN, there is no point and the line has a gap.
	X, Y []float64

	// Low and High, if they are given, bound Y from below and above, as a
	// standard deviation or the extremes of several runs do: by a band, or by
	// error bars if there are markers. NaN means no bound at that point.
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
	labelHeight   = 13 // of a line with ticks or the name of an axis
	tickGap       = 3  // between a tick and its number
	sampleLength  = 16 // of a line in the legend
	lineWidth     = 1.25
	dotRadius     = 2.2
	raise         = 3 // of an exponent
)

var (
	panelStyle    = style(10, text.XCenter, text.YCenter)
	tickStyle     = style(8, text.XLeft, text.YCenter)
	exponentStyle = style(6, text.XLeft, text.YCenter)
	markStyle     = style(7, text.XLeft, text.YCenter)
	grid          = color.NRGBA{0xe6, 0xe6, 0xe6, 0xff}
	markColour    = color.NRGBA{0x80, 0x80, 0x80, 0xff}
)

// Save draws the charts into the file at path, as Scatter.Save does.
func (c *Curves) Save(path string) error { return save(path, c.Write) }

// Write draws the charts as an image of that format. Errors wrap ErrInput,
// ErrNotFinite or ErrFormat, in which case nothing was written, or are w's.
func (c *Curves) Write(w io.Writer, format Format) error {
	if err := format.check(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	l, err := c.layout()
	if err != nil {
		return err
	}
	return l.write(w, format, c.DPI)
}

func (c *Curves) check() error {
	if len(c.Panels) == 0 {
		return fmt.Errorf("%w: there are no panels", ErrInput)
	}
	if err := checkSizes([]size{{"Columns", float64(c.Columns), 100}, {"Width", c.Width, maxInches}, {"Height", c.Height, maxInches}, {"DPI", float64(c.DPI), maxDPI}}); err != nil {
		return err
	}
	for i := range c.Panels {
		if err := c.Panels[i].check(); err != nil {
			return fmt.Errorf("panel %d (%q): %w", i+1, cmp.Or(c.Panels[i].Title, c.Panels[i].YLabel), err)
		}
	}
	return nil
}

func (p *Panel) check() error {
	points := 0
	for k := range p.Series {
		s := &p.Series[k]
		if len(s.X) != len(s.Y) {
			return fmt.Errorf("%w: series %d (%q) has %d numbers in X and %d in Y", ErrInput, k+1, s.Name, len(s.X), len(s.Y))
		}
		if (s.Low != nil || s.High != nil) && (len(s.Low) != len(s.Y) || len(s.High) != len(s.Y)) {
			return fmt.Errorf("%w: series %d (%q) has %d lower and %d upper bounds of %d points", ErrInput, k+1, s.Name, len(s.Low), len(s.High), len(s.Y))
		}
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
				case !finite.Is(v):
					return fmt.Errorf("%w: series %d (%q) has %v in %s at point %d (counted from 0)", ErrNotFinite, k+1, s.Name, v, values.name, i)
				case values.log && v <= 0:
					return fmt.Errorf("%w: series %d (%q) has %v in %s at point %d (counted from 0), which a logarithmic axis cannot show", ErrInput, k+1, s.Name, v, values.name, i)
				}
			}
		}
		for _, v := range s.Y {
			if !math.IsNaN(v) {
				points++
			}
		}
	}
	if points == 0 {
		return fmt.Errorf("%w: there are no points", ErrInput)
	}
	for _, m := range p.Marks {
		if !finite.Is(m.X) {
			return fmt.Errorf("%w: the mark %q is at %v", ErrNotFinite, m.Name, m.X)
		}
		if p.LogX && m.X <= 0 {
			return fmt.Errorf("%w: the mark %q is at %v, which a logarithmic axis cannot show", ErrInput, m.Name, m.X)
		}
	}
	return nil
}

func (c *Curves) columns() int {
	switch n := len(c.Panels); {
	case c.Columns > 0:
		return min(c.Columns, n)
	case n == 4:
		return 2
	default:
		return min(n, 3)
	}
}

// layout gives everything its place. All charts are of one size, and their axes
// lie in line with each other: panels leave as much room for the numbers beside
// them as the others in their column.
func (c *Curves) layout() (*layout, error) {
	columns := c.columns()
	rows := (len(c.Panels) + columns - 1) / columns
	l := &layout{width: 72 * c.Width, height: 72 * c.Height}
	if !c.Transparent {
		l.background = color.White
	}
	if l.width == 0 {
		l.width = 2*margin + float64(columns)*(panelWidth+panelGap) - panelGap
	}
	names, colours := c.colours()
	legendRows := legendLines(names, l.width-2*margin)
	head := float64(len(legendRows)) * legendLine
	title := Printable(c.Title)
	if title != "" {
		head += titleHeight
	}
	if head > 0 {
		head += panelGap / 2
	}
	if l.height == 0 {
		l.height = 2*margin + head + float64(rows)*(panelHeight+panelGap) - panelGap
	}

	charts := make([]chart, len(c.Panels))
	left, right := make([]float64, columns), 6. // half of the last number of an axis may stand out
	above, below := make([]float64, rows), make([]float64, rows)
	for i := range c.Panels {
		charts[i] = newChart(&c.Panels[i], colours)
		column, row := i%columns, i/columns
		left[column] = max(left[column], charts[i].left())
		above[row], below[row] = max(above[row], charts[i].above()), max(below[row], charts[i].below())
	}
	w := (l.width-2*margin+panelGap-sum(left))/float64(columns) - right - panelGap
	h := (l.height-2*margin-head+panelGap-sum(above)-sum(below))/float64(rows) - panelGap
	if w < smallestChart || h < smallestChart {
		return nil, fmt.Errorf("%w: %.3g × %.3g cm leave too little room for %d × %d panels beside their numbers, titles and legend; make the picture wider and higher", ErrInput, l.width/72*2.54, l.height/72*2.54, columns, rows)
	}

	top := l.height - margin
	if title != "" {
		y := top - 0.4*titleHeight
		l.add(func(to draw.Canvas) {
			writeText(to, titleStyle, vg.Point{X: vg.Length(l.width / 2), Y: vg.Length(y)}, fit(titleStyle, title, l.width-2*margin))
		})
		top -= titleHeight
	}
	for _, row := range legendRows {
		y := top - legendLine/2
		l.add(func(to draw.Canvas) {
			for _, e := range row {
				e.draw(to, y, colours[e.name])
			}
		})
		top -= legendLine
	}
	for i := range charts {
		column, row := i%columns, i/columns
		x := margin + sum(left[:column+1]) + float64(column)*(w+right+panelGap)
		y := l.height - margin - head - sum(above[:row+1]) - sum(below[:row]) - float64(row)*(h+panelGap)
		box := vg.Rectangle{
			Min: vg.Point{X: vg.Length(x), Y: vg.Length(y - h)},
			Max: vg.Point{X: vg.Length(x + w), Y: vg.Length(y)},
		}
		l.add(func(to draw.Canvas) { charts[i].draw(to, box, x-left[column], y+above[row]) })
	}
	return l, nil
}

func sum(lengths []float64) (all float64) {
	for _, v := range lengths {
		all += v
	}
	return all
}

// A seriesName identifies series that are drawn alike: by their name, or in
// each panel by their number if they have none.
type seriesName struct {
	name   string
	number int
}

func nameOf(p *Panel, k int) seriesName {
	if name := Printable(p.Series[k].Name); name != "" {
		return seriesName{name: name}
	}
	return seriesName{number: k + 1}
}

// colours returns the colour of every series, and one series of each name in
// the order of the legend.
func (c *Curves) colours() ([]legendEntry, map[seriesName]color.NRGBA) {
	var entries []legendEntry
	colours := make(map[seriesName]color.NRGBA)
	for i := range c.Panels {
		p := &c.Panels[i]
		for k := range p.Series {
			name := nameOf(p, k)
			if _, known := colours[name]; known {
				continue
			}
			colours[name] = ClassColour(len(colours))
			if name.name != "" {
				entries = append(entries, legendEntry{name: name, series: &p.Series[k]})
			}
		}
	}
	return entries, colours
}

// A legendEntry is a piece of line, and the name of the series.
type legendEntry struct {
	name   seriesName
	series *Series
	text   string
	x      float64 // of its left end
}

// legendLines puts the entries in as many lines as they take.
func legendLines(entries []legendEntry, width float64) [][]legendEntry {
	var lines [][]legendEntry
	end := math.Inf(1)
	for _, e := range entries {
		e.text = fit(legendStyle, e.name.name, min(width-sampleLength-markerGap, 2*longestName))
		w := sampleLength + markerGap + legendStyle.Width(e.text).Points()
		if end+w > margin+width {
			lines = append(lines, nil)
			end = margin
		}
		e.x = end
		end += w + columnGap
		last := len(lines) - 1
		lines[last] = append(lines[last], e)
	}
	return lines
}

func (e *legendEntry) draw(c draw.Canvas, y float64, colour color.NRGBA) {
	c.StrokeLine2(e.series.style(colour), vg.Length(e.x), vg.Length(y), vg.Length(e.x+sampleLength), vg.Length(y))
	if e.series.Marker {
		dot(c, vg.Point{X: vg.Length(e.x + sampleLength/2), Y: vg.Length(y)}, colour)
	}
	label(c, vg.Length(e.x+sampleLength+markerGap), vg.Length(y), e.text)
}

func dot(c draw.Canvas, at vg.Point, colour color.NRGBA) {
	c.DrawGlyphNoClip(draw.GlyphStyle{Color: colour, Radius: dotRadius, Shape: draw.CircleGlyph{}}, at)
}

func (s *Series) style(colour color.NRGBA) draw.LineStyle {
	style := draw.LineStyle{Color: colour, Width: lineWidth}
	if s.Dashed {
		style.Dashes = []vg.Length{4, 2.5}
	}
	return style
}

// A chart is a panel with its axes.
type chart struct {
	*Panel
	colours        map[seriesName]color.NRGBA
	x, y           axis
	xTicks, yTicks []tick
}

func newChart(p *Panel, colours map[seriesName]color.NRGBA) chart {
	var xs, ys []float64
	for _, s := range p.Series {
		for i, y := range s.Y {
			if math.IsNaN(y) {
				continue
			}
			xs, ys = append(xs, s.X[i]), append(ys, y)
			if s.Low != nil {
				ys = append(ys, s.Low[i], s.High[i])
			}
		}
	}
	for _, m := range p.Marks {
		xs = append(xs, m.X)
	}
	c := chart{Panel: p, colours: colours, x: newAxis(xs, p.LogX), y: newAxis(ys, p.LogY)}
	c.xTicks, c.yTicks = c.x.ticks(), c.y.ticks()
	return c
}

// left, above and below return the room that the chart takes beside the axes.
func (c *chart) left() float64 {
	var widest float64
	for i := range c.yTicks {
		widest = max(widest, c.yTicks[i].width())
	}
	room := widest + tickLength + tickGap
	if Printable(c.YLabel) != "" {
		room += labelHeight + tickGap
	}
	return room
}

func (c *chart) above() float64 {
	var room float64 = 4 // half of the uppermost number
	if Printable(c.Title) != "" {
		room += legendLine + 2
	}
	if len(c.Marks) > 0 {
		room += 9
	}
	return room
}

func (c *chart) below() float64 {
	room := float64(tickLength + labelHeight)
	if Printable(c.XLabel) != "" {
		room += labelHeight
	}
	return room
}

// draw draws the chart with its axes around the box. left and top are edges of
// the room for the panel.
func (c *chart) draw(to draw.Canvas, box vg.Rectangle, left, top float64) {
	x0, x1, y0, y1 := box.Min.X, box.Max.X, box.Min.Y, box.Max.Y
	atX := func(v float64) vg.Length { return x0 + vg.Length(c.x.share(v))*(x1-x0) }
	atY := func(v float64) vg.Length { return y0 + vg.Length(c.y.share(v))*(y1-y0) }
	axisLine := draw.LineStyle{Color: ink, Width: 0.75}
	gridLine := draw.LineStyle{Color: grid, Width: 0.5}

	for _, t := range thin(c.xTicks, (x1 - x0).Points(), func(t *tick) float64 { return t.width() + 4 }) {
		x, length := x0+vg.Length(t.share)*(x1-x0), vg.Length(tickLength)
		if t.minor() {
			length /= 2
		} else {
			to.StrokeLine2(gridLine, x, y0, x, y1)
		}
		to.StrokeLine2(axisLine, x, y0, x, y0-length)
		t.draw(to, x-vg.Length(t.width()/2), y0-tickLength-labelHeight/2)
	}
	for _, t := range thin(c.yTicks, (y1 - y0).Points(), func(*tick) float64 { return labelHeight }) {
		y, length := y0+vg.Length(t.share)*(y1-y0), vg.Length(tickLength)
		if t.minor() {
			length /= 2
		} else {
			to.StrokeLine2(gridLine, x0, y, x1, y)
		}
		to.StrokeLine2(axisLine, x0-length, y, x0, y)
		t.draw(to, x0-tickLength-tickGap-vg.Length(t.width()), y)
	}
	for _, m := range c.Marks {
		x := atX(m.X)
		to.StrokeLine2(draw.LineStyle{Color: markColour, Width: 0.75, Dashes: []vg.Length{1, 2}}, x, y0, x, y1)
		if name := fit(markStyle, Printable(m.Name), (x1 - x0).Points()); name != "" {
			w := markStyle.Width(name)
			writeText(to, markStyle, vg.Point{X: max(x0, min(x1-w, x-w/2)), Y: y1 + 5}, name)
		}
	}
	to.StrokeLine2(axisLine, x0, y0, x1, y0)
	to.StrokeLine2(axisLine, x0, y0, x0, y1)

	for k := range c.Series { // below all lines
		c.Series[k].drawBounds(to, c.colours[nameOf(c.Panel, k)], atX, atY)
	}
	for k := range c.Series {
		c.Series[k].draw(to, c.colours[nameOf(c.Panel, k)], atX, atY)
	}

	middle := (x0 + x1) / 2
	if title := Printable(c.Title); title != "" {
		writeText(to, panelStyle, vg.Point{X: middle, Y: vg.Length(top) - legendLine/2}, fit(panelStyle, title, (x1-x0).Points()))
	}
	if name := Printable(c.XLabel); name != "" {
		sty := style(legendStyle.Font.Size, text.XCenter, text.YCenter)
		writeText(to, sty, vg.Point{X: middle, Y: y0 - tickLength - 1.5*labelHeight}, fit(sty, name, (x1-x0).Points()))
	}
	if name := Printable(c.YLabel); name != "" {
		sty := style(legendStyle.Font.Size, text.XCenter, text.YCenter)
		sty.Rotation = math.Pi / 2
		writeText(to, sty, vg.Point{X: vg.Length(left + labelHeight/2 - 2), Y: (y0 + y1) / 2}, fit(legendStyle, name, (y1-y0).Points()))
	}
}

// drawBounds draws the band or the error bars.
func (s *Series) drawBounds(to draw.Canvas, colour color.NRGBA, atX, atY func(float64) vg.Length) {
	if s.Low == nil {
		return
	}
	var lower, upper []vg.Point
	flush := func() {
		if len(lower) > 1 {
			band := colour
			band.A = 0x38
			slices.Reverse(upper)
			to.FillPolygon(band, append(lower, upper...))
		}
		lower, upper = nil, nil
	}
	bar := draw.LineStyle{Color: colour, Width: 0.75}
	for i := range s.X {
		if math.IsNaN(s.Y[i]) || math.IsNaN(s.Low[i]) || math.IsNaN(s.High[i]) {
			flush()
			continue
		}
		x, low, high := atX(s.X[i]), atY(s.Low[i]), atY(s.High[i])
		if !s.Marker {
			lower, upper = append(lower, vg.Point{X: x, Y: low}), append(upper, vg.Point{X: x, Y: high})
			continue
		}
		to.StrokeLine2(bar, x, low, x, high)
		for _, y := range []vg.Length{low, high} {
			to.StrokeLine2(bar, x-dotRadius, y, x+dotRadius, y)
		}
	}
	flush()
}

// draw draws the line and its markers. A point without neighbours, which no
// line shows, is a dot.
func (s *Series) draw(to draw.Canvas, colour color.NRGBA, atX, atY func(float64) vg.Length) {
	var line []vg.Point
	flush := func() {
		if len(line) > 1 {
			to.StrokeLines(s.style(colour), line)
		}
		if s.Marker || len(line) == 1 {
			for _, p := range line {
				dot(to, p, colour)
			}
		}
		line = nil
	}
	for i, y := range s.Y {
		if math.IsNaN(y) {
			flush()
			continue
		}
		line = append(line, vg.Point{X: atX(s.X[i]), Y: atY(y)})
	}
	flush()
}

// An axis maps values to their share of its length.
type axis struct {
	low, high float64 // low < high; exponents of ten if log
	log       bool
}

// newAxis returns an axis that holds the values and a little room at both
// ends. NaN is passed over; there is a number.
func newAxis(values []float64, log bool) axis {
	const room = 0.04
	a := axis{math.Inf(1), math.Inf(-1), log}
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if log {
			v = math.Log10(v)
		}
		a.low, a.high = min(a.low, v), max(a.high, v)
	}
	pad := room*a.high - room*a.low
	if !(pad > 1e-12*max(math.Abs(a.low), math.Abs(a.high))) { // one value
		pad = 0.5
		if !log {
			pad = max(math.Abs(a.low)/10, math.SmallestNonzeroFloat64*4)
			if a.low == 0 {
				pad = 1
			}
		}
	}
	a.low, a.high = max(a.low-pad, -math.MaxFloat64), min(a.high+pad, math.MaxFloat64)
	return a
}

// share returns the place of a value, 0 at the low end of the axis and 1 at
// the high one.
func (a axis) share(v float64) float64 {
	if a.log {
		v = math.Log10(v)
	}
	// Halves, because the whole range may overflow.
	return (v/2 - a.low/2) / (a.high/2 - a.low/2)
}

// A tick is a place on an axis with its number: text, and the exponent of ten
// if there is one. A minor tick has none.
type tick struct {
	share          float64
	text, exponent string
}

func (t *tick) minor() bool { return t.text == "" }

func (t *tick) width() float64 {
	if t.minor() {
		return 0
	}
	w := tickStyle.Width(t.text)
	if t.exponent != "" {
		w += exponentStyle.Width(t.exponent)
	}
	return w.Points()
}

// draw writes the number of a tick with its left end and middle at x, y.
func (t *tick) draw(to draw.Canvas, x, y vg.Length) {
	if t.minor() {
		return
	}
	y += tickStyle.Font.Size / 9 // see label
	to.FillText(tickStyle, vg.Point{X: x, Y: y}, t.text)
	if t.exponent != "" {
		to.FillText(exponentStyle, vg.Point{X: x + tickStyle.Width(t.text), Y: y + raise}, t.exponent)
	}
}

// middle is the only tick of an axis too short for round numbers.
func (a axis) middle(v float64) []tick {
	return []tick{{a.share(v), strconv.FormatFloat(v, 'g', 6, 64), ""}}
}

// ticks returns the ticks from the low end of the axis to the high one.
func (a axis) ticks() []tick {
	if a.log {
		return a.logTicks()
	}
	marks := Ticks(a.low, a.high)
	if len(marks) == 0 {
		return a.middle(a.low/2 + a.high/2)
	}
	out := make([]tick, len(marks))
	for i, v := range marks {
		out[i] = tick{a.share(v), Number(v), ""}
	}
	return out
}

// logTicks numbers the powers of ten, only some of them if there are many; or 1,
// 2 and 5 times those if there are fewer than two; or round numbers if the axis
// is shorter than that.
func (a axis) logTicks() []tick {
	const (
		numbered = 5
		largest  = 308.25 // exponent of the largest number
	)
	steps := []int{1, 2, 5, 10, 20, 50, 100, 200} // float64 has some 630 powers of ten
	place := func(exponent float64) float64 { return (exponent - a.low) / (a.high - a.low) }
	first, last := int(math.Ceil(a.low)), int(math.Floor(a.high))
	var out []tick
	if n := last - first + 1; n >= 2 {
		i := slices.IndexFunc(steps, func(step int) bool { return n <= numbered*step })
		step := steps[i]
		for e := first - 1; e <= last; e++ {
			if e >= first {
				t := tick{share: place(float64(e))}
				if e%step == 0 {
					t.text, t.exponent = "10", exponentText(e)
				}
				out = append(out, t)
			}
			for m := 2; m < 10 && step == 1; m++ {
				if at := float64(e) + math.Log10(float64(m)); at >= a.low && at <= a.high {
					out = append(out, tick{share: place(at)})
				}
			}
		}
		return out
	}
	for e := first - 1; e <= last; e++ {
		for _, m := range []int{1, 2, 5} {
			if at := float64(e) + math.Log10(float64(m)); at >= a.low && at <= min(a.high, largest) {
				out = append(out, tick{place(at), Number(decimal(m, e)), ""})
			}
		}
	}
	if len(out) >= 2 {
		return out
	}
	marks := Ticks(math.Pow(10, a.low), math.Pow(10, min(a.high, largest)))
	if len(marks) == 0 {
		return a.middle(math.Pow(10, a.low/2+a.high/2))
	}
	out = out[:0]
	for _, v := range marks {
		out = append(out, tick{place(math.Log10(v)), Number(v), ""})
	}
	return out
}

// exponentText writes an exponent with a minus sign as wide as digits are.
func exponentText(e int) string {
	if e < 0 {
		return "−" + strconv.Itoa(-e)
	}
	return strconv.Itoa(e)
}

// thin takes the numbers from every second tick, and again, until those that
// are left have the room that they need beside each other on an axis of that
// length.
func thin(all []tick, length float64, room func(*tick) float64) []tick {
	out := slices.Clone(all)
	for {
		fits, end := true, math.Inf(-1)
		for i := range out {
			if t := &out[i]; !t.minor() {
				half := room(t) / 2
				fits = fits && t.share*length-half >= end
				end = t.share*length + half
			}
		}
		if fits {
			return out
		}
		keep := true
		for i := range out {
			if t := &out[i]; !t.minor() {
				if !keep {
					t.text, t.exponent = "", ""
				}
				keep = !keep
			}
		}
	}
}
