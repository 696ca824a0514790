package plot

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"sort"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"cne/internal/kind"
	"cne/internal/rng"
	"cne/internal/selection"
)

// Distances of the layout, in printer's points.
const (
	margin      = 10
	defaultSide = 5 * 72
	smallestBox = 24 // least width and height for the points
	titleHeight = 22
	noteHeight  = 16
	scaleHeight = 20 // strip below the points for the scale bar
	legendGap   = 14 // between points and legend
	legendLine  = 13 // from one entry to the next
	columnGap   = 12
	markerSize  = 6.5
	markerGap   = 5
	longestName = 130
	barWidth    = 10 // of the colour bar
	barHeight   = 160
	tickLength  = 3
	lengthWidth = 45 // for the text of the scale bar
)

// maxLegend is the largest number of classes in a legend.
const maxLegend = 40

// NoLabel is the legend's name of points without class or value.
const NoLabel = "no label"

var (
	fonts     = writer{text.Plain{Fonts: font.NewCache(liberation.Collection())}}
	ink       = color.NRGBA{0x22, 0x22, 0x22, 0xff}
	unlabeled = color.NRGBA{0xdc, 0xdc, 0xdc, 0xff}
)

// label writes text next to the point x, y: half the height of a capital above and below
// it. The styles centre the whole line including descenders. Next to a marker this looks
// too low.
func label(c draw.Canvas, x, y vg.Length, txt string) {
	c.FillText(legendStyle, vg.Point{X: x, Y: y + legendStyle.Font.Size/9}, txt)
}

// entry draws a line of a legend: a point of that colour, and its meaning.
func entry(c draw.Canvas, x, y float64, colour color.Color, txt string) {
	marker := draw.GlyphStyle{Color: colour, Radius: markerSize / 2, Shape: draw.CircleGlyph{}}
	c.DrawGlyphNoClip(marker, vg.Point{X: vg.Length(x + markerSize/2), Y: vg.Length(y)})
	label(c, vg.Length(x+markerSize+markerGap), vg.Length(y), txt)
}

func style(size font.Length, x text.XAlignment, y text.YAlignment) text.Style {
	f := font.Font{Typeface: sans, Variant: "Sans", Size: size}
	return text.Style{Color: ink, Font: f, XAlign: x, YAlign: y, Handler: fonts}
}

var (
	titleStyle  = style(12, text.XCenter, text.YCenter)
	letterStyle = bold(style(12, text.XLeft, text.YCenter))
	legendStyle = style(9, text.XLeft, text.YCenter)
)

func bold(sty text.Style) text.Style {
	sty.Font.Weight = xfont.WeightBold
	return sty
}

// A layout is a plot with everything in its place. Lengths are printer's
// points, from the lower left corner.
type layout struct {
	width, height float64
	box           bounds  // where the points are
	layers        []layer // of points, the lowest first

	furniture []func(draw.Canvas) // title, legend, key and scale bar
}

// A layer holds points that are drawn alike.
type layer struct {
	x, y     []float64 // centres of the points, in the order of drawing
	colours  []color.NRGBA
	colour   []int32 // of each point in the order of drawing, an index of colours
	diameter float64
	outline  float64 // width of the dark rim, which is part of the diameter; 0 for none
	alpha    float64

	dense      bool // drawn by density instead of one after the other
	grey       int  // number of points without a label, which come first
	continuous bool // colours are in the order of a scale, except the last, for points without a label
}

// A legend is what stands to the right of the points.
type legend struct {
	width float64
	draw  func(c draw.Canvas, left, top float64)
}

