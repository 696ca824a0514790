// Package parquet reads and writes Parquet files of flat columns and of lists of numbers,
// from the specification (https://parquet.apache.org/docs/file-format).
//
// A file can claim anything of its contents; memory is taken only for what is there, and for
// a page no more than its values can need. That is why no general library reads it. Two were
// tried, with five small files of which each byte was changed in turn, and which were cut at
// every place: parquet-go v0.32.0 makes room for 24 GB on the word of a file of 21 bytes,
// which ends the program, and panics on 2 % of those files; arrow-go v18.8.0 keeps its memory
// within bounds, but panics on 0.8 % of them, takes three times as long for MNIST in 784
// columns, and makes a program 33 MB larger.
//
// Read are the encodings PLAIN, dictionaries, RLE (of booleans), DELTA_BINARY_PACKED,
// DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY (of texts) and BYTE_STREAM_SPLIT, in pages of both
// versions, uncompressed or compressed with snappy, gzip or zstd. The files of testdata are
// written by other programs (see make.go there).
package parquet

import (
	"errors"
	"fmt"
)

// ErrUnsupported is wrapped by the errors about files that are sound but of a kind that is
// not read here. All others of reading, but those of the file system, are about damage.
var ErrUnsupported = errors.New("unsupported kind of file")

// ErrDamaged is wrapped by the errors about files whose parts do not fit together.
var ErrDamaged = errors.New("malformed file")

// A fault is an error of a kind, which its text does not name.
type fault struct {
	kind error
	text string
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.kind }

func damaged(format string, args ...any) error {
	return &fault{ErrDamaged, fmt.Sprintf(format, args...) + "; the file is damaged, fetch or write it again"}
}

func unsupported(format string, args ...any) error {
	return &fault{ErrUnsupported, fmt.Sprintf(format, args...)}
}
