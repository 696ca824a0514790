package cne_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"cne"
	"cne/data"
)

// Every row of an input is in one list or is placed, whatever is combined.
func TestDivide(t *testing.T) {
	const n = 200
	names := make([]string, n)
	for i := range names {
		names[i] = []string{"ant", "bee", "cat"}[i%3]
	}
	l, missing, listed := data.NewLabels(names), []int{0, 7, 199}, []int{0, 1, 2, 50, 51, 150}
	for _, r := range []cne.DivisionRules{
		{}, {Holdout: 0.2}, {Imbalance: true}, {Sample: 40}, {Sample: 0.25}, {Listed: listed},
		{Imbalance: true, Holdout: 0.2}, {Holdout: 0.2, Sample: 40}, {Holdout: 0.2, Listed: listed},
		{Imbalance: true, Sample: 40}, {Imbalance: true, Holdout: 0.2, Sample: 0.5}, {Imbalance: true, Holdout: 0.2, Listed: listed},
	} {
		for _, missing := range [][]int{nil, missing} {
			r.Seed = 3
			d, err := r.Divide(n, l, missing)
			must(t, err)
			count := make([]int, n)
			for _, list := range [][]int{d.Trained, d.Held, d.Left} {
				if !slices.IsSorted(list) {
					t.Errorf("%+v: %v", r, list)
				}
				for _, row := range list {
					count[row]++
				}
			}
			placed := d.Placed(n)
			left := n - len(d.Left)
			wantTrained := left - len(d.Held)
			switch {
			case r.Listed != nil:
				wantTrained = len(d.Trained)
			case r.Sample > 1:
				wantTrained = int(r.Sample)
			case r.Sample > 0:
				wantTrained = int(r.Sample*float64(wantTrained) + 0.5)
			}
			if slices.Max(count) > 1 || len(placed) != left-len(d.Held) || len(d.Trained) != wantTrained || (len(d.Held) > 0) != (r.Holdout > 0) {
				t.Errorf("%+v, missing %v: %d trained on, %d held out, %d left out, %d placed", r, missing, len(d.Trained), len(d.Held), len(d.Left), len(placed))
			}
			if trained, held := r.Count(left); r.Listed == nil && (trained != len(d.Trained) || held != len(d.Held)) {
				t.Errorf("%+v, missing %v: got %d and %d of %d counted, want %d and %d", r, missing, trained, held, left, len(d.Trained), len(d.Held))
			}
			for _, row := range d.Trained {
				if r.Listed != nil && !slices.Contains(listed, row) || slices.Contains(missing, row) {
					t.Errorf("%+v: trains on row %d", r, row)
				}
			}
			if len(missing) == 0 && !r.Imbalance && len(d.Left) > 0 {
				t.Errorf("%+v: leaves out %v", r, d.Left)
			}
		}
	}
	// What is held out does not depend on the sample, nor does it leave the classes.
	a, _ := cne.DivisionRules{Holdout: 0.3}.Divide(n, l, missing)
	b, _ := cne.DivisionRules{Holdout: 0.3, Sample: 20}.Divide(n, l, missing)
	classes := map[string]int{}
	for _, row := range a.Held {
		classes[names[row]]++
	}
	if !slices.Equal(a.Held, b.Held) || classes["ant"] < 19 || classes["bee"] < 19 || classes["cat"] < 19 {
		t.Errorf("held out: %v, %v, %v", a.Held, b.Held, classes)
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for want, x := range map[string]struct {
		rules   cne.DivisionRules
		labels  *data.Labels
		missing []int
	}{
		"data.missing: points: got none":                                {missing: all},
		"data.imbalance: labels: got none":                              {rules: cne.DivisionRules{Imbalance: true}},
		"data.holdout: share":                                           {rules: cne.DivisionRules{Holdout: 1.5}},
		"data.sample: got 198, want at most the number of points (197)": {rules: cne.DivisionRules{Sample: 198}, missing: missing},
		"data.sample: all its rows are held out":                        {rules: cne.DivisionRules{Listed: []int{7}}, missing: missing},
		"data.sample: entry 1 (counted from 1): got row 200":            {rules: cne.DivisionRules{Listed: []int{200}}},
		"data.labels: labels: got 200, want 199":                        {labels: l},
	} {
		rows := n
		if x.labels != nil {
			rows--
		}
		if _, err := x.rules.Divide(rows, x.labels, x.missing); !errors.Is(err, cne.ErrOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Embed gives all rows but those left out positions, the ones of the training and of Project.
func TestEmbedDivision(t *testing.T) {
	const n = 60
	all, _ := someOf(t, n, 4, []int{1})
	d, err := cne.DivisionRules{Holdout: 0.2, Sample: 30, Seed: 1}.Divide(n, nil, []int{3, 40})
	must(t, err)
	all.Row(3)[0], all.Row(40)[1] = float32(1e30), 5
	_, some := someOf(t, n, 4, d.Trained)
	o := few(func(o *cne.Options) { o.Neighbors = 5 })
	alone := embed(t, some, o)
	o.Division = d
	e := embed(t, all, o)
	if e.Positions.N != n-2 || e.Division != d {
		t.Fatalf("%d positions", e.Positions.N)
	}
	k := 0
	for row := range n {
		if slices.Contains(d.Left, row) {
			continue
		}
		want := project(t, alone, all.Rows(row, row+1)).X
		if i, trained := slices.BinarySearch(d.Trained, row); trained {
			want = alone.Positions.Row(i)
		}
		same(t, "a row lies elsewhere", e.Positions.Row(k), want)
		k++
	}
}
