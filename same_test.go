package cne_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"cne"
	"cne/data"
	"cne/data/images"
	"cne/data/neighbors"
	"cne/internal/rng"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
	"cne/train/quality"
)

var updateSums = flag.Bool("update-sums", false, "write testdata/sums.txt anew")

// clusters returns points of three classes on curved sheets, made by exact operations only.
func clusters(n, d int) *data.Matrix {
	s := rng.New(7, rng.Sample)
	m := data.NewMatrix(n, d)
	for i := range n {
		u, v := float32(s.Float64()), float32(s.Float64())
		for j, row := 0, m.Row(i); j < d; j++ {
			row[j] = float32(3*((i%3*7+j)%5)) + float32(float32(1+j%4)*u) + float32(float32(j%3)*float32(v*v)) + float32(s.IntN(64))/512
		}
	}
	return m
}

var threeSheets = clusters(400, 60)

// configurations are runs of the parts of the program that decide results.
var configurations = []struct {
	name    string
	options cne.Options
	points  *data.Matrix
}{
	{"neg-tsne-5", cne.Options{}, threeSheets},
	{"nc-tsne-5", cne.Options{Loss: op.NC}, threeSheets},
	{"infonc-tsne-5-weighted", cne.Options{Loss: op.InfoNC, SampleEdges: true, Schedule: train.Cosine}, threeSheets},
	{"umap-5", cne.Options{Loss: op.UMAP, Momentum: 0.5}, threeSheets},
	{"nc-tsne-5-diffusion", cne.Options{Loss: op.NC, Init: cne.InitDiffusion}, threeSheets},
	{"neg-tsne-500-approximate", cne.Options{Negatives: 500, Search: neighbors.Approximate, Init: cne.InitMultilevel}, threeSheets},
	{"umap-full", cne.Options{Loss: op.UMAP, Negatives: train.Full}, threeSheets},
	{"infonc-tsne-full-3d", cne.Options{Loss: op.InfoNC, Negatives: train.Full, Dim: 3}, threeSheets},
	{"infonc-tsne-all-pairs", cne.Options{Loss: op.InfoNC, Negatives: train.All, LR: 4}, threeSheets},
	{"neg-tsne-full-8d", cne.Options{Negatives: train.Full, Dim: 8, BatchSize: 256}, threeSheets},
	{"network-neg-tsne-5", cne.Options{Hidden: []int{40, 30}, Scaling: data.ScaleStandard}, threeSheets},
	{"network-nc-tsne-full", cne.Options{Hidden: []int{40}, Loss: op.NC, Negatives: train.Full, OnComponents: true}, threeSheets},
	{"wide", cne.Options{}, clusters(320, 600)},
	{"many-columns", cne.Options{}, clusters(640, 520)},
	{"pixels", cne.Options{}, clustersOfBytes(640, 100)},
	{"sparse-cosine", cne.Options{GraphMetric: data.Cosine, Hidden: []int{30}}, sparse(300, 80)},
}

// clustersOfBytes returns clusters with values of bytes, divided by 255.
func clustersOfBytes(n, d int) *data.Matrix {
	m := clusters(n, d)
	for i, v := range m.X {
		m.X[i] = float32(int(14*v)) / 255
	}
	return m
}

// sparse returns clusters without their smaller values.
func sparse(n, d int) *data.Matrix {
	var start, columns []int
	var values []float32
	m := clusters(n, d)
	for i := range n {
		start = append(start, len(values))
		for j, v := range m.Row(i) {
			if v > 7 {
				columns, values = append(columns, j), append(values, v)
			}
		}
	}
	s, err := data.FromCSR(n, d, append(start, len(values)), columns, values)
	if err != nil {
		panic(err)
	}
	return s
}

