package text

import (
	"slices"
	"strings"
)

// missing are the words that spreadsheets, R, pandas, NumPy and databases write for a
// missing value.
var missing = []string{"", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-NaN", "-nan", "NaT", "None", "null", "NULL", "Null", "<NA>", "<na>",
	"pd.NA", "pd.NaT", "np.nan", "NA_character_", "(null)", `\N`}

// IsMissing reports whether a text, without the space around it, is a word for a missing
// value. Words are compared as programs write them: none and na, in small letters, may be
// a class.
func IsMissing(s string) bool { return slices.Contains(missing, strings.TrimSpace(s)) }

// IsMissingNumber is IsMissing among numbers, with letters in any case.
func IsMissingNumber(s string) bool {
	s = strings.TrimSpace(s)
	return slices.ContainsFunc(missing, func(word string) bool { return strings.EqualFold(word, s) })
}