func (s *Scatter) layout() (_ *layout, err error) {
	defer kind.Catch(&err)
	xy, note, err := s.Plane()
	kind.Check(err)
	l := &layout{height: 72 * s.height()}
	top := l.height - margin
	title := Printable(s.Title)
	if title != "" || s.indent > 0 {
		top -= titleHeight
	}
	if note != "" {
		top -= noteHeight
	}
	bottom := float64(margin + scaleHeight)

	held := s.heldOut() > 0
	side := top - bottom
	if held {
		side -= legendLine // the key may reach below the legend
	}
	palette, colour, legend := s.colour(side)
	if s.beside != nil {
		legend.width, legend.draw = 0, nil
	}
	reserved := 2. * margin
	if legend.width > 0 {
		reserved += legendGap + legend.width
	}
	l.width = cmp.Or(72*s.Width, defaultSide-2*margin+reserved)
	w := l.width - reserved
	below, above := cmp.Or(s.Below, "training"), cmp.Or(s.Above, "held out")
	key := 2*(markerSize+markerGap) + columnGap + (legendStyle.Width(below) + legendStyle.Width(above)).Points()
	beside := w/4+lengthWidth+key <= w // key and scale bar in one line
	if held && !beside {
		bottom += legendLine
	}
	h := top - bottom
	need(w >= smallestBox && h >= smallestBox && (!held || key <= l.width-2*margin),
		"size: got %.3g × %.3g cm, too small for points with legend, title and scale bar", l.width/72*2.54, l.height/72*2.54)
	l.box = bounds{margin, margin + w, bottom, top}

	l.layers = s.layers(palette, w*h)
	scale := s.setPoints(l, xy, colour)

	free := top
	heading := func(sty text.Style, height float64, txt string) {
		if txt == "" {
			return
		}
		txt = fit(sty, txt, l.width-2*margin-s.indent)
		x, y := margin+w/2, free+0.6*height
		if sty.XAlign = text.XCenter; sty.Width(txt).Points() > w-2*s.indent { // wider than the points: use the space next to them
			sty.XAlign, x = text.XLeft, margin+s.indent
		}
		l.add(func(c draw.Canvas) { c.FillText(sty, vg.Point{X: vg.Length(x), Y: vg.Length(y)}, txt) })
		free += height
	}
	heading(legendStyle, noteHeight, note)
	heading(titleStyle, titleHeight, title)
	if legend.draw != nil {
		l.add(func(c draw.Canvas) { legend.draw(c, l.width-margin-legend.width, top) })
	}
	const line = margin + 4 // height of the scale bar
	mantissa, exponent := roundLength(w / 4 / scale)
	length := decimal(mantissa, exponent)
	l.add(func(c draw.Canvas) {
		end := vg.Length(margin + length*scale)
		c.StrokeLine2(draw.LineStyle{Color: ink, Width: 1.5}, margin, line, end, line)
		label(c, end+5, line, Number(length))
	})
	if held {
		colour := selection.If(s.Classes == nil && s.Values == nil, single, neutral)
		l.add(func(c draw.Canvas) {
			if beside {
				drawKey(c, margin+w-key, line, colour, below, above)
			} else {
				drawKey(c, margin, line+legendLine, colour, below, above)
			}
		})
	}
	return l, nil
}

func (l *layout) add(f func(draw.Canvas)) { l.furniture = append(l.furniture, f) }

// furnish draws all but the points.
func (l *layout) furnish(c draw.Canvas) {
	for _, f := range l.furniture {
		f(c)
	}
}

// drawKey explains the two kinds of points by points of that colour and their names, in a
// line whose left end and middle are at x, y.
func drawKey(c draw.Canvas, x, y float64, colour color.NRGBA, below, above string) {
	entry(c, x, y, tint(colour), below)
	x += markerSize + markerGap + legendStyle.Width(below).Points() + columnGap
	rim := draw.GlyphStyle{Color: shade(colour), Radius: markerSize/2 + 0.75, Shape: draw.CircleGlyph{}}
	c.DrawGlyphNoClip(rim, vg.Point{X: vg.Length(x + markerSize/2), Y: vg.Length(y)})
	entry(c, x, y, colour, above)
}

// layers returns empty layers for the points: a single one, or one for the training
// points and above it one for the held-out points. palette holds the colours, and area is
// the area of the box in square points.
func (s *Scatter) layers(palette []color.NRGBA, area float64) []layer {
	all := layer{colours: palette, diameter: s.diameter(area, s.Embedding.N), alpha: s.alpha(), dense: s.dense(), continuous: s.Values != nil}
	n := s.heldOut()
	if n == 0 {
		return []layer{all}
	}
	above := layer{colours: palette, alpha: 1, continuous: all.continuous}
	// The fewer they are, the more they stand out.
	above.diameter = min(3*all.diameter, max(1.3*all.diameter, 0.5*s.diameter(area, n)))
	// If there are so many points that their rims would darken the picture, rims are
	// thinner, or left out if invisible.
	length := float64(n) * math.Pi * above.diameter
	above.outline = min(0.6, above.diameter/6, 0.05*area/length)
	if above.outline < 0.08 {
		above.outline = 0
		if above.dense = all.dense; above.dense {
			above.alpha = all.alpha
		}
	}
	all.colours = selection.Map(palette, tint)
	return []layer{all, above}
}

