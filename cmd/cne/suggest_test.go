package main

import "testing"

func TestEditDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"kitten", "sitting", 3},
		{"umpa", "umap", 1},
		{"ca", "abc", 3}, // a swapped pair is not edited again
		{"naïve", "naive", 1},
	} {
		if got := editDistance(tc.a, tc.b); got != tc.want {
			t.Errorf("%q to %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
		if got := editDistance(tc.b, tc.a); got != tc.want {
			t.Errorf("%q to %q: %d, want %d", tc.b, tc.a, got, tc.want)
		}
	}
}

func TestSuggest(t *testing.T) {
	for unknown, want := range map[string]string{
		"train.epoch":               "train.epochs",
		"trian.epochs":              "train.epochs",
		"data.batch_size":           "train.batch_size",
		"epochs":                    "train.epochs",
		"quality.k":                 "quality.k",
		"LOSS.NAME":                 "loss.name",
		"loss.temperatur":           "loss.temperature",
		"something.else":            "",
		"train.epochs.nae":          "",
		string(make([]byte, 1<<20)): "",
	} {
		if got := suggest(unknown, names(trainKeys)); got != want {
			t.Errorf("%q: %q, want %q", shorten(unknown), got, want)
		}
	}
}
