package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Magic is what Parquet files begin and end with.
const Magic = "PAR1"

// Physical types.
const typeBool, typeInt32, typeInt64, typeInt96, typeFloat, typeDouble, typeBytes, typeFixed = 0, 1, 2, 3, 4, 5, 6, 7

// Repetitions.
const required, optional, repeated = 0, 1, 2

// A Kind is what the values of a column are, by NumPy's letters.
type Kind byte

// Kinds of columns that can be read.
const (
	Bool     Kind = 'b' // a byte, 0 or 1
	Signed   Kind = 'i'
	Unsigned Kind = 'u'
	Float    Kind = 'f'
	Text     Kind = 'S'
)

// A Column is a field of a file's rows.
type Column struct {
	Name string
	Kind Kind // 0: it cannot be read
	// Is says in words what the column is, such as "a timestamp" or "a list of numbers".
	Is   string
	Size int  // bytes of a number
	List bool // every row has a list of values
	Byte bool // numbers from 0 to 255

	physical       int
	leaf           int // index among the columns that are stored
	maxDef, maxRep int
}

// A File is a Parquet file.
type File struct {
	Columns []Column
	Rows    int

	r      io.ReaderAt
	size   int
	groups []rowGroup
}

// Most is how many values a file of its size may have: runs of equal ones take nearly
// nothing, and what has more of them than any data is no table but a trap.
func (f *File) Most() int { return max(1<<24, f.size<<12) }

// A rowGroup is a part of the rows, with a chunk of each stored column.
type rowGroup struct {
	rows   int
	chunks []chunk
}

// A chunk is where values of a stored column are.
type chunk struct {
	codec, values, start, bytes int
	encrypted                   bool
}

// Open reads what a file of the given size in bytes says about itself.
func Open(r io.ReaderAt, size int64) (*File, error) {
	const ends = int64(len(Magic) + 4 + len(Magic))
	if size < ends {
		return nil, damaged("it has %d bytes, fewer than any Parquet file", size)
	}
	var tail [8]byte
	if err := readAt(r, tail[:], size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case Magic:
	case "PARE":
		return nil, unsupported("the file is encrypted; write it without encryption")
	default:
		return nil, damaged("it does not end with %s, so that it is truncated", Magic)
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length > size-ends {
		return nil, damaged("its metadata claim to take %d bytes of the file's %d", length, size)
	}
	footer := make([]byte, length)
	if err := readAt(r, footer, size-8-length); err != nil {
		return nil, err
	}
	meta, _, err := parse(footer)
	if err != nil {
		return nil, err
	}
	f := &File{r: r, size: int(size)}
	return f, f.describe(meta)
}

// readAt fills b with the bytes from off on.
func readAt(r io.ReaderAt, b []byte, off int64) error {
	if n, err := r.ReadAt(b, off); n < len(b) {
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return damaged("it ends early")
		}
		return fmt.Errorf("reading failed: %w", err)
	}
	return nil
}

// describe makes the columns and row groups of the metadata.
func (f *File) describe(meta value) error {
	leaves, err := f.columns(meta.field(2).parts)
	if err != nil {
		return err
	}
	for _, v := range meta.field(4).parts {
		g := rowGroup{rows: v.get(3, 0)}
		for _, v := range v.field(1).parts {
			m := v.field(3)
			c := chunk{codec: m.get(4, 0), values: m.get(5, 0), bytes: m.get(7, 0), start: m.get(9, 0), encrypted: v.field(8).id != 0}
			if dictionary := m.get(11, 0); dictionary > 0 && dictionary < c.start {
				c.start = dictionary
			}
			if c.start < len(Magic) || c.bytes < 0 || c.start > f.size || c.bytes > f.size-c.start {
				return damaged("a column lies outside of it, or it is truncated")
			}
			g.chunks = append(g.chunks, c)
		}
		if len(g.chunks) != leaves {
			return damaged("a row group has %d columns, the schema %d", len(g.chunks), leaves)
		}
		if g.rows < 0 || g.rows > math.MaxInt32-f.Rows {
			return damaged("its row groups have an impossible number of rows")
		}
		f.Rows += g.rows
		f.groups = append(f.groups, g)
	}
	if rows := meta.get(3, 0); rows != f.Rows {
		return damaged("it announces %d rows, and its row groups %d", rows, f.Rows)
	}
	return nil
}

