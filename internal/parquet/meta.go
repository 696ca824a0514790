// Package parquet reads Parquet files of flat columns and of lists of numbers,
// from the specification (https://parquet.apache.org/docs/file-format).
//
// A file can claim any sizes; the package allocates memory only for data that are there,
// and for a page no more than its values can need. General libraries do not: parquet-go
// v0.32.0 allocates 24 GB for a file of 21 bytes, and, even with metadata and page headers
// checked before, 5 GB for a file of 10 kB with a few random bytes changed; it adds 14 MB
// to a program. arrow-go v18.8.0 panics on 0.8 % of small files with one byte changed,
// takes three times as long for MNIST in 784 columns, and adds 33 MB to a program.
//
// The package reads the encodings PLAIN, dictionaries, RLE (of booleans),
// DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT, in
// pages of both versions, uncompressed or compressed with snappy, gzip or zstd: what pandas,
// pyarrow, DuckDB, Polars and Spark write by default. Decimals are numbers; dates, times and
// UUIDs can also be read as text. The files of testdata were written with arrow-go v18.8.0 and parquet-go v0.32.0.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"cne/internal/kind"
)

// Magic is what Parquet files begin and end with.
const Magic = "PAR1"

// Physical types.
const typeBool, typeInt32, typeInt64, typeInt96, typeFloat, typeDouble, typeBytes, typeFixed = 0, 1, 2, 3, 4, 5, 6, 7

// Repetitions.
const required, optional, repeated = 0, 1, 2

// A Kind is the type of a column's values, by NumPy's letters.
type Kind byte

// Kinds of columns that can be read. Bools are bytes, 0 or 1. Decimals are Float, and dates,
// times and UUIDs are Text.
const Bool, Signed, Unsigned, Float, Text Kind = 'b', 'i', 'u', 'f', 'S'

// A Column is a field of a file's rows.
type Column struct {
	Name string
	Kind Kind // 0: it cannot be read
	// Is says in words what the column is, such as "a timestamp" or "a list of numbers".
	Is   string
	Size int  // bytes of a number
	List bool // every row has a list of values
	Byte bool // numbers from 0 to 255
	Null bool // some rows have no value, by the statistics of the file

	physical       int
	stored         int // bytes of a stored value; 0 if they vary
	leaf           int // index among the columns that are stored
	maxDef, maxRep int
	itemDef        int // of lists: the lowest definition level of an item, which may be null

	// number and format make numbers or texts of stored values. Without them, numbers are
	// stored as they are.
	number func(raw []byte) float64
	format func(raw []byte) string
}

// A File is a Parquet file.
type File struct {
	Columns []Column
	Rows    int

	r      io.ReaderAt
	size   int
	groups []rowGroup
}

// Most returns a limit on the number of values, by the file's size: runs of equal values
// take almost no space, so a small file can claim any number.
func (f *File) Most() int { return max(1<<24, f.size<<12) }

// A rowGroup is a part of the rows, with a chunk of each stored column.
type rowGroup struct {
	rows   int
	chunks []chunk
}

// A chunk is the place of some values of a stored column.
type chunk struct {
	codec, values int
	at, end       int // in the file
	encrypted     bool
}

// Open reads the metadata of a file of the given size in bytes.
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	defer kind.Catch(&err)
	const ends = len(Magic) + 4 + len(Magic)
	f = &File{r: r, size: int(size)}
	must(f.size >= ends, "bytes: got %d, want at least %d", size, ends)
	tail := f.readAt(make([]byte, 8), f.size-8)
	end, length := string(tail[4:]), int(binary.LittleEndian.Uint32(tail))
	supported(end != "PARE", "file: got an encrypted one, want an unencrypted one")
	must(end == Magic, "last bytes: got %q, want %q", end, Magic)
	must(length <= f.size-ends, "metadata: got a size of %d bytes, want at most %d", length, f.size-ends)
	meta, _ := parse(f.readAt(make([]byte, length), f.size-8-length))
	f.describe(meta)
	return f, nil
}

// readAt fills b with the bytes from an offset on, and returns it.
func (f *File) readAt(b []byte, offset int) []byte {
	if n, err := f.r.ReadAt(b, int64(offset)); n < len(b) {
		must(err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF), "the file ends early")
		kind.Check(fmt.Errorf("reading failed: %w", err))
	}
	return b
}

