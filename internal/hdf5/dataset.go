package hdf5

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"cne/internal/kind"
	"cne/internal/parallel"
)

// maxRatio bounds how many times larger than its file a dataset may be. gzip's own bound is
// 1032.
const maxRatio = 1100

// A Dataset is an array of values: a dataset or an attribute.
type Dataset struct {
	Path string // for messages
	// Shape has the dimensions; it is empty for a single value.
	Shape []int
	Type  *Type

	f       *File
	most    []uint64 // largest dimensions; undefined for no limit
	compact []byte   // values in the header; nil without
	addr    uint64   // of contiguous values, or of the index of chunks
	fill    []byte   // nil for zeros
	filters []filter
	whole   *Dataset // of a member of a compound, and its offset inside
	inside  int

	// The dimensions of a chunk, nil without chunks; the number of chunks in each dimension; and
	// the size of a chunk before filters.
	chunk, grid []int
	chunkBytes  int
	kind        int  // of the index of the chunks; 0 for a B-tree of version 1
	bareEdges   bool // chunks over the edge are not filtered
	chunks      []chunk
}

// Dataset returns the dataset, or an error for a group.
func (o *Object) Dataset() (d *Dataset, err error) {
	defer kind.Catch(&err)
	typed, space, layout := o.find(msgType), o.find(msgSpace), o.find(msgLayout)
	supported(typed != nil && space != nil && layout != nil, "%s: got a group, want a dataset", o.Path)
	supported(o.find(msgExternal) == nil, "%s: the values are in another file (external storage)", o.Path)
	d = &Dataset{f: o.f, Path: o.Path, Type: typed.datatype(0)}
	d.space(space)
	must(d.bytes()/maxRatio <= o.f.end, "%s: got the shape %v, want one that a file of %d bytes can hold", o.Path, d.Shape, o.f.end)
	d.readFill(o)
	if c := o.find(msgFilters); c != nil {
		d.filters = c.filters()
	}
	version := layout.version(3, 4)
	switch is := layout.int(1); is {
	case 0:
		d.compact = layout.bytes(layout.int(2))
		layout.must(uint64(len(d.compact)) >= d.bytes(), "got %d bytes of values, want %d", len(d.compact), d.bytes())
	case 1:
		d.addr = layout.addr()
		layout.must(d.addr == undefined || sum(1, d.addr, 1, d.bytes()) <= o.f.end, "the values are beyond the end of the file")
	default:
		supported(is == 2, "%s: the values are in other datasets (a virtual dataset)", o.Path)
		d.readChunkShape(layout, version)
		d.index()
	}
	return d, nil
}

// readFill reads the value of what was never written.
func (d *Dataset) readFill(o *Object) {
	c := o.find(msgOldFill)
	if now := o.find(msgFill); now != nil {
		c = now
		version, flags := c.version(1, 3), c.int(1)
		if version < 3 { // 1: there is always a value; 2: if a byte says so
			c.skip(1)
			flags = (c.int(1) | version&1) << 5
		}
		if flags&0x20 == 0 {
			return
		}
	}
	if c != nil && c.int(4) == d.Type.Size {
		d.fill = c.bytes(d.Type.Size)
	}
}

// Rows returns the first dimension, and the bytes of the values of one row; 1 and all bytes
// for a single value.
func (d *Dataset) Rows() (n, bytes int) {
	n, bytes = 1, d.Type.Size
	for i, s := range d.Shape {
		if i == 0 {
			n = s
		} else {
			bytes *= s
		}
	}
	return n, bytes
}

// ChunkRows returns the number of rows in a chunk, and 1 without chunks. Rows are best
// read in multiples of it.
func (d *Dataset) ChunkRows() int {
	return append(d.chunk, 1)[0]
}

// Check returns an error wrapping ErrUnsupported if the values cannot be read.
func (d *Dataset) Check() (err error) {
	defer kind.Catch(&err)
	supported(d.Type.fault == "", "%s: got %s", d.Path, d.Type.fault)
	for _, f := range d.filters {
		supported(readable[f.id] != nil, "%s: the values are compressed with %s, want gzip or none", d.Path,
			cmp.Or(foreign[f.id], fmt.Sprint("the filter ", f.id)))
	}
	return nil
}

// Field returns a member of a compound as a dataset. If it does not exist, the error wraps
// ErrNotFound.
func (d *Dataset) Field(name string) (m *Dataset, err error) {
	defer kind.Catch(&err)
	i := slices.IndexFunc(d.Type.Fields, func(f Field) bool { return f.Name == name })
	kind.Need(i >= 0, ErrNotFound, "%s has no member %s", d.Path, name)
	f := d.Type.Fields[i]
	m = &Dataset{Shape: d.Shape, Type: f.Type, f: d.f, Path: d.Path + "." + name, whole: d, inside: f.offset}
	m.chunk, m.filters = d.chunk, d.filters
	return m, nil
}

// ReadRows fills dst with the values of rows lo to hi−1 as they are stored. The length of
// dst must be hi−lo times the bytes of a row. It decodes chunks on all cores.
func (d *Dataset) ReadRows(dst []byte, lo, hi int) (err error) {
	defer kind.Catch(&err)
	kind.Check(d.Check())
	d.read(dst, lo, hi)
	return nil
}

func (d *Dataset) read(dst []byte, lo, hi int) {
	_, row := d.Rows()
	switch {
	case len(dst) == 0:
	case d.whole != nil:
		_, wide := d.whole.Rows()
		all := make([]byte, (hi-lo)*wide)
		d.whole.read(all, lo, hi)
		for size := d.Type.Size; len(dst) > 0; all = all[d.whole.Type.Size:] {
			dst = dst[copy(dst[:size], all[d.inside:]):]
		}
	case d.compact != nil:
		copy(dst, d.compact[lo*row:hi*row])
	case d.chunk != nil:
		d.readChunks(dst, lo, hi)
	case d.addr == undefined:
		d.fillIn(dst)
	default:
		d.f.readAt(dst, d.addr+uint64(lo)*uint64(row))
	}
}

