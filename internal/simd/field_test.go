package simd

import (
	"fmt"
	"math"
	"testing"

	"cne/internal/rng"
)

func TestField(t *testing.T) {
	var targets [2 * FieldTargets]float32
	x, _ := draw(len(targets), 1, (*rng.Stream).Normal)
	copy(targets[:], x)
	targets[3], targets[FieldTargets+3] = 1e5, -1e5
	for _, n := range []int{0, 1, 2, 100} {
		sources, _ := draw(3*n, 2, (*rng.Stream).Normal)
		if n > 1 { // a source at a target
			sources[3], sources[4] = targets[5], targets[FieldTargets+5]
		}
		var want [3 * FieldTargets]float64
		for i := range FieldTargets {
			for s := 0; s < len(sources); s += 3 {
				dx, dy := float64(targets[i])-float64(sources[s]), float64(targets[FieldTargets+i])-float64(sources[s+1])
				q, m := 1/(1+dx*dx+dy*dy), float64(sources[s+2])
				want[i] += m * q
				want[FieldTargets+i] += m * q * q * dx
				want[2*FieldTargets+i] += m * q * q * dy
			}
		}
		var first *[3 * FieldTargets]float32
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			forms(t, func(t *testing.T) {
				var got [3 * FieldTargets]float32
				got[0] = 7 // which is overwritten
				Field(&got, &targets, sources)
				for i, w := range want {
					if math.Abs(float64(got[i])-w) > 1e-4*(1e-3+math.Abs(w)) {
						t.Fatalf("sum %d is %g, want %g", i, got[i], w)
					}
				}
				if current == Portable {
					return
				}
				if first == nil {
					first = &got
				} else if got != *first {
					t.Error("AVX2 has other bits than AVX-512")
				}
			})
		})
	}
}

func BenchmarkField(b *testing.B) {
	var sums [3 * FieldTargets]float32
	var targets [2 * FieldTargets]float32
	x, _ := draw(len(targets), 1, (*rng.Stream).Normal)
	copy(targets[:], x)
	sources, _ := draw(3*2000, 2, (*rng.Stream).Normal)
	for b.Loop() {
		Field(&sums, &targets, sources)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000/FieldTargets, "ns/pair")
}
