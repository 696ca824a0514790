package plot

import (
	"image/color"
	"strconv"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// frame returns the bounds of the shown part of the points at these positions. The height
// of points of a single coordinate is a density, and is shown completely.
func (s *Scatter) frame(xy []float64) bounds {
	low, high := FrameOf(xy)
	b := bounds{low[0], high[0], low[1], high[1]}
	if s.Embedding.D == 1 {
		all := boundsOf(xy)
		b.y0, b.y1 = all.y0, all.y1
	}
	return b
}

// beyond returns the side beyond which a point is farthest outside, or −1: left, right,
// bottom and top are 0 to 3.
func (b bounds) beyond(x, y float64) int {
	side, most := -1, 0.
	for k, away := range []float64{b.x0 - x, x - b.x1, b.y0 - y, y - b.y1} {
		if away > most {
			side, most = k, away
		}
	}
	return side
}

// An arrow in the middle of a side of a picture shows the number of points beyond it.
type arrow struct {
	text       string
	x, y       float64 // the tip
	toX, toY   float64 // the direction
	left, base float64 // of the text, from the tip
	width      float64
}

const (
	arrowLength = 5. // in printer's points, and width
	arrowGap    = 2. // to the number
	arrowText   = 7.
)

var arrowStyle = style(arrowText, text.XLeft, text.YCenter)

// arrowsOf returns an arrow for each side with points beyond.
func arrowsOf(beyond [4]int, area bounds) []arrow {
	var arrows []arrow
	for side, to := range [4][2]float64{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
		if beyond[side] == 0 {
			continue
		}
		a := arrow{text: strconv.Itoa(beyond[side]), toX: to[0], toY: to[1], base: -to[1] * arrowLength / 2}
		a.x = (area.x0 + area.x1 + to[0]*(area.x1-area.x0)) / 2
		a.y = (area.y0 + area.y1 + to[1]*(area.y1-area.y0)) / 2
		a.width = arrowStyle.Width(a.text).Points()
		a.left = [4]float64{arrowLength, -arrowLength - 2*arrowGap - a.width, arrowLength / 2, arrowLength / 2}[side] + arrowGap
		arrows = append(arrows, a)
	}
	return arrows
}

// box returns the bounds of the arrow with its number.
func (a *arrow) box() bounds {
	x, y := a.x+a.left, a.y+a.base
	shape := bounds{a.x - arrowLength, a.x + arrowLength, a.y - arrowLength, a.y + arrowLength}
	return shape.union(bounds{x, x + a.width, y - arrowText/2, y + arrowText/2})
}

func (a *arrow) draw(c draw.Canvas) {
	withHalo(vg.Point{X: vg.Length(a.x), Y: vg.Length(a.y)}, func(at vg.Point, colour color.Color) {
		corner := func(back, aside float64) vg.Point {
			return at.Add(vg.Point{X: vg.Length(-back*a.toX - aside*a.toY), Y: vg.Length(-back*a.toY + aside*a.toX)})
		}
		c.FillPolygon(colour, []vg.Point{corner(0, 0), corner(arrowLength, arrowLength/2), corner(arrowLength, -arrowLength/2)})
		sty := arrowStyle
		sty.Color = colour
		c.FillText(sty, at.Add(vg.Point{X: vg.Length(a.left), Y: vg.Length(a.base + arrowText/9)}), a.text)
	})
}
