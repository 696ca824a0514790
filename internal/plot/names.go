package plot

import (
	"cmp"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"cne/internal/selection"
)

var halo = color.NRGBA{0xff, 0xff, 0xff, 0xff}

const (
	nameSize    = 10  // of the letters
	nameGap     = 1.5 // around a name, where no other may be
	haloWidth   = 1.4
	haloSteps   = 12   // directions into which a name is moved for its halo
	farthest    = 3.5  // lines that a name may be away from its class
	nearEnough  = 0.75 // largest distance in lines without a leader line
	mostNamed   = 500  // classes that may have names
	shortestRow = 12   // least height that a name takes
)

var nameStyle = style(nameSize, text.XCenter, text.YCenter)

// A named is a name with its place in a picture, in printer's points.
type named struct {
	text         string
	x, y         float64 // its middle
	atX, atY     float64 // the median of its class
	width        float64
	w, h         float64 // half the extent of most points of a class
	lead         bool    // a line leads to the median
	class, count int
}

// box returns the bounds of the name with its margin.
func (n *named) box() bounds {
	w, h := n.width/2+nameGap, shortestRow/2.
	return bounds{n.x - w, n.x + w, n.y - h, n.y + h}
}

func (b bounds) meets(c bounds) bool {
	return b.x0 < c.x1 && c.x0 < b.x1 && b.y0 < c.y1 && c.y0 < b.y1
}

// addNames writes the names of classes above the points. p holds the places of the
// points, and at maps them to places in the picture. The names avoid the arrows.
func (s *Scatter) addNames(l *layout, p []float64, at func(x, y float64) (float64, float64), arrows []arrow) {
	names := slices.DeleteFunc(s.medians(p, at, l.layers[0].diameter/2), func(n named) bool { return l.box.beyond(n.atX, n.atY) >= 0 })
	names = arrangeNames(names, l.box, selection.Map(arrows, arrow.box)...)
	l.add(func(c draw.Canvas) {
		for _, n := range names {
			if n.lead {
				end := vg.Length(min(max(n.atX, n.x-n.width/2), n.x+n.width/2))
				for _, line := range []draw.LineStyle{{Color: halo, Width: 1.8}, {Color: neutral, Width: 0.7}} {
					c.StrokeLine2(line, vg.Length(n.atX), vg.Length(n.atY), end, vg.Length(n.y))
				}
			}
		}
		for _, n := range names {
			middle := vg.Point{X: vg.Length(n.x), Y: vg.Length(n.y) + nameSize/9.}
			withHalo(middle, func(at vg.Point, colour color.Color) {
				sty := nameStyle
				sty.Color = colour
				c.FillText(sty, at, n.text)
			})
		}
	})
}

// withHalo draws something around a place in white, and then at it in ink.
func withHalo(at vg.Point, draw func(at vg.Point, colour color.Color)) {
	for k := range haloSteps {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / haloSteps)
		draw(at.Add(vg.Point{X: vg.Length(haloWidth * cos), Y: vg.Length(haloWidth * sin)}), halo)
	}
	draw(at, ink)
}

// medians returns the classes that have a name, the largest first, each at the median of
// its points along both axes.
func (s *Scatter) medians(p []float64, at func(x, y float64) (float64, float64), radius float64) []named {
	xs, ys := map[int32][]float64{}, map[int32][]float64{}
	for i, c := range s.Classes {
		if c >= 0 && int(c) < len(s.ClassNames) {
			xs[c], ys[c] = append(xs[c], p[2*i]), append(ys[c], p[2*i+1])
		}
	}
	var names []named
	for c := range xs {
		if txt := fit(nameStyle, Printable(s.ClassNames[c]), longestName); txt != "" {
			names = append(names, named{text: txt, class: int(c), count: len(xs[c])})
		}
	}
	slices.SortFunc(names, func(a, b named) int { return cmp.Or(b.count-a.count, a.class-b.class) })
	names = names[:min(len(names), mostNamed)]
	for k := range names {
		n, c := &names[k], int32(names[k].class)
		n.width = nameStyle.Width(n.text).Points()
		n.atX, n.atY = at(selection.Median(xs[c]), selection.Median(ys[c]))
		// Both are in order now; 95 % of the points are on this side of the largest.
		last := (n.count - 1) * 19 / 20
		x1, y1 := at(xs[c][last], ys[c][last])
		x0, y0 := at(xs[c][n.count-1-last], ys[c][n.count-1-last])
		n.w, n.h = (x1-x0)/2+radius, (y1-y0)/2+radius
	}
	return names
}

// arrangeNames places names in an area without overlaps, each at the median of its class or
// as near to it as possible. Where there is room, names are next to classes that they would
// hide. Larger classes are placed first. Names that do not fit into the free area are left
// out.
func arrangeNames(names []named, area bounds, taken ...bounds) []named {
	var placed []named
	var small []bounds // the classes that a name would hide
	for _, n := range names {
		if n.h > 0 && n.h < shortestRow {
			small = append(small, bounds{n.atX - n.w, n.atX + n.w, n.atY - n.h, n.atY + n.h})
		}
	}
	for _, n := range names {
		if n.width > area.x1-area.x0 || shortestRow > area.y1-area.y0 {
			continue
		}
		for k, step := range slices.Concat(nameSteps, nameSteps) {
			// At the rim, names are pushed back into the area.
			w, h := n.width/2, shortestRow/2.
			n.x = min(max(n.atX+step[0], area.x0+w), area.x1-w)
			n.y = min(max(n.atY+step[1], area.y0+h), area.y1-h)
			box := n.box()
			if slices.ContainsFunc(taken, box.meets) || k < len(nameSteps) && slices.ContainsFunc(small, box.meets) {
				continue
			}
			n.lead = n.atX < box.x0-n.w || n.atX > box.x1+n.w || math.Abs(n.y-n.atY)-n.h > nearEnough*shortestRow
			placed, taken = append(placed, n), append(taken, box)
			break
		}
	}
	return placed
}

// nameSteps are the places to try for a name, from its class: first there, then farther
// and farther around.
var nameSteps = func() [][2]float64 {
	steps := [][2]float64{{0, 0}}
	for r := 0.5; r <= farthest; r += 0.5 {
		for k := range 16 {
			sin, cos := math.Sincos(2 * math.Pi * float64(k) / 16)
			// Names are wider than high.
			steps = append(steps, [2]float64{1.8 * r * shortestRow * cos, r * shortestRow * sin})
		}
	}
	slices.SortStableFunc(steps, func(a, b [2]float64) int {
		return cmp.Compare(math.Hypot(a[0]/1.5, a[1]), math.Hypot(b[0]/1.5, b[1]))
	})
	return steps
}()
