package text

import (
	"errors"
	"strconv"
	"testing"
)

// ParseFloat accepts numbers as people write them, but not forms of programming languages.
func TestParseFloat(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "-2.5": -2.5, "+.5e-1": 0.05, "1E3": 1000, "007": 7} {
		if got, err := ParseFloat(text, 64); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"1_000", "0x10", "0X1P4", "0x_1p-2", "1_2", "٣", "", "1e", "b"} {
		if got, err := ParseFloat(text, 64); !errors.Is(err, strconv.ErrSyntax) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := ParseFloat("1e39", 32); !errors.Is(err, strconv.ErrRange) {
		t.Error(err)
	}
}

// Names keep their text, and different invalid bytes stay different.
func TestValidName(t *testing.T) {
	for name, want := range map[string]string{"größe": "größe", "gr\xf6\xdfe": `gr\xf6\xdfe`, "\xff": `\xff`, "": "", "a\ufffdb": "a\ufffdb", "l\xe4nge\xc3": `l\xe4nge\xc3`} {
		if got := ValidName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
