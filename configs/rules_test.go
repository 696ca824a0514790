package configs

import (
	"reflect"
	"testing"
)

func TestIntervals(t *testing.T) {
	for in, tc := range map[string]struct {
		text    string
		inside  []float64
		outside []float64
	}{
		"":           {"a number", []float64{-1e300, 0, 1e300}, nil},
		"(0,inf)":    {"a number above 0", []float64{1e-300}, []float64{0, -1}},
		"[0,inf)":    {"a number of at least 0", []float64{0, 1}, []float64{-1e-300}},
		"(0,1]":      {"a number above 0 and at most 1", []float64{0.5, 1}, []float64{0, 1.5}},
		"[0,1)":      {"a number of at least 0 and below 1", []float64{0, 0.5}, []float64{-0.5, 1}},
		"[-1e6,1e6]": {"a number from -1e6 to 1e6", []float64{-1e6, 1e6}, []float64{-1e7, 1e7}},
		"[1e-6,0.5]": {"a number from 1e-6 to 0.5", []float64{1e-6, 0.5}, []float64{0, 1}},
	} {
		i := parseInterval(in)
		if i.String() != tc.text {
			t.Errorf("%s: %q, want %q", in, i.String(), tc.text)
		}
		for _, x := range tc.inside {
			if !i.contains(x) {
				t.Errorf("%s lacks %g", in, x)
			}
		}
		for _, x := range tc.outside {
			if i.contains(x) {
				t.Errorf("%s contains %g", in, x)
			}
		}
	}
}

// A struct with a key that has no rule is a fault of the program.
func TestKeysWithoutRules(t *testing.T) {
	for name, c := range map[string]any{
		"a type without a rule": struct {
			X complex128 `key:"x"`
		}{},
		"an unknown tag": struct {
			X string `key:"x" as:"nonepmty"`
		}{},
		"no interval": struct {
			X float64 `key:"x" in:"[1;2]"`
		}{},
		"an interval the wrong way round": struct {
			X float64 `key:"x" in:"[2,1]"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			keysOf(reflect.TypeOf(c))
		}()
	}
}

// What can clash are keys that exist.
func TestClashesNameKeys(t *testing.T) {
	train := mustLoad(t, "train: {phases: [{epochs: 1}]}").clashes()
	for _, tc := range []struct {
		keys    []key
		clashes []clash
	}{
		{Train.keys, train},
		{Pretrain.keys, mustLoadSimCLR(t, "").clashes()},
	} {
		for _, x := range tc.clashes {
			for _, name := range []string{x.key, x.other} {
				if _, ok := find(tc.keys, name); !ok {
					t.Errorf("%s, which clashes with %s: there is no key %s", x.key, x.other, name)
				}
			}
		}
	}
}

func TestViolations(t *testing.T) {
	begun := mustLoad(t, "{graph: {k: 5}, data: {holdout: 0.5}}")
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"{graph: {k: 5}, data: {holdout: 0.5, path: [x]}, train: {epochs: 800}, plot: {title: x}, device: cpu}", nil},
		{"{graph: {k: 5, file: g.npz}}", []string{"data.holdout 0.5, not null (default)", "graph.file null, not g.npz (run.yaml:1)"}},
		{"{graph: {k: 5}, data: {holdout: 0.5}, train: {epochs: 700}}", []string{"train.epochs 750, not 700 (run.yaml:1)"}},
		{"{graph: {k: 6}, data: {holdout: [a]}}", []string{"data.holdout 0.5, not [a] (run.yaml:1)", "graph.k 5, not 6 (run.yaml:1)"}},
	} {
		c, origins, err := loadText(t, tc.text)
		must(t, err)
		if got := Train.Violations(begun, c, origins); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.text, got, tc.want)
		}
	}
}
