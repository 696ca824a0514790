package configs

import (
	"math"
	"strings"
	"testing"

	"cne/data"
)

// Values that are invalid for the size of the data are refused by key, unless they may
// fit.
func TestCheckSize(t *testing.T) {
	between := func(low, high, width int) data.Size {
		return data.Size{Low: low, High: high, Likely: low, Width: width}
	}
	for _, tc := range []struct {
		text string
		size data.Size
		want string // "" if it is accepted
	}{
		{"{}", data.SizeOf(16, 3), ""},
		{"{}", data.SizeOf(15, 3), "graph.k: got 15 for 15 points, want fewer than the points that are trained on"},
		{"{}", between(2, 16, 3), ""},
		{"graph: {k: 3}", data.SizeOf(10, 3), "quality.k: got 15 for 10 points, want fewer than the points that are trained on"},
		{"{graph: {k: 3}, quality: {recall: false}}", data.SizeOf(10, 3), ""},
		{"data: {holdout: 0.5}", data.SizeOf(30, 3), "graph.k: got 15 for 15 points, want fewer than the points that are trained on"},
		{"data: {holdout: 0.5}", data.SizeOf(32, 3), ""},
		{"data: {sample: 15}", data.SizeOf(100, 3), ""}, // the preset chooses fewer neighbours
		{"data: {sample: 0.15}", data.SizeOf(100, 3), "graph.k: got 15 for 15 points, want fewer"},
		{"data: {sample: 101}", data.SizeOf(100, 3), "data.sample: got 101, want at most the number of points (100)"},
		{"data: {sample: 100}", data.SizeOf(100, 3), ""},
		{"data: {sample: rows.txt}", data.SizeOf(100, 3), ""},
		{"loss: {s: 1000}", data.SizeOf(10000, 3), "loss.s: got 1000, want a number nearer to 0 <= s <= 1; the loss's constant is too large"},
		{"loss: {s: 1000}", between(2, 10000, 3), ""},
		{"loss: {s: 1000}", between(1000, math.MaxInt32, 3), "loss.s: got "},
		{"loss: {s: -1000}", between(1000, math.MaxInt32, 3), "loss.s: got "},
		{"loss: {name: infonce, s: 43}", AnySize, ""},
		{"loss: {z_bar: 1e-300}", AnySize, "loss.z_bar: got 1e-300, want a number nearer to"},
		{"train: {phases: [{epochs: 1}, {epochs: 1, s: 1e6}]}", data.SizeOf(10000, 3), "train.phases: s of phase 2: got 1e+06, want a number nearer"},
		{"{model: {kind: mlp, hidden: [65536, 32764]}}", data.SizeOf(100, 1), ""},
		{"{model: {kind: mlp, hidden: [65536, 32764]}}", data.SizeOf(100, 9), "model.hidden: got [65536 32764] for points of 9 values, want at most 2147483647 weights"},
		{"{model: {kind: table, dim: 65536}}", data.SizeOf(40000, 3), "model.dim: got 65536 for 40000 points, want fewer dimensions"},
		{"{model: {kind: table, dim: 65536}}", between(100, 40000, 3), ""},
		{"{loss: {negatives: 300000, sampling: singly}, train: {batch_size: 200000}}", data.SizeOf(70000, 3), "loss.negatives: got 300000 with train.batch_size 200000, want fewer of either"},
	} {
		c, _, err := loadText(t, tc.text)
		if err == nil {
			err = Train.CheckSize(c, tc.size, nil)
		}
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) && !strings.Contains(err.Error(), ": "+tc.want) {
			t.Errorf("%s for %+v: %v\nwant %q", tc.text, tc.size, err, tc.want)
		}
	}
}

// Images, too.
func TestCheckSizeOfImages(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                                     "",
		"train: {batch_size: 60001}":             "train.batch_size: got 60001 for 60000 images, want at most as many",
		"evaluate: {test: 60000, split: random}": "evaluate.test: got 60000, want fewer than the images (60000)",
		"evaluate: {test: 59990}\nsimclr: {pretrain_on: all}": "evaluate.k: got 15, want at most the images that evaluate.test leaves (10)",
		"loss: {name: neg, metric: euclidean, s: 40}":         "loss.s: got ",
	} {
		c, _, err := loadTextAs(t, Pretrain, text)
		if err == nil {
			err = Pretrain.CheckSize(c, data.SizeOf(60000, 3072), nil)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The source of a value that nothing has set is not named.
func TestDefaultsHaveNoSource(t *testing.T) {
	c, origins, err := Train.Load(&Sources{})
	if err != nil {
		t.Fatal(err)
	}
	err = Train.CheckSize(c, data.SizeOf(5, 4), origins)
	const want = "graph.k: got 15 for 5 points, want fewer than the points that are trained on"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
