package file

import (
	"errors"
	"testing"

	"cne/data"
)

func TestHeaderWords(t *testing.T) {
	want := []Header{HeaderAuto, HeaderPresent, HeaderNone}
	for i, word := range Header("").Words() {
		var h Header
		if err := h.UnmarshalText([]byte(word)); err != nil || h != want[i] {
			t.Errorf("%q is read as %q, %v", word, h, err)
		}
	}
	if err := new(Header).UnmarshalText([]byte("other")); !errors.Is(err, data.ErrOption) {
		t.Errorf("another word: %v", err)
	}
}
