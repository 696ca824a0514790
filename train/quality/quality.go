// Package quality measures how well an embedding shows its data. KNNRecall measures how
// many neighbours it keeps, Trustworthiness how near the neighbours in the embedding are
// in the data, Spearman how well it keeps large distances, and KNNAccuracy how well it
// separates classes. PartitionFunction is the sum of all similarities, and KL the
// Kullback–Leibler divergence between graph and embedding. HeldOutAccuracy is about points
// that were placed after training. Align rotates one embedding onto another.
//
// Measure returns all figures for the matrices of points and embedding in one call.
// MeasureHeldOut returns the figures of held-out points.
//
// Results are exact for the given points or for a random sample that depends on the seed.
// They have the same bits regardless of GOMAXPROCS. Above ExactPoints, Measure estimates
// all-pairs figures from a sample, with standard errors. The sample's nearest neighbours
// among points of more than 8 values are then approximate, unless they are given. Nearest
// neighbours and ranks come from package data/neighbors. Sums over all pairs or all edges
// run on an accelerator if one is given, in an order that depends only on sizes.
//
// Slow functions return the context's error when it is done. Errors about the arguments
// wrap ErrInput, ErrNotFinite or ErrUndefined.
package quality

import (
	"errors"
	"fmt"

	"cne/data"
	"cne/internal/device"
	"cne/internal/simd"
)

// ErrInput is wrapped by errors about sizes, indices and parameters that do
// not fit together.
var ErrInput = errors.New("quality: bad input")

// ErrNotFinite is wrapped by errors about coordinates that are NaN or infinite; a diverged
// run makes such embeddings.
var ErrNotFinite = errors.New("quality: coordinate is not finite")

// ErrUndefined is wrapped by errors about valid inputs whose metric is undefined, such as
// the correlation with an embedding whose points all coincide.
var ErrUndefined = errors.New("quality: metric is undefined")

// A Device computes figures; model.OpenDevice opens one. nil means the CPU.
type Device = device.Device

// Float is the type of an embedding's coordinates.
type Float interface{ float32 | float64 }

// points returns the number of points that a row-major slice of width d holds. It checks
// that all coordinates are finite. what names the slice in errors.
func points[T Float](x []T, d int, what string) (int, error) {
	if d < 1 || len(x)%d != 0 {
		return 0, fmt.Errorf("%w: %s: got %d values, want points of %d coordinates", ErrInput, what, len(x), d)
	}
	if i := simd.FirstNotFinite(x); i >= 0 {
		return 0, fmt.Errorf("%w: point %d of the %s (counted from 0): got %v as coordinate %d", ErrNotFinite, i/d, what, x[i], i%d)
	}
	return len(x) / d, nil
}

// inData is rows for points, which may be sparse.
func inData(m *data.Matrix, what string) (int, error) {
	if m == nil || m.CSR == nil {
		return rows(m, what)
	}
	if err := m.Check(); err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrInput, what, err)
	}
	_, err := points(m.CSR.Value, 1, "values of the "+what)
	return m.N, err
}

// rows is points for a matrix.
func rows(m *data.Matrix, what string) (int, error) {
	if m == nil {
		return 0, fmt.Errorf("%w: there is no %s", ErrInput, what)
	}
	if m.CSR != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrInput, what, data.CheckDense(m))
	}
	n, err := points(m.X, m.D, what)
	if err == nil && n != m.N {
		err = fmt.Errorf("%w: %s: got the values of %d points, want %d", ErrInput, what, n, m.N)
	}
	return n, err
}
