package train

import (
	"encoding"
	"slices"
	"testing"
)

// Each constant has a word, which reads back as that constant.
func TestWords(t *testing.T) {
	for _, tc := range []struct {
		word  string
		value interface {
			encoding.TextMarshaler
			String() string
			Words() []string
		}
		read func(text []byte) (any, error)
	}{
		{"linear", Linear, readText[Schedule]},
		{"none", Constant, readText[Schedule]},
		{"cosine", Cosine, readText[Schedule]},
		{"auto", SampleAuto, readText[Sampling]},
		{"singly", SamplePerHead, readText[Sampling]},
		{"runs", SampleSharedRuns, readText[Sampling]},
	} {
		text, err := tc.value.MarshalText()
		if err != nil || string(text) != tc.word || tc.value.String() != tc.word || !slices.Contains(tc.value.Words(), tc.word) {
			t.Errorf("%s: %q, %v", tc.word, text, err)
		}
		if got, err := tc.read(text); err != nil || got != any(tc.value) {
			t.Errorf("%s reads back as %v, %v", tc.word, got, err)
		}
		if _, err := tc.read([]byte("other")); err == nil {
			t.Errorf("another word than %s is read", tc.word)
		}
	}
}

func readText[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](text []byte) (any, error) {
	var v T
	err := P(&v).UnmarshalText(text)
	return v, err
}
