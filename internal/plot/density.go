package plot

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/bits"
	"strings"

	"cne/internal/kind"
	"cne/internal/parallel"
)

// Very many points are drawn by their density, as in datashader. A pixel adds up the
// discs on it, has the mean of their colours, and is more opaque if there are more discs.
// Sums are of integers, so neither the order of the points nor the number of cores
// changes a byte.

// DenseFrom is the least number of points that are drawn by density, unless their size is
// given.
const DenseFrom = 50_000

const (
	subpixelBits = 3   // a disc may be centred at 2^subpixelBits points along each axis of a pixel
	fullCover    = 256 // a disc's contribution to a pixel that it covers completely
	bandRows     = 64  // rows of pixels that are added up together
)

// dense reports whether the points are drawn by density.
func (s *Scatter) dense() bool { return s.Embedding.N >= DenseFrom && s.PointSize == 0 }

// A stamp has the contributions of a disc to its centre's pixel and the pixels around it.
type stamp []stampPixel

type stampPixel struct {
	dx, dy int32
	cover  uint64 // up to fullCover
}

// newStamps returns the stamps of a disc of radius r, in pixels, by the subpixel of
// its centre within a pixel: row after row of subpixels. The second result is how many
// pixels they reach at most.
func newStamps(r float64) ([]stamp, int32) {
	reach := int32(math.Ceil(r + 0.5))
	const subpixels = 1 << subpixelBits
	stamps := make([]stamp, subpixels*subpixels)
	for k := range stamps {
		x := (float64(k%subpixels) + 0.5) / subpixels
		y := (float64(k/subpixels) + 0.5) / subpixels
		for dy := -reach; dy <= reach; dy++ {
			for dx := -reach; dx <= reach; dx++ {
				distance := math.Hypot(float64(dx)+0.5-x, float64(dy)+0.5-y)
				if cover := math.Round(fullCover * min(1, r+0.5-distance)); cover > 0 {
					stamps[k] = append(stamps[k], stampPixel{dx, dy, uint64(cover)})
				}
			}
		}
	}
	return stamps, reach
}

// A pixelSum is the sum of the discs on a pixel: their cover, and their colours weighted
// by it.
type pixelSum struct {
	cover   uint64
	colours [3]uint64
}

// densities returns the points of the layer as up to two pictures, the lower one first:
// the points without a label, and the others. Each is equalised by itself. Their
// rectangles are in pixels from the upper left corner of a page with that many rows; dots
// is the number of pixels per printer's point.
func (l *layer) densities(dots float64, rows int) []*image.NRGBA {
	var out []*image.NRGBA
	for _, part := range [][2]int{{0, l.grey}, {l.grey, len(l.x)}} {
		if part[0] < part[1] {
			out = append(out, l.density(part[0], part[1], dots, rows))
		}
	}
	return out
}

// density draws the points from lo to hi.
func (l *layer) density(lo, hi int, dots float64, rows int) *image.NRGBA {
	stamps, reach := newStamps(max(0.5, l.diameter/2*dots))
	n := hi - lo
	type centre struct{ x, y, stamp int32 }
	centres := make([]centre, n)
	const grain = 1 << 14
	parts := make([]image.Rectangle, parallel.Pieces(n, grain))
	parallel.For(n, grain, func(piece, first, end int) {
		var r image.Rectangle
		for i := first; i < end; i++ {
			const within = 1<<subpixelBits - 1
			x := int32(math.Floor(l.x[lo+i] * dots * (within + 1)))
			y := int32(math.Floor((float64(rows) - l.y[lo+i]*dots) * (within + 1)))
			p := centre{x >> subpixelBits, y >> subpixelBits, y&within<<subpixelBits | x&within}
			centres[i] = p
			r = r.Union(image.Rect(int(p.x-reach), int(p.y-reach), int(p.x+reach)+1, int(p.y+reach)+1))
		}
		parts[piece] = r
	})
	bounds := parts[0]
	for _, r := range parts {
		bounds = bounds.Union(r)
	}

	img := image.NewNRGBA(bounds)
	levels := make([]uint16, bounds.Dx()*bounds.Dy())
	width := bounds.Dx()
	parallel.For(bounds.Dy(), bandRows, func(_, top, bottom int) {
		sums := make([]pixelSum, width*(bottom-top))
		for i, p := range centres {
			x, y := int(p.x)-bounds.Min.X, int(p.y)-bounds.Min.Y-top
			if y+int(reach) < 0 || y-int(reach) >= bottom-top {
				continue
			}
			index := l.colour[lo+i]
			of := l.colours[index]
			c := [3]uint64{uint64(of.R), uint64(of.G), uint64(of.B)}
			if l.continuous {
				c = [3]uint64{uint64(index)}
			}
			for _, s := range stamps[p.stamp] {
				row := y + int(s.dy)
				if row < 0 || row >= bottom-top {
					continue
				}
				sum := &sums[row*width+x+int(s.dx)]
				sum.cover += s.cover
				sum.colours[0] += s.cover * c[0]
				sum.colours[1] += s.cover * c[1]
				sum.colours[2] += s.cover * c[2]
			}
		}
		for k, sum := range sums {
			if sum.cover == 0 {
				continue
			}
			at := top*width + k
			levels[at] = uint16(levelOf(sum.cover))
			c := l.mixed(sum)
			copy(img.Pix[4*at:], []uint8{c.R, c.G, c.B})
		}
	})
	counts := make([]int, numLevels)
	for _, level := range levels {
		counts[level]++
	}
	opacity := equalised(counts, l.alpha)
	parallel.For(len(levels), grain, func(_, first, end int) {
		for k := first; k < end; k++ {
			img.Pix[4*k+3] = opacity[levels[k]]
		}
	})
	return img
}

