package main

import (
	"math"

	"cne/data/images"
	"cne/internal/parallel"
	"cne/internal/rng"
)

// An endless set of images: the i-th, for any i ≥ 0, is one of the originals, drawn at
// random, and moved, turned, scaled and warped a little. Only seed and i decide it.
type endless struct {
	originals *images.Set // greyscale (C = 1), at least one
	seed      uint64
}

// fill writes the images first, first+1, … to dst, of H×W bytes each, and to origin,
// which has an entry per image, which of the originals each was.
func (e endless) fill(dst []byte, origin []int32, first int) {
	o := e.originals
	size := o.H * o.W
	across, down := waves(o.W), waves(o.H)
	parallel.For(len(origin), 64, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			s := rng.New(e.seed, rng.Views, uint64(first+i))
			origin[i] = int32(s.IntN(o.N))
			deform(dst[i*size:(i+1)*size], o.Image(int(origin[i])), across, down, &s)
		}
	})
}

// A wave is the values of sines and cosines at a column or row.
type wave struct{ sin3, sin4, cos4, cos5 float64 }

// waves returns the waves of n columns or rows, counted from the middle.
func waves(n int) []wave {
	w := make([]wave, n)
	for i := range w {
		u := float64(i) - float64(n-1)/2
		w[i] = wave{math.Sin(u / 3), math.Sin(u / 4), math.Cos(u / 4), math.Cos(u / 5)}
	}
	return w
}

// deform writes a deformed copy of an image, given the waves of its columns and rows.
// What lies outside of the image is 0.
//
// Standard deviations: a turn of 0.25 (14°), a factor of e^0.1 for width and height
// each, a shift of one pixel each way, and waves of 0.6 pixels.
func deform(dst, src []byte, columns, rows []wave, s *rng.Stream) {
	sin, cos := math.Sincos(0.25 * s.Normal())
	wide, high := math.Exp(0.1*s.Normal()), math.Exp(0.1*s.Normal())
	right, down := s.Normal(), s.Normal()
	var k [8]float64
	for i := range k {
		k[i] = 0.6 * s.Normal()
	}
	h, w := len(rows), len(columns)
	middleX, middleY := float64(w-1)/2, float64(h-1)/2
	at := func(x, y int) float64 {
		if x < 0 || y < 0 || x >= w || y >= h {
			return 0
		}
		return float64(src[y*w+x])
	}
	for y, r := range rows {
		for x, c := range columns {
			u, v := float64(x)-middleX, float64(y)-middleY
			a := (cos*u+sin*v)*wide + right + middleX
			b := (cos*v-sin*u)*high + down + middleY
			a += k[0]*c.sin4 + k[1]*r.cos4 + k[2]*r.sin3 + k[3]*c.cos5
			b += k[4]*r.sin4 + k[5]*c.cos4 + k[6]*c.sin3 + k[7]*r.cos5
			left, top := math.Floor(a), math.Floor(b)
			i, j, p, q := int(left), int(top), a-left, b-top
			value := (1-q)*((1-p)*at(i, j)+p*at(i+1, j)) + q*((1-p)*at(i, j+1)+p*at(i+1, j+1))
			dst[y*w+x] = byte(math.Round(value))
		}
	}
}
