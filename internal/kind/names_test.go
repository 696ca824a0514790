package kind

import (
	"errors"
	"testing"
)

type colour int

var errWord = errors.New("bad word")

var names = Names[colour]{Package: "paint", Type: "Colour", What: "colour", Err: errWord, Words: []string{"red", "green"}, Aliases: map[string]colour{"lime": 1}}

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		v        colour
		word     string
		textFail string
	}{
		{0, "red", ""},
		{1, "green", ""},
		{2, "Colour(2)", "paint: colour: got 2, want 0 to 1"},
		{-1, "Colour(-1)", "paint: colour: got -1, want 0 to 1"},
	} {
		if got := names.String(tc.v); got != tc.word {
			t.Errorf("%d: word %s, want %s", tc.v, got, tc.word)
		}
		text, err := names.Text(tc.v)
		if tc.textFail != "" {
			if !errors.Is(err, errWord) || err.Error() != tc.textFail {
				t.Errorf("%d: error %v, want %s", tc.v, err, tc.textFail)
			}
			continue
		}
		var back colour
		if err != nil || names.Parse(&back, text) != nil || back != tc.v {
			t.Errorf("%d: %q (%v) reads back as %d", tc.v, text, err, back)
		}
	}
	v := colour(0)
	if err := names.Parse(&v, []byte("lime")); err != nil || v != 1 {
		t.Errorf("an alias: %d, %v", v, err)
	}
	const want = `paint: no colour is named "blue"`
	if err := names.Parse(&v, []byte("blue")); !errors.Is(err, errWord) || err.Error() != want || v != 1 {
		t.Errorf("an unknown word: %d, %v", v, err)
	}
}

type flavour string

func (flavour) Words() []string { return []string{"sweet", "sour", "salty"} }

func TestParseWord(t *testing.T) {
	f := flavour("sweet")
	if err := ParseWord(&f, []byte("sour"), errWord, "flavour"); err != nil || f != "sour" {
		t.Errorf("got %s and %v, want sour", f, err)
	}
	const want = `flavour: got "bitter", want sweet, sour or salty`
	if err := ParseWord(&f, []byte("bitter"), errWord, "flavour"); !errors.Is(err, errWord) || err.Error() != want || f != "sour" {
		t.Errorf("got %s and %v, want sour and %s", f, err, want)
	}
}

func TestUndo(t *testing.T) {
	var undone []string
	fails := func(first, second bool) (err error) {
		defer Catch(&err)
		Expect(!first, errWord, "first %d", 1)
		defer Undo(&err, func() { undone = append(undone, "second") })
		Need(!second, errWord, "second %d", 2)
		return nil
	}
	if err := fails(false, false); err != nil || undone != nil {
		t.Errorf("error %v, undone %v, want neither", err, undone)
	}
	if err := fails(true, true); !errors.Is(err, errWord) || err.Error() != "bad word: first 1" || undone != nil {
		t.Errorf("error %v, undone %v", err, undone)
	}
	if err := fails(false, true); !errors.Is(err, errWord) || err.Error() != "second 2" || len(undone) != 1 {
		t.Errorf("error %v, undone %v", err, undone)
	}
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("another panic: got %v", r)
		}
	}()
	_ = func() (err error) {
		defer Catch(&err)
		panic("other")
	}()
}
