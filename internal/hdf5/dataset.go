package hdf5

import (
	"slices"
	"strings"

	"cne/internal/parallel"
)

// Layouts of datasets.
const (
	layoutCompact    = 0
	layoutContiguous = 1
	layoutChunked    = 2
)

// maxRatio bounds how many times larger than its file a dataset may be. gzip's own bound is
// 1032.
const maxRatio = 1100

// A Dataset is an array of values: a dataset or an attribute.
type Dataset struct {
	// Shape has the dimensions; it is empty for a single value.
	Shape []int
	Type  *Type

	f       *File
	path    string
	most    []uint64 // largest dimensions; undefined for no limit
	layout  int
	compact []byte
	addr    uint64 // of contiguous values
	fill    []byte // nil for zeros
	filters []filter
	chunkShape
	whole *Dataset // of a member of a compound, and its offset
	at    int
}

// Dataset returns the dataset, or an error for a group.
func (o *Object) Dataset() (d *Dataset, err error) {
	defer catch(&err)
	typed, space, layout := o.find(msgType), o.find(msgSpace), o.find(msgLayout)
	supported(typed != nil && space != nil && layout != nil, "%s: got a group, want a dataset", o.path)
	supported(o.find(msgExternal) == nil, "%s: the values are in another file (external storage)", o.path)
	d = &Dataset{f: o.f, path: o.path, Type: typed.datatype(0)}
	d.space(space)
	must(d.bytes()/maxRatio <= o.f.end, "%s: got the shape %v, want one that a file of %d bytes can hold", o.path, d.Shape, o.f.end)
	d.readFill(o)
	if c := o.find(msgFilters); c != nil {
		d.filters = c.filters()
	}
	version := layout.version(3, 4)
	switch d.layout = layout.int(1); d.layout {
	case layoutCompact:
		d.compact = layout.bytes(layout.int(2))
		layout.must(uint64(len(d.compact)) >= d.bytes(), "got %d bytes of values, want %d", len(d.compact), d.bytes())
	case layoutContiguous:
		d.addr = layout.addr()
		must(d.addr == undefined || sum(1, d.addr, 1, d.bytes()) <= o.f.end, "%s: the values are beyond the end of the file", o.path)
	case layoutChunked:
		d.readChunkShape(layout, version)
	default:
		supported(false, "%s: the values are in other datasets (a virtual dataset)", o.path)
	}
	return d, nil
}

// readFill reads the value of what was never written.
func (d *Dataset) readFill(o *Object) {
	n, c := 0, o.find(msgFill)
	if c == nil {
		if c = o.find(msgOldFill); c != nil {
			n = c.int(4)
		}
	} else {
		version, flags := c.version(1, 3), c.int(1)
		if version < 3 { // 1: there is always a value; 2: if a byte says so
			c.skip(1)
			flags = (c.int(1) | version&1) << 5
		}
		if flags&0x20 != 0 {
			n = c.int(4)
		}
	}
	if n == d.Type.Size {
		d.fill = c.bytes(n)
	}
}

// Path returns the path of the dataset.
func (d *Dataset) Path() string { return d.path }

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
	if d.whole != nil {
		d = d.whole
	}
	if d.layout != layoutChunked {
		return 1
	}
	return d.chunk[0]
}

// Check returns an error wrapping ErrUnsupported if the values cannot be read.
func (d *Dataset) Check() (err error) {
	defer catch(&err)
	supported(d.Type.fault == "", "%s: got %s", d.path, d.Type.fault)
	from := d
	if d.whole != nil {
		from = d.whole
	}
	for _, f := range from.filters {
		supported(readable[f.id] != nil, "%s: the values are compressed with %s, want gzip or none", d.path, f)
	}
	return nil
}

// Field returns a member of a compound as a dataset. If it does not exist, the error wraps
// ErrNotFound.
func (d *Dataset) Field(name string) (m *Dataset, err error) {
	defer catch(&err)
	i := slices.IndexFunc(d.Type.Fields, func(f Field) bool { return f.Name == name })
	need(i >= 0, ErrNotFound, "%s has no member %s", d.path, name)
	f := d.Type.Fields[i]
	return &Dataset{Shape: d.Shape, Type: f.Type, f: d.f, path: d.path + "." + name, whole: d, at: f.offset}, nil
}

// ReadRows fills dst with the values of rows lo to hi−1 as they are stored. The length of
// dst must be hi−lo times the bytes of a row. It decodes chunks on all cores.
func (d *Dataset) ReadRows(dst []byte, lo, hi int) (err error) {
	defer catch(&err)
	if err := d.Check(); err != nil {
		return err
	}
	d.read(dst, lo, hi)
	return nil
}

