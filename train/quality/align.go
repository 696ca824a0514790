package quality

import (
	"cne/data"
	"cne/internal/eigen"
	"cne/internal/kind"
	"cne/internal/selection"
)

// Align aligns an embedding with a reference embedding of the same points, in place. It
// finds the rotation, reflection and translation that minimise the sum of squared
// distances between the two positions of each point (the orthogonal Procrustes problem).
// Distances in the embedding do not change, up to rounding.
//
// If directions is set, embeddings are about the directions of their points as seen from the
// origin (the cosine similarity). The origin then replaces both centres, and nothing is
// translated.
//
// Align does not scale. scale is the factor about the centre that would minimise the sum
// further: 1 for a rotated copy of the reference, 2 for a copy of half the size.
// disparity is what would then remain, relative to the reference's sum of squared
// distances from its centre. It is from 0, for the same shape, to 1, for unrelated
// shapes.
//
// Errors wrap ErrInput or ErrNotFinite; if all points of one embedding coincide, the
// scale is undefined and the error wraps ErrUndefined.
func Align(embedding, reference *data.Matrix, directions bool) (scale, disparity float64, err error) {
	defer kind.Catch(&err)
	checkDense(embedding, "embedding")
	checkDense(reference, "embedding")
	n, d := embedding.N, embedding.D
	kind.Expect(reference.N == n && reference.D == d, ErrInput,
		"embedding to align: got %d points with %d coordinates, want %d with %d as in the reference", n, d, reference.N, reference.D)
	// Both where they are, however far that is.
	reference = reference.Relative(nil)
	copy(embedding.X, embedding.Relative(nil).X)
	embedding.Offset = nil
	from, spread := Spread(embedding.X, d, directions)
	to, wanted := Spread(reference.X, d, directions)
	kind.Expect(spread != 0 && wanted != 0, ErrUndefined, "alignment: all points coincide")
	// The orthogonal matrix R that maximises the trace of R·C, where C sums the products of both
	// positions of each point, is V·Uᵀ with C = U·S·Vᵀ.
	products := make([]float64, d*d)
	for i := range n {
		x, y := embedding.Row(i), reference.Row(i)
		for a := range d {
			row, shift := products[a*d:(a+1)*d], float64(x[a])-from[a]
			for b := range row {
				row[b] += float64(shift * (float64(y[b]) - to[b]))
			}
		}
	}
	turn, trace, ok := eigen.Polar(products, d) // a row x becomes x·turn
	kind.Expect(ok, ErrUndefined, "alignment: the products of the positions are not finite")
	row := make([]float64, d)
	for i := range n {
		x := embedding.Row(i)
		copy(row, to)
		for a := range d {
			shift := float64(x[a]) - from[a]
			for b, v := range turn[a*d : (a+1)*d] {
				row[b] += float64(shift * v)
			}
		}
		selection.Convert(x, row)
	}
	return trace / spread, max(0, 1-trace*trace/(spread*wanted)), nil
}

// Spread returns the mean of positions x [n, d], or the origin if directions is set, and the sum
// of their squared distances from it.
func Spread[T Float](x []T, d int, directions bool) (mean []float64, squares float64) {
	mean = make([]float64, d)
	if !directions {
		for i := 0; i < len(x); i += d {
			for j, v := range x[i : i+d] {
				mean[j] += float64(v)
			}
		}
		for j := range mean {
			mean[j] /= float64(len(x) / d)
		}
	}
	for i := 0; i < len(x); i += d {
		for j, v := range x[i : i+d] {
			c := float64(v) - mean[j]
			squares += float64(c * c)
		}
	}
	return mean, squares
}
