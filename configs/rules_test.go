package configs

import (
	"reflect"
	"testing"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/option"
)

// A struct with a key that has no rule is a fault of the program.
func TestKeysWithoutRules(t *testing.T) {
	for name, c := range map[string]any{
		"a type without a rule": struct {
			X complex128 `key:"x"`
		}{},
		"an unknown tag": struct {
			X string `key:"x" as:"txet"`
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
			keysOf(option.Fields(reflect.TypeOf(c)))
		}()
	}
}

// What can be in conflict are keys that exist.
func TestConflictsNameKeys(t *testing.T) {
	check := func(keys []key, conflicts []*option.Error) {
		for _, e := range conflicts {
			if e == nil {
				continue
			}
			for _, name := range []string{e.Key, e.Other} {
				if _, ok := find(keys, name); !ok {
					t.Errorf("%s, with %s: there is no key %s", e.Key, e.Other, name)
				}
			}
		}
	}
	c := mustLoad(t, "{}")
	c.Device.Precision, c.Embed.Float64, c.Device.Name, c.Embed.Search, c.Graph.File = BF16, true, "cuda", neighbors.Approximate, "g.npz"
	c.Model = Model{Kind: "mlp", Init: "a", InitNames: "b", KeepData: true}
	c.Data.HoldoutLabels, c.Data.Holdout, c.Data.Sample, c.Data.Imbalance = []string{"l"}, Holdout{Share: 0.5}, Sample{Number: 9}, "linear"
	c.Data.Missing, c.Output.AutoLabels, c.Loss.Towards = "drop", true, "e.npy"
	check(Train.keys, c.conflicts())
	s := mustLoadSimCLR(t, "{}")
	s.SimCLR.Method, s.Pretrain.Epochs = tsimcne, 1
	check(Pretrain.keys, s.conflicts())
	learns := *c
	learns.Model, learns.Embed.GraphMetric, learns.Embed.OnComponents = Model{Kind: "network", Init: "pca"}, data.Precomputed, true
	learns.Model.InitNames = "b" // of no earlier embedding
	check(Train.keys, learns.conflicts())
	others := append(learns.conflicts(), s.conflicts()...)
	for i, e := range append(c.conflicts(), s.conflicts()...) {
		if e == nil && others[i] == nil {
			t.Errorf("conflict %d is not found", i)
		}
	}
}

func TestLockedChanges(t *testing.T) {
	begun := mustLoad(t, "{graph: {k: 5}, data: {holdout: 0.5}}")
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"{graph: {k: 5}, data: {holdout: 0.5, path: [x]}, train: {epochs: 800}, output: {csv: false}, device: cpu}", nil},
		{"{graph: {k: 5, file: g.npz}}", []string{"data.holdout 0.5, not null (default)", "graph.file null, not g.npz (run.yaml:1)"}},
		{"{graph: {k: 5}, data: {holdout: 0.5}, train: {epochs: 700}}", []string{"train.epochs 750, not 700 (run.yaml:1)"}},
		{"{graph: {k: 6}, data: {holdout: [a]}}", []string{"data.holdout 0.5, not [a] (run.yaml:1)", "graph.k 5, not 6 (run.yaml:1)"}},
	} {
		c, origins, err := loadText(t, tc.text)
		must(t, err)
		if got := Train.LockedChanges(begun, c, origins); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.text, got, tc.want)
		}
	}
}
