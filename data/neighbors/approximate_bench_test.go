//go:build unix

package neighbors

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"syscall"
	"testing"
	"time"

	"cne/data"
	"cne/internal/parallel"
	"cne/internal/rng"
)

// digits returns n digits of MNIST, each of the images turned, stretched, moved
// and bent at random, as 50 principal components of such images.
func digits(b testing.TB, n int) *data.Matrix {
	b.Helper()
	set, err := data.Builtin("mnist10k")
	if err != nil {
		b.Fatal(err)
	}
	deform := func(dst *data.Matrix, first int) {
		parallel.For(dst.N, 64, func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				s := rng.New(7, rng.Views, uint64(first+i))
				bend(dst.Row(i), set.Points.Row(s.IntN(set.Points.N)), &s)
			}
		})
	}
	const block = 20000
	images := data.NewMatrix(block, set.Points.D)
	deform(images, n)
	pca, err := data.FitPCA(b.Context(), images, 50, nil)
	if err != nil {
		b.Fatal(err)
	}
	m := data.NewMatrix(n, 50)
	for lo := 0; lo < n; lo += block {
		part := images.Rows(0, min(block, n-lo))
		deform(part, lo)
		reduced, err := pca.Transform(b.Context(), part, nil)
		if err != nil {
			b.Fatal(err)
		}
		copy(m.X[lo*50:], reduced.X)
	}
	return m
}

// bend writes a deformed image of 28×28 pixels to dst, with values up to 1.
func bend(dst, image []float32, s *rng.Stream) {
	const side, middle = 28, 13.5
	turn := 0.25 * s.Normal()
	sin, cos := math.Sincos(turn)
	wide, high := math.Exp(0.1*s.Normal()), math.Exp(0.1*s.Normal())
	right, down := s.Normal(), s.Normal()
	var wave [8]float64
	for i := range wave {
		wave[i] = 0.6 * s.Normal()
	}
	for y := range side {
		for x := range side {
			u, v := float64(x)-middle, float64(y)-middle
			a, b := (cos*u+sin*v)*wide+right, (cos*v-sin*u)*high+down
			a += wave[0]*math.Sin(u/4) + wave[1]*math.Cos(v/4) + wave[2]*math.Sin(v/3) + wave[3]*math.Cos(u/5)
			b += wave[4]*math.Sin(v/4) + wave[5]*math.Cos(u/4) + wave[6]*math.Sin(u/3) + wave[7]*math.Cos(v/5)
			a, b = a+middle, b+middle
			fa, fb := math.Floor(a), math.Floor(b)
			at := func(x, y int) float64 {
				if x < 0 || y < 0 || x >= side || y >= side {
					return 0
				}
				return float64(image[y*side+x])
			}
			i, j := int(fa), int(fb)
			p, q := a-fa, b-fb
			value := (1-q)*((1-p)*at(i, j)+p*at(i+1, j)) + q*((1-p)*at(i, j+1)+p*at(i+1, j+1))
			dst[y*side+x] = float32(value / 255)
		}
	}
}

// benchmarked are numbers of points, few with -short.
func benchmarked() []int {
	if testing.Short() {
		return []int{3000}
	}
	return []int{70_000, 200_000, 1_000_000}
}

var digitsFile = flag.String("digits", "", "where BenchmarkApproximateKNN leaves the last points as an array (.npy), for other programs")

// BenchmarkApproximateKNN times the approximate search, in processor time, too, since
// that says more on a machine that does other things; and, up to 200 000 points, the
// exact one.
func BenchmarkApproximateKNN(b *testing.B) {
	for _, n := range benchmarked() {
		m := digits(b, n)
		if *digitsFile != "" {
			var array bytes.Buffer
			if err := data.WriteNPY(&array, m); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(*digitsFile, array.Bytes(), 0o666); err != nil {
				b.Fatal(err)
			}
		}
		for _, search := range []SearchMethod{Approximate, Exact} {
			if search == Exact && n > 200_000 {
				continue
			}
			b.Run(fmt.Sprintf("n=%d/%v", n, search), func(b *testing.B) {
				var nb *Neighbors
				begun := userTime()
				for range b.N {
					var err error
					if nb, err = KNN(b.Context(), m, 15, Options{Search: search, Seed: 1}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((userTime()-begun).Seconds()/float64(b.N), "user-s/op")
				b.StopTimer()
				r, err := EstimateRecall(b.Context(), m, nb, 1, Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(r.Share, "recall")
			})
		}
	}
}

// BenchmarkApproximateSearch times 20 000 queries beside the others.
func BenchmarkApproximateSearch(b *testing.B) {
	for _, n := range benchmarked() {
		held := min(20_000, n/2)
		m := digits(b, n)
		base, queries := m.Rows(0, n-held), m.Rows(n-held, n)
		x, err := NewIndex(b.Context(), base, Options{Search: Approximate})
		if err != nil {
			b.Fatal(err)
		}
		for _, k := range []int{15, 100} {
			b.Run(fmt.Sprintf("n=%d/k=%d", n, k), func(b *testing.B) {
				var near *Neighbors
				begun := userTime()
				for range b.N {
					if near, err = x.Search(b.Context(), queries, k); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*float64(held)/(userTime()-begun).Seconds(), "queries/user-s")
				b.StopTimer()
				few := 500
				nearest, err := Search(b.Context(), base, queries.Rows(0, few), k, Options{Search: Exact})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(recall(&Neighbors{N: few, K: k, Index: near.Index[:few*k], Dist2: near.Dist2[:few*k]}, nearest), "recall")
			})
		}
	}
}

// userTime is the processor time of the process so far.
func userTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano())
}
