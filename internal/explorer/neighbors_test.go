package explorer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"cne/data/neighbors"
)

// ring returns k neighbours of each of n points: the next ones, none for every seventh row.
func ring(n, k int) *neighbors.Neighbors {
	nb := &neighbors.Neighbors{N: n, K: k}
	for i := range n {
		for r := range k {
			j := int32((i + r + 1) % n)
			if i%7 == 6 {
				j = -1
			}
			nb.Index = append(nb.Index, j)
		}
	}
	return nb
}

func TestNeighborsOfAPage(t *testing.T) {
	for _, n := range []int{30, 300, 70_000} {
		p := &Page{Views: []View{{Embedding: normal(n, 2, 1, 0)}}, Neighbors: ring(n, 12)}
		html := write(t, p)
		if got := aboutOf(t, html).Neighbors; got != 10 {
			t.Fatalf("%d points: %d neighbours", n, got)
		}
		block := blockBytes(t, html, "neighbors")
		width := len(block) / (10 * n)
		if want := map[int]int{30: 1, 300: 2, 70_000: 4}[n]; width != want || len(block)%(10*n) != 0 {
			t.Fatalf("%d points: %d bytes", n, len(block))
		}
		for e := range 10 * n {
			got := 0
			for b := range width {
				got |= int(block[b*10*n+e]) << (8 * b)
			}
			want := int(p.Neighbors.Of(e / 10)[e%10])
			if want < 0 {
				want = n
			}
			if got != want {
				t.Fatalf("%d points: neighbour %d of row %d is %d, want %d", n, e%10, e/10, got, want)
			}
		}
	}
	for n, want := range map[int]int{0: 10, 1: 10, 100_000: 10, 110_000: 9, 333_333: 3, 333_334: 0, 5_000_000: 0} {
		if got := NeighborsShown(n); got != want {
			t.Errorf("%d points: %d neighbours, want %d", n, got, want)
		}
	}
	for name, change := range map[string]func(nb *neighbors.Neighbors){
		"got 90 rows for 29 points with 3 neighbours each, want 30 points": func(nb *neighbors.Neighbors) { nb.N = 29 },
		"with 0 neighbours each":       func(nb *neighbors.Neighbors) { nb.K = 0 },
		"got 89 rows":                  func(nb *neighbors.Neighbors) { nb.Index = nb.Index[:89] },
		"row 4, neighbour 2":           func(nb *neighbors.Neighbors) { nb.Index[14] = 30 },
		"row 0, neighbour 0":           func(nb *neighbors.Neighbors) { nb.Index[0] = -2 },
		"got 1, want another row":      func(nb *neighbors.Neighbors) { nb.Index[5] = 1 },
		"from 0 to 29, or -1 for none": func(nb *neighbors.Neighbors) { nb.Index[3] = 31 },
	} {
		p := three()
		p.Neighbors = ring(30, 3)
		change(p.Neighbors)
		if err := p.Write(&strings.Builder{}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

func TestNamesOfSeveralLines(t *testing.T) {
	p := &Page{Views: []View{{Embedding: normal(5, 2, 1, 0)}}, Names: []string{"a\r\n b\rc\n\nd\n", "plain", "", "\x1e\x00e\tf", "\n\n"}}
	got := strings.Split(string(blockBytes(t, write(t, p), "names")), nameSeparator)
	if want := []string{"a\nb\nc\n\nd", "plain", "", "e f", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
