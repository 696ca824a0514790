package cne_test

import (
	"fmt"
	"testing"

	"cne"
	"cne/data"
	"cne/internal/rng"
)

// BenchmarkProjectTable places one and many points without a network, among n training points of the given width.
func BenchmarkProjectTable(b *testing.B) {
	for _, size := range [][2]int{{3000, 784}, {20_000, 50}, {70_000, 50}} {
		n, d := size[0], size[1]
		s := rng.New(1, rng.Sample)
		m := data.NewMatrix(n, d)
		for i := range m.X {
			m.X[i] = float32(s.Normal() + float64(3*(i/d%10*(i%d)%7)))
		}
		e, err := cne.Embed(b.Context(), m, cne.Options{Epochs: 1, Init: cne.InitRandom})
		must(b, err)
		x := m.Clone()
		for i := range x.X {
			x.X[i] += float32(0.3 * s.Normal())
		}
		for _, k := range []int{1, 1000} {
			some := x.Rows(5, 5+k)
			_, err := e.Project(b.Context(), some)
			must(b, err)
			b.Run(fmt.Sprintf("n=%d/d=%d/points=%d", n, d, k), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.Project(b.Context(), some); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
