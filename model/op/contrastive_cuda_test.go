//go:build cu

package op_test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/model/op"
)

// A lossCase is the input of a loss.
type lossCase struct {
	features  []float64
	d, b      int
	negatives []int32 // [m, b]
	runs      []int32
	theta     float64
	options   op.ContrastiveOptions
}

// graph returns the values of the inputs, and the loss with its gradients for an
// incoming gradient of −3.
func (p *lossCase) graph(t testing.TB, g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
	t.Helper()
	single := make([]float32, len(p.features))
	for i, v := range p.features {
		single[i] = float32(v)
	}
	array := func(a *op.Array, err error) *op.Array {
		must(t, err)
		return a
	}
	features := array(op.ArrayOf(single, len(single)/p.d, p.d))
	negatives := array(op.ArrayOf(p.negatives, len(p.negatives)/p.b, p.b))
	runs := array(op.ArrayOf(p.runs, len(p.runs)))
	theta := array(op.ArrayOf([]float32{float32(p.theta)}))
	f, n, r := nodeOf(g, features, "features"), nodeOf(g, negatives, "negatives"), nodeOf(g, runs, "runs")
	th := gorgonia.NewScalar(g, tensor.Float32, gorgonia.WithName("theta"))
	loss := gorgonia.Must(op.Contrastive(f, n, r, th, p.options))
	incoming := g.AddNode(gorgonia.NewConstant(float32(-3)))
	grads := weighted(t, loss, incoming, f, th)
	return map[*gorgonia.Node]*op.Array{f: features, n: negatives, r: runs, th: theta}, append(gorgonia.Nodes{loss}, grads...)
}

// unit makes rows of length 1.
func unit(x []float64, d int) []float64 {
	for i := 0; i < len(x); i += d {
		sum := 0.
		for _, v := range x[i : i+d] {
			sum += v * v
		}
		for k := range d {
			x[i+k] /= math.Sqrt(sum)
		}
	}
	return x
}

func TestContrastiveMatchesGoldenOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	files, err := filepath.Glob("testdata/loss_*.safetensors")
	if err != nil || len(files) != 22 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".safetensors"), func(t *testing.T) {
			g := readGolden(t, path)
			o := op.ContrastiveOptions{Loss: g.loss, Metric: g.metric, Temperature: g.temperature, Clamp: g.clamp}
			features := g.features
			if g.metric == op.Cosine {
				features = unit(g.features, g.d)
			}
			p := lossCase{features, g.d, g.b, g.negatives, []int32{0}, g.theta, o}
			got := onDevice(t, d, &p)
			closeTo(t, "loss", got[0], []float64{g.wantLoss}, 1e-4)
			if g.metric == op.Euclidean { // else it is the gradient of the rows before normalisation
				for i := range g.wantGrad {
					g.wantGrad[i] *= -3
				}
				closeTo(t, "gradient", got[1], g.wantGrad, 1e-4)
			}
			if g.loss == op.NC {
				closeTo(t, "gradient of log Z", got[2], []float64{-3 * g.wantGradTheta}, 1e-4)
			}
		})
	}
}

// onDevice returns the loss and its gradients as a device computes them.
func onDevice(t *testing.T, d *device.Device, p *lossCase) (results [3][]float64) {
	t.Helper()
	in, out := p.graph(t, gorgonia.NewGraph())
	for i, a := range computed(t, d, in, out) {
		for _, v := range op.Data[float32](a)[:a.Len()] {
			results[i] = append(results[i], float64(v))
		}
	}
	return results
}

// Every loss, with all kinds of negatives, sizes and widths, against the CPU.
func TestContrastiveOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	random := rng.New(4, rng.Negatives)
	run := func(b, rows, m int) []int32 {
		runs := []int32{int32(m)}
		for range parallel.Pieces(b, op.GroupHeads) {
			runs = append(runs, int32(random.IntN(rows)))
		}
		return runs
	}
	for name, o := range allOptions() {
		for _, tc := range []struct {
			b, rows, d int
			negatives  []int32
			runs       []int32
		}{
			{1, 2, 2, nil, []int32{-1}},
			{1, 5, 3, nil, []int32{0}},
			{7, 14, 1, draws(5, 7, 1), []int32{0}},
			{33, 66, 2, draws(5, 33, 2), []int32{0}},
			{257, 514, 2, draws(3, 257, 3), []int32{0}},
			{9, 20, 3, draws(4, 9, 4), []int32{0}},
			{31, 62, 4, draws(1, 31, 5), []int32{0}},
			{5, 10, 5, draws(6, 5, 6), []int32{0}},
			{6, 12, 130, draws(7, 6, 7), []int32{0}},
			{18, 36, 1, nil, []int32{-1}},
			{33, 66, 2, nil, []int32{-1}},
			{33, 70, 2, make([]int32, 33), []int32{-1}}, // nothing of them is read
			{40, 85, 2, nil, run(40, 85, 50)},
			{90, 180, 3, nil, run(90, 180, 140)},
			{20, 41, 4, nil, run(20, 41, 9)},
			{20, 43, 7, nil, run(20, 43, 9)},
			{33, 66, 33, nil, []int32{-1}},
			{5, 12, 5, nil, []int32{0}},
		} {
			m := len(tc.negatives) / tc.b
			t.Run(fmt.Sprintf("%s/b%d_rows%d_d%d_m%d_runs%d", name, tc.b, tc.rows, tc.d, m, tc.runs[0]), func(t *testing.T) {
				features := normals(tc.rows*tc.d, 5)
				if o.Metric == op.Cosine {
					features = unit(features, tc.d)
				}
				p := lossCase{features, tc.d, tc.b, tc.negatives, tc.runs, -0.3, o}
				onBoth(t, d, 1e-4, func(g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) { return p.graph(t, g) })
			})
		}
	}
}

