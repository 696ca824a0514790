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

// configurations are runs of all parts of the program that decide results.
var configurations = []struct {
	name    string
	options cne.Options
}{
	{"neg-tsne-5", cne.Options{}},
	{"nc-tsne-5", cne.Options{Loss: op.NC}},
	{"infonc-tsne-5-weighted", cne.Options{Loss: op.InfoNC, SampleEdges: true, Schedule: train.Cosine}},
	{"umap-5-spectral", cne.Options{Loss: op.UMAP, Init: cne.InitSpectral, Momentum: 0.5}},
	{"neg-tsne-500-approximate", cne.Options{Negatives: 500, Search: neighbors.Approximate, Init: cne.InitMultilevel}},
	{"umap-full", cne.Options{Loss: op.UMAP, Negatives: train.Full}},
	{"infonc-tsne-full-3d", cne.Options{Loss: op.InfoNC, Negatives: train.Full, Dim: 3}},
	{"neg-tsne-all-pairs", cne.Options{Loss: op.InfoNC, Negatives: train.All, LR: 4}},
	{"neg-tsne-full-8d", cne.Options{Negatives: train.Full, Dim: 8, BatchSize: 256}},
	{"network-neg-tsne-5", cne.Options{Hidden: []int{40, 30}, Scaling: data.ScaleStandard}},
	{"network-nc-tsne-full", cne.Options{Hidden: []int{40}, Loss: op.NC, Negatives: train.Full, OnComponents: true}},
}

// TestSameBytes compares the bytes of results with sums that are kept: they do not depend on
// the processor or its architecture. GODEBUG=cpu.avx512f=off and cpu.avx2=off choose other
// instruction sets on amd64, the build tag noasm plain Go.
func TestSameBytes(t *testing.T) {
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
		check(c.name, func(t *testing.T, to io.Writer) { embedInto(t, to, c.options) })
	}
	check("simclr", pretrainInto)
	if *updateSums {
		if err := os.WriteFile(file, []byte(made.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// embedInto writes an embedding, its losses and figures, and positions of new points.
func embedInto(t *testing.T, to io.Writer, o cne.Options) {
	points, ctx := clusters(400, 60), context.Background()
	o.Epochs = 6
	o.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error { return binary.Write(to, binary.LittleEndian, s.Loss) })}
	e, err := cne.Embed(ctx, points, o)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := e.Project(ctx, clusters(430, 60).Rows(400, 430))
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
	f, err := quality.Measure(ctx, points, e.Positions, quality.Options{Graph: e.Neighborhood.Graph})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []*float64{f.KNNRecall, f.Spearman, f.Trustworthiness, f.KL} {
		if err := binary.Write(to, binary.LittleEndian, *v); err != nil || math.IsNaN(*v) {
			t.Fatal(*v, err)
		}
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
	to.Write(text)
}
