package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// This file writes what this package reads and does not write itself, as the specification
// says and without the code that reads it.

// A testColumn is a column of a file that is made for a test.
type testColumn struct {
	name           string
	physical       int
	length         int // of typeFixed
	logical        int // 0: none; of a logicalInteger bits and signed count
	bits           int
	signed         bool
	optional, list bool
	codec          int
	groups         [][]testPage
}

// A testPage is a page with its values as they are encoded, and its levels.
type testPage struct {
	kind, encoding int
	values         int      // missing ones included; of a dictionary its entries
	rep, def       []uint32 // nil: none
	body           []byte
	crc            bool
	plainBody      bool // of version 2: not compressed
}

// leb appends a number of 7 bits a byte.
func leb(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

// runs encodes small numbers as runs and packed groups by turns, as r likes. The last
// group may be filled up with anything.
func runs(r *rand.Rand, v []uint32, width int) []byte {
	var b []byte
	for len(v) > 0 {
		same := 1
		for same < len(v) && v[same] == v[0] {
			same++
		}
		if same >= 8 && r.IntN(4) > 0 || r.IntN(8) == 0 {
			n := 1 + r.IntN(same)
			b = leb(b, uint64(n)<<1)
			for k := range (width + 7) / 8 {
				b = append(b, byte(v[0]>>(8*k)))
			}
			v = v[n:]
			continue
		}
		groups := 1 + r.IntN(4)
		if 8*groups > len(v) {
			groups = (len(v) + 7) / 8
		}
		b = leb(b, uint64(groups)<<1|1)
		b = append(b, packed(v[:min(len(v), 8*groups)], 8*groups, width)...)
		v = v[min(len(v), 8*groups):]
	}
	return b
}

// packed writes numbers bit by bit, filled up to so many.
func packed(v []uint32, count, width int) []byte {
	out := make([]byte, (count*width+7)/8)
	for i, x := range v {
		for k := range width {
			if x>>k&1 != 0 {
				at := i*width + k
				out[at/8] |= 1 << (at % 8)
			}
		}
	}
	return out
}

// differences is DELTA_BINARY_PACKED in blocks of 128 numbers and 4 parts.
func differences(v []int64) []byte {
	const block, parts = 128, 4
	b := leb(leb(leb(nil, block), parts), uint64(len(v)))
	if len(v) == 0 {
		return append(b, 0)
	}
	b = binary.AppendVarint(b, v[0])
	for at := 1; at < len(v); at += block {
		ds := make([]int64, min(block, len(v)-at))
		least := int64(1<<63 - 1)
		for i := range ds {
			ds[i] = v[at+i] - v[at+i-1]
			least = min(least, ds[i])
		}
		b = binary.AppendVarint(b, least)
		widths, body := make([]byte, parts), []byte(nil)
		for p := range parts {
			lo, hi := min(p*block/parts, len(ds)), min((p+1)*block/parts, len(ds))
			width := 0
			for _, d := range ds[lo:hi] {
				width = max(width, bits.Len64(uint64(d)-uint64(least)))
			}
			if lo == hi { // the widths of parts that are not needed may be anything
				widths[p] = 33
				continue
			}
			widths[p] = byte(width)
			out := make([]byte, block/parts*width/8)
			for i, d := range ds[lo:hi] {
				x := uint64(d) - uint64(least)
				for k := range width {
					if x>>k&1 != 0 {
						out[(i*width+k)/8] |= 1 << ((i*width + k) % 8)
					}
				}
			}
			body = append(body, out...)
		}
		b = append(append(b, widths...), body...)
	}
	return b
}

// split is BYTE_STREAM_SPLIT of numbers of a size.
func split(raw []byte, size int) []byte {
	n := len(raw) / size
	out := make([]byte, len(raw))
	for i := range n {
		for k := range size {
			out[k*n+i] = raw[i*size+k]
		}
	}
	return out
}

// plainTexts is PLAIN of texts.
func plainTexts(texts []string) (b []byte) {
	for _, s := range texts {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	return b
}

// squeeze compresses.
func squeeze(t testing.TB, codec int, b []byte) []byte {
	switch codec {
	case codecSnappy:
		return snappy.Encode(nil, b)
	case codecGzip:
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write(b)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	case codecZstd:
		z, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		return z.EncodeAll(b, nil)
	}
	return b
}

// bytes returns the page as it stands in a file.
func (p *testPage) bytes(t testing.TB, r *rand.Rand, c *testColumn) []byte {
	levels := func(v []uint32, most int) []byte {
		if most == 0 {
			return nil
		}
		return runs(r, v, bits.Len(uint(most)))
	}
	mostRep, mostDef := c.levels()
	rep, def := levels(p.rep, mostRep), levels(p.def, mostDef)
	var content []byte
	var unpacked int
	switch p.kind {
	case pageDataV2:
		body := p.body
		if !p.plainBody {
			body = squeeze(t, c.codec, body)
		}
		content = append(append(append(content, rep...), def...), body...)
		unpacked = len(rep) + len(def) + len(p.body)
	default:
		if p.kind == pageData {
			for _, l := range []struct {
				b    []byte
				most int
			}{{rep, mostRep}, {def, mostDef}} {
				if l.most > 0 {
					content = append(binary.LittleEndian.AppendUint32(content, uint32(len(l.b))), l.b...)
				}
			}
		}
		content = append(content, p.body...)
		unpacked = len(content)
		content = squeeze(t, c.codec, content)
	}
	var e encoder
	e.structure(func() {
		e.i32(1, p.kind)
		e.i32(2, unpacked)
		e.i32(3, len(content))
		if p.crc {
			e.i32(4, int(int32(crcOf(content))))
		}
		id := map[int]int{pageData: 5, pageDictionary: 7, pageDataV2: 8}[p.kind]
		e.field(id, thriftStruct)
		e.structure(func() {
			e.i32(1, p.values)
			if p.kind != pageDataV2 {
				e.i32(2, p.encoding)
				return
			}
			e.i32(2, 0)
			e.i32(3, p.values)
			e.i32(4, p.encoding)
			e.i32(5, len(def))
			e.i32(6, len(rep))
			if p.plainBody {
				e.field(7, thriftFalse)
			}
		})
	})
	return append(e.b, content...)
}

// levels returns the largest levels.
func (c *testColumn) levels() (rep, def int) {
	if c.optional {
		def++
	}
	if c.list {
		rep, def = rep+1, def+2
	}
	return rep, def
}

// buildFile returns a file of columns, whose row groups have so many rows each.
func buildFile(t testing.TB, r *rand.Rand, rows []int, columns []testColumn) []byte {
	out := []byte(Magic)
	type where struct{ start, size, values, dictionary int }
	places := make([][]where, len(columns))
	for ci := range columns {
		c := &columns[ci]
		for _, group := range c.groups {
			w := where{start: len(out), dictionary: -1}
			for pi := range group {
				p := &group[pi]
				switch p.kind {
				case pageDictionary:
					w.dictionary = len(out)
				case pageData, pageDataV2:
					if w.values == 0 {
						w.start = len(out)
					}
					w.values += p.values
				}
				b := p.bytes(t, r, c)
				out = append(out, b...)
				w.size += len(b)
			}
			places[ci] = append(places[ci], w)
		}
	}
	total := 0
	for _, n := range rows {
		total += n
	}
	var e encoder
	e.structure(func() {
		e.i32(1, 2)
		count := 1
		for i := range columns {
			count++
			if columns[i].list {
				count += 2
			}
		}
		e.list(2, thriftStruct, count)
		e.structure(func() {
			e.text(4, "schema")
			e.i32(5, len(columns))
		})
		for i := range columns {
			columns[i].schema(&e)
		}
		e.i64(3, total)
		e.list(4, thriftStruct, len(rows))
		for g, n := range rows {
			e.structure(func() {
				e.list(1, thriftStruct, len(columns))
				for ci := range columns {
					w := places[ci][g]
					e.structure(func() {
						e.field(3, thriftStruct)
						e.structure(func() {
							e.i32(1, columns[ci].physical)
							e.i32(4, columns[ci].codec)
							e.i64(5, w.values)
							e.i64(7, w.size)
							e.i64(9, w.start)
							if w.dictionary >= 0 {
								e.i64(11, w.dictionary)
							}
						})
					})
				}
				e.i64(3, n)
			})
		}
	})
	out = append(out, e.b...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(e.b)))
	return append(out, Magic...)
}

// schema writes the elements of the column.
func (c *testColumn) schema(e *encoder) {
	leaf := func(name string, repetition int) {
		e.structure(func() {
			e.i32(1, c.physical)
			if c.physical == typeFixed {
				e.i32(2, c.length)
			}
			e.i32(3, repetition)
			e.text(4, name)
			if c.logical == 0 {
				return
			}
			e.field(10, thriftStruct)
			e.structure(func() {
				e.field(c.logical, thriftStruct)
				e.structure(func() {
					if c.logical != logicalInteger {
						return
					}
					e.field(1, thriftByte)
					e.b = append(e.b, byte(c.bits))
					if c.signed {
						e.field(2, thriftTrue)
					} else {
						e.field(2, thriftFalse)
					}
				})
			})
		})
	}
	outer := required
	if c.optional {
		outer = optional
	}
	if !c.list {
		leaf(c.name, outer)
		return
	}
	e.structure(func() {
		e.i32(3, outer)
		e.text(4, c.name)
		e.i32(5, 1)
		e.i32(6, 3)
	})
	e.structure(func() {
		e.i32(3, repeated)
		e.text(4, "list")
		e.i32(5, 1)
	})
	leaf("element", optional)
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