// describe makes the columns and row groups of the metadata.
func (f *File) describe(meta value) {
	var schema []value
	for e := range meta.field(2).parts() {
		schema = append(schema, e)
		supported(len(schema) <= maxColumns, "columns: got more than the limit of %d", maxColumns)
	}
	leaves := f.columns(schema)
	nulls := make([]int, leaves)
	for v := range meta.field(4).parts() {
		g := rowGroup{rows: v.get(3, 0)}
		for v := range v.field(1).parts() {
			var m [12]int // its fields, in one pass, as there are many chunks
			for p := range v.field(3).parts() {
				if p.id >= 0 && p.id < len(m) {
					m[p.id] = p.number
				} else if p.id == 12 && len(g.chunks) < leaves { // statistics
					nulls[len(g.chunks)] += max(0, p.get(3, 0))
				}
			}
			start, size := m[9], m[7]
			if dictionary := m[11]; dictionary > 0 {
				start = min(start, dictionary)
			}
			must(start >= len(Magic) && size >= 0 && start <= f.size && size <= f.size-start,
				"column: got %d bytes from %d on, want them within the file's %d", size, start, f.size)
			g.chunks = append(g.chunks, chunk{m[4], m[5], start, start + size, v.field(8).id != 0})
		}
		must(len(g.chunks) == leaves, "columns of a row group: got %d, want %d as in the schema", len(g.chunks), leaves)
		must(g.rows >= 0 && g.rows <= math.MaxInt32-f.Rows, "rows of a row group: got %d, want 0 to %d", g.rows, math.MaxInt32-f.Rows)
		must(leaves > 0, "columns: got none, want at least one")
		f.Rows += g.rows
		f.groups = append(f.groups, g)
	}
	for i := range f.Columns {
		c := &f.Columns[i]
		c.Null = c.Kind != 0 && !c.List && nulls[c.leaf] > 0
	}
	rows := meta.get(3, 0)
	must(rows == f.Rows, "rows of the row groups: got %d, want %d as in the metadata", f.Rows, rows)
}

// maxColumns bounds the elements of the schema.
const maxColumns = 1 << 18

// Fields of an element of the schema; the logical type is a union.
const schemaType, schemaLength, schemaRepetition, schemaName, schemaChildren, schemaConverted, schemaScale, schemaLogical = 1, 2, 3, 4, 5, 6, 7, 10

// columns makes the columns of the fields of the schema, and returns the number of stored
// columns.
func (f *File) columns(schema []value) (leaves int) {
	must(len(schema) > 0 && schema[0].get(schemaType, -1) < 0, "schema: got none, want one")
	for rest := schema[1:]; len(rest) > 0; {
		// An element is followed by all that are below it.
		leaf, size, open := leaves, 0, 1
		for ; open > 0 && size < len(rest); size++ {
			if open += rest[size].get(schemaChildren, 0) - 1; rest[size].get(schemaType, -1) >= 0 {
				leaves++
			}
		}
		must(open == 0, "schema: got inconsistent numbers of children")
		c := newColumn(rest[:size])
		c.leaf = leaf
		f.Columns, rest = append(f.Columns, c), rest[size:]
	}
	must(len(f.Columns) == schema[0].get(schemaChildren, 0), "schema: got inconsistent numbers of children")
	return leaves
}

// newColumn makes a column of the elements of a field.
func newColumn(field []value) Column {
	last := len(field) - 1
	leaf := field[last]
	c := Column{Name: string(field[0].field(schemaName).text), physical: leaf.get(schemaType, -1)}
	logical, _ := logicalType(field[0])
	if c.physical < 0 || last > 0 && (logical != logicalList || last > 2 || field[1].get(schemaRepetition, 0) != repeated ||
		last == 2 && leaf.get(schemaRepetition, 0) == repeated) {
		c.Is = "a structure of several columns"
		return c
	}
	for _, e := range field {
		switch e.get(schemaRepetition, 0) {
		case repeated:
			c.maxRep++
			c.maxDef++
			c.itemDef = c.maxDef
		case optional:
			c.maxDef++
		}
	}
	c.List = c.maxRep > 0
	c.setKind(leaf)
	if c.List && c.Kind != 0 {
		c.Is = "a list of " + strings.TrimPrefix(c.Is, "a ") + "s"
	}
	return c
}

// The kinds of the errors of reading, other than the file system's.
var (
	// ErrUnsupported: the file is valid but uses a feature that is not supported.
	ErrUnsupported = errors.New("unsupported kind of file")
	// ErrDamaged: the file is inconsistent.
	ErrDamaged = errors.New("malformed file")
	// ErrRow: a row has no value, or a list of another length than the rows before.
	ErrRow = errors.New("unusable row")
)

