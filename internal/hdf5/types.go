package hdf5

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A Class is a kind of values.
type Class int

// The classes of values that are read. Values of other classes are refused.
const (
	Other    Class = iota
	Integer        // of 1, 2, 4 or 8 bytes
	Float          // IEEE 754, of 2, 4 or 8 bytes
	Text           // strings of fixed or variable length
	Enum           // integers with names, such as booleans
	Compound       // several members; see Dataset.Field
)

// A Type describes the values of a dataset.
type Type struct {
	Class     Class
	Size      int  // bytes of a value, as ReadRows reads it
	Signed    bool // of integers and enumerations
	BigEndian bool // the most significant byte comes first
	// Fields are the members of a compound, and Names the names of an enumeration's values.
	Fields []Field
	Names  map[int64]string

	fault    string // why values cannot be read; ""
	variable bool   // strings of variable length
	pad      byte   // after strings: 0 or a space
	stops    bool   // strings end at the first zero
}

// A Field is a member of a compound.
type Field struct {
	Name   string
	Type   *Type
	offset int
}

// IsBool reports whether the type is an enumeration of FALSE (0) and TRUE (1), as h5py
// writes booleans.
func (t *Type) IsBool() bool {
	return t.Class == Enum && len(t.Names) == 2 && t.Names[0] == "FALSE" && t.Names[1] == "TRUE"
}

// deepest is the largest depth of types within types.
const deepest = 8

// datatype reads a type.
func (c *cursor) datatype(depth int) *Type {
	first := c.int(1)
	version, class := first>>4, first&15
	flags, size := c.uint(3), c.int(4)
	c.must(size > 0 && depth <= deepest && version > 0, "got a type of %d bytes, %d levels deep, of version %d", size, depth, version)
	supported(version <= 5, "%s: got a type of version %d, want at most 5", c.what, version)
	t := &Type{Size: size, BigEndian: flags&1 != 0, fault: others[class]}
	pad := 8 // of names
	if version >= 3 {
		pad = 1
	}
	switch class {
	case 0:
		t.Class, t.Signed = Integer, flags&8 != 0
		if low, precision := c.int(2), c.int(2); low != 0 || precision != 8*size || size > 8 || bits.OnesCount(uint(size)) != 1 {
			t.fault = fmt.Sprintf("integers of %d bits in %d bytes", precision, size)
		}
	case 1:
		t.Class = Float
		exponent := map[int]byte{2: 5, 4: 8, 8: 11}[size]
		mantissa := byte(8*size-1) - exponent
		ieee := binary.LittleEndian.AppendUint16([]byte{0, 0}, uint16(8*size))
		ieee = binary.LittleEndian.AppendUint32(append(ieee, mantissa, exponent, 0, mantissa), 1<<exponent>>1-1)
		if is := c.bytes(12); exponent == 0 || flags&0xff70 != uint64(8*size-1)<<8|0x20 || !bytes.Equal(is, ieee) {
			t.fault = fmt.Sprintf("floating-point numbers of %d bytes that are not IEEE 754's", size)
		}
	case 2:
		c.skip(2)
	case 3:
		t.text(flags & 15)
	case 4:
		c.skip(4)
	case 5:
		c.skip(int(flags & 0xff))
	case 6:
		t.Class = Compound
		offset := 4 // bytes of an offset
		if version >= 3 {
			offset = limitBytes(uint64(size))
		}
		for range flags & 0xffff {
			m := Field{Name: c.name(pad), offset: c.int(offset)}
			rank := 0
			if version == 1 {
				rank = c.int(1)
				c.skip(27)
			}
			if m.Type = c.datatype(depth + 1); rank > 0 {
				m.Type.fault = others[10]
			}
			c.must(m.offset <= size-m.Type.Size, "the member %q is outside its compound", m.Name)
			t.Fields = append(t.Fields, m)
		}
	case 8:
		base := c.datatype(depth + 1)
		t.Class, t.Signed, t.BigEndian, t.fault = Enum, base.Signed, base.BigEndian, base.fault
		c.must(base.Size == size && base.Class == Integer, "got an enumeration of %d bytes of values of %d bytes", size, base.Size)
		names := make([]string, flags&0xffff)
		for i := range names {
			names[i] = c.name(pad)
		}
		t.Names = make(map[int64]string)
		for _, name := range names {
			t.Names[t.Int(c.bytes(size))] = name
		}
	case 9:
		if t.variable = flags&15 == 1; t.variable {
			t.text(flags >> 4 & 15)
			t.fault = ""
		}
		c.must(size == 8+c.f.offset, "got values of variable length in %d bytes", size)
		c.datatype(depth + 1)
	case 10:
		rank := c.int(1)
		if version < 3 {
			c.skip(3 + 4*rank)
		}
		c.skip(4 * rank)
		c.datatype(depth + 1)
	}
	return t
}

// others are the classes of values that are not read.
var others = [16]string{
	2: "times", 4: "bit fields", 5: "opaque values", 6: "compounds as values", 7: "references", 9: "lists of variable length",
	10: "arrays as values", 11: "complex numbers", 12: "values of an unknown class", 13: "values of an unknown class",
	14: "values of an unknown class", 15: "values of an unknown class",
}

// text sets how strings end.
func (t *Type) text(padding uint64) {
	t.Class, t.stops = Text, padding == 0
	if padding == 2 {
		t.pad = ' '
	}
}

// Int returns a value of Integer or Enum. Unsigned values above 2⁶³−1 become negative.
func (t *Type) Int(b []byte) (v int64) {
	for i := range t.Size {
		if t.BigEndian {
			v = v<<8 | int64(b[i])
		} else {
			v = v<<8 | int64(b[t.Size-1-i])
		}
	}
	if shift := 64 - 8*t.Size; t.Signed {
		v = v << shift >> shift
	}
	return v
}

// space reads the shape of a dataset.
func (d *Dataset) space(c *cursor) {
	version := c.version(1, 2)
	rank, flags, is := c.int(1), c.int(1), c.int(1)
	if version == 1 {
		c.skip(4)
	} else if is == 2 { // null: no values
		rank, d.Shape = 0, []int{0}
	}
	c.must(rank <= 32, "got a shape of %d dimensions", rank)
	total := uint64(d.Type.Size)
	for range rank {
		n := c.len()
		total = sum(total, max(1, n))
		c.must(total <= 1<<60, "got a shape that does not fit into memory")
		d.Shape, d.most = append(d.Shape, int(n)), append(d.most, n)
	}
	for i := range d.most[:rank*(flags&1)] {
		if d.most[i] = c.len(); d.most[i] == undefined>>(64-8*c.f.length) {
			d.most[i] = undefined
		}
	}
}

// bytes returns the number of bytes of all values as they are stored.
func (d *Dataset) bytes() uint64 {
	n := uint64(d.Type.Size)
	for _, s := range d.Shape {
		n *= uint64(s)
	}
	return n
}
