// Package quality measures how well an embedding shows its data: how many
// neighbours it keeps (KNNRecall), how near in the data those are that it shows
// (Trustworthiness), how well it keeps large distances (Spearman), how well it
// tells classes apart (KNNAccuracy), and the quantities of contrastive embedding
// theory, the partition function, the Kullback–Leibler divergence between graph
// and embedding, and the losses that training on the graph expects
// (PartitionFunction, KL, ExpectedLosses, ExpectedInfoNC). HeldOutRecall and
// HeldOutAccuracy do the same for points that were embedded among those that a
// network was trained on.
//
// Every result is exact for the points given, or for the random sample of
// them that the caller's stream draws, and has the same bits for any number
// of processors. Nearest neighbours are found elsewhere (package
// data/neighbors) and come in as plain index slices, and ranks likewise. What
// looks at all pairs has a form for accelerators, whose name ends in On
// (remote.go), with sums in an order that depends on sizes alone.
package quality

import (
	"errors"
	"fmt"
	"math"
)

// ErrInput is wrapped by errors about sizes, indices and parameters that do
// not fit together.
var ErrInput = errors.New("bad input to a quality metric")

// ErrNotFinite is wrapped by the error for a coordinate that is NaN or
// infinite; a diverged run makes such embeddings.
var ErrNotFinite = errors.New("coordinate is not finite")

// ErrUndefined is wrapped by errors for inputs that have the right form but
// for which a metric has no value, such as the correlation with an embedding
// whose points all coincide.
var ErrUndefined = errors.New("metric is undefined")

// Float is the type of an embedding's coordinates.
type Float interface{ float32 | float64 }

// points returns the number of points that a row-major slice of width d
// holds, having checked that all coordinates are finite. What names the slice
// in errors.
func points[T Float](x []T, d int, what string) (int, error) {
	if d < 1 || len(x)%d != 0 {
		return 0, fmt.Errorf("%w: %d values of the %s cannot be points of %d coordinates", ErrInput, len(x), what, d)
	}
	for i, v := range x {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return 0, fmt.Errorf("%w: point %d of the %s (counted from 0) has %v as coordinate %d", ErrNotFinite, i/d, what, v, i%d)
		}
	}
	return len(x) / d, nil
}
