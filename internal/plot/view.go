package plot

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"cne/data"
	"cne/data/pca"
	"cne/internal/kind"
	"cne/internal/rng"
)

// Plane returns the positions of the points as drawn, x and y alternating and y upwards,
// in the units of the embedding. It also returns a note that explains them, or "" (see
// Scatter.Embedding). Errors wrap ErrInput or ErrNotFinite.
func (s *Scatter) Plane() (xy []float64, note string, err error) {
	defer kind.Catch(&err)
	s.check()
	m := s.Embedding
	if m.D == 1 {
		return s.standing(), "one coordinate; height: density of points", nil
	}
	if m.D > 2 && m.N > 1 { // a single point has no axes
		return onPlane(m)
	}
	xy = make([]float64, 0, 2*m.N)
	for i := range m.N {
		xy = append(xy, float64(m.X[i*m.D]), float64(m.X[i*m.D+1]))
	}
	return xy, "", nil
}

// onPlane returns the points of m on the plane where they vary most, and a note about it.
// Distances in the plane are at most the distances in the embedding.
func onPlane(m *data.Matrix) (xy []float64, note string, err error) {
	components, err := pca.Fit(context.Background(), m, 2)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrInput, err)
	}
	note = fmt.Sprintf("first 2 of %d principal axes of the embedding", m.D)
	if components.TotalVariance > 0 {
		note += fmt.Sprintf(", %.0f %% of its variance", 100*(components.Variance[0]+components.Variance[1])/components.TotalVariance)
	}
	xy = make([]float64, 2*m.N)
	for i := range m.N {
		for j, x := range m.Row(i) {
			x := float64(x) - components.Mean[j]
			xy[2*i] += x * components.Axes[j]
			xy[2*i+1] += x * components.Axes[m.D+j]
		}
	}
	return xy, note, nil
}

// standing scatters the points of a single coordinate at random between the ground and the
// density of points at their place, as a share of the frame's length. The density is the
// number of points in a bin, smoothed with binomial weights, whose standard deviation is a
// bin.
func (s *Scatter) standing() []float64 {
	const height, bins = 0.25, 100 // of the densest place, as a share of the whole length
	x := s.Embedding.X
	xy := make([]float64, 2*len(x))
	for i, v := range x {
		xy[2*i] = float64(v)
	}
	low, high := FrameOf(xy)
	length := high[0] - low[0]
	if length == 0 {
		return xy
	}
	bin := func(v float32) int { return int(min(bins-1, max(0, (float64(v)-low[0])/length*bins))) }
	var density [bins]float64
	for _, v := range x {
		for k, weight := range []float64{1, 4, 6, 4, 1} {
			if j := bin(v) + k - 2; j >= 0 && j < bins && float64(v) >= low[0] && float64(v) <= high[0] {
				density[j] += weight
			}
		}
	}
	most, jitter := slices.Max(density[:]), rng.New(s.Seed, rng.Sample)
	for i, v := range x {
		xy[2*i+1] = height * length * density[bin(v)] / most * jitter.Float64()
	}
	return xy
}

// Bounds of the outliers that FrameOf leaves out.
const (
	outside  = 400 // one point in so many may lie beyond a side
	farAlone = 0.1 // distance of outliers from a quantile, as a share of the distance between the quantiles
)

// FrameOf returns the lower left and upper right corner of the part of a plane that shows
// the points, whose x and y alternate, without outliers. Along each axis it ends at the
// outermost points that lie beyond the 0.25 % and 99.75 % quantiles by at most a tenth of
// the distance between these. So it holds at least 99 % of the points, and all if there
// are fewer than 400.
func FrameOf(xy []float64) (low, high [2]float64) {
	b := boundsOf(xy)
	low, high = [2]float64{b.x0, b.y0}, [2]float64{b.x1, b.y1}
	k := len(xy) / 2 / outside
	if k == 0 {
		return low, high
	}
	for axis := range 2 {
		sorted := make([]float64, 0, len(xy)/2)
		for i := axis; i < len(xy); i += 2 {
			sorted = append(sorted, xy[i])
		}
		slices.Sort(sorted)
		first, last := sorted[k], sorted[len(sorted)-1-k]
		far := farAlone * (last - first)
		if far == 0 || low[axis] >= first-far && high[axis] <= last+far {
			continue // most points are at one place, or none is an outlier
		}
		lowest, _ := slices.BinarySearch(sorted, first-far)
		beyond, _ := slices.BinarySearch(sorted, math.Nextafter(last+far, math.Inf(1)))
		low[axis], high[axis] = sorted[lowest], sorted[beyond-1]
	}
	return low, high
}

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
func (a arrow) box() bounds {
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