// Fields of an element of the schema; the logical type is a union.
const schemaType, schemaLength, schemaRepetition, schemaName, schemaChildren, schemaConverted, schemaLogical = 1, 2, 3, 4, 5, 6, 10

// columns makes the columns of the fields of the schema, and returns the number of those
// that are stored.
func (f *File) columns(schema []value) (leaves int, err error) {
	if len(schema) == 0 || schema[0].get(schemaType, -1) >= 0 {
		return 0, damaged("it has no schema")
	}
	rest := schema[1:]
	for range schema[0].get(schemaChildren, 0) {
		// An element is followed by all that are below it.
		size, open := 0, 1
		for ; open != 0 && size < len(rest); size++ {
			open += rest[size].get(schemaChildren, 0) - 1
		}
		if open != 0 {
			return 0, damaged("its schema contradicts itself")
		}
		c := newColumn(rest[:size])
		c.leaf = leaves
		f.Columns = append(f.Columns, c)
		for _, e := range rest[:size] {
			if e.get(schemaType, -1) >= 0 {
				leaves++
			}
		}
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return 0, damaged("its schema contradicts itself")
	}
	return leaves, nil
}

// Logical types, by their field in the union, and converted types, their predecessors.
const (
	logicalList, convertedList = 3, 3
	logicalInteger             = 10
	logicalFloat16             = 15
	convertedUint8             = 11 // to 14 of 64 bits
)

// others are the types that are neither plain numbers nor texts.
var others = []struct {
	is        string
	logical   int
	converted []int
}{
	{"a decimal number", 5, []int{5}},
	{"a date", 6, []int{6}},
	{"a time", 7, []int{7, 8, 21}},
	{"a point in time", 8, []int{9, 10}},
}

// logicalType returns the logical type of an element, 0 without one, and the converted
// one, -1 without one.
func logicalType(element value) (logical value, converted int) {
	if union := element.field(schemaLogical).parts; len(union) > 0 {
		logical = union[0]
	}
	return logical, element.get(schemaConverted, -1)
}

// newColumn makes a column of the elements of a field.
func newColumn(field []value) Column {
	c := Column{Name: string(field[0].field(schemaName).text)}
	last := len(field) - 1
	leaf := field[last]
	logical, converted := logicalType(field[0])
	isList := converted == convertedList || logical.id == logicalList
	if leaf.get(schemaType, -1) < 0 || last > 0 && (!isList || last > 2 || field[1].get(schemaRepetition, 0) != repeated || last == 2 && leaf.get(schemaRepetition, 0) == repeated) {
		c.Is = "a structure of several columns"
		return c
	}
	for _, e := range field {
		switch e.get(schemaRepetition, 0) {
		case repeated:
			c.maxRep++
			fallthrough
		case optional:
			c.maxDef++
		}
	}
	c.List = c.maxRep > 0
	c.physical = leaf.get(schemaType, -1)
	c.setKind(leaf)
	if c.List && c.Kind != 0 {
		c.Is = "a list of " + map[bool]string{true: "texts", false: "numbers"}[c.Kind == Text]
	}
	return c
}

// setKind finds out what the values of a leaf are.
func (c *Column) setKind(leaf value) {
	number := func(kind Kind, size int) { c.Kind, c.Size, c.Is = kind, size, "a number" }
	logical, converted := logicalType(leaf)
	for _, t := range others {
		if t.logical == logical.id || slices.Contains(t.converted, converted) {
			c.Is = t.is
			return
		}
	}
	switch {
	case c.physical == typeInt96:
		c.Is = "a point in time"
	case c.physical == typeBool:
		number(Bool, 1)
	case c.physical == typeInt32 || c.physical == typeInt64:
		number(Signed, 4*c.physical)
		unsigned := logical.id == logicalInteger && logical.get(2, 0) == 0
		c.Byte = converted == convertedUint8 || unsigned && logical.get(1, 0) == 8
		if unsigned || converted >= convertedUint8 && converted < convertedUint8+4 {
			c.Kind = Unsigned
		}
	case c.physical == typeFloat:
		number(Float, 4)
	case c.physical == typeDouble:
		number(Float, 8)
	case c.physical == typeFixed && logical.id == logicalFloat16 && leaf.get(schemaLength, 0) == 2:
		number(Float, 2)
	case c.physical == typeBytes:
		c.Kind, c.Is = Text, "text"
	default:
		c.Is = "of a type that is no number and no text"
	}
}
