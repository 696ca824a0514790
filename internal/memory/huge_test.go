package memory

import "testing"

// To ask for huge pages changes nothing in a slice, wherever it begins and ends.
func TestHugeKeepsWhatIsThere(t *testing.T) {
	x := make([]int32, 3<<20) // 12 MB
	for i := range x {
		x[i] = int32(i)
	}
	for _, cut := range [][2]int{{0, len(x)}, {1, len(x) - 1}, {777, 778}, {5, 5}} {
		UseHugePages(x[cut[0]:cut[1]])
	}
	UseHugePages([]float64(nil))
	for i, v := range x {
		if v != int32(i) {
			t.Fatalf("element %d became %d", i, v)
		}
	}
}
