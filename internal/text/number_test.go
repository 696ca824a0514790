package text

import (
	"errors"
	"strconv"
	"testing"
)

// ParseFloat accepts numbers as people write them, but not forms of programming languages.
func TestParseFloat(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "-2.5": -2.5, "+.5e-1": 0.05, "1E3": 1000, "007": 7, "−2.5": -2.5, "2e−1": 0.2} {
		if got, err := ParseFloat(text, 64); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"1_000", "0x10", "0X1P4", "0x_1p-2", "1_2", "٣", "", "1e", "b", "−", "−-1", "1−2"} {
		if got, err := ParseFloat(text, 64); !errors.Is(err, strconv.ErrSyntax) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := ParseFloat("1e39", 32); !errors.Is(err, strconv.ErrRange) {
		t.Error(err)
	}
}

// Decimal and Whole read numbers as people write them, also with zeros before them.
func TestDecimal(t *testing.T) {
	for text, want := range map[string]float64{"010": 10, "08": 8, "-0010": -10, "1_000": 1000, "1e3": 1000, "2.0": 2, "9_0.0e0_": 0, "7.": 7} {
		if got, err := Whole(text); (err == nil) != (want != 0) || got != int64(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if got, err := Whole("9007199254740993"); err != nil || got != 9007199254740993 {
		t.Errorf("got %d, %v", got, err)
	}
	for text, want := range map[string]float64{"00.5": 0.5, ".5": 0.5, "+1_0.2_5": 10.25, "08.5E-1": 0.85} {
		if got, err := Decimal(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "_", "_1", "0x10", "0x1p4", "0b1", "0o7", "inf", "NaN", "1:30", "1e", ".", "1 ", "٣"} {
		if _, err := Decimal(text); !errors.Is(err, strconv.ErrSyntax) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"1e999", "9223372036854775808"} {
		if _, err := Whole(text); !errors.Is(err, strconv.ErrRange) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Whole("1.5"); !errors.Is(err, strconv.ErrSyntax) {
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
