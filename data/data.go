// Package data holds points: a float32 matrix and optional labels.
//
// FromRows and FromMat make a Matrix from slices and from gonum matrices; a Matrix is
// itself a mat.Matrix. FromCSR makes sparse points. Points that stay in their files are a
// Source, which reads them in blocks, as often as needed.
//
// Split holds out some points, Imbalance thins out classes, Scale brings the points to a
// common scale, and Normalize brings them to length 1.
//
// Results have the same bits regardless of GOMAXPROCS.
//
// Other packages read and write files (data/file), read counts of single cells
// (data/counts) and images (data/images), compute principal components (data/pca), and
// find nearest neighbours and make their graph (data/neighbors).
package data

import (
	"errors"

	"cne/internal/kind"
)

// Kinds of errors of this package and its subpackages, for errors.Is. Errors about files
// may wrap errors of package io/fs instead.
var (
	// ErrFormat is wrapped by errors about files that are damaged, end early, or are not what
	// their names say.
	ErrFormat = errors.New("malformed file")
	// ErrUnsupported is wrapped by errors about valid files of unsupported kinds.
	ErrUnsupported = errors.New("unsupported kind of file")
	// ErrShape is wrapped by errors about widths or sizes that do not agree, and about arrays
	// with a wrong number of dimensions.
	ErrShape = errors.New("shapes do not agree")
	// ErrLabels is wrapped by errors about missing, superfluous or unsuitable labels.
	ErrLabels = errors.New("labels do not agree with the points")
	// ErrNotFinite is wrapped by errors about values that are NaN or infinite.
	ErrNotFinite = errors.New("value is not finite")
	// ErrDirection is wrapped by errors about zero vectors (Cosine), constant vectors
	// (Correlation), latitudes beyond 90 degrees (Haversine) and values that are no distances
	// (Precomputed).
	ErrDirection = errors.New("a point has no direction")
	// ErrEmpty is wrapped by errors about input without points or values, or with too few
	// points.
	ErrEmpty = errors.New("no data")
	// ErrChanged is wrapped by errors about files that have changed between two reads.
	ErrChanged = errors.New("a file has changed")
	// ErrSparse is wrapped by errors about sparse points that must be dense.
	ErrSparse = errors.New("points are sparse")
	// ErrOption is wrapped by errors about arguments and fields of file.Options that are
	// invalid or do not suit the files.
	ErrOption = errors.New("unusable option")
)

// errorf is fmt.Errorf for an error of a kind.
func errorf(of error, format string, args ...any) error {
	return kind.Errorf(of, format, args...)
}
