package projection

import "testing"

func TestParseRows(t *testing.T) {
	for s, want := range map[string]Rows{"0:1": {0, 1}, "3:40": {3, 40}, ":7": {0, 7}, "7:": {7, 0}, ":": {}} {
		if got, ok := ParseRows(s); got != want || !ok {
			t.Errorf("%q: %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "1", "2:1", "1:1", "0:0", ":0", "-1:2", "1:-2", "a:2", "1:b", "1:2:3", "1e3:", "99999999999999999999:"} {
		if got, ok := ParseRows(s); ok {
			t.Errorf("%q is taken for %v", s, got)
		}
	}
}
