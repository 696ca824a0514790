package memory

import (
	"math"
	"testing"
)

func TestBytes(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 kB", 12345: "12 kB", 1e6: "1 MB", 999e6: "999 MB", 1e9: "1 GB", 4.5e9: "4.5 GB", 87.3e9: "87.3 GB", 6.67e12: "6.67 TB", math.MaxInt64: "9.22e+03 PB"} {
		if got := Bytes(bytes); got != want {
			t.Errorf("%d bytes are %s, want %s", bytes, got, want)
		}
	}
}
