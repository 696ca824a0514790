// Package data holds points: a float32 matrix with, where there are any, labels.
//
// FromRows and FromMat make a Matrix from slices and from gonum matrices; a Matrix is
// itself a mat.Matrix. FromCSR makes sparse points. Points that stay in their files are a
// Source, read in blocks as often as needed.
//
// The next usual steps are here too: Split holds some points out, Imbalance thins classes
// out, Scale brings the points to a common scale, Normalize to length 1.
//
// Every result has the same bits for any GOMAXPROCS.
//
// Not here: reading and writing files (package data/file), counts of single cells
// (data/counts), images (data/images), principal components (data/pca), and the nearest
// neighbours of the points and their graph (data/neighbors).
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
	// ErrFormat: a file is damaged, ends early, or is not what its name says.
	ErrFormat = errors.New("malformed file")
	// ErrUnsupported: a file is sound, but of a kind that is not read here.
	ErrUnsupported = errors.New("unsupported kind of file")
	// ErrShape: points of different widths meet, or an array has a number of
	// dimensions that makes no points.
	ErrShape = errors.New("shapes do not agree")
	// ErrLabels: labels are missing for some of the points, or too many.
	ErrLabels = errors.New("labels do not agree with the points")
	// ErrNotFinite: a value is NaN or infinite.
	ErrNotFinite = errors.New("value is not finite")
	// ErrDirection: a point has no direction, but a Metric needs one.
	ErrDirection = errors.New("a point has no direction")
	// ErrEmpty: there are no points, or the points have no values.
	ErrEmpty = errors.New("no data")
	// ErrChanged: a file that is read several times is not the same each time.
	ErrChanged = errors.New("a file has changed")
	// ErrSparse: points are sparse where they must be dense.
	ErrSparse = errors.New("points are sparse")
	// ErrOption: an argument or a field of file.Options has no meaning, or none
	// for these files.
	ErrOption = errors.New("unusable option")
)

// errorf is fmt.Errorf for an error of a kind.
func errorf(of error, format string, args ...any) error {
	return kind.Errorf(of, format, args...)
}
