// Package data turns files, and what a program has in memory, into points: a float32
// matrix with, where there are any, labels.
//
// FromRows and FromMat make the matrix of slices and of gonum's matrices; it is such
// a matrix itself.
//
// FromCSR makes sparse points; scipy's sparse npz files stay sparse, too.
//
// Open reads IDX (the format of MNIST), npy, CSV and TSV files, plain or
// compressed with gzip, and npz files, and puts several files one below the
// other. Builtin gives the data that travel inside the program. OpenBlocks reads
// the same files a block of rows at a time, for those that memory cannot hold. A
// Source is read in blocks, too, as often as is needed, as package data/pca does.
//
// What usually happens to the points next lives here too: Split holds some of
// them out, Imbalance thins classes out, Scale brings the points to a common
// scale, Normalize to length 1. WriteNPY and WriteCSV write an
// embedding, NPYWriter and CSVWriter one that comes in blocks.
//
// OpenCounts reads the counts of single-cell sequencing, a sparse matrix in the
// Matrix Market format. FitCounts chooses the genes that vary most, and the
// CountScaling that it returns makes points of the counts.
//
// OpenImages reads images, which stay bytes: CIFAR-10's binary version, folders
// of PNG and JPEG files by class, and arrays as npy, npz and IDX. FromImages takes
// decoded ones.
//
// Every result is the same to the last bit whatever GOMAXPROCS is.
//
// Not here: principal components (package data/pca), the nearest neighbours of the
// points and the graph made of them (package data/neighbors), anything that is learnt from them, and the
// augmented views of images.
//
// # Errors
//
// An error is one sentence that says what is wrong, where, and how to mend
// it; those about a matrix in memory, which names no file, begin with "data: ". A
// caller that has to tell cases apart uses errors.Is with ErrFormat,
// ErrUnsupported, ErrShape, ErrSizes, ErrLabels, ErrNotFinite, ErrEmpty, ErrSparse,
// ErrChanged and ErrOption, or with the errors of package io/fs, such as fs.ErrNotExist.
package data
