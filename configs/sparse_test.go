package configs

import (
	"strings"
	"testing"

	"cne/data"
)

// What would make sparse points dense is refused with its key before they are read,
// unless they become dense in any case.
func TestSparsePointsAreChecked(t *testing.T) {
	size := data.SizeOf(1000, 100_000)
	size.Nonzeros = 5000
	for _, tc := range []struct{ text, key string }{
		{"{}", ""},
		{"data: {scale: standard}", "data.scale"},
		{"graph: {metric: correlation}", "graph.metric"},
		{"data: {scale: standard}\ngraph: {pca: auto}", ""}, // they become dense
		{"graph: {metric: correlation, pca: auto}", ""},
		{"graph: {metric: jaccard, pca: auto}", ""},
		{"graph: {metric: cosine}", ""},
		{"data: {scale: standard}\ngraph: {pca: 0}", ""},
		{"model: {kind: mlp}", "model.input"},
		{"model: {kind: mlp, input: pca}", ""},
	} {
		c := loaded(loadText(t, tc.text))(t)
		err := Train.CheckSize(c, size, nil)
		if fault, _ := err.(*Error); (fault == nil) != (tc.key == "") || fault != nil && (fault.Key != tc.key || strings.Contains(fault.Problem, "\n")) {
			t.Errorf("%q: %v", tc.text, err)
		}
	}
	c := loaded(loadText(t, "model: {kind: mlp, dtype: float64}\ndevice: {name: cpu}"))(t)
	size.Width = 2000
	if fault, _ := Train.CheckSize(c, size, nil).(*Error); fault == nil || fault.Key != "model.input" {
		t.Error(fault)
	}
}
