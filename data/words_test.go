package data

import (
	"encoding"
	"errors"
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	var scaling Scaling
	for _, tc := range []struct {
		target encoding.TextUnmarshaler
		words  []string
		get    func() string
		want   []string
	}{
		{&scaling, scaling.Words(), func() string { return string(scaling) }, []string{"auto", "none", "unit", "standard"}},
	} {
		var got []string
		for _, word := range tc.words {
			if err := tc.target.UnmarshalText([]byte(word)); err != nil {
				t.Error(err)
			}
			got = append(got, tc.get())
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q are read as %q, want %q", tc.words, got, tc.want)
		}
		if err := tc.target.UnmarshalText([]byte("other")); !errors.Is(err, ErrOption) || tc.get() != got[len(got)-1] {
			t.Errorf("another word is read as %q, %v", tc.get(), err)
		}
	}
}
