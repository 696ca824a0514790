package cne_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne"
	"cne/data"
)

// sparsePoints draws points of 300 values in four classes with columns of their own.
func sparsePoints(t *testing.T, n int) *data.Matrix {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	indptr, indices, values := []int{0}, []int{}, []float32{}
	for i := range n {
		for range 12 {
			indices = append(indices, i%4*75+r.IntN(18*(1+i%4)))
			values = append(values, float32(1+r.IntN(255)))
		}
		indptr = append(indptr, len(values))
	}
	m, err := data.FromCSR(n, 300, indptr, indices, values)
	must(t, err)
	return m
}

// densePoints draws the same points, and returns them as dense ones, too.
func densePoints(t *testing.T, n int) (sparse, dense *data.Matrix) {
	t.Helper()
	sparse = sparsePoints(t, n)
	dense, err := sparse.Dense()
	must(t, err)
	return sparse, dense
}

// Sparse points have nearly the same neighbours as dense points; the components differ by
// the error of the randomised method. The embedding does not depend on GOMAXPROCS.
func TestSparsePointsHaveTheirNeighbors(t *testing.T) {
	m, dense := densePoints(t, 400)
	for _, metric := range []data.Metric{data.Euclidean, data.Cosine} {
		o := cne.Options{Components: new(3), Epochs: 2, Seed: 3, GraphMetric: metric}
		sparse, full := embed(t, m, o), embed(t, dense, o)
		a, b := sparse.Neighborhood, full.Neighborhood
		differ := 0
		for i := range m.N {
			k := a.Nearest.K
			for _, j := range a.Nearest.Index[i*k : (i+1)*k] {
				if !slices.Contains(b.Nearest.Index[i*k:(i+1)*k], j) {
					differ++
				}
			}
		}
		if share := float64(differ) / float64(len(a.Nearest.Index)); share > 0.02 {
			t.Errorf("%s: %v of the neighbours are others", metric, share)
		}
		for k, v := range a.PCA.Variance {
			if math.Abs(v/b.PCA.Variance[k]-1) > 1e-3 {
				t.Errorf("%s: variance %d is %v, and of dense points %v", metric, k, v, b.PCA.Variance[k])
			}
		}
		before := runtime.GOMAXPROCS(1)
		alone := embed(t, m, o)
		runtime.GOMAXPROCS(before)
		same(t, string(metric)+": the embedding has other bits on one core", alone.Positions.X, sparse.Positions.X)

		// New points, sparse or dense, get the same places.
		same(t, string(metric)+": sparse and dense points are placed at different places", project(t, sparse, m.Rows(5, 25)).X, project(t, sparse, dense.Rows(5, 25)).X)
	}
}

// A network that sees the points learns from sparse ones what it learns from the same as
// dense ones, to the last bit, given the same graph: its first layer skips zeros in both.
func TestNetworkOnSparsePoints(t *testing.T) {
	m, dense := densePoints(t, 200)
	o := cne.Options{Components: new(3), Epochs: 2, Hidden: []int{10}}
	e := embed(t, m, o)
	o.Graph = e.Neighborhood.Graph
	same(t, "the embeddings differ", e.Positions.X, embed(t, dense, o).Positions.X)
	if e.Neighborhood.Scaled.CSR == nil {
		t.Error("the points have become dense")
	}
	same(t, "training points are placed elsewhere", project(t, e, m).X, e.Positions.X)
}

// Without principal components sparse points have the neighbours of the same points as dense
// ones, and the same embedding from the same start. They become dense only where they must.
func TestSparsePointsWithoutComponents(t *testing.T) {
	m, dense := densePoints(t, 100)
	for _, o := range []cne.Options{
		{Components: new(0)},
		{Components: new(0), GraphMetric: data.Cosine, Scaling: data.ScaleNone},
		{Components: new(0), GraphMetric: data.Manhattan},
		{Components: new(cne.AutoComponents), GraphMetric: data.Jaccard},
		{GraphMetric: data.Hamming, Init: cne.InitDiffusion},
		{Components: new(0), Init: cne.InitMultilevel},
		{Components: new(0), Hidden: []int{5}, GraphMetric: data.Cosine},
		{Components: new(0), Scaling: data.ScaleStandard},
		{Components: new(0), GraphMetric: data.Correlation},
		{Components: new(0), Hidden: []int{5}, Float64: true},
	} {
		o.Epochs = 1
		if o.Scaling == "" {
			o.Scaling = data.ScaleUnit
		}
		name := fmt.Sprintf("%s, %s, %v, float64 %v", o.GraphMetric, o.Scaling, o.Hidden, o.Float64)
		sparse, full := embed(t, m, o), embed(t, dense, o)
		if dense := o.Scaling == data.ScaleStandard || o.GraphMetric == data.Correlation || o.Float64; (sparse.Neighborhood.Reduced.CSR == nil) != dense {
			t.Errorf("%s: the points have become dense or not", name)
		}
		if !reflect.DeepEqual(sparse.Neighborhood.Nearest, full.Neighborhood.Nearest) {
			t.Errorf("%s: the neighbours differ", name)
		}
		o.Init = cne.InitRandom
		sparse, full = embed(t, m, o), embed(t, dense, o)
		same(t, name+": the embeddings differ", sparse.Positions.X, full.Positions.X)

		// New points, sparse or dense, get the same places, also after a save.
		some := dense.Rows(3, 20).Clone()
		some.X[5] += 3
		want, path := project(t, full, some), filepath.Join(t.TempDir(), "e")
		same(t, name+": dense new points are elsewhere", project(t, sparse, some).X, want.X)
		must(t, sparse.Save(path))
		loaded, err := cne.Load(path)
		must(t, err)
		same(t, name+": sparse new points are elsewhere", project(t, loaded, some.Sparse()).X, want.X)
	}
}