func (d *Dataset) read(dst []byte, lo, hi int) {
	_, row := d.Rows()
	switch {
	case d.whole != nil:
		_, wide := d.whole.Rows()
		all := make([]byte, (hi-lo)*wide)
		d.whole.read(all, lo, hi)
		for size := d.Type.Size; len(dst) > 0; all = all[d.whole.Type.Size:] {
			copy(dst[:size], all[d.at:])
			dst = dst[size:]
		}
	case d.layout == layoutCompact:
		copy(dst, d.compact[lo*row:hi*row])
	case d.layout == layoutChunked:
		d.readChunks(dst, lo, hi)
	case d.addr == undefined:
		d.fillIn(dst)
	default:
		d.f.readAt(dst, d.addr+uint64(lo)*uint64(row))
	}
}

// fillIn fills dst with the value of what was never written.
func (d *Dataset) fillIn(dst []byte) {
	if d.fill == nil {
		clear(dst)
		return
	}
	for len(dst) > 0 {
		dst = dst[copy(dst, d.fill):]
	}
}

// Strings returns the values of rows lo to hi−1, of texts as they are and of enumerations
// as their names. Texts end before the padding that their type has.
func (d *Dataset) Strings(lo, hi int) (all []string, err error) {
	defer catch(&err)
	_, row := d.Rows()
	raw := make([]byte, (hi-lo)*row)
	if err := d.ReadRows(raw, lo, hi); err != nil {
		return nil, err
	}
	supported(d.Type.Class == Text || d.Type.Class == Enum, "%s: got numbers, want text", d.path)
	for size := d.Type.Size; len(raw) > 0; raw = raw[size:] {
		all = append(all, d.text(raw[:size]))
	}
	return all, nil
}

// text returns a value as a text.
func (d *Dataset) text(b []byte) string {
	t := d.Type
	if t.Class == Enum {
		name, ok := t.Names[t.Int(b)]
		must(ok, "%s: got the value %d, which has no name", d.path, t.Int(b))
		return name
	}
	if t.variable {
		c := &cursor{f: d.f, what: d.path, b: b}
		n, at, index := c.int(4), c.addr(), c.int(4)
		if n == 0 || at == 0 || at == undefined {
			return ""
		}
		held := d.f.collection(at)
		c.must(index < len(held) && n <= len(held[index]), "a text is not in the heap")
		b = held[index][:n]
	}
	s := string(b)
	if t.stops || t.variable {
		s, _, _ = strings.Cut(s, "\x00")
	}
	return strings.TrimRight(s, string(rune(t.pad)))
}

// collection returns the objects in a part of the global heap, by index.
func (f *File) collection(addr uint64) [][]byte {
	if held, ok := f.collections[addr]; ok {
		return held
	}
	const what = "global heap"
	c := f.read(what, addr, uint64(8+f.length))
	c.magic("GCOL")
	c.version(1, 1)
	c.skip(3)
	size := c.len()
	head := len(c.b)
	c = f.read(what, addr, size)
	c.skip(head)
	var held [][]byte
	for len(c.b)-c.at >= 8+f.length {
		index := c.int(2)
		c.skip(6)
		n := c.len()
		if index == 0 { // the rest is free
			break
		}
		c.must(n <= size, "an object is larger than its part")
		object := c.bytes(int(n))
		c.skip(min(-int(n)&7, len(c.b)-c.at))
		if index >= len(held) {
			held = append(held, make([][]byte, index+1-len(held))...)
		}
		held[index] = object
	}
	const maxHeld = 16 << 20 // bytes of the heap that are kept
	if f.held += len(c.b) + 24*len(held); f.held > maxHeld {
		clear(f.collections)
		f.held = len(c.b) + 24*len(held)
	}
	f.collections[addr] = held
	return held
}

// readChunks is read for chunks.
func (d *Dataset) readChunks(dst []byte, lo, hi int) {
	if len(dst) == 0 {
		return
	}
	index := d.index()
	inner := 1 // chunks with the same rows
	for _, g := range d.grid[1:] {
		inner *= g
	}
	first := lo / d.chunk[0] * inner
	parallel.For(((hi-1)/d.chunk[0]+1)*inner-first, 1, func(_, k, _ int) {
		k += first
		var values []byte
		if i, ok := slices.BinarySearchFunc(index, k, func(c chunk, k int) int { return c.number - k }); ok {
			b := pool.Get().(*buffers)
			defer pool.Put(b)
			values = d.decode(&index[i], b)
		}
		d.scatter(dst, values, k, lo, hi)
	})
}

// scatter copies the values of chunk number k to dst, which has rows lo to hi−1. Without
// values it fills them in.
func (d *Dataset) scatter(dst, values []byte, k, lo, hi int) {
	rank := len(d.Shape)
	begin := make([]int, rank)
	for i := rank - 1; i >= 0; i-- {
		begin[i] = k % d.grid[i] * d.chunk[i]
		k /= d.grid[i]
	}
	// along copies what has the given offsets in the dimensions before i, in values.
	var along func(i, source, target int)
	along = func(i, source, target int) {
		from, to, first := begin[i], min(begin[i]+d.chunk[i], d.Shape[i]), 0
		if i == 0 {
			from, to, first = max(from, lo), min(to, hi), lo
		}
		source, target = source*d.chunk[i]+from-begin[i], target*d.Shape[i]+from-first
		if i < rank-1 {
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