// setPoints fills the layers with the points in the box, with equal axes and the frame in its
// centre. Arrows show the number of other points. It returns the printer's points per
// unit of the embedding. p holds the positions, x and y alternating, and colour the
// colour of each row, −1 for a row without a label.
func (s *Scatter) setPoints(l *layout, p []float64, colour []int32) (scale float64) {
	b := s.frame(p)
	largest := l.layers[len(l.layers)-1].diameter
	w, h := max(1, l.box.x1-l.box.x0-largest), max(1, l.box.y1-l.box.y0-largest)
	scale = min(w/(b.x1-b.x0), h/(b.y1-b.y0))
	if math.IsInf(scale, 0) { // all points coincide: let the box be one unit wide
		scale = w
	}
	cx, cy := (l.box.x0+l.box.x1)/2, (l.box.y0+l.box.y1)/2
	at := func(x, y float64) (float64, float64) {
		return cx + (x-(b.x0+b.x1)/2)*scale, cy + (y-(b.y0+b.y1)/2)*scale
	}
	held := s.heldOut()
	shuffled := false
	for k, n := range []int{s.Embedding.N - held, held}[:len(l.layers)] {
		to := &l.layers[k]
		to.x, to.y, to.colour = make([]float64, 0, n), make([]float64, 0, n), make([]int32, 0, n)
		shuffled = shuffled || !to.dense
	}
	var beyond [4]int // the number of points beyond each side
	for _, i := range s.order(colour, shuffled) {
		x, y := at(p[2*i], p[2*i+1])
		if side := l.box.beyond(x, y); side >= 0 {
			beyond[side]++
			continue
		}
		to := &l.layers[0]
		if len(l.layers) > 1 && s.HeldOut[i] {
			to = &l.layers[1]
		}
		c := colour[i]
		if c < 0 {
			c = int32(len(to.colours)) - 1 // see Scatter.colour
			to.grey++
		}
		to.x, to.y = append(to.x, x), append(to.y, y)
		to.colour = append(to.colour, c)
	}
	arrows := arrowsOf(beyond, l.box)
	if s.NameClasses {
		s.addNames(l, p, at, arrows)
	}
	l.add(func(c draw.Canvas) {
		for _, a := range arrows {
			a.draw(c)
		}
	})
	return scale
}

// bounds are the sides of a rectangle with points in it.
type bounds struct{ x0, x1, y0, y1 float64 }

// boundsOf returns the bounds of points whose x and y alternate.
func boundsOf(p []float64) bounds {
	b := bounds{p[0], p[0], p[1], p[1]}
	for i := 0; i < len(p); i += 2 {
		b = b.union(bounds{p[i], p[i], p[i+1], p[i+1]})
	}
	return b
}

func (b bounds) union(c bounds) bounds {
	return bounds{min(b.x0, c.x0), max(b.x1, c.x1), min(b.y0, c.y0), max(b.y1, c.y1)}
}

// order returns the rows in the order of drawing. Rows without a label come first. The
// order is random if shuffled is set.
func (s *Scatter) order(colour []int32, shuffled bool) []int {
	rows := selection.UpTo[int](s.Embedding.N)
	if shuffled {
		stream := rng.New(s.Seed, rng.Shuffle)
		rows = stream.Perm(s.Embedding.N)
	}
	grey := slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return colour[i] >= 0 })
	return append(grey, slices.DeleteFunc(rows, func(i int) bool { return colour[i] < 0 })...)
}

// colour returns the colours that occur, and each row's index among them, −1
// for a row without a label, together with a legend of at most that height. If
// rows may have no label, their colour is the last one.
func (s *Scatter) colour(height float64) ([]color.NRGBA, []int32, legend) {
	switch {
	case s.Classes != nil:
		return s.colourClasses(height)
	case s.Values != nil:
		return s.colourValues(height)
	}
	return []color.NRGBA{single}, make([]int32, s.Embedding.N), legend{}
}

