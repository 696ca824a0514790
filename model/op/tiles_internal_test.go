package op

import "testing"

// Tiles are of full vectors and whole parts, in the plane as well, and have at most
// tilePairs pairs unless 16 heads have more.
func TestTiles(t *testing.T) {
	for m := range 3000 {
		for _, d := range []int{2, 3} {
			s := pairLoop[float32]{d: d, m: m}
			tile := s.tileOf()
			if tile < 16 || tile%16 != 0 || tile > tileHeads && tile != planeHeads || tile*(1+m) > max(16*(1+m), tilePairs) {
				t.Errorf("m = %d, d = %d: a tile of %d heads", m, d, tile)
			}
		}
	}
}
