package text

import (
	"os"
	"strings"
	"testing"
)

func TestMissing(t *testing.T) {
	for _, word := range []string{"", " ", "NA", "N/A", "nan", "NaN", "NaT", "None", "null", "NULL", "<NA>", "pd.NA", "#N/A", " NA ", `\N`} {
		if !IsMissing(word) || !IsMissingNumber(word) {
			t.Errorf("%q is not missing", word)
		}
	}
	for _, word := range []string{"none", "Na", "na"} {
		if IsMissing(word) || !IsMissingNumber(word) {
			t.Errorf("%q is missing among texts, or not among numbers", word)
		}
	}
	for _, word := range []string{"?", "-", "0", "nano", "N", "nil", "inf"} {
		if IsMissingNumber(word) {
			t.Errorf("%q is missing", word)
		}
	}
}

// The Python package has the same words.
func TestMissingInPython(t *testing.T) {
	source, err := os.ReadFile("../../scripts/python/cnembed/_estimator.py")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "\n_MISSING = {")
	list, _, _ := strings.Cut(rest, "}")
	python := map[string]bool{}
	for item := range strings.SplitSeq(list, ", ") {
		python[strings.ReplaceAll(strings.Trim(item, `"`), `\\`, `\`)] = true
	}
	for _, word := range missing {
		if !python[strings.ToLower(word)] {
			t.Errorf("%q is not in %q", word, list)
		}
	}
	for word := range python {
		if !IsMissingNumber(word) {
			t.Errorf("%q is only in Python", word)
		}
	}
}
