package parquet

import (
	"encoding/binary"
	"math"
)

// The types of Thrift's compact protocol.
const (
	thriftStop = iota
	thriftTrue
	thriftFalse
	thriftByte
	thriftI16
	thriftI32
	thriftI64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

// maxDepth bounds how deep structures may be nested.
const maxDepth = 32

// errThrift is the error for metadata that are none.
var errThrift = damaged("its metadata cannot be understood")

// A decoder reads Thrift's compact protocol. The first fault makes all that follows
// return zeros, and is kept in err. Nothing is allocated on the word of a size: every
// element takes a byte at least.
type decoder struct {
	b     []byte
	depth int
	err   error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errThrift
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// integer reads an i16, i32 or i64.
func (d *decoder) integer() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// int32 reads an integer that has to be one of 32 bits.
func (d *decoder) int32() int {
	v := d.integer()
	if v < math.MinInt32 || v > math.MaxInt32 {
		d.fail()
	}
	return int(v)
}

func (d *decoder) binary() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	s := d.b[:n]
	d.b = d.b[n:]
	return s
}

// fields reads a structure: read is called for each field and has to read it, or to
// return false, by which it is passed over. The value of a boolean is its type.
func (d *decoder) fields(read func(id int, kind byte) bool) {
	if d.depth++; d.depth > maxDepth {
		d.fail()
	}
	for id := 0; d.err == nil; {
		head := d.byte()
		kind := head & 15
		if kind == thriftStop {
			break
		}
		if step := int(head >> 4); step > 0 {
			id += step
		} else {
			id = int(int16(d.integer()))
		}
		if !read(id, kind) {
			d.skip(kind)
		}
	}
	d.depth--
}

// list reads a list whose elements read has to read.
func (d *decoder) list(read func(kind byte)) {
	head := d.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = d.uvarint()
	}
	if n > uint64(len(d.b)) {
		d.fail()
		return
	}
	for ; n > 0 && d.err == nil; n-- {
		read(head & 15)
	}
}

// skip passes over a value.
func (d *decoder) skip(kind byte) {
	switch kind {
	case thriftTrue, thriftFalse:
	case thriftByte:
		d.byte()
	case thriftI16, thriftI32, thriftI64:
		d.uvarint()
	case thriftDouble:
		if len(d.b) < 8 {
			d.fail()
			return
		}
		d.b = d.b[8:]
	case thriftBinary:
		d.binary()
	case thriftList, thriftSet:
		if d.depth++; d.depth > maxDepth {
			d.fail()
		}
		d.list(d.skipElement)
		d.depth--
	case thriftMap:
		n := d.uvarint()
		if n == 0 {
			return
		}
		if d.depth++; d.depth > maxDepth {
			d.fail()
		}
		kinds := d.byte()
		for ; n > 0 && d.err == nil; n-- {
			d.skipElement(kinds >> 4)
			d.skipElement(kinds & 15)
		}
		d.depth--
	case thriftStruct:
		d.fields(func(int, byte) bool { return false })
	default:
		d.fail()
	}
}

// skipElement passes over a value in a list or map, where a boolean takes a byte.
func (d *decoder) skipElement(kind byte) {
	if kind == thriftTrue || kind == thriftFalse {
		kind = thriftByte
	}
	d.skip(kind)
}

// An encoder writes Thrift's compact protocol.
type encoder struct {
	b    []byte
	last []int // ids of the fields written last, of the structures that are open
}

func (e *encoder) field(id int, kind byte) {
	last := &e.last[len(e.last)-1]
	e.b = append(e.b, byte(id-*last)<<4|kind)
	*last = id
}

func (e *encoder) i32(id, v int) {
	e.field(id, thriftI32)
	e.b = binary.AppendVarint(e.b, int64(v))
}

func (e *encoder) i64(id, v int) {
	e.field(id, thriftI64)
	e.b = binary.AppendVarint(e.b, int64(v))
}

func (e *encoder) text(id int, s string) {
	e.field(id, thriftBinary)
	e.string(s)
}

func (e *encoder) string(s string) {
	e.b = append(binary.AppendUvarint(e.b, uint64(len(s))), s...)
}

// list begins a list of n elements.
func (e *encoder) list(id int, kind byte, n int) {
	e.field(id, thriftList)
	if n < 15 {
		e.b = append(e.b, byte(n)<<4|kind)
		return
	}
	e.b = binary.AppendUvarint(append(e.b, 0xf0|kind), uint64(n))
}

// structure writes a structure, whose fields write writes in the order of their ids.
func (e *encoder) structure(write func()) {
	e.last = append(e.last, 0)
	write()
	e.last = e.last[:len(e.last)-1]
	e.b = append(e.b, thriftStop)
}
