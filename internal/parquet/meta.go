package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Magic is what Parquet files begin and end with.
const Magic = "PAR1"

// Physical types.
const (
	typeBool = iota
	typeInt32
	typeInt64
	typeInt96
	typeFloat
	typeDouble
	typeBytes
	typeFixed
)

// Repetitions.
const (
	required = iota
	optional
	repeated
)

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
	size   int64
	groups []rowGroup
}

// Most is how many values a file of its size may have: runs of equal ones take nearly
// nothing, and what has more of them than any data is no table but a trap.
func (f *File) Most() int { return int(max(1<<24, f.size<<12)) }

// A rowGroup is a part of the rows, with a chunk of each stored column.
type rowGroup struct {
	rows   int
	chunks []chunk
}

// A chunk is where values of a stored column are.
type chunk struct {
	codec        int
	values       int
	start, bytes int64
	encrypted    bool
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
	f := &File{r: r, size: size}
	return f, f.parse(footer)
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

// An element is a node of the schema, before those below it.
type element struct {
	name       string
	physical   int // -1: a group
	length     int
	repetition int
	children   int
	converted  int // -1: none
	logical    int // the field of the union of logical types; 0: none
	bits       int // of a logical type of integers
	signed     bool
}

func (f *File) parse(footer []byte) error {
	d := &decoder{b: footer}
	var schema []element
	rows := int64(0)
	d.fields(func(id int, kind byte) bool {
		switch {
		case id == 2 && kind == thriftList:
			d.list(func(kind byte) {
				if kind != thriftStruct {
					d.fail()
				}
				schema = append(schema, d.element())
			})
		case id == 3 && kind == thriftI64:
			rows = d.integer()
		case id == 4 && kind == thriftList:
			d.list(func(kind byte) {
				if kind != thriftStruct {
					d.fail()
				}
				f.groups = append(f.groups, d.rowGroup())
			})
		default:
			return false
		}
		return true
	})
	if d.err != nil {
		return d.err
	}
	leaves, err := f.columns(schema)
	if err != nil {
		return err
	}
	total := 0
	for _, g := range f.groups {
		if len(g.chunks) != leaves {
			return damaged("a row group has %d columns, the schema %d", len(g.chunks), leaves)
		}
		if g.rows < 0 || g.rows > math.MaxInt32-total {
			return damaged("its row groups have an impossible number of rows")
		}
		total += g.rows
		for _, c := range g.chunks {
			if c.start < int64(len(Magic)) || c.bytes < 0 || c.start > f.size || c.bytes > f.size-c.start {
				return damaged("a column lies outside of it, or it is truncated")
			}
		}
	}
	if rows != int64(total) {
		return damaged("it announces %d rows, and its row groups %d", rows, total)
	}
	f.Rows = total
	return nil
}

func (d *decoder) element() element {
	e := element{physical: -1, converted: -1}
	d.fields(func(id int, kind byte) bool {
		switch {
		case kind == thriftI32 && id == 1:
			e.physical = d.int32()
		case kind == thriftI32 && id == 2:
			e.length = d.int32()
		case kind == thriftI32 && id == 3:
			e.repetition = d.int32()
		case kind == thriftBinary && id == 4:
			e.name = string(d.binary())
		case kind == thriftI32 && id == 5:
			e.children = d.int32()
		case kind == thriftI32 && id == 6:
			e.converted = d.int32()
		case kind == thriftStruct && id == 10:
			d.logicalType(&e)
		default:
			return false
		}
		return true
	})
	return e
}

// logicalType reads a union, which has one field.
func (d *decoder) logicalType(e *element) {
	d.fields(func(id int, kind byte) bool {
		e.logical = id
		if id != logicalInteger || kind != thriftStruct {
			return false
		}
		d.fields(func(id int, kind byte) bool {
			switch {
			case id == 1 && kind == thriftByte:
				e.bits = int(d.byte())
				return true
			case id == 2:
				e.signed = kind == thriftTrue
			}
			return false
		})
		return true
	})
}

func (d *decoder) rowGroup() rowGroup {
	var g rowGroup
	d.fields(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == thriftList:
			d.list(func(kind byte) {
				if kind != thriftStruct {
					d.fail()
				}
				g.chunks = append(g.chunks, d.chunk())
			})
		case id == 3 && kind == thriftI64:
			g.rows = int(d.integer())
		default:
			return false
		}
		return true
	})
	return g
}

func (d *decoder) chunk() chunk {
	var c chunk
	dictionary := int64(0)
	d.fields(func(id int, kind byte) bool {
		c.encrypted = c.encrypted || id == 8
		if id != 3 || kind != thriftStruct {
			return false
		}
		d.fields(func(id int, kind byte) bool {
			switch {
			case id == 4 && kind == thriftI32:
				c.codec = d.int32()
			case id == 5 && kind == thriftI64:
				c.values = int(d.integer())
			case id == 7 && kind == thriftI64:
				c.bytes = d.integer()
			case id == 9 && kind == thriftI64:
				c.start = d.integer()
			case id == 11 && kind == thriftI64:
				dictionary = d.integer()
			default:
				return false
			}
			return true
		})
		return true
	})
	if dictionary > 0 && dictionary < c.start {
		c.start = dictionary
	}
	return c
}

