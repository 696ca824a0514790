//go:build unix

package neighbors

import (
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	"cne/data"
	"cne/data/file"
	"cne/data/pca"
)

var digitsFile = flag.String("digits", "", "1000000 points or more for BenchmarkApproximate…: the points.npy of bench/deformed-mnist -pca 50")

// digits returns n points of digitsFile; with -short, digits of MNIST.
func digits(b testing.TB, n int) *data.Matrix {
	b.Helper()
	if testing.Short() {
		set := need(file.Builtin("mnist10k"))(b)
		set.Points, set.Labels = set.Points.Rows(0, n), nil
		need(set.Scale(b.Context(), data.ScaleUnit))(b)
		components := need(pca.Fit(b.Context(), set.Points, 50))(b)
		return need(components.Transform(b.Context(), set.Points))(b)
	}
	if *digitsFile == "" {
		b.Skip("no points; see -digits")
	}
	return need(file.Read(b.Context(), []string{*digitsFile}, file.Options{}))(b).Points.Rows(0, n)
}

// benchmarked are numbers of points, few with -short.
func benchmarked() []int {
	if testing.Short() {
		return []int{3000}
	}
	return []int{70_000, 200_000, 1_000_000}
}

// BenchmarkApproximateKNN times the approximate search, in processor time, too, since
// that says more on a machine that does other things; and, up to 200 000 points, the
// exact one.
func BenchmarkApproximateKNN(b *testing.B) {
	for _, n := range benchmarked() {
		m := digits(b, n)
		for _, search := range []SearchMethod{Approximate, Exact} {
			if search == Exact && n > 200_000 {
				continue
			}
			b.Run(fmt.Sprintf("n=%d/%v", n, search), func(b *testing.B) {
				var nb *Neighbors
				begun := userTime()
				for range b.N {
					nb = need(KNN(b.Context(), m, 15, Options{Search: search, Seed: 1}))(b)
				}
				b.ReportMetric((userTime()-begun).Seconds()/float64(b.N), "user-s/op")
				b.StopTimer()
				r := need(EstimateRecall(b.Context(), m, nb, 1, Options{}))(b)
				b.ReportMetric(r.Share, "recall")
			})
		}
	}
}

// BenchmarkApproximateSearch times 20 000 queries.
func BenchmarkApproximateSearch(b *testing.B) {
	for _, n := range benchmarked() {
		held := min(20_000, n/2)
		m := digits(b, n)
		base, queries := m.Rows(0, n-held), m.Rows(n-held, n)
		x := need(NewIndex(b.Context(), base, Options{Search: Approximate}))(b)
		for _, k := range []int{15, 100} {
			b.Run(fmt.Sprintf("n=%d/k=%d", n, k), func(b *testing.B) {
				var near *Neighbors
				begun := userTime()
				for range b.N {
					near = need(x.Search(b.Context(), queries, k))(b)
				}
				b.ReportMetric(float64(b.N)*float64(held)/(userTime()-begun).Seconds(), "queries/user-s")
				b.StopTimer()
				few := 500
				nearest := need(Search(b.Context(), base, queries.Rows(0, few), k, Options{Search: Exact}))(b)
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