// TestSameBytes compares SHA-256 sums of results with testdata/sums.txt. The sums must not
// depend on the processor. GODEBUG=cpu.avx512f=off and cpu.avx2=off choose other instruction
// sets on amd64, the build tag noasm plain Go. CNE_TEST_SET, if set, names the set that must
// be in use.
func TestSameBytes(t *testing.T) {
	if want := os.Getenv("CNE_TEST_SET"); want != "" && want != simd.Best().String() {
		t.Fatalf("the instruction set in use is %s, want %s", simd.Best(), want)
	}
	const file = "testdata/sums.txt"
	kept := map[string]string{}
	text, err := os.ReadFile(file)
	if err != nil && !*updateSums {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		kept[name] = sum
	}
	var made strings.Builder
	check := func(name string, run func(t *testing.T, to io.Writer)) {
		t.Run(name, func(t *testing.T) {
			h := sha256.New()
			run(t, h)
			sum := fmt.Sprintf("%x", h.Sum(nil))
			fmt.Fprintf(&made, "%s  %s\n", sum, name)
			if sum != kept[name] && !*updateSums {
				t.Errorf("the results have the SHA-256 %s, want %s", sum, kept[name])
			}
		})
	}
	for _, c := range configurations {
		check(c.name, func(t *testing.T, to io.Writer) { embedInto(t, to, c.options, c.points) })
	}
	check("simclr", pretrainInto)
	check("landmarks", learnInto)
	if *updateSums {
		if err := os.WriteFile(file, []byte(made.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// embedInto writes an embedding, its losses and figures, and positions of new points.
func embedInto(t *testing.T, to io.Writer, o cne.Options, points *data.Matrix) {
	n, d := points.Dims()
	ctx := context.Background()
	o.Epochs = 6
	o.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error { return binary.Write(to, binary.LittleEndian, s.Loss) })}
	e, err := cne.Embed(ctx, points, o)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := e.Project(ctx, clusters(n+30, d).Rows(n, n+30))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*data.Matrix{e.Positions, fresh} {
		n, _ := m.Dims()
		for i := range n {
			if err := binary.Write(to, binary.LittleEndian, m.Row(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	dense, err := points.Dense()
	if err != nil {
		t.Fatal(err)
	}
	f, err := quality.Measure(ctx, dense, e.Positions, quality.Options{Graph: e.Neighborhood.Graph})
	if err != nil {
		t.Fatal(err)
	}
	_, width := e.Positions.Dims()
	scale, disparity, err := quality.Align(e.Positions, clusters(n, width), false)
	if err != nil {
		t.Fatal(err)
	}
	classes := make([]int32, n)
	for i := range classes {
		classes[i] = int32(i % 3)
	}
	l, err := simclr.FitLogistic(ctx, e.Positions, classes, nil, 3, simclr.LogisticOptions{Iterations: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append([]float64{*f.KNNRecall, *f.Spearman, *f.Trustworthiness, *f.KL, scale, disparity}, l.Bias...) {
		if err := binary.Write(to, binary.LittleEndian, v); err != nil || math.IsNaN(v) {
			t.Fatal(v, err)
		}
	}
}

// learnInto writes where a network that has learnt a map places its points.
func learnInto(t *testing.T, to io.Writer) {
	points := clusters(120, 20)
	e, err := cne.Embed(t.Context(), points, cne.Options{Epochs: 6})
	if err != nil {
		t.Fatal(err)
	}
	err = e.LearnNetwork(t.Context(), &train.Imitation{Step: func(_, _ int, loss float64) {
		if err := binary.Write(to, binary.LittleEndian, loss); err != nil {
			t.Fatal(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.Project(t.Context(), points)
	if err == nil {
		err = binary.Write(to, binary.LittleEndian, again.X)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pretrainInto writes the losses and weights of a few steps of SimCLR.
func pretrainInto(t *testing.T, to io.Writer) {
	set, s := &images.Set{C: 3, N: 32, H: 12, W: 12}, rng.New(3, rng.Sample)
	for range 32 * 3 * 12 * 12 {
		set.Pixels = append(set.Pixels, byte(s.IntN(256)))
	}
	p := simclr.PaperPretraining()
	p.Augmentation.Size = 12
	p.Network = model.ResNetOptions{Width: 4}
	p.BatchSize, p.Epochs, p.WarmUp = 16, 2, 1
	p.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error { return binary.Write(to, binary.LittleEndian, s.Loss) })}
	network, _, err := p.Run(context.Background(), set, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/model.safetensors"
	if err := network.Save(path, &model.Description{}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to.Write(text[8+binary.LittleEndian.Uint64(text):]) // without the header
}
