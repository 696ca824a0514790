package rundir

import (
	"slices"
	"strings"
	"testing"

	"cne"
	"cne/data"
)

// Without names, rows of an earlier embedding are matched where nothing is left to chance.
func TestRowsOfEarlierEmbedding(t *testing.T) {
	all, drawn := &cne.Division{Trained: []int{0, 1, 2, 3}}, &cne.Division{Trained: []int{0, 2, 3}, Held: []int{1}}
	for name, tc := range map[string]struct {
		n     int
		drawn bool
		held  []int
		d     *cne.Division
		want  []int
		fault string // part of the error
	}{
		"all":                {4, false, nil, all, nil, ""},
		"the first":          {2, false, nil, all, nil, ""},
		"too many":           {5, false, nil, all, nil, "got 5 points, want at most 4, or names"},
		"all rows":           {4, true, nil, drawn, []int{0, 2, 3}, ""},
		"all, and not drawn": {4, false, nil, &cne.Division{Trained: []int{0, 2, 3}, Left: []int{1}}, []int{0, 2, 3}, ""},
		"the drawn":          {3, true, nil, drawn, nil, ""},
		"the same drawn":     {3, true, []int{1}, drawn, nil, ""},
		"others drawn":       {3, true, []int{2}, drawn, nil, "got 3 points and other held-out rows, want 4 (one per row of the data) or 3 (one per row that"},
		"fewer":              {2, true, nil, drawn, nil, "got 2 points, want 4 (one per row of the data) or 3"},
		"a part of all":      {3, false, []int{1}, all, nil, "got 3 points and other held-out rows, want 4 ("},
	} {
		e := &EarlierEmbedding{Positions: data.NewMatrix(tc.n, 2), key: "loss.towards", path: "run", drawn: tc.drawn, held: tc.held}
		rows, err := e.rows(nil, tc.d, 4)
		switch {
		case tc.fault == "" && (err != nil || !slices.Equal(rows, tc.want)):
			t.Errorf("%s: got %v, want %v (%v)", name, rows, tc.want, err)
		case tc.fault != "" && (err == nil || !strings.Contains(err.Error(), "loss.towards: \"run\": "+tc.fault) || !strings.HasSuffix(err.Error(), "(data.names) to match them")):
			t.Errorf("%s: %v, want %q", name, err, tc.fault)
		}
	}
}
