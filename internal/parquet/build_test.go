package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// This file writes what this package reads, as the specification says and without the code
// that reads it.

// A testColumn is a column of a file that is made for a test.
type testColumn struct {
	name           string
	physical       int
	length         int // of typeFixed
	logical        int // 0: none; of a logicalInteger without sign the bits count
	bits           int
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

// packed bit-packs numbers and pads them with zeros to count.
func packed[T uint32 | uint64](v []T, count, width int) []byte {
	out := make([]byte, (count*width+7)/8)
	for i, x := range v {
		for k := range width {
			at := i*width + k
			out[at/8] |= byte(x>>k&1) << (at % 8)
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
	for v := v; len(v) > 1; v = v[min(block, len(v)-1):] {
		least := int64(math.MaxInt64)
		for i, x := range v[1:min(1+block, len(v))] {
			least = min(least, x-v[i])
		}
		b = binary.AppendVarint(b, least)
		widths, body := bytes.Repeat([]byte{33}, parts), []byte(nil) // widths of unused parts are arbitrary
		for p := range parts {
			var part []uint64
			var all uint64
			for i := p * block / parts; i < min((p+1)*block/parts, len(v)-1); i++ {
				part = append(part, uint64(v[i+1]-v[i]-least))
				all |= part[len(part)-1]
			}
			if part != nil {
				widths[p] = byte(bits.Len64(all))
				body = append(body, packed(part, block/parts, int(widths[p]))...)
			}
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

// sized puts the size of b before it.
func sized(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// bytes returns the page as it stands in a file.
func (p *testPage) bytes(t testing.TB, r *rand.Rand, c *testColumn) []byte {
	mostRep, mostDef := c.levels()
	rep, def := runs(r, p.rep, bits.Len(uint(mostRep))), runs(r, p.def, bits.Len(uint(mostDef)))
	own := structure(1, int32(p.values), 2, int32(p.encoding))
	var levels, body []byte
	var size int // of all, not compressed
	switch p.kind {
	case pageDataV2:
		fields := []any{1, int32(p.values), 3, int32(p.values), 4, int32(p.encoding), 5, int32(len(def)), 6, int32(len(rep))}
		levels, body = append(rep, def...), p.body
		size = len(levels) + len(body)
		if p.plainBody {
			fields = append(fields, 7, int32(0))
		} else {
			body = squeeze(t, c.codec, body)
		}
		own = structure(fields...)
	case pageData:
		if mostRep > 0 {
			levels = sized(rep)
		}
		if mostDef > 0 {
			levels = append(levels, sized(def)...)
		}
		fallthrough
	default:
		size = len(levels) + len(p.body)
		levels, body = nil, squeeze(t, c.codec, append(levels, p.body...))
	}
	content := append(levels, body...)
	fields := []any{1, int32(p.kind), 2, int32(size), 3, int32(len(content))}
	if p.crc {
		fields = append(fields, 4, int32(crc32.ChecksumIEEE(content)))
	}
	return append(structure(append(fields, 5+p.kind, own)...), content...)
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

// buildFile returns a file of columns with one row group per entry of rows.
func buildFile(t testing.TB, r *rand.Rand, rows []int, columns []testColumn) []byte {
	out := []byte(Magic)
	schema, chunks := []any{root(len(columns))}, make([][]any, len(rows))
	for ci := range columns {
		c := &columns[ci]
		schema = append(schema, c.schema()...)
		for g, pages := range c.groups {
			start, values := len(out), 0
			meta := []any{1, int32(c.physical), 4, int32(c.codec)}
			var dictionary []any
			first := 0
			for pi := range pages {
				p := &pages[pi]
				if p.kind == pageDictionary {
					dictionary = []any{11, int64(len(out))}
				} else if values += p.values; first == 0 {
					first = len(out)
				}
				out = append(out, p.bytes(t, r, c)...)
			}
			meta = append(append(meta, 5, int64(values), 7, int64(len(out)-start), 9, int64(first)), dictionary...)
			chunks[g] = append(chunks[g], structure(3, structure(meta...)))
		}
	}
	total, groups := 0, []any(nil)
	for g, n := range rows {
		total += n
		groups = append(groups, structure(1, chunks[g], 3, int64(n)))
	}
	return withFooter(out, 1, int32(2), 2, schema, 3, int64(total), 4, groups)
}

// withFooter ends a file with metadata.
func withFooter(file []byte, fields ...any) []byte {
	meta := structure(fields...)
	return append(binary.LittleEndian.AppendUint32(append(file, meta...), uint32(len(meta))), Magic...)
}

// root and leaf are elements of a schema.
func root(children int) []byte                { return structure(4, "schema", 5, int32(children)) }
func leaf(name string, physical int32) []byte { return structure(1, physical, 4, name) }

// schema returns the elements of the column.
func (c *testColumn) schema() []any {
	outer := required
	if c.optional {
		outer = optional
	}
	leaf := func(name string, repetition int) []byte {
		fields := []any{1, int32(c.physical), 2, int32(c.length), 3, int32(repetition), 4, name}
		if c.logical != 0 {
			fields = append(fields, 10, structure(c.logical, structure(1, int32(c.bits), 2, int32(0))))
		}
		return structure(fields...)
	}
	if !c.list {
		return []any{leaf(c.name, outer)}
	}
	return []any{
		structure(3, int32(outer), 4, c.name, 5, int32(1), 6, int32(3)),
		structure(3, int32(repeated), 4, "list", 5, int32(1)),
		leaf("element", optional),
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
