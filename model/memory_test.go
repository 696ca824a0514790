package model

import (
	"fmt"
	"testing"

	"cne/model/op"
)

// What is planned is what the programs have allocated after a batch.
func TestMemoryIsWhatProgramsAllocate(t *testing.T) {
	objective := op.ContrastiveOptions{}
	batch := func(n, edges int) *Batch {
		b := &Batch{Rows: make([]int32, n), Local: make([]int32, 2*edges), Negatives: make([]int32, 3*edges)}
		for i := range b.Rows {
			b.Rows[i] = int32(i)
		}
		for i := range b.Local {
			b.Local[i] = int32(i % n)
			b.Negatives[i%edges] = int32((i + 1) % (2 * edges))
		}
		return b
	}
	check := func(t *testing.T, planned Memory, err error, elements int, m interface{ Parameters() []Parameter }) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		// Arrays grow by guesses at first: see vm.
		if got := 4 * int64(elements); planned.Batch < got*9/10 || planned.Batch > got*11/10 {
			t.Errorf("planned %d bytes for a batch, allocated %d", planned.Batch, got)
		}
		parameters := int64(0)
		for _, p := range m.Parameters() {
			parameters += int64(p.Value.Len())
		}
		if planned.Parameters != parameters {
			t.Errorf("planned %d parameters of %d", planned.Parameters, parameters)
		}
	}
	for _, tc := range []struct{ n, d, edges int }{{500, 2, 300}, {900, 5, 4000}} {
		t.Run(fmt.Sprint("table of ", tc.n), func(t *testing.T) {
			m, err := NewEmbedding(make([]float32, tc.n*tc.d), tc.d, objective)
			if err == nil {
				_, err = m.Step(batch(tc.n, tc.edges), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			planned, err := EmbeddingMemory[float32](tc.n, tc.d, BatchSize{Edges: tc.edges, Distinct: tc.n, Negatives: 3}, objective)
			check(t, planned, err, m.batch.program.Elements(), m)
		})
	}
	for _, hidden := range [][]int{{}, {30}, {100, 100, 100}, {500, 20, 64}} {
		t.Run(fmt.Sprint("layers ", hidden), func(t *testing.T) {
			network, err := NewMLP[float32](40, hidden, 2, 1)
			if err != nil {
				t.Fatal(err)
			}
			points := make([]float32, 800*40)
			for i := range points {
				points[i] = float32(i%7) + 1
			}
			m, err := NewParametric(network, points, objective)
			if err == nil {
				_, err = m.Step(batch(800, 1000), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			planned, err := ParametricMemory[float32](800, network.Widths(), BatchSize{Edges: 1000, Distinct: 800, Negatives: 3}, objective)
			check(t, planned, err, m.batch.program.Elements(), m)
		})
	}
	for _, size := range []int{8, 20} {
		t.Run(fmt.Sprint("images of ", size), func(t *testing.T) {
			options := ResNetOptions{Width: 4, Hidden: 24, Out: 6}
			network, err := NewResNet[float32](options, 1)
			if err != nil {
				t.Fatal(err)
			}
			cosine := op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine}
			m, err := NewConvolutional(network, 40, size, cosine, false, nil, op.Float32)
			if err != nil {
				t.Fatal(err)
			}
			b := batch(24, 12)
			b.Images = make([]float32, 24*3*size*size)
			for i := range b.Images {
				b.Images[i] = float32(i%11) / 11
			}
			if _, err := m.Step(b, 0); err != nil {
				t.Fatal(err)
			}
			planned, err := ConvolutionalMemory[float32](options, size, BatchSize{Edges: 12, Distinct: 24, Negatives: 3}, cosine, op.Float32)
			check(t, planned, err, m.batch.program.Elements(), m)
		})
	}
}
