package images

import (
	"bytes"
	"cmp"
	"image"
	"math"
	"testing"
)

// TestSmoothChroma compares with the interpolation in real numbers, whose
// weights are 9/16, 3/16, 3/16 and 1/16, within rounding.
func TestSmoothChroma(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {2, 2}, {3, 5}, {8, 6}, {32, 32}, {17, 40}} {
		m := image.NewYCbCr(image.Rectangle{Max: size}, image.YCbCrSubsampleRatio420)
		for i := range m.Cb {
			m.Cb[i], m.Cr[i] = byte(37*i*i+11*i), 128
		}
		m.Cr[0] = 255
		got := smoothChroma(m)
		if !bytes.Equal(got.Y, m.Y) || got.Rect != m.Rect {
			t.Fatalf("%v: the brightness has changed", size)
		}
		cw, ch := (size.X+1)/2, (size.Y+1)/2
		at := func(plane []byte, x, y int) float64 {
			return float64(plane[min(max(y, 0), ch-1)*m.CStride+min(max(x, 0), cw-1)])
		}
		for y := range size.Y {
			for x := range size.X {
				dx, dy := 2*(x%2)-1, 2*(y%2)-1
				for name, planes := range map[string][2][]byte{"Cb": {m.Cb, got.Cb}, "Cr": {m.Cr, got.Cr}} {
					p := planes[0]
					want := (9*at(p, x/2, y/2) + 3*at(p, x/2+dx, y/2) + 3*at(p, x/2, y/2+dy) + at(p, x/2+dx, y/2+dy)) / 16
					if v := float64(planes[1][got.COffset(x, y)]); math.Abs(v-want) > 0.5 {
						t.Fatalf("%v: %s at (%d, %d) is %v, want %v", size, name, x, y, v, want)
					}
				}
			}
		}
	}
}

func TestNaturally(t *testing.T) {
	want := []string{"", "01", "1", "2", "10", "99999999999999999999", "100000000000000000000", "a", "a1", "a1b", "a2", "a2b01", "a2b1", "a2b3", "a10", "ab", "b"}
	for i, a := range want {
		for j, b := range want {
			if got := naturally(a, b); got != cmp.Compare(i, j) {
				t.Errorf("%q and %q compare as %d", a, b, got)
			}
		}
	}
}
