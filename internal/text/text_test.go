package text

import "testing"

func TestShorten(t *testing.T) {
	if got := Shorten("short"); got != "short" {
		t.Errorf("got %q", got)
	}
	long := ""
	for range 59 {
		long += "x"
	}
	if got := Shorten(long + "ü" + long); got != long+"…" { // not half an ü
		t.Errorf("got %q", got)
	}
}
