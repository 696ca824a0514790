//go:build cu

package train

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model"
	"cne/model/op"
)

// forcesOnDevice returns the forces of points on a device. Each point has edges, in both
// directions, with the next 39. The last point has none.
func forcesOnDevice(t testing.TB, d *device.Device, points []float32) *deviceForces {
	t.Helper()
	n := len(points) / 2
	var heads, tails []int32
	for i := range int32(n - 1) {
		for j := i + 1; j < min(i+40, int32(n-1)); j++ {
			heads, tails = append(heads, i, j), append(tails, j, i)
		}
	}
	m, err := model.NewEmbedding(slices.Clone(points), 2, op.ContrastiveOptions{Loss: op.InfoNC})
	must(t, err)
	table, err := op.NewArray(d, op.Dtype[float32](), n, 2)
	must(t, err)
	must(t, device.Upload(d, table.Pointer(), points))
	s := &settings{model: m, n: n, edges: len(heads), graph: newWholeGraph(n, heads, tails, nil)}
	w, err := newWholeBatch(s, table)
	must(t, err)
	t.Cleanup(func() { w.close(); table.Free() })
	return w.forces.(*deviceForces)
}

func numbersOf(t testing.TB, d *device.Device, at device.Pointer, n int) (x []float32) {
	t.Helper()
	for _, w := range wordsOf(t, d, at, n) {
		x = append(x, math.Float32frombits(w))
	}
	return x
}

func wordsOf(t testing.TB, d *device.Device, at device.Pointer, n int) []uint32 {
	t.Helper()
	x := make([]uint32, n)
	must(t, device.Download(d, x, at))
	return x
}

// The cells have the CPU's points, in the same order.
func TestCellsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, n := range []int{1, 31, 32, 33, 64, 65, 97, 500, 2048, 2049, 5000, 70001} {
		if testing.Short() && n > 10000 {
			continue
		}
		for kind, change := range map[string]func(i int, v float32) float32{
			"normal": func(_ int, v float32) float32 { return v }, "few values": func(_ int, v float32) float32 { return float32(math.Round(float64(v))) },
			"signed zeros": func(i int, _ float32) float32 { return float32(math.Copysign(0, float64(i%3-1))) }, "flat": func(i int, v float32) float32 { return v * float32(i%2) },
		} {
			if n > 10000 && kind != "normal" {
				continue
			}
			points, _ := fieldPoints(n, 3)
			for i, v := range points {
				points[i] = change(i, v)
			}
			f := forcesOnDevice(t, d, points)
			f.divide(f.points)
			want := newField(n, make([]float32, 3*n))
			want.divide(points)
			for i, p := range wordsOf(t, d, f.order, n) {
				if p != want.order[i] {
					t.Fatalf("%d points, %s: place %d has point %d, want %d", n, kind, i, p, want.order[i])
				}
			}
		}
	}
}

// Forces are the CPU's, up to the rounding of sums: the same far cells count as one mass.
func TestForcesOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, tc := range append(fields, struct {
		n         int
		size, tol float64
	}{70000, 100, 0}) {
		before, points := fieldPoints(tc.n, tc.size)
		if testing.Short() && tc.n > 10000 {
			continue
		}
		f := forcesOnDevice(t, d, before)
		f.divide(f.points)
		must(t, device.Upload(d, f.points.Pointer(), points))
		extent := f.summarize()
		attraction, z := f.evaluate()
		repelled, attracted := numbersOf(t, d, f.repelled, 2*tc.n), numbersOf(t, d, f.attracted, 2*tc.n)
		if tc.tol > 0 {
			checkForces(t, tc.size, tc.tol, points, repelled, z)
		}
		there, err := op.ArrayOf(slices.Clone(before), tc.n, 2)
		must(t, err)
		host := *f.wholeBatch
		host.points = there
		h := newHostForces(&host)
		h.arrange(there)
		copy(op.Data[float32](there), points)
		wantExtent := h.summarize()
		wantAttraction, wantZ := h.evaluate()
		// On the CPU leaves look for sources together, so that a few more cells are opened.
		for what, x := range map[string][3]float64{"extent": {extent, wantExtent, 1e-5}, "attraction": {attraction, wantAttraction, 1e-5},
			"Σ q": {z, wantZ, 2e-3}} {
			if !(math.Abs(x[0]-x[1]) <= x[2]*math.Abs(x[1])+1e-7*float64(tc.n)) {
				t.Errorf("%d points of size %g: %s is %g, want %g", tc.n, tc.size, what, x[0], x[1])
			}
		}
		for what, x := range map[string][2][]float32{"repulsion": {repelled, h.repelled}, "attraction": {attracted, h.attracted}} {
			var off, all float64
			for i, got := range x[0] {
				v := x[1][2*int(h.place[i/2])+i%2]
				off += math.Pow(float64(got-v), 2)
				all += float64(v) * float64(v)
			}
			if !(off <= 1e-8*all) {
				t.Errorf("%d points of size %g: %s is off by %g of %g", tc.n, tc.size, what, math.Sqrt(off), math.Sqrt(all))
			}
		}
	}
}

// Points that are all equal are one mass, and positions that are not finite end in a loss that
// is not.
func TestForcesOfOddPointsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	const n = 3000
	points := slices.Repeat([]float32{0.1, -3.7}, n)
	for _, tc := range []struct {
		x    float32
		want float64
	}{{0.1, n * (n - 1)}, {float32(math.NaN()), math.NaN()}, {float32(math.Inf(1)), math.NaN()}} {
		points[2*1000] = tc.x
		f := forcesOnDevice(t, d, points)
		f.divide(f.points)
		_, z := f.evaluate()
		if forces := numbersOf(t, d, f.repelled, 2*n); fmt.Sprint(z) != fmt.Sprint(tc.want) || !math.IsNaN(tc.want) && slices.Max(forces) != 0 {
			t.Errorf("with a coordinate %g Σ q is %g, want %g, or forces are not 0", tc.x, z, tc.want)
		}
	}
}

// BenchmarkStepOfAllPairsOnDevice times a step.
func BenchmarkStepOfAllPairsOnDevice(b *testing.B) {
	for _, n := range []int{70000, 1000000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if testing.Short() {
				n = 500
			}
			d := fakecuda.Open(b)
			d.Unpooled = false
			points, _ := fieldPoints(n, math.Sqrt(float64(n))/8)
			f := forcesOnDevice(b, d, points)
			f.wholeBatch.divide()
			for b.Loop() {
				f.follow()
				f.evaluate()
				f.move(stride{lr: 1, clip: 4, momentum: 0.95, nesterov: true}, 1e-9)
			}
		})
	}
}
