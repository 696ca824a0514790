package text

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
