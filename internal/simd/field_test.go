package simd

import (
	"fmt"
	"math"
	"slices"
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
		want := [3 * FieldTargets]float64{7} // a sum before
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
				got := [3 * FieldTargets]float32{7}
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

func TestAttract(t *testing.T) {
	const n = 50
	points, _ := draw(2*n, 3, (*rng.Stream).Normal)
	points[4], points[5] = points[6], points[7] // an edge of no length
	points[8] = 1e6
	for _, count := range lengths {
		weights, _ := draw(count, 4, (*rng.Stream).Float64)
		edges, want, loss := make([]uint64, count), make([][2]float64, count), 0.
		for k := range edges {
			head, tail := k%n, (2+7*k)%n
			if k == 3 {
				head, tail = 2, 3
			}
			edges[k] = uint64(tail)<<32 | uint64(head)
			dx, dy := float64(points[2*head])-float64(points[2*tail]), float64(points[2*head+1])-float64(points[2*tail+1])
			w, u := float64(weights[k]), 1+dx*dx+dy*dy
			want[k] = [2]float64{w / u * dx, w / u * dy}
			loss += w * math.Log(u)
		}
		var first []float32
		forms(t, func(t *testing.T) {
			got := make([]float32, 2*count+1)
			got[2*count] = 7 // what follows is not written to
			gotLoss := Attract(got[:count], got[count:], points, edges, weights)
			compareScalar(t, fmt.Sprint("loss of ", count), gotLoss, loss, 0)
			for k, w := range want {
				for c := range w {
					if v := float64(got[c*count+k]); math.Abs(v-w[c]) > 1e-5*math.Abs(w[c]) {
						t.Fatalf("number %d of edge %d of %d is %g, want %g", c, k, count, v, w[c])
					}
				}
			}
			if got[2*count] != 7 {
				t.Error("more is written than there are edges")
			}
			switch {
			case current == AVX2:
				first = got
			case current == AVX512 && !slices.Equal(first, got):
				t.Error("AVX-512 has other bits than AVX2")
			}
		})
	}
}

func BenchmarkAttract(b *testing.B) {
	const n, count = 1 << 20, 1 << 16
	points, _ := draw(2*n, 1, (*rng.Stream).Normal)
	weights, _ := draw(count, 2, (*rng.Stream).Float64)
	s, edges := rng.New(1, rng.Sample), make([]uint64, count)
	for k := range edges {
		edges[k] = uint64(s.IntN(n))<<32 | uint64(k)
	}
	results := make([]float32, 2*count)
	for b.Loop() {
		Attract(results[:count], results[count:], points, edges, weights)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/count, "ns/edge")
}
