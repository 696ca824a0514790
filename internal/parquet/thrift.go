package parquet

import (
	"encoding/binary"
	"iter"
)

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

// structure encodes fields, given by their number and value in turn: an int32 or int64, a
// text, an encoded structure, or a list of some of these.
func structure(fields ...any) []byte {
	var b []byte
	last := 0
	for i := 0; i < len(fields); i += 2 {
		kind, v := encode(fields[i+1])
		b = append(append(b, byte(fields[i].(int)-last)<<4|kind), v...)
		last = fields[i].(int)
	}
	return append(b, thriftStop)
}

func encode(v any) (kind byte, b []byte) {
	switch v := v.(type) {
	case int32:
		return thriftI32, binary.AppendVarint(nil, int64(v))
	case int64:
		return thriftI64, binary.AppendVarint(nil, v)
	case string:
		return thriftBinary, append(binary.AppendUvarint(nil, uint64(len(v))), v...)
	case []any:
		for _, e := range v {
			var element []byte
			kind, element = encode(e)
			b = append(b, element...)
		}
		if len(v) < 15 {
			return thriftList, append([]byte{byte(len(v))<<4 | kind}, b...)
		}
		return thriftList, append(binary.AppendUvarint([]byte{0xf0 | kind}, uint64(len(v))), b...)
	}
	return thriftStruct, v.([]byte)
}
