package model_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/data/pca"
	"cne/model"
)

// What was done to the points of a run is done to new ones with the same bits,
// also after it has been written and read as JSON.
func TestPreprocessing(t *testing.T) {
	for _, kind := range []data.Scaling{data.ScaleNone, data.ScaleUnit, data.ScaleStandard} {
		for _, components := range []int{0, 3} {
			set := &data.Dataset{Points: &data.Matrix{N: 50, D: 7, X: to32(normals(50*7, 1))}}
			raw := slices.Clone(set.Points.X)
			scaler, err := set.Scale(t.Context(), kind)
			must(t, err)
			p := &model.Preprocessing{Width: 7, Scaler: scaler}
			want := set.Points
			if components > 0 {
				p.PCA, err = pca.Fit(t.Context(), set.Points, components)
				must(t, err)
				want, err = p.PCA.Transform(t.Context(), set.Points)
				must(t, err)
			}
			text, err := json.Marshal(p)
			must(t, err)
			var read model.Preprocessing
			must(t, json.Unmarshal(text, &read))
			must(t, read.Check())
			got, err := read.Apply(t.Context(), &data.Matrix{N: 50, D: 7, X: slices.Clone(raw)})
			must(t, err)
			if got.D != read.Out() || !slices.Equal(got.X, want.X) {
				t.Errorf("%s, %d components: other points", kind, components)
			}
			// A block of one row gives the row's bits.
			one, err := read.Apply(t.Context(), &data.Matrix{N: 1, D: 7, X: slices.Clone(raw[7*9 : 7*10])})
			if err != nil || !slices.Equal(one.X, want.Row(9)) {
				t.Errorf("%s, %d components: row 9 alone is %v, among others %v (%v)", kind, components, one.X, want.Row(9), err)
			}
		}
	}
}

func TestPreprocessingRefuses(t *testing.T) {
	components := &pca.PCA{K: 1, D: 3, Mean: make([]float64, 3), Axes: make([]float64, 3)}
	for name, tc := range map[string]struct {
		p    model.Preprocessing
		kind error
		want string
	}{
		"no width":      {model.Preprocessing{}, data.ErrShape, "got a width of 0"},
		"counts":        {model.Preprocessing{Width: 3, Counts: &counts.Scaling{Genes: []int32{0, 2}, Total: 3, LibrarySize: 1}}, data.ErrShape, "got 2 genes, want 3"},
		"broken counts": {model.Preprocessing{Width: 2, Counts: &counts.Scaling{Genes: []int32{0, 2}, Total: 2, LibrarySize: 1}}, data.ErrShape, "scaling of counts: got 2 of 2 genes with 0 names"},
		"fill":          {model.Preprocessing{Width: 2, Fill: []float32{1}}, data.ErrShape, "got 1 means of columns, want 2"},
		"scaler":        {model.Preprocessing{Width: 2, Scaler: &data.Scaler{Kind: data.ScaleUnit}}, data.ErrOption, "divisor of the scaler: got 0"},
		"scaler width":  {model.Preprocessing{Width: 2, Scaler: &data.Scaler{Kind: data.ScaleStandard, Mean: []float64{1}, SD: []float64{1}}}, data.ErrShape, "got 2, want 1 as the scaler"},
		"PCA width":     {model.Preprocessing{Width: 2, PCA: components}, data.ErrShape, "want 3 as when"},
		"broken PCA":    {model.Preprocessing{Width: 3, PCA: &pca.PCA{K: 2, D: 3, Mean: make([]float64, 3), Axes: make([]float64, 3)}}, data.ErrShape, "want 3 and 6"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, tc.p.Check(), tc.kind, tc.want) })
	}
	p := model.Preprocessing{Width: 3, PCA: components}
	_, err := p.Apply(t.Context(), data.NewMatrix(2, 4))
	wantError(t, err, data.ErrShape, "got 4 values each, want 3")
	_, err = p.Apply(t.Context(), nil)
	wantError(t, err, data.ErrEmpty, "matrix: got nil")
}

// Preprocessing finds columns by their names, too, and says how to read further
// points.
func TestPreprocessingColumns(t *testing.T) {
	p := &model.Preprocessing{Width: 2, Columns: []string{"a", "b"}, Scaler: &data.Scaler{Kind: data.ScaleNone, Offset: []float64{1, 2}}}
	must(t, p.Check())
	m := &data.Matrix{N: 1, D: 3, X: []float32{5, 6, 7}, Columns: []string{"b", "c", "a"}}
	if got, err := p.Apply(t.Context(), m); err != nil || got.D != 2 || !slices.Equal(got.X, []float32{6, 3}) {
		t.Errorf("the columns become %v (%v)", got, err)
	}
	o := p.Reading(file.Options{Name: "x"})
	if o.Name != "x" || !slices.Equal(o.Columns, p.Columns) || !slices.Equal(o.Offset, p.Scaler.Offset) {
		t.Errorf("read with %+v", o)
	}
	if o := (*model.Preprocessing)(nil).Reading(file.Options{Name: "x"}); o.Name != "x" || o.Columns != nil {
		t.Errorf("read with %+v", o)
	}
	p.Columns = p.Columns[:1]
	wantError(t, p.Check(), data.ErrShape, "got 1 names")
	p.Columns = nil
	p.Scaler.Offset = p.Scaler.Offset[:1]
	wantError(t, p.Check(), data.ErrShape, "got 2, want 1 as the scaler")
}

// Nothing was done to the points, so nothing is done to others.
func TestNilPreprocessing(t *testing.T) {
	var p *model.Preprocessing
	m := &data.Matrix{N: 1, D: 2, X: []float32{3, 4}}
	if got, err := p.Apply(t.Context(), m); got != m || err != nil || p.Check() != nil || p.Out() != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := (&model.Preprocessing{Width: 2}).Apply(t.Context(), nil); !errors.Is(err, data.ErrEmpty) {
		t.Errorf("without points the error is %v", err)
	}
}

// wantError checks the kind of an error, and what its text contains.
func wantError(t *testing.T, err, kind error, want string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is\n\t%v\nwant one of kind %q that contains\n\t%s", err, kind, want)
	}
}
