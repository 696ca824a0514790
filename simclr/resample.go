package simclr

import (
	"math"
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

// The share of each colour in the grey that torchvision computes. They add up
// to 0.9999.
const grayR, grayG, grayB = 0.2989, 0.587, 0.114

// channels returns the red, green and blue of a view, all of the same length.
func channels(view []float32) (r, g, b []float32) {
	n := len(view) / 3
	return view[:n], view[n:][:n], view[2*n:][:n]
}

// unit returns the number in [0, 1] nearest to x.
func unit(x float32) float32 { return unitOf(pattern(x)) }

// pattern returns the bits of a number. As integers, they have the order of the numbers
// from 0 upwards; negative numbers have negative patterns. In Go, the minimum of two
// integers takes no branch and is faster than the minimum of two floats, because that
// must treat NaN and −0.
func pattern(x float32) int32 { return int32(math.Float32bits(x)) }

// number is the inverse of pattern.
func number(p int32) float32 { return math.Float32frombits(uint32(p)) }

// unitOf is unit of the number with that pattern.
func unitOf(p int32) float32 {
	const one = 0x3f800000
	return number(min(max(p, 0), one))
}

// brighten blends a view with black: the view has weight f.
func brighten(view []float32, f float32) {
	for i, x := range view {
		view[i] = unit(f * x)
	}
}

// adjustContrast blends a view with the mean of its grey image.
func adjustContrast(view []float32, f float32) {
	r, g, b := channels(view)
	mean := (float32(grayR*sum(r)) + float32(grayG*sum(g)) + float32(grayB*sum(b))) / float32(len(r))
	rest := float32((1 - f) * mean)
	for i, x := range view {
		view[i] = unit(float32(f*x) + rest)
	}
}

// sum adds numbers up in four interleaved partial sums.
func sum(x []float32) float32 {
	var s0, s1, s2, s3 float32
	for ; len(x) >= 4; x = x[4:] {
		s0 += x[0]
		s1 += x[1]
		s2 += x[2]
		s3 += x[3]
	}
	for _, v := range x {
		s0 += v
	}
	return s0 + s1 + (s2 + s3)
}

// saturate blends a view with its grey image.
func saturate(view []float32, f float32) {
	r, g, b := channels(view)
	for i, red := range r {
		green, blue := g[i], b[i]
		rest := float32((1 - f) * (float32(grayR*red) + float32(grayG*green) + float32(grayB*blue)))
		r[i], g[i], b[i] = unit(float32(f*red)+rest), unit(float32(f*green)+rest), unit(float32(f*blue)+rest)
	}
}

// toGray replaces a view by its grey image.
func toGray(view []float32) {
	r, g, b := channels(view)
	for i, red := range r {
		gray := float32(grayR*red) + float32(grayG*g[i]) + float32(grayB*b[i])
		r[i], g[i], b[i] = gray, gray, gray
	}
}

// shiftHue turns the hue of every pixel by a share of the colour circle, in
// [−0.5, 0.5]; value and saturation stay.
//
// In sixths of the circle, a hue h is in [0, 6), and a colour's components go
// with it between the least, m, and the greatest, m + c, as follows: red is
// m + c·unit(max(2−h, h−4)), green m + c·unit(min(h, 4−h)) and blue
// m + c·unit(min(h−2, 6−h)). That needs neither the saturation nor a case for
// each sixth, and an h that rounding has put just outside does no harm.
func shiftHue(view []float32, share float32) {
	if share == 0 {
		return
	}
	shift := float32(6*share) + 6 // hues before are at least −1
	r, g, b := channels(view)
	for i, red := range r {
		green, blue := g[i], b[i]
		rp, gp, bp := pattern(red), pattern(green), pattern(blue)
		most, least := max(rp, gp, bp), number(min(rp, gp, bp))
		chroma := number(most) - least

		// The hue is numerator/chroma + origin.
		numerator, origin := pattern(red-green), pattern(4)
		if gp == most {
			numerator, origin = pattern(blue-red), pattern(2)
		}
		if rp == most {
			numerator, origin = pattern(green-blue), pattern(0)
		}
		divisor := number(max(pattern(chroma), pattern(1e-20))) // grey has no hue; any serves
		h := number(numerator)/divisor + number(origin) + shift // in [2, 14]
		h -= float32(6 * float32(int32(h*(1./6))))

		r[i] = least + float32(chroma*unitOf(max(pattern(2-h), pattern(h-4))))
		g[i] = least + float32(chroma*unitOf(min(pattern(h), pattern(4-h))))
		b[i] = least + float32(chroma*unitOf(min(pattern(h-2), pattern(6-h))))
	}
}
