package hdf5

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
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
	Fields    []Field

	names    map[string]string // of the values of an enumeration, as they are stored
	fault    string            // why values cannot be read; ""
	variable bool              // strings of variable length
	padding  uint64            // of strings: 0: they end at the first zero; 1: zeros, 2: spaces follow
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
	return len(t.names) == 2 && t.names[string(make([]byte, t.Size))] == "FALSE" && slices.Contains(slices.Collect(maps.Values(t.names)), "TRUE")
}

// deepest is the largest depth of types within types.
const deepest = 8

// datatype reads a type.
func (c *cursor) datatype(depth int) *Type {
	first := c.int(1)
	version, class := first>>4, first&15
	flags, size := c.uint(3), c.int(4)
	c.must(size > 0 && depth <= deepest && version > 0, "got a type of %d bytes, %d levels deep, of version %d", size, depth, version)
	supported(version <= 5 && class <= 11, "%s: got a type of class %d and version %d, want at most 11 and 5", c.what, class, version)
	t := &Type{Size: size, BigEndian: flags&1 != 0, fault: others[class]}
	pad, wide := 8, 4 // of names; bytes of offsets in a compound
	if version >= 3 {
		pad, wide = 1, limitBytes(uint64(size))
	}
	switch class {
	case 0:
		t.Class, t.Signed = Integer, flags&8 != 0
		if low, precision := c.int(2), c.int(2); low != 0 || precision != 8*size || size > 8 || bits.OnesCount(uint(size)) != 1 {
			t.fault = fmt.Sprintf("integers of %d bits in %d bytes", precision, size)
		}
	case 1:
		t.Class = Float
		// Precision; place and size of the exponent and of the mantissa; bias.
		ieee := map[int]string{2: "\x10\x00\x0a\x05\x00\x0a\x0f\x00", 4: "\x20\x00\x17\x08\x00\x17\x7f\x00", 8: "\x40\x00\x34\x0b\x00\x34\xff\x03"}[size]
		if is := string(c.bytes(12)); flags&0xff70 != uint64(8*size-1)<<8|0x20 || is != "\x00\x00"+ieee+"\x00\x00" {
			t.fault = fmt.Sprintf("floating-point numbers of %d bytes that are not IEEE 754's", size)
		}
	case 3:
		t.Class, t.padding = Text, flags&15
	case 2, 4, 5:
		c.skip([]int{2: 2, 4: 4, 5: int(flags & 0xff)}[class])
	case 6:
		t.Class = Compound
		for range flags & 0xffff {
			m, rank := Field{Name: c.name(pad), offset: c.int(wide)}, 0
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
		t.names = make(map[string]string)
		for _, name := range names {
			t.names[string(c.bytes(size))] = name
		}
	case 9:
		if t.variable = flags&15 == 1; t.variable {
			t.Class, t.padding, t.fault = Text, flags>>4&15, ""
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
	10: "arrays as values", 11: "complex numbers",
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
		d.most[i] = c.limit(c.f.length)
	}
}

// bytes returns the number of bytes of all values as they are stored.
func (d *Dataset) bytes() uint64 {
	n, row := d.Rows()
	return uint64(n) * uint64(row)
}
