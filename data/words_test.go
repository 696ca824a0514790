package data

import (
	"encoding"
	"errors"
	"testing"
)

func TestWords(t *testing.T) {
	var scaling Scaling
	var header Header
	for _, tc := range []struct {
		target encoding.TextUnmarshaler
		words  []string
		get    func() string
	}{
		{&scaling, scaling.Words(), func() string { return string(scaling) }},
		{&header, header.Words(), func() string { return string(header) }},
	} {
		for _, word := range tc.words {
			if err := tc.target.UnmarshalText([]byte(word)); err != nil || tc.get() != word {
				t.Errorf("%q is read as %q, %v", word, tc.get(), err)
			}
		}
		last := tc.get()
		if err := tc.target.UnmarshalText([]byte("other")); !errors.Is(err, ErrOption) || tc.get() != last {
			t.Errorf("another word is read as %q, %v", tc.get(), err)
		}
	}
}
