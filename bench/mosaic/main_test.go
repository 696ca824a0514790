package main

import (
	"image/color"
	"strings"
	"testing"

	"cne/data"
	"cne/data/images"
)

// images returns n images of one colour each: image i is (i, 2i, 255−i).
func coloured(n int) *images.Set {
	im := &images.Set{N: n, H: 2, W: 2, C: 3}
	for i := range n {
		for range 4 {
			im.Pixels = append(im.Pixels, byte(i), byte(2*i), byte(255-i))
		}
	}
	return im
}

func TestMosaic(t *testing.T) {
	// Cells of 1×1 about the middles (0.5, 0.5) to (1.5, 1.5): two points in one, none in
	// another, and corners that belong to the frame.
	at, err := data.FromRows([][]float64{{0, 0}, {0.6, 0.6}, {2, 2}, {1.9, 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := mosaic(at, coloured(4), 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	if size := m.Bounds().Size(); size.X != 10 || size.Y != 10 {
		t.Fatalf("size %v", size)
	}
	of := func(i int) color.RGBA { return color.RGBA{byte(i), byte(2 * i), byte(255 - i), 255} }
	for _, tc := range []struct {
		x, y int
		want color.RGBA
	}{
		{2, 2, color.RGBA{255, 255, 255, 255}}, // the upper left is empty
		{7, 2, of(2)},
		{2, 7, of(1)}, // nearer to the middle than image 0
		{7, 7, of(3)},
	} {
		if got := color.RGBAModel.Convert(m.At(tc.x, tc.y)); got != tc.want {
			t.Errorf("pixel (%d, %d) is %v, want %v", tc.x, tc.y, got, tc.want)
		}
	}
}

func TestMosaicRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		n, d, images int
		want         string
	}{
		"other images": {3, 2, 4, "3 positions and 4 images"},
		"a line":       {3, 1, 3, "1 coordinates"},
		"nothing":      {0, 2, 0, "no images"},
	} {
		if _, err := mosaic(data.NewMatrix(tc.n, tc.d), coloured(tc.images), 2, 2); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

// One point, or points at one place, make a picture, too.
func TestMosaicOfOnePlace(t *testing.T) {
	for _, n := range []int{1, 5} {
		m, err := mosaic(data.NewMatrix(n, 2), coloured(n), 3, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := color.RGBAModel.Convert(m.At(1, 1)); got != (color.RGBA{0, 0, 255, 255}) {
			t.Errorf("%d points: the middle is %v", n, got)
		}
	}
}
