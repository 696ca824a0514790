package main

import (
	"bytes"
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/data/images"
	"cne/internal/rng"
)

func originals(t *testing.T) *images.Set {
	t.Helper()
	o, err := images.Open(t.Context(), []string{"builtin:mnist10k"}, images.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFillIsDecidedBySeedAndNumber(t *testing.T) {
	o := originals(t)
	size := o.H * o.W
	fill := func(seed uint64, first, n int) ([]byte, []int32) {
		pixels, origin := make([]byte, n*size), make([]int32, n)
		endless{o, seed}.fill(pixels, origin, first)
		return pixels, origin
	}
	pixels, origin := fill(3, 100, 300)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, n := range []int{1, 64, 200} {
		p, at := fill(3, 100, n)
		q, further := fill(3, 100+n, 300-n)
		if !bytes.Equal(append(p, q...), pixels) || !slices.Equal(append(at, further...), origin) {
			t.Errorf("300 images differ from %d and %d of them, made on one core", n, 300-n)
		}
	}
	if p, at := fill(4, 100, 300); bytes.Equal(p, pixels) || slices.Equal(at, origin) {
		t.Error("another seed makes the same images")
	}
	drawn := slices.Clone(origin)
	slices.Sort(drawn)
	if n := len(slices.Compact(drawn)); n < 280 || drawn[0] < 0 || drawn[299] >= int32(o.N) {
		t.Errorf("300 images are of %d originals, from %d to %d of %d", n, drawn[0], drawn[299], o.N)
	}
}

// A deformed image is like its original: few have an original of another class that is
// nearer than the nearest of their own, and the amount of ink is about the same.
func TestImagesStayWhatTheyAre(t *testing.T) {
	o := originals(t)
	const n = 100
	size := o.H * o.W
	pixels, origin := make([]byte, n*size), make([]int32, n)
	endless{o, 1}.fill(pixels, origin, 0)
	right := 0
	var ink, inkBefore float64
	for i := range n {
		image := pixels[i*size : (i+1)*size]
		if bytes.Equal(image, o.Image(int(origin[i]))) {
			t.Errorf("image %d is not deformed", i)
		}
		nearest, class := math.Inf(1), int32(-1)
		for j := range 3000 {
			if j == int(origin[i]) {
				continue
			}
			sum := 0
			for p, v := range o.Image(j) {
				d := int(v) - int(image[p])
				sum += d * d
			}
			if float64(sum) < nearest {
				nearest, class = float64(sum), o.Labels.Class[j]
			}
		}
		if class == o.Labels.Class[origin[i]] {
			right++
		}
		for p, v := range image {
			ink += float64(v)
			inkBefore += float64(o.Image(int(origin[i]))[p])
		}
	}
	if right < 50 || right > 95 {
		t.Errorf("the nearest original has the right class for %d of %d images, want most and not all", right, n)
	}
	if r := ink / inkBefore; r < 0.85 || r > 1.15 {
		t.Errorf("the images have %.2f times the ink of their originals", r)
	}
}

// Images need not be square, and what is between their pixels is a mean of these.
func TestOfAnEvenImage(t *testing.T) {
	const h, w = 5, 9
	src, dst := bytes.Repeat([]byte{200}, h*w), make([]byte, h*w)
	s := rng.New(1, rng.Views, 0)
	deform(dst, src, waves(w), waves(h), &s)
	if middle := dst[h/2*w+w/2]; middle != 200 {
		t.Errorf("the middle of an even image of 200 became %d", middle)
	}
	if slices.Max(dst) > 200 {
		t.Errorf("an even image of 200 has a pixel of %d", slices.Max(dst))
	}
}
