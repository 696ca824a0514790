package simclr

import (
	"slices"
)

// levels[b] is the intensity in [0, 1] of byte b.
var levels = func() (l [256]float32) {
	for b := range l {
		l[b] = float32(b) / 255
	}
	return l
}()

// taps are the weights of a resize along one axis: output o is Σ weights[o·n+k] · input[starts[o]+k], k < n.
type taps struct {
	n       int
	starts  []int
	weights []float32
}

// fit sets the weights for a resize from in to out pixels by linear interpolation: a
// triangle around each output's centre. It is as wide as two pixels of the input or of
// the output, whichever are larger (antialias=True in torchvision; PIL always does so).
// It is cut at the ends of the input and has sum 1. A mirrored axis gives its outputs in
// reverse order.
func (t *taps) fit(in, out int, mirrored bool) {
	scale := float64(in) / float64(out)
	reach := max(1, scale)
	// window returns the range [lo, hi) of inputs of output o.
	window := func(o int) (center float64, lo, hi int) {
		center = float64(scale * (float64(o) + 0.5))
		return center, max(0, int(center-reach+0.5)), min(in, int(center+reach+0.5))
	}
	t.n = 1
	for o := range out {
		_, lo, hi := window(o)
		t.n = max(t.n, hi-lo)
	}
	t.starts = slices.Grow(t.starts[:0], out)[:out]
	t.weights = slices.Grow(t.weights[:0], out*t.n)[:out*t.n]
	for o := range out {
		center, lo, hi := window(o)
		if mirrored {
			o = out - 1 - o
		}
		start := min(lo, in-t.n) // all n inputs exist
		t.starts[o] = start
		weights := t.weights[o*t.n:][:t.n]
		clear(weights)
		weight := func(i int) float64 {
			d := (float64(i) + 0.5 - center) / reach
			return max(0, 1-max(d, -d))
		}
		var sum float64
		for i := lo; i < hi; i++ {
			sum += weight(i)
		}
		for i := lo; i < hi; i++ {
			weights[i-start] = float32(weight(i) / sum)
		}
	}
}

// resample resizes a part of an image to the [3, size, size] intensities of a view. It
// mirrors the view if asked to.
func (ws *workspace) resample(view []float32, size int, image []byte, width int, part rectangle, mirrored bool) {
	ws.across.fit(part.w, size, mirrored)
	ws.down.fit(part.h, size, false)
	ws.rows = slices.Grow(ws.rows[:0], 3*part.h*size)[:3*part.h*size]
	plane := part.h * size
	for y := range part.h {
		src := image[3*((part.y+y)*width+part.x):][:3*part.w]
		ws.across.row(ws.rows[y*size:][:size], ws.rows[plane+y*size:][:size], ws.rows[2*plane+y*size:][:size], src)
	}
	for c := range 3 {
		ws.down.columns(view[c*size*size:][:size*size], ws.rows[c*plane:][:plane], size)
	}
}

// row makes the outputs of one row of pixels.
func (t *taps) row(r, g, b []float32, src []byte) {
	g, b = g[:len(r)], b[:len(r)]
	starts := t.starts[:len(r)]
	if t.n == 2 { // as in every enlargement
		weights := t.weights[:2*len(r)]
		for o, start := range starts {
			w0, w1 := weights[2*o], weights[2*o+1]
			p := src[3*start:][:6]
			r[o] = float32(w0*levels[p[0]]) + float32(w1*levels[p[3]])
			g[o] = float32(w0*levels[p[1]]) + float32(w1*levels[p[4]])
			b[o] = float32(w0*levels[p[2]]) + float32(w1*levels[p[5]])
		}
		return
	}
	for o, start := range starts {
		var red, green, blue float32
		for k, w := range t.weights[o*t.n:][:t.n] {
			p := src[3*(start+k):][:3]
			red += float32(w * levels[p[0]])
			green += float32(w * levels[p[1]])
			blue += float32(w * levels[p[2]])
		}
		r[o], g[o], b[o] = red, green, blue
	}
}

// columns makes the outputs of all columns of one plane of that width.
func (t *taps) columns(dst, src []float32, width int) {
	for o, start := range t.starts {
		out := dst[o*width:][:width]
		weights := t.weights[o*t.n:][:t.n]
		if t.n == 2 {
			w0, w1 := weights[0], weights[1]
			upper, lower := src[start*width:][:width], src[(start+1)*width:][:width]
			for i := range out {
				out[i] = float32(w0*upper[i]) + float32(w1*lower[i])
			}
			continue
		}
		clear(out)
		for k, w := range weights {
			for i, x := range src[(start+k)*width:][:width] {
				out[i] += float32(w * x)
			}
		}
	}
}
