package quality

import (
	"math/rand/v2"
	"testing"

	"cne/data"
)

// answers returns points with whole numbers from 1 to levels, divided by levels.
func answers(n, d, levels int, seed uint64) *data.Matrix {
	r, m := rand.New(rand.NewPCG(seed, 1)), data.NewMatrix(n, d)
	for i := range m.X {
		m.X[i] = float32(1+r.IntN(levels)) / float32(levels)
	}
	return m
}

// Any of equally near points is right.
func TestTies(t *testing.T) {
	shaken := func(m *data.Matrix) *data.Matrix {
		r, c := rand.New(rand.NewPCG(7, 7)), m.Clone()
		for i := range c.X {
			c.X[i] += float32(r.NormFloat64()) * 1e-3
		}
		return c
	}
	measured := func(points, embedding *data.Matrix, k int) (recall, trust float64) {
		t.Helper()
		f, err := Measure(t.Context(), points, embedding, Options{K: k, Skip: ^(MetricRecall | MetricTrustworthiness)})
		if err != nil {
			t.Fatal(err)
		}
		return *f.KNNRecall, *f.Trustworthiness
	}
	two := data.NewMatrix(200, 1)
	for i := range 100 {
		two.X[2*i] = 1
	}
	// Ten answers on a line, twenty times each: the next groups are as near on both sides.
	line := data.NewMatrix(200, 1)
	for i := range line.X {
		line.X[i] = float32(1+i%10) / 10
	}
	days := data.NewMatrix(700, 7)
	for i := range days.N {
		days.Row(i)[i%7] = 1
	}
	for name, c := range map[string]struct {
		points, embedding *data.Matrix
		k                 int
	}{
		"two rows": {two, two, 15}, "two rows, shaken": {two, shaken(two), 15},
		"a line": {line, line, 25}, "a line, shaken": {line, shaken(line), 25},
		"weekdays, shaken": {days, shaken(days), 15}, "weekdays, more neighbours than copies": {days, shaken(days), 150},
		"survey, shaken": {answers(1000, 2, 5, 1), shaken(answers(1000, 2, 5, 1)), 15},
	} {
		if recall, trust := measured(c.points, c.embedding, c.k); recall != 1 || trust != 1 {
			t.Errorf("%s: recall %v and trustworthiness %v, want 1", name, recall, trust)
		}
	}

	// Points that are certainly among the nearest cannot be replaced by equally near ones.
	far := data.NewMatrix(40, 1)
	for i := range far.X {
		far.X[i] = 2
	}
	far.X[0], far.X[1] = 0, 1 // for point 0, point 1 is certainly a neighbour, and one of the others
	e, err := fairRecall([]int32{1, 2}, []int32{5, 6}, 2, 40, 1, func(_, j int, _ float64) float64 { return float64(far.X[j]) }, 0)
	if err != nil || e.Mean != 0.5 {
		t.Errorf("recall %v, %v; want 0.5", e.Mean, err)
	}
	if recall, _ := measured(two, answers(200, 1, 200, 3), 15); recall > 0.6 {
		t.Errorf("a random map of two rows has the recall %v, want about a half", recall)
	}
}
