package rundir

import (
	"strings"
	"testing"

	"cne/data"
)

// Sparse points are no embedding, whatever it is for.
func TestSparsePointsAreNoEmbedding(t *testing.T) {
	const path = "../../data/testdata/sparse/float32.npz"
	if _, err := OpenEmbedding(t.Context(), []string{path}, data.Options{}); err == nil || !strings.Contains(err.Error(), path+" holds sparse points") {
		t.Error(err)
	}
}