// Each calls do with the values of a dataset of one dimension in pieces, as they are stored.
// first is the index of a piece's first value. It calls do on all cores, in any order; values
// are valid until do returns.
func (d *Dataset) Each(do func(first int, values []byte)) (err error) {
	defer kind.Catch(&err)
	kind.Check(d.Check())
	n, size := d.Rows()
	parallel.For(n, max(1, pieceBytes/size/d.ChunkRows())*d.ChunkRows(), func(_, lo, hi int) {
		b := pool.Get().(*buffers)
		defer pool.Put(b)
		values := b.take((hi - lo) * size)
		d.read(values, lo, hi)
		do(lo, values)
	})
	return nil
}

// pieceBytes is the size of a piece of values, if chunks are smaller.
const pieceBytes = 1 << 18

// fillIn fills dst with the value of what was never written.
func (d *Dataset) fillIn(dst []byte) {
	clear(dst)
	for d.fill != nil && len(dst) > 0 {
		dst = dst[copy(dst, d.fill):]
	}
}

// Strings returns the values of rows lo to hi−1, of texts as they are and of enumerations
// as their names. Texts end before the padding that their type has.
func (d *Dataset) Strings(lo, hi int) (all []string, err error) {
	defer kind.Catch(&err)
	_, row := d.Rows()
	raw := make([]byte, (hi-lo)*row)
	kind.Check(d.ReadRows(raw, lo, hi))
	supported(d.Type.Class == Text || d.Type.Class == Enum, "%s: got numbers, want text", d.Path)
	for size := d.Type.Size; len(raw) > 0; raw = raw[size:] {
		all = append(all, d.text(raw[:size]))
	}
	return all, nil
}

// text returns a value as a text.
func (d *Dataset) text(b []byte) string {
	t := d.Type
	if t.Class == Enum {
		name, ok := t.names[string(b)]
		must(ok, "%s: got a value without a name, % x", d.Path, b)
		return name
	}
	if t.variable {
		c := &cursor{f: d.f, what: d.Path, b: b}
		n, addr, index := c.int(4), c.addr(), c.int(4)
		if n == 0 || addr == 0 || addr == undefined {
			return ""
		}
		d.f.readTexts(d.Path, addr)
		c.must(n <= len(d.f.texts[index]), "a text is not in the heap")
		b = d.f.texts[index][:n]
	}
	if t.padding == 0 || t.variable {
		b, _, _ = bytes.Cut(b, []byte{0})
	}
	if t.padding == 2 {
		return string(bytes.TrimRight(b, " "))
	}
	return string(bytes.TrimRight(b, "\x00"))
}

// readTexts reads the objects in a part of the global heap, unless it was the last one.
func (f *File) readTexts(what string, addr uint64) {
	if f.texts != nil && f.textsAt == addr {
		return
	}
	head := uint64(8 + f.length)
	c := f.read(what, addr, head)
	c.magic("GCOL")
	c.version(1, 1)
	c.skip(3)
	size := c.len()
	c.must(size >= head, "got a part of %d bytes", size)
	c = f.read(c.what, addr+head, size-head)
	f.texts, f.textsAt = make(map[int][]byte), addr
	for len(c.b)-c.next >= 8+f.length {
		index := c.int(2)
		c.skip(6)
		n := c.len()
		if index == 0 { // the rest is free
			break
		}
		c.must(n <= size, "an object is larger than its part")
		f.texts[index] = c.bytes(int(n))
		c.skip(min(-int(n)&7, len(c.b)-c.next))
	}
}

// readChunks is read for chunks.
func (d *Dataset) readChunks(dst []byte, lo, hi int) {
	inner := 1 // chunks with the same rows
	for _, g := range d.grid[1:] {
		inner *= g
	}
	first := lo / d.chunk[0] * inner
	parallel.For(((hi-1)/d.chunk[0]+1)*inner-first, 1, func(_, k, _ int) {
		begin, rest := slices.Clone(d.chunk), first+k // the coordinates of the first value
		for i := range slices.Backward(begin) {
			begin[i] *= rest % d.grid[i]
			rest /= d.grid[i]
		}
		var values []byte
		if i, ok := slices.BinarySearchFunc(d.chunks, first+k, func(c chunk, k int) int { return c.number - k }); ok {
			b := pool.Get().(*buffers)
			defer pool.Put(b)
			values = d.decode(d.chunks[i], begin, b)
		}
		d.scatter(dst, values, begin, lo, hi)
	})
}

// scatter copies the values of the chunk that begins at some coordinates to dst, which has
// rows lo to hi−1. Without values it fills them in.
func (d *Dataset) scatter(dst, values []byte, begin []int, lo, hi int) {
	// along copies what has the given offsets in the dimensions before i, in values.
	var along func(i, source, target int)
	along = func(i, source, target int) {
		from, to, first := begin[i], min(begin[i]+d.chunk[i], d.Shape[i]), 0
		if i == 0 {
			from, to, first = max(from, lo), min(to, hi), lo
		}
		source, target = source*d.chunk[i]+from-begin[i], target*d.Shape[i]+from-first
		if i < len(begin)-1 {
			for k := range to - from {
				along(i+1, source+k, target+k)
			}
			return
		}
		size := d.Type.Size
		if part := dst[target*size:][:(to-from)*size]; values == nil {
			d.fillIn(part)
		} else {
			copy(part, values[source*size:])
		}
	}
	along(0, 0, 0)
}
