// Package data holds points: a float32 matrix and optional labels.
//
// FromRows and FromMat make a Matrix from slices and from gonum matrices; a Matrix is
// itself a mat.Matrix. FromCSR makes sparse points. Points that stay in their files are a
// Source. It reads them in blocks, as often as needed.
//
// Usual next steps are here, too. Split holds out some points, Imbalance thins out
// classes, Scale brings the points to a common scale, and Normalize brings them to length
// 1.
//
// Every result has the same bits for any GOMAXPROCS.
//
// Other packages read and write files (data/file), read counts of single cells
// (data/counts) and images (data/images), compute principal components (data/pca), and
// find nearest neighbours and make their graph (data/neighbors).
//
// # Errors
//
// Errors about a matrix in memory begin with "data: ". To tell the kinds of errors apart,
// use errors.Is with ErrFormat, ErrUnsupported, ErrShape, ErrLabels, ErrNotFinite,
// ErrEmpty, ErrSparse, ErrChanged and ErrOption, or with the errors of package io/fs.
package data

import (
	"errors"

	"cne/internal/kind"
)

// The kinds of error that this package returns, for errors.Is.
var (
	// ErrFormat means that a file is damaged, ends early, or is not what its name says.
	ErrFormat = errors.New("malformed file")
	// ErrUnsupported means that a file is valid, but of an unsupported kind.
	ErrUnsupported = errors.New("unsupported kind of file")
	// ErrShape means that widths or sizes do not agree, or that an array's number of
	// dimensions does not suit points.
	ErrShape = errors.New("shapes do not agree")
	// ErrLabels means that there are too few or too many labels.
	ErrLabels = errors.New("labels do not agree with the points")
	// ErrNotFinite means that a value is NaN or infinite.
	ErrNotFinite = errors.New("value is not finite")
	// ErrDirection means that a point has no direction, but a Metric needs one.
	ErrDirection = errors.New("a point has no direction")
	// ErrEmpty means that there are no points, or that the points have no values.
	ErrEmpty = errors.New("no data")
	// ErrChanged means that a file has changed between two reads.
	ErrChanged = errors.New("a file has changed")
	// ErrSparse means that points are sparse where they must be dense.
	ErrSparse = errors.New("points are sparse")
	// ErrOption means that an argument or a field of file.Options is invalid, or does not
	// suit the files.
	ErrOption = errors.New("unusable option")
)

// errorf is fmt.Errorf for an error of a kind.
func errorf(of error, format string, args ...any) error {
	return kind.Errorf(of, format, args...)
}
