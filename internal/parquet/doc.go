// Package parquet reads and writes Parquet files of flat columns and of lists of numbers,
// from the specification (https://parquet.apache.org/docs/file-format).
//
// A file can claim anything of its contents; memory is taken only for what is there, and for
// a page no more than its values can need. That is why no general library reads it.
// parquet-go v0.32.0 makes room for 24 GB on the word of a file of 21 bytes. With the
// metadata and the heads of all pages checked before, it still takes 5 GB on the word of a
// count within a page of a file of 10 kB of which a few bytes were changed at random, where
// neither a check of the heads nor recover helps; and it makes a program 14 MB larger.
// arrow-go v18.8.0 panics on 0.8 % of small files of which one byte was changed, takes three
// times as long for MNIST in 784 columns, and makes a program 33 MB larger.
//
// Read are the encodings PLAIN, dictionaries, RLE (of booleans), DELTA_BINARY_PACKED,
// DELTA_LENGTH_BYTE_ARRAY and BYTE_STREAM_SPLIT, in pages of both versions, uncompressed or
// compressed with snappy, gzip or zstd: what pandas, pyarrow, DuckDB, Polars and Spark write
// by default. DELTA_BYTE_ARRAY is not read. The files of testdata were written with arrow-go
// v18.8.0 and parquet-go v0.32.0.
package parquet

import (
	"errors"
	"fmt"
)

// The kinds of the errors of reading, but for those of the file system.
var (
	// ErrUnsupported: a file is sound but of a kind that is not read here.
	ErrUnsupported = errors.New("unsupported kind of file")
	// ErrDamaged: the parts of a file do not fit together.
	ErrDamaged = errors.New("malformed file")
	// ErrRow: a row has no value, or a list of another length than those before it.
	ErrRow = errors.New("unusable row")
)

// A fault is an error of a kind, which its text does not name.
type fault struct {
	error
	kind error
}

func (f fault) Unwrap() error { return f.kind }

func damaged(format string, args ...any) error {
	return fault{fmt.Errorf(format+"; the file is damaged, fetch or write it again", args...), ErrDamaged}
}

func unsupported(format string, args ...any) error {
	return fault{fmt.Errorf(format, args...), ErrUnsupported}
}

// badRow is the error for a row, counted from 0.
func (c *Column) badRow(row int, what string) error {
	return fault{fmt.Errorf("row %d (counted from 1), column %.60q: %s", row+1, c.Name, what), ErrRow}
}