// columns makes the columns of the fields of the schema, and returns the number of those
// that are stored.
func (f *File) columns(schema []element) (leaves int, err error) {
	if len(schema) == 0 || schema[0].physical >= 0 {
		return 0, damaged("it has no schema")
	}
	at := 1
	for range schema[0].children {
		next, stored, err := subtree(schema, at, 0)
		if err != nil {
			return 0, err
		}
		c := newColumn(schema[at:next])
		c.leaf = leaves
		f.Columns = append(f.Columns, c)
		at, leaves = next, leaves+stored
	}
	if at != len(schema) {
		return 0, damaged("its schema contradicts itself")
	}
	return leaves, nil
}

// subtree returns where the element after the one at a place, and after all below it,
// stands, and the number of stored columns.
func subtree(schema []element, at, depth int) (next, stored int, err error) {
	if at >= len(schema) || depth > maxDepth || schema[at].children < 0 {
		return 0, 0, damaged("its schema contradicts itself")
	}
	e := schema[at]
	next = at + 1
	if e.physical >= 0 {
		return next, 1, nil
	}
	for range e.children {
		n := 0
		if next, n, err = subtree(schema, next, depth+1); err != nil {
			return 0, 0, err
		}
		stored += n
	}
	return next, stored, nil
}

// Logical types, by their field in the union, and converted types, their predecessors.
const (
	logicalList      = 3
	logicalDecimal   = 5
	logicalDate      = 6
	logicalTime      = 7
	logicalTimestamp = 8
	logicalInteger   = 10
	logicalFloat16   = 15

	convertedList      = 3
	convertedDecimal   = 5
	convertedDate      = 6
	convertedTimes     = 7  // and 8
	convertedTimestamp = 9  // and 10
	convertedUint8     = 11 // to 14 of 64 bits
	convertedInterval  = 21
)

// newColumn makes a column of the elements of a field.
func newColumn(field []element) Column {
	c := Column{Name: field[0].name}
	leaf := field[0]
	isList := leaf.converted == convertedList || leaf.logical == logicalList
	switch {
	case leaf.physical >= 0:
	case isList && len(field) == 2 && field[1].physical >= 0 && field[1].repetition == repeated,
		isList && len(field) == 3 && field[1].repetition == repeated && field[2].physical >= 0 && field[2].repetition != repeated:
		leaf = field[len(field)-1]
	default:
		c.Is = "a structure of several columns"
		return c
	}
	for _, e := range field {
		if e.repetition == optional || e.repetition == repeated {
			c.maxDef++
		}
		if e.repetition == repeated {
			c.maxRep++
		}
	}
	c.List = c.maxRep > 0
	c.physical = leaf.physical
	c.describe(leaf)
	if c.List && c.Kind != 0 {
		c.Is = "a list of " + map[bool]string{true: "texts", false: "numbers"}[c.Kind == Text]
	}
	return c
}

// describe finds out what the values of a leaf are.
func (c *Column) describe(e element) {
	number := func(kind Kind, size int) { c.Kind, c.Size, c.Is = kind, size, "a number" }
	switch {
	case e.converted == convertedDecimal || e.logical == logicalDecimal:
		c.Is = "a decimal number"
	case e.physical == typeInt96, e.converted == convertedTimestamp, e.converted == convertedTimestamp+1, e.logical == logicalTimestamp:
		c.Is = "a point in time"
	case e.converted == convertedDate || e.logical == logicalDate:
		c.Is = "a date"
	case e.converted == convertedTimes, e.converted == convertedTimes+1, e.converted == convertedInterval, e.logical == logicalTime:
		c.Is = "a time"
	case e.physical == typeBool:
		number(Bool, 1)
	case e.physical == typeInt32 || e.physical == typeInt64:
		unsigned := e.converted >= convertedUint8 && e.converted < convertedUint8+4 || e.logical == logicalInteger && !e.signed
		c.Byte = e.converted == convertedUint8 || e.logical == logicalInteger && !e.signed && e.bits == 8
		kind := Signed
		if unsigned {
			kind = Unsigned
		}
		number(kind, map[int]int{typeInt32: 4, typeInt64: 8}[e.physical])
	case e.physical == typeFloat:
		number(Float, 4)
	case e.physical == typeDouble:
		number(Float, 8)
	case e.physical == typeFixed && e.logical == logicalFloat16 && e.length == 2:
		number(Float, 2)
	case e.physical == typeBytes:
		c.Kind, c.Is = Text, "text"
	default:
		c.Is = "of a type that is no number and no text"
	}
}
