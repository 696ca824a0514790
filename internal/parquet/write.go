package parquet

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/snappy"
)

// groupRows is how many rows are written in a row group, which is a page of each column.
const groupRows = 1 << 17

// A Field is a column to be written; of its functions, which return the value of a row,
// one is set.
type Field struct {
	Name   string
	Float  func(row int) float32
	Double func(row int) float64
	Whole  func(row int) int64
	Text   func(row int) string
}

// physical returns the type of the values, and the codec of their pages.
func (f *Field) physical() (physical, codec int) {
	switch {
	case f.Float != nil:
		return typeFloat, codecNone
	case f.Double != nil:
		return typeDouble, codecNone
	case f.Whole != nil:
		return typeInt64, codecSnappy
	}
	return typeBytes, codecSnappy
}

// plain appends the values of rows lo to hi−1.
func (f *Field) plain(b []byte, lo, hi int) []byte {
	for i := lo; i < hi; i++ {
		switch {
		case f.Float != nil:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f.Float(i)))
		case f.Double != nil:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f.Double(i)))
		case f.Whole != nil:
			b = binary.LittleEndian.AppendUint64(b, uint64(f.Whole(i)))
		default:
			s := f.Text(i)
			b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
		}
	}
	return b
}

// A written chunk is one that stands in the file.
type written struct {
	start, packed, unpacked int // bytes, with the head of the page
	rows                    int
}

// Write writes a table of so many rows, whose values are all there. The error is that of
// w. Texts have to be UTF-8.
func Write(w io.Writer, rows int, fields []Field) error {
	out := bufio.NewWriterSize(w, 1<<16)
	out.WriteString(Magic)
	at := len(Magic)
	var groups [][]written
	var b []byte
	for lo := 0; lo < rows; lo += groupRows {
		hi := min(rows, lo+groupRows)
		var group []written
		for i := range fields {
			f := &fields[i]
			b = f.plain(b[:0], lo, hi)
			if len(b) > math.MaxInt32 {
				return fmt.Errorf("the values of the column %.60q are too long for Parquet", f.Name)
			}
			page := b
			if _, codec := f.physical(); codec == codecSnappy {
				page = snappy.Encode(nil, b)
			}
			head := pageBegin(hi-lo, len(b), len(page))
			out.Write(head)
			if _, err := out.Write(page); err != nil {
				return err
			}
			group = append(group, written{at, len(head) + len(page), len(head) + len(b), hi - lo})
			at += len(head) + len(page)
		}
		groups = append(groups, group)
	}
	footer := footer(rows, fields, groups)
	out.Write(footer)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))))
	out.WriteString(Magic)
	// A bufio.Writer keeps the first error and returns it here.
	return out.Flush()
}

// pageBegin returns the head of a page.
func pageBegin(rows, unpacked, packed int) []byte {
	var e encoder
	e.structure(func() {
		e.i32(1, pageData)
		e.i32(2, unpacked)
		e.i32(3, packed)
		e.field(5, thriftStruct)
		e.structure(func() {
			e.i32(1, rows)
			e.i32(2, encodingPlain)
			e.i32(3, encodingRLE)
			e.i32(4, encodingRLE)
		})
	})
	return e.b
}

func footer(rows int, fields []Field, groups [][]written) []byte {
	var e encoder
	e.structure(func() {
		e.i32(1, 1) // version
		e.list(2, thriftStruct, 1+len(fields))
		e.structure(func() {
			e.text(4, "schema")
			e.i32(5, len(fields))
		})
		for i := range fields {
			physical, _ := fields[i].physical()
			e.structure(func() {
				e.i32(1, physical)
				e.i32(3, required)
				e.text(4, fields[i].Name)
				if physical == typeBytes {
					e.i32(6, 0) // converted type: UTF8
					e.field(10, thriftStruct)
					e.structure(func() { // logical type
						e.field(1, thriftStruct) // STRING
						e.structure(func() {})
					})
				}
			})
		}
		e.i64(3, rows)
		e.list(4, thriftStruct, len(groups))
		for _, group := range groups {
			e.structure(func() { footerGroup(&e, fields, group) })
		}
		e.text(6, "cne")
	})
	return e.b
}

func footerGroup(e *encoder, fields []Field, group []written) {
	e.list(1, thriftStruct, len(fields))
	total := 0
	for i, c := range group {
		total += c.unpacked
		physical, codec := fields[i].physical()
		e.structure(func() {
			e.i64(2, c.start)
			e.field(3, thriftStruct)
			e.structure(func() {
				e.i32(1, physical)
				e.list(2, thriftI32, 2)
				e.b = binary.AppendVarint(e.b, encodingPlain)
				e.b = binary.AppendVarint(e.b, encodingRLE)
				e.list(3, thriftBinary, 1)
				e.string(fields[i].Name)
				e.i32(4, codec)
				e.i64(5, c.rows)
				e.i64(6, c.unpacked)
				e.i64(7, c.packed)
				e.i64(9, c.start)
			})
		})
	}
	e.i64(2, total)
	e.i64(3, group[0].rows)
}
