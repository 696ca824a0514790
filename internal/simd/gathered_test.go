package simd

import (
	"math"
	"testing"

	"cne/internal/rng"
)

func TestGatheredRows(t *testing.T) {
	const rows = 40
	forms(t, func(t *testing.T) {
		for _, width := range []int{1, 3, 10, 16, 32, 50, 64, 144, 2003} {
			x32, x64 := draw(rows*width, 1, (*rng.Stream).Normal)
			along32, along64 := draw(width, 2, (*rng.Stream).Normal)
			for _, n := range []int{0, 16, 64, 80, 208} {
				s := rng.New(3, rng.Sample)
				cols, limits := make([]int32, n), make([]float32, n)
				for c := range cols {
					cols[c], limits[c] = int32(s.IntN(rows)), float32(4*float64(width)*s.Float64())
				}
				dst, found := make([]float32, n), make([]uint64, (n+63)/64)
				limit := float32(1.8 * float64(width))
				const from = 7
				row32, row64 := x32[from*width:(from+1)*width], x64[from*width:(from+1)*width]
				NearRows(dst, found, x32, row32, cols, limit, limits)
				for c, j := range cols {
					want := 0.
					for l, v := range row64 {
						want += (v - x64[int(j)*width+l]) * (v - x64[int(j)*width+l])
					}
					if math.Abs(float64(dst[c])-want) > 2e-6*want {
						t.Fatalf("width %d: the distance of row %d is %g, want %g", width, j, dst[c], want)
					}
					if got, near := found[c/64]>>(c%64)&1 == 1, dst[c] <= limit || dst[c] <= limits[c]; got != near {
						t.Fatalf("width %d: column %d at %g with limits %g and %g is near: %v", width, c, dst[c], limit, limits[c], got)
					}
					back, one := make([]float32, 16), make([]uint64, 1)
					same := make([]int32, 16)
					for i := range same {
						same[i] = from
					}
					NearRows(back, one, x32, x32[int(j)*width:(int(j)+1)*width], same, limit, back)
					if back[5] != dst[c] {
						t.Fatalf("width %d: %g there, %g back", width, dst[c], back[5])
					}
				}
				tiles, marks := make([]float32, 4*n), make([]uint16, n/4)
				four, rowLimits := [4]int32{from, 0, rows - 1, from}, [4]float32{limit, -1, float32(width), 3 * limit}
				NearTiles(tiles, marks, x32, width, &four, cols, &rowLimits, limits, cols[:n/8])
				for r, i := range four {
					NearRows(dst, found, x32, x32[int(i)*width:int(i+1)*width], cols, rowLimits[r], limits)
					for c := range cols {
						if at := c/4*16 + 4*r + c%4; tiles[at] != dst[c] || marks[c/4]>>(4*r+c%4)&1 != uint16(found[c/64]>>(c%64)&1) {
							t.Fatalf("width %d: row %d and column %d are at %g in a tile, else at %g; near %b and %b", width, i, c, tiles[at], dst[c], marks[c/4], found[c/64])
						}
					}
				}
				ProjectRows(dst, x32, row32, along32, cols)
				for c, j := range cols {
					want := 0.
					for l, v := range row64 {
						want += (x64[int(j)*width+l] - v) * along64[l]
					}
					if math.Abs(float64(dst[c])-want) > 1e-4*math.Sqrt(float64(width)) {
						t.Fatalf("width %d: row %d is at %g, want %g", width, j, dst[c], want)
					}
				}
			}
		}
	})
}

func BenchmarkNearRows(b *testing.B) {
	const width, n = 64, 64
	x := make([]float32, 1000*width)
	cols, limits, dst, found := make([]int32, n), make([]float32, n), make([]float32, n), make([]uint64, 1)
	for c := range cols {
		cols[c] = int32(c * 13)
	}
	for range b.N {
		NearRows(dst, found, x, x[:width], cols, -1, limits)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pair")
}

func TestNearBytes(t *testing.T) {
	const rows = 40
	forms(t, func(t *testing.T) {
		for _, width := range []int{32, 64, 96, 800, MaxBytes} {
			s := rng.New(3, rng.Sample)
			x, row := make([]uint8, rows*width), make([]int16, width)
			for i := range x {
				x[i] = uint8(s.IntN(256))
			}
			for l := range row {
				row[l] = int16(255 * s.IntN(2))
			}
			for l := range width { // as far as possible
				x[5*width+l] = uint8(255 - row[l])
			}
			for _, n := range []int{0, 16, 64, 80, 208} {
				cols := make([]int32, n)
				for c := range cols {
					cols[c] = int32(s.IntN(rows))
				}
				dst, found := make([]float32, n), make([]uint64, (n+63)/64)
				limit := float32(width * 255 * 100)
				NearBytes(dst, found, x, row, cols, limit)
				for c, j := range cols {
					want := 0
					for l, v := range row {
						d := int(v) - int(x[int(j)*width+l])
						want += d * d
					}
					if dst[c] != float32(want) {
						t.Fatalf("width %d: the distance of row %d is %g, want %d", width, j, dst[c], want)
					}
					if got, near := found[c/64]>>(c%64)&1 == 1, dst[c] <= limit; got != near {
						t.Fatalf("width %d: column %d at %g is near: %v", width, c, dst[c], got)
					}
				}
			}
		}
	})
}

func BenchmarkNearBytes(b *testing.B) {
	const width, n = 64, 64
	x, row := make([]uint8, 1000*width), make([]int16, width)
	cols, dst, found := make([]int32, n), make([]float32, n), make([]uint64, 1)
	for c := range cols {
		cols[c] = int32(c * 13)
	}
	for range b.N {
		NearBytes(dst, found, x, row, cols, -1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pair")
}

// SquaredDistances gives the bits of four sums in Go, for all widths.
func TestSquaredDistances(t *testing.T) {
	s := rng.New(3, rng.Sample)
	for width := range 40 {
		const n = 9
		x, row := make([]float32, n*width), make([]float32, width)
		for i := range x {
			x[i] = float32(s.Normal())
		}
		for l := range row {
			row[l] = float32(s.Normal() * 1e3)
		}
		rows, dst := []int32{8, 0, 3, 3, 7}, make([]float64, 6)
		forms(t, func(t *testing.T) {
			dst[5] = 42
			if got, want := SquaredDistances(dst, x, row, rows), vectors() && current != NEON; got != want || !got {
				if got != want {
					t.Errorf("%d columns: done: %v", width, got)
				}
				return
			}
			for i, r := range rows {
				var sum [4]float64
				for l, v := range row {
					d := float64(v) - float64(x[int(r)*width+l])
					sum[l%4] += float64(d * d)
				}
				if want := (sum[0] + sum[1]) + (sum[2] + sum[3]); dst[i] != want {
					t.Errorf("%d columns: row %d: %v, want %v", width, r, dst[i], want)
				}
			}
			if dst[5] != 42 {
				t.Error("writes beyond the rows")
			}
		})
	}
}