func (s *Scatter) colourClasses(height float64) ([]color.NRGBA, []int32, legend) {
	present, colour := Present(s.Classes)
	colours := selection.Map(present, func(c int32) color.NRGBA { return ColourOf(s.ClassColours, int(c)) })
	colours = append(colours, unlabeled)
	if len(present) == 0 || len(present) > maxLegend {
		return colours, colour, legend{}
	}

	names := selection.Map(present, func(c int32) string { return fit(legendStyle, ClassName(s.ClassNames, c), longestName) })
	if slices.Contains(colour, -1) {
		names = append(names, NoLabel)
	}
	columns := (len(names)-1)/max(1, int(height/legendLine)) + 1
	rows := (len(names)-1)/columns + 1
	column := markerSize + markerGap + widest(names)
	return colours, colour, legend{
		width: float64(columns)*(column+columnGap) - columnGap,
		draw: func(c draw.Canvas, left, top float64) {
			for k, name := range names {
				x := left + float64(k/rows)*(column+columnGap)
				y := top - (float64(k%rows)+0.5)*legendLine
				entry(c, x, y, colours[k], name)
			}
		},
	}
}

func (s *Scatter) colourValues(height float64) ([]color.NRGBA, []int32, legend) {
	const levels = 256
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range cmp.Or(s.beside, s).Values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	colours := slices.Repeat([]color.NRGBA{unlabeled}, levels+1)
	for i := range levels {
		colours[i] = ValueColour(float64(i) / (levels - 1))
	}
	// Halves, because the whole range may overflow.
	position := func(v float64) float64 {
		if low == high {
			return 0.5
		}
		return (v/2 - low/2) / (high/2 - low/2)
	}
	colour := make([]int32, len(s.Values))
	for i, v := range s.Values {
		colour[i] = -1
		if !math.IsNaN(v) {
			colour[i] = int32(math.Round(position(v) * (levels - 1)))
		}
	}
	if low > high {
		return colours, colour, legend{}
	}

	marks := Marks(low, high)
	names := s.markNames(marks, high-low)
	width := barWidth + tickLength + 3 + widest(names)
	grey := slices.Contains(colour, -1)
	if grey {
		width = max(width, markerSize+markerGap+legendStyle.Width(NoLabel).Points())
		height -= 2 * legendLine
	}
	height = max(legendLine, min(height, barHeight))
	return colours, colour, legend{
		width: width,
		draw: func(c draw.Canvas, left, top float64) {
			bottom := top - height
			for i := range levels {
				// Each step reaches up to the top, under the next ones, so
				// no gap shows between two.
				y := bottom + height*float64(i)/levels
				c.FillPolygon(colours[i], []vg.Point{
					{X: vg.Length(left), Y: vg.Length(y)},
					{X: vg.Length(left + barWidth), Y: vg.Length(y)},
					{X: vg.Length(left + barWidth), Y: vg.Length(top)},
					{X: vg.Length(left), Y: vg.Length(top)},
				})
			}
			for k, v := range marks {
				x, y := vg.Length(left+barWidth), vg.Length(bottom+height*position(v))
				c.StrokeLine2(draw.LineStyle{Color: ink, Width: 0.75}, x, y, x+tickLength, y)
				label(c, x+tickLength+3, y, names[k])
			}
			if grey {
				entry(c, left, bottom-1.5*legendLine, unlabeled, NoLabel)
			}
		},
	}
}

// widest returns the width of the widest of some texts of a legend in printer's points.
func widest(texts []string) (width float64) {
	for _, txt := range texts {
		width = max(width, legendStyle.Width(txt).Points())
	}
	return width
}

// fit cuts a text that is wider than the given number of printer's points. Its end remains,
// because long names of classes often differ there. It
// also cuts a text with so many characters for that width that most of them must be
// combining marks. Measuring stays quick however long the text is.
func fit(sty text.Style, txt string, width float64) string {
	limit := 4 * int(max(1, width)) // no letter is narrower than a point
	runes, cut := 0, false
	for i := range txt {
		if runes == limit {
			txt, cut = txt[:i], true
			break
		}
		runes++
	}
	if !cut && sty.Width(txt).Points() <= width {
		return txt
	}
	letters := []rune(txt)
	kept := func(n int) string { return string(letters[:n-n/3]) + "…" + string(letters[len(letters)-n/3:]) }
	return kept(sort.Search(len(letters), func(n int) bool { return sty.Width(kept(n+1)).Points() > width }))
}
