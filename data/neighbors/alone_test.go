package neighbors

import (
	"slices"
	"testing"

	"cne/data"
)

// Points that share no column with others get one random neighbour each, and are nobody's.
func TestLayApart(t *testing.T) {
	const n, topics, k = 200, 5, 6
	m := data.NewMatrix(n+20, topics+11)
	for i := range n {
		m.Row(i)[i%topics], m.Row(i)[(i+i/topics)%topics] = 1, float32(i)
	}
	for i := range 10 { // words that nobody else uses
		m.Row(n + i)[topics+i] = 1
	}
	for i := 10; i < 19; i++ { // a word that some share, and a row of zeros
		m.Row(n + i)[topics+10] = float32(i)
	}
	want := []int32{200, 201, 202, 203, 204, 205, 206, 207, 208, 209}
	if got := Alone(m); !slices.Equal(got, want) {
		t.Fatalf("alone are %v, want %v", got, want)
	}
	sparse, err := data.FromCSR(1, 2, []int{0, 1}, []int{1}, []float32{3})
	if err != nil || len(Alone(sparse)) != 1 {
		t.Errorf("a sparse row: %v, %v", Alone(sparse), err)
	}
	nb := need(KNN(t.Context(), m, k, Options{}))(t)
	g := need(FromNeighbors(LayApart(nb, want, 1)))(t)
	ends := map[int32]bool{}
	for i := range g.N {
		tails := g.Tails(i)
		if len(tails) == 0 {
			t.Errorf("point %d has no edge", i)
		}
		if slices.Contains(want, int32(i)) {
			if len(tails) != 1 || slices.Contains(want, tails[0]) {
				t.Errorf("point %d has the edges %v", i, tails)
			}
			ends[tails[0]] = true
		}
	}
	if len(ends) != len(want) {
		t.Errorf("%d points have %d neighbours", len(want), len(ends))
	}
	if LayApart(nb, nil, 1) != nb || LayApart(nb, Alone(data.NewMatrix(3, 2)), 1) != nb {
		t.Error("neighbours are copied for nothing")
	}
}