// mixed returns the mean colour of the discs on a pixel, or on a continuous
// scale the colour of their mean value.
func (l *layer) mixed(sum pixelSum) color.NRGBA {
	mean := func(k int) uint64 { return (sum.colours[k] + sum.cover/2) / sum.cover }
	if l.continuous {
		return l.colours[mean(0)]
	}
	return color.NRGBA{uint8(mean(0)), uint8(mean(1)), uint8(mean(2)), 0xff}
}

// numLevels is the number of values of levelOf.
const numLevels = fullCover * (64 - 8 + 1)

// levelOf numbers covers in increasing order, above 2·fullCover in steps of less
// than a part in fullCover.
func levelOf(cover uint64) int {
	shift := max(0, bits.Len64(cover)-9)
	return fullCover*shift + int(cover>>shift)
}

// discs returns the least cover of a level, in discs that cover the pixel wholly.
func discs(level int) float64 {
	if level < 2*fullCover {
		return float64(level) / fullCover
	}
	shift := level/fullCover - 1
	return math.Ldexp(float64(level-fullCover*shift), shift) / fullCover
}

// equalised returns the opacity of each level of cover, given the number of pixels of
// each level; it does not fall as the cover rises. A single disc has the given opacity,
// and a part of a disc a proportional opacity. The opacity of a pixel with more discs is
// its rank among such pixels (histogram equalisation), so differences are visible at
// every density. It is no more opaque than discs drawn over each other, so small
// differences are not exaggerated where points hardly overlap.
func equalised(counts []int, alone float64) []uint8 {
	single := levelOf(fullCover)
	top := single
	for level, n := range counts {
		if n > 0 {
			top = max(top, level)
		}
	}
	most := 1. // pixels below the top, with one more that has a single disc
	for _, n := range counts[single:top] {
		most += float64(n)
	}
	out := make([]uint8, len(counts))
	below := 1.
	for level := range out {
		c := discs(level)
		opacity := alone * c
		if level > single {
			below += float64(counts[level-1])
			rank := min(1, below/most)
			opacity = min(1-math.Pow(1-alone, c), alone+(1-alone)*rank)
		}
		out[level] = uint8(math.Round(255 * min(1, opacity)))
	}
	return out
}

// writeSVGDensity writes the layer of a picture of that height as embedded PNG
// images, drawn at that many pixels per inch.
func (l *layer) writeSVGDensity(b *strings.Builder, height float64, dpi int) {
	dots := float64(dpi) / 72
	rows := math.Ceil(height * dots)
	for _, img := range l.densities(dots, int(rows)) {
		var file bytes.Buffer
		kind.Check(png.Encode(&file, img))
		r := img.Rect
		fmt.Fprintf(b,
			"<image x=\"%.4f\" y=\"%.4f\" width=\"%.4f\" height=\"%.4f\" preserveAspectRatio=\"none\" xlink:href=\"data:image/png;base64,%s\"/>\n",
			float64(r.Min.X)/dots, height-(rows-float64(r.Min.Y))/dots, float64(r.Dx())/dots, float64(r.Dy())/dots,
			base64.StdEncoding.EncodeToString(file.Bytes()))
	}
}
