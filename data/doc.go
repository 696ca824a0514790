// Package data holds points: a float32 matrix with, where there are any, labels.
//
// FromRows and FromMat make a Matrix of slices and of gonum's matrices; it is such
// a matrix itself. FromCSR makes sparse points. Points that stay in their files are a
// Source, which is read in blocks as often as is needed.
//
// What usually happens to the points next lives here too: Split holds some of
// them out, Imbalance thins classes out, Scale brings the points to a common
// scale, Normalize to length 1.
//
// Every result is the same to the last bit whatever GOMAXPROCS is.
//
// Not here: reading and writing files (package data/file), counts of single cells
// (data/counts), images (data/images), principal components (data/pca), and the nearest
// neighbours of the points and their graph (data/neighbors).
//
// # Errors
//
// An error is one sentence; one about a matrix in memory begins with "data: ". To tell cases
// apart use errors.Is with ErrFormat, ErrUnsupported, ErrShape, ErrLabels, ErrNotFinite,
// ErrEmpty, ErrSparse, ErrChanged and ErrOption, or with the errors of package io/fs.
package data