// Coinciding points, and points so far apart that the clamp binds.
func TestContrastiveAtTheClampsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for name, o := range allOptions() {
		if o.Metric == op.Cosine {
			continue
		}
		for _, clamp := range []float64{0, 1e-4} {
			for _, runs := range [][]int32{{0}, {-1}} {
				t.Run(fmt.Sprintf("%s/clamp%g/%d", name, clamp, runs[0]), func(t *testing.T) {
					o.Clamp = clamp
					const b = 20
					features := normals(4*b, 5)
					for i := range 8 {
						features[4*i] = features[2*i]
						features[4*i+1] = features[2*i+1] + 1e-3*float64(i%2)
					}
					// (The CPU loses digits of InfoNC's gradient where points are
					// much farther away than this.)
					features[60], features[11] = 300, -2000
					p := lossCase{features, 2, b, nil, runs, -0.3, o}
					if runs[0] == 0 {
						p.negatives = draws(9, b, 3)
					}
					onBoth(t, d, 1e-4, func(g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) { return p.graph(t, g) })
				})
			}
		}
	}
}

// A feature that is not finite shows in the loss, whatever row it is in.
func TestContrastiveShowsWhatIsNotFiniteOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	rows := []int{3, 25, 40} // a head, a tail, another
	if testing.Short() {
		rows = rows[2:]
	}
	for name, o := range allOptions() {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			for _, tc := range []struct{ d, runs int }{{2, 0}, {2, -1}, {6, 0}, {6, -1}} {
				for _, row := range rows {
					const b = 20
					features := normals((2*b+1)*tc.d, 5)
					if o.Metric == op.Cosine {
						features = unit(features, tc.d)
					}
					features[row*tc.d+1] = bad
					p := lossCase{features, tc.d, b, nil, []int32{int32(tc.runs)}, -0.3, o}
					if tc.runs == 0 {
						p.negatives = draws(3, b, 3)
						p.negatives[7] = 2 * b
					}
					if got := onDevice(t, d, &p)[0][0]; !math.IsNaN(got) && !math.IsInf(got, 0) {
						t.Errorf("%s d=%d runs of %d: with %g in row %d the loss is %g", name, tc.d, tc.runs, bad, row, got)
					}
				}
			}
			if o.Metric == op.Cosine {
				// No head's negative, but part of the matrix products.
				features := unit(normals(41*6, 5), 6)
				features[40*6] = bad
				p := lossCase{features, 6, 20, nil, []int32{2, 0, 0}, -0.3, o}
				if got := onDevice(t, d, &p)[0][0]; !math.IsNaN(got) && !math.IsInf(got, 0) {
					t.Errorf("%s: with %g in a row that is no negative the loss is %g", name, bad, got)
				}
			}
		}
	}
}

// A loss has the same bits in any order of threads, and when it is replayed.
func TestContrastiveCanBeCapturedOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, runs := range []int32{0, -1} {
		for _, o := range []op.ContrastiveOptions{{Loss: op.InfoNC, Metric: op.Cosine}, {Loss: op.NC}} {
			p := lossCase{unit(normals(60, 1), 3), 3, 10, nil, []int32{runs}, 0.5, o}
			if runs == 0 {
				p.negatives = draws(4, 10, 2)
			}
			in, out := p.graph(t, gorgonia.NewGraph())
			program := compiled(t, d, in, out...)
			results := func() (all [][]float32) {
				for _, o := range out {
					all = append(all, op.Data[float32](onHost(t, program.Output(o))))
				}
				return all
			}
			must(t, program.Run())
			want := fmt.Sprint(results())
			again, err := d.Capture(program.Run)
			must(t, err)
			must(t, program.Output(out[1]).Zero())
			for _, order := range []uint64{fakecuda.Forwards, fakecuda.Backwards, 2, 3} {
				fakecuda.Order(t, order)
				must(t, again.Run())
				if got := fmt.Sprint(results()); got != want {
					t.Errorf("runs of %d, %v: a captured loss in order %d gives\n%s, not\n%s", runs, o.Loss, order, got, want)
				}
			}
			must(t, again.Close())
			must(t, program.Close())
		}
	}
}
