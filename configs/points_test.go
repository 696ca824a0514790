package configs

import (
	"math"
	"strings"
	"testing"

	"cne/data"
)

// What is right by itself is refused for data of a size, by its key; and not where it may
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
		{"{}", data.SizeOf(15, 3), "graph.k is 15, but 15 points do not have 15 neighbours each; give more points, or set it below 15"},
		{"{}", between(2, 16, 3), ""},
		{"graph: {k: 3}", data.SizeOf(10, 3), "quality.k is 15, but 10 points"},
		{"{graph: {k: 3}, quality: {recall: false}}", data.SizeOf(10, 3), ""},
		{"data: {holdout: 0.5}", data.SizeOf(30, 3), "graph.k is 15, but the 15 points that data.holdout leaves do not have 15 neighbours each; hold fewer out"},
		{"data: {holdout: 0.5}", data.SizeOf(32, 3), ""},
		{"data: {sample: 15}", data.SizeOf(100, 3), "graph.k is 15, but the 15 points of data.sample do not have 15 neighbours each; train on more, or set it below 15"},
		{"data: {sample: 0.15}", data.SizeOf(100, 3), "graph.k is 15, but the 15 points of data.sample"},
		{"data: {sample: 101}", data.SizeOf(100, 3), "data.sample is 101, but there are 100 points; train on fewer, or set it to null for all"},
		{"data: {sample: 100}", data.SizeOf(100, 3), ""},
		{"data: {sample: rows.txt}", data.SizeOf(100, 3), ""},
		// At 500 points the slider does not move.
		{"loss: {s: 1000}", data.SizeOf(500, 3), ""},
		{"loss: {s: 1000}", data.SizeOf(10000, 3), "loss.s cannot be used: the run stands at s = 1000, too far out on the spectrum"},
		{"loss: {s: 1000}", between(2, 10000, 3), ""},
		{"loss: {s: 1000}", between(1000, math.MaxInt32, 3), "loss.s cannot be used"},
		{"loss: {s: -1000}", between(1000, math.MaxInt32, 3), "loss.s cannot be used"},
		{"loss: {name: infonce, s: 43}", AnySize, ""},
		{"loss: {z_bar: 1e-300}", AnySize, "loss.z_bar cannot be used: the run stands at Z̄ = 1e-300"},
		{"train: {phases: [{epochs: 1}, {epochs: 1, s: 1e6}]}", data.SizeOf(10000, 3), "train.phases cannot be used: phase 2 stands at s = 1e+06"},
		{"{model: {kind: mlp, hidden: [65536, 32764]}}", data.SizeOf(100, 1), ""},
		{"{model: {kind: mlp, hidden: [65536, 32764]}}", data.SizeOf(100, 9), "model.hidden is [65536, 32764], and a network of such layers for 9 values"},
		{"{model: {kind: table, dim: 65536}}", data.SizeOf(40000, 3), "model.dim is 65536, and a table of 40000 points"},
		{"{model: {kind: table, dim: 65536}}", between(100, 40000, 3), ""},
		{"{loss: {negatives: 300000, sampling: singly}, train: {batch_size: 200000}}", data.SizeOf(70000, 3), "loss.negatives cannot be used: the run has 300000 negatives for each of the 200000 edges"},
	} {
		c, _, err := loadText(t, tc.text)
		if err == nil {
			err = c.CheckSize(tc.size)
		}
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) && !strings.Contains(err.Error(), ": "+tc.want) {
			t.Errorf("%s for %+v: %v\nwant %q", tc.text, tc.size, err, tc.want)
		}
	}
}

// Images, too.
func TestCheckSizeOfImages(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                         "",
		"train: {batch_size: 60001}": "train.batch_size is 60001, but there are 60000 images",
		"evaluate: {test: 60000}":    "evaluate.test is 60000, but there are 60000 images",
		"evaluate: {test: 59990}":    "evaluate.k is 15, but of 60000 images evaluate.test leaves 10",
		"loss: {name: neg, metric: euclidean, s: 40}": "loss.s cannot be used",
	} {
		c, _, err := loadTextAs(t, Pretrain, text)
		if err == nil {
			err = c.CheckSize(data.SizeOf(60000, 3072))
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