// must fails with ErrDamaged unless ok, and supported with ErrUnsupported; see kind.Need.
func must(ok bool, format string, args ...any) {
	if !ok {
		kind.Fail(ErrDamaged, format+"; the file is damaged", args...)
	}
}

func supported(ok bool, format string, args ...any) { kind.Need(ok, ErrUnsupported, format, args...) }

// The types of Thrift's compact protocol.
const (
	thriftStop, thriftTrue, thriftFalse, thriftByte, thriftI16, thriftI32, thriftI64 = 0, 1, 2, 3, 4, 5, 6
	thriftDouble, thriftBinary, thriftList, thriftSet, thriftStruct                  = 7, 8, 9, 10, 12
)

// maxDepth bounds how deep structures may be nested.
const maxDepth = 32

// A value is a value of Thrift's compact protocol. Structures and lists stay encoded
// until they are read, so they take no extra memory.
type value struct {
	id     int // of a field
	number int // of integers, and 1 for true
	text   []byte
	kind   byte // of a structure or list, which text encodes
}

// parts returns the fields of a structure, or the structures in a list.
func (v value) parts() iter.Seq[value] {
	return func(yield func(value) bool) {
		d := metadata(v.text)
		switch v.kind {
		case thriftList:
			d.elements(0, yield)
		case thriftStruct:
			d.fields(0, yield)
		}
	}
}

// field returns a field of a structure; without it, an empty value.
func (v value) field(id int) value {
	for f := range v.parts() {
		if f.id == id {
			return f
		}
	}
	return value{}
}

// get returns the number in a field, or missing if there is none.
func (v value) get(id, missing int) int {
	if f := v.field(id); f.id == id {
		return f.number
	}
	return missing
}

// parse reads the structure at the front of b, and returns its size.
func parse(b []byte) (v value, size int) {
	d := metadata(b)
	v = d.value(thriftStruct, 0)
	return v, len(b) - len(d.b)
}

// A decoder reads Thrift's compact protocol, or what else ends early with a fault. It
// allocates nothing, and fails as must does.
type decoder struct {
	b     []byte
	fault string
}

func metadata(b []byte) decoder { return decoder{b, "metadata: got an invalid Thrift encoding"} }

func (d *decoder) must(ok bool) { must(ok, d.fault) }

func (d *decoder) take(n uint64) []byte {
	d.must(n <= uint64(len(d.b)))
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) byte() byte { return d.take(1)[0] }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.must(n > 0)
	d.b = d.b[n:]
	return v
}

// sized takes a size of 4 bytes, and as many bytes after it.
func (d *decoder) sized() []byte { return d.take(uint64(binary.LittleEndian.Uint32(d.take(4)))) }

// integer reads an i16, i32 or i64.
func (d *decoder) integer() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) value(kind byte, depth int) (v value) {
	d.must(depth <= maxDepth)
	switch kind {
	case thriftTrue, thriftFalse:
		v.number = thriftFalse - int(kind)
	case thriftByte:
		v.number = int(int8(d.byte()))
	case thriftI16, thriftI32, thriftI64:
		v.number = int(d.integer())
		d.must(kind != thriftI32 || v.number == int(int32(v.number)))
	case thriftDouble:
		d.take(8)
	case thriftBinary:
		v.text = d.take(d.uvarint())
	case thriftList, thriftSet:
		v.kind, v.text = thriftList, d.b
		d.elements(depth, func(value) bool { return true })
	case thriftStruct:
		v.kind, v.text = thriftStruct, d.b
		d.fields(depth, func(value) bool { return true })
	default:
		d.must(false)
	}
	if v.kind != 0 {
		v.text = v.text[:len(v.text)-len(d.b)]
	}
	return v
}

// elements calls yield with the structures of a list until it returns false.
func (d *decoder) elements(depth int, yield func(value) bool) {
	head := d.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = d.uvarint()
	}
	kind := max(head&15, thriftByte) // which true and false take in a list
	for ; n > 0; n-- {
		if e := d.value(kind, depth+1); kind == thriftStruct && !yield(e) {
			return
		}
	}
}

// fields calls yield with the fields of a structure until it returns false.
func (d *decoder) fields(depth int, yield func(value) bool) {
	for id := 0; ; {
		head := d.byte()
		if head&15 == thriftStop {
			return
		}
		if id += int(head >> 4); head>>4 == 0 {
			id = int(int16(d.integer()))
		}
		f := d.value(head&15, depth+1)
		f.id = id
		if !yield(f) {
			return
		}
	}
}