// Options that sparse points do not allow are refused if components are taken.
func TestSparsePointsAreRefused(t *testing.T) {
	m := sparsePoints(t, 100)
	for name, spoil := range map[string]func(o *cne.Options){
		"scaling": func(o *cne.Options) { o.Scaling = data.ScaleStandard },
		"metric":  func(o *cne.Options) { o.GraphMetric = data.Correlation },
		"float64": func(o *cne.Options) { o.Hidden, o.Float64 = []int{4}, true },
	} {
		o := cne.Options{Components: new(3), Epochs: 1}
		spoil(&o)
		if _, err := cne.Embed(t.Context(), m, o); !errors.Is(err, cne.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wide, err := data.FromCSR(40, 70000, make([]int, 41), []int{}, []float32{})
	must(t, err)
	wide.CSR.Start[40], wide.CSR.Column, wide.CSR.Value = 1, []int32{69999}, []float32{1}
	if _, err := cne.Embed(t.Context(), wide, cne.Options{Components: new(1), Epochs: 1, Hidden: []int{4}}); !errors.Is(err, cne.ErrOption) {
		t.Errorf("wide points for a network: %v", err)
	}
}

// Automatic components are 100 of sparse points, as many as asked for otherwise, and none of
// the same points if they are dense and few. Their share of the variance is no reason for a
// warning.
func TestComponentsOfSparsePoints(t *testing.T) {
	for _, metric := range []data.Metric{data.Euclidean, data.Cosine} {
		m, dense := densePoints(t, 200)
		var log bytes.Buffer
		o := cne.Options{Components: new(cne.AutoComponents), GraphMetric: metric, Log: slog.New(slog.NewTextHandler(&log, nil))}
		prepare := func(m *data.Matrix) *cne.Neighborhood {
			h, err := cne.Prepare(t.Context(), &data.Dataset{Points: m}, o)
			must(t, err)
			return h
		}
		if h := prepare(m.Clone()); h.PCA == nil || h.PCA.K != cne.SparseComponents {
			t.Errorf("%s: sparse points have the components %v", metric, h.PCA)
		}
		if h := prepare(dense); h.PCA != nil {
			t.Errorf("%s: dense points have %d components", metric, h.PCA.K)
		}
		o.Components = new(2)
		if h := prepare(m); h.PCA.K != 2 {
			t.Errorf("%s: %d components, want 2", metric, h.PCA.K)
		}
		if text := log.String(); !strings.Contains(text, "the 2 principal components hold") || strings.Contains(text, "WARN") {
			t.Errorf("%s: the log is\n%s", metric, text)
		}
	}
	o := cne.Options{Components: new(cne.AutoComponents)}
	if o.ChooseComponents(false, true); *o.Components != cne.DefaultComponents {
		t.Errorf("counts have %d components", *o.Components)
	}
}

// The estimate for sparse points follows their values, not their width.
func TestMemoryOfSparsePoints(t *testing.T) {
	size := data.SizeOf(50_000, 20_000)
	size.Nonzeros = 25_000_000
	o := cne.Options{}
	if e := o.Memory(size); e.Live < 8*25_000_000 || e.Live > 400<<20 {
		t.Errorf("%+v", e)
	}
	o.Components = new(0)
	if e := o.Memory(size); e.Live < 16*25_000_000 || e.Live > 500<<20 {
		t.Errorf("without components: %+v", e)
	}
	o.Scaling = data.ScaleStandard
	if e := o.Memory(size); e.Live < 4*50_000*20_000+8*25_000_000 {
		t.Errorf("made dense: %+v", e)
	}
}
