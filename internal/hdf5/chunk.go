package hdf5

import (
	"cmp"
	"math/bits"
	"slices"

	"cne/internal/selection"
)

// A chunk is a chunk that has been written.
type chunk struct {
	number int // in the grid
	addr   uint64
	bytes  uint64
	mask   uint64 // of filters that were skipped
}

// readChunkShape reads the layout of a dataset in chunks.
func (d *Dataset) readChunkShape(c *cursor, version int) {
	flags, rank, width := 0, c.int(1), 4
	if version == 4 {
		flags, rank, width = rank, c.int(1), c.int(1)
	} else {
		d.addr = c.addr()
	}
	d.bareEdges = flags&1 != 0
	rank--
	c.must(rank == len(d.Shape) && rank > 0, "got chunks of %d dimensions for the shape %v", rank, d.Shape)
	bytes := uint64(d.Type.Size)
	for _, n := range d.Shape {
		s := c.uint(width)
		bytes = sum(bytes, s)
		c.must(s > 0 && bytes <= 1<<40, "got chunks of %d bytes", bytes)
		d.chunk, d.grid = append(d.chunk, int(s)), append(d.grid, (n+int(s)-1)/int(s))
	}
	d.chunkBytes = int(bytes)
	size := c.int(width)
	c.must(size == d.Type.Size, "got values of %d bytes in chunks, want %d", size, d.Type.Size)
	if version < 4 {
		return
	}
	d.kind = c.int(1)
	supported(d.kind >= 1 && d.kind <= 5, "%s: got the index of chunks %d", d.Path, d.kind)
	single := chunk{bytes: bytes}
	if d.kind == 1 && flags&2 != 0 {
		single.bytes, single.mask = c.len(), c.uint(4)
	}
	c.skip([]int{0, 0, 0, 1, 5, 6}[d.kind]) // parameters, which the index has, too
	if d.addr = c.addr(); d.kind == 1 {
		single.addr = d.addr
		d.add(make([]uint64, rank), single)
	}
}

// index finds the chunks that have been written, in ascending order.
func (d *Dataset) index() {
	if d.addr == undefined {
		return
	}
	position := make([]uint64, len(d.chunk)) // in the grid
	switch d.kind {
	case 0:
		d.f.oldTree(d.Path, d.addr, 1, 16+8*len(position), func(key *cursor, child uint64) {
			bytes, mask := key.uint(4), key.uint(4)
			for i := range position {
				position[i] = key.uint(8) / uint64(d.chunk[i])
			}
			d.add(position, chunk{0, child, bytes, mask})
		})
	case 2, 3, 4:
		d.readArray()
	case 5:
		d.f.records(d.Path, d.addr, 10+min(len(d.filters), 1), func(c *cursor) {
			e := d.element(c, len(d.filters) > 0, len(c.b)-8*len(position))
			for i := range position {
				position[i] = c.uint(8)
			}
			d.add(position, e)
		})
	}
	slices.SortFunc(d.chunks, func(a, b chunk) int { return cmp.Compare(a.number, b.number) })
	for i := 1; i < len(d.chunks); i++ {
		must(d.chunks[i].number != d.chunks[i-1].number, "%s: a chunk occurs twice", d.Path)
	}
}

// add adds a chunk at a position in the grid, unless the dataset has shrunk since.
func (d *Dataset) add(position []uint64, c chunk) {
	for i, p := range position {
		if p >= uint64(d.grid[i]) {
			return
		}
		c.number = c.number*d.grid[i] + int(p)
	}
	if c.addr != undefined {
		d.chunks = append(d.chunks, c)
	}
}

// element reads where a chunk is, from size bytes.
func (d *Dataset) element(c *cursor, filtered bool, size int) chunk {
	e := chunk{addr: c.addr(), bytes: uint64(d.chunkBytes)}
	if filtered {
		e.bytes, e.mask = c.uint(size-d.f.offset-4), c.uint(4)
	}
	return e
}

// An array is an index of chunks that has an element for each in the largest shape.
type array struct {
	d        *Dataset
	filtered bool
	size     int      // bytes of an element
	page     uint64   // elements in a page of a large block
	head     uint64   // bytes of the head of a block
	next     uint64   // number of the next element
	order    []int    // the dimensions, from the slowest to the fastest
	grid     []uint64 // chunks in each dimension of the largest shape
}

// readArray reads the chunks from a fixed or extensible array. Without one (the implicit
// index), all chunks were written one after the other.
func (d *Dataset) readArray() {
	a := &array{d: d, head: uint64(6 + d.f.offset)}
	extensible := d.kind == 4
	magic, n := "FAHD", uint64(12+d.f.length+d.f.offset)
	if extensible {
		magic, n = "EAHD", uint64(16+6*d.f.length+d.f.offset)
	}
	all := uint64(1) // chunks in the largest shape
	for i := range d.chunk {
		a.grid = append(a.grid, max(1, (d.most[i]-1)/uint64(d.chunk[i])+1))
		a.order, all = append(a.order, i), sum(all, a.grid[i])
	}
	if i := slices.Index(d.most, undefined); extensible && i > 0 {
		a.order = slices.Insert(slices.Delete(a.order, i, i+1), 0, i)
	}
	if d.kind == 2 {
		must(sum(1, d.addr, all, uint64(d.chunkBytes)) <= d.f.end, "%s: the chunks are beyond the end of the file", d.Path)
		a.each(nil, all)
		return
	}
	c := d.f.readBlock(d.Path, magic, d.addr, n)
	c.version(0, 0)
	a.filtered, a.size = c.int(1) == 1, c.int(1)
	c.must(a.size == d.f.offset || a.filtered && a.size > d.f.offset+4, "got elements of %d bytes", a.size)
	if extensible {
		a.extensible(c)
		return
	}
	a.page = 1 << min(c.int(1), 62)
	n = c.len()
	a.block("FADB", c.addr(), n, nil, 0)
}

// each adds the next n chunks, with elements from c, or the implicit ones for nil.
func (a *array) each(c *cursor, n uint64) {
	position := make([]uint64, len(a.order))
	for range n {
		number := a.next
		for _, i := range slices.Backward(a.order[1:]) {
			position[i], number = number%a.grid[i], number/a.grid[i]
		}
		position[a.order[0]] = number
		e := chunk{addr: a.d.addr + a.next*uint64(a.d.chunkBytes), bytes: uint64(a.d.chunkBytes)}
		if c != nil {
			e = a.d.element(c, a.filtered, a.size)
		}
		a.d.add(position, e)
		a.next++
	}
}

// block reads a block of n elements. A bitmap, from a bit on, says which of its pages were
// written; nil if it is in the block itself.
func (a *array) block(magic string, addr, n uint64, bitmap []byte, bit int) {
	end := a.next + n
	switch pages := (n-1)/a.page + 1; {
	case addr == undefined:
	case pages == 1:
		a.each(a.open(magic, addr, n, uint64(a.size)), n)
	default:
		own := selection.If(bitmap == nil, (pages+7)/8, 0)
		c := a.open(magic, addr, 1, own)
		bitmap = append(bitmap, c.bytes(int(own))...)
		c.must(uint64(bit)+pages <= uint64(8*len(bitmap)), "a block has no pages")
		addr += a.head + 4 + own
		for ; a.next < end; bit++ {
			count := min(a.page, end-a.next)
			bytes := sum(count, uint64(a.size), 1, 4)
			if bitmap[bit/8]&(0x80>>(bit%8)) != 0 {
				a.each(a.d.f.readBlock(a.d.Path, "", addr, bytes), count)
			} else {
				a.next += count
			}
			addr += bytes
		}
	}
	a.next = end
}

// open reads a block of n parts of some bytes.
func (a *array) open(magic string, addr uint64, parts ...uint64) *cursor {
	c := a.d.f.readBlock(a.d.Path, magic, addr, sum(append(parts, 1, a.head+4)...))
	c.skip(int(a.head) - 4)
	return c
}

// extensible reads the chunks from an array that grows in one dimension. Its root has the
// first elements, and addresses of blocks. They are in groups: group k has 2^(k/2) blocks of
// least·2^((k+1)/2) elements. Later groups have a block of their own with the addresses.
func (a *array) extensible(c *cursor) {
	f := a.d.f
	most, first, least, pointers := c.int(1), c.uint(1), c.uint(1), c.uint(1)
	a.page = 1 << min(c.int(1), 62)
	c.skip(4 * f.length)
	used := c.len() // elements that have been set
	c.skip(f.length)
	root := c.addr()
	groups := 2 + most - bits.Len64(least)
	c.must(most <= 64 && groups > 0 && bits.OnesCount64(least) == 1 && bits.OnesCount64(pointers) == 1, "got blocks of %d and %d elements", first, least)
	if root == undefined {
		return
	}
	inRoot := min(groups, 2*(bits.Len64(pointers)-1))
	c = a.open("EAIB", root, first, uint64(a.size), 2*(pointers-1)+uint64(groups-inRoot), uint64(f.offset))
	a.each(c, first)
	a.head += uint64(most+7) / 8
	for k := 0; k < groups && a.next < used; k++ {
		blocks, n := uint64(1)<<(k/2), least<<((k+1)/2)
		bitmap := selection.If(n > a.page, (n/a.page+7)/8, 0) // bytes for each block
		s, written := c, []byte{}
		if k >= inRoot {
			addr := c.addr()
			if addr == undefined {
				a.next += blocks * n
				continue
			}
			s = a.open("EASB", addr, blocks, bitmap+uint64(f.offset))
			written = s.bytes(int(blocks * bitmap))
		}
		for i := range blocks {
			a.block("EADB", s.addr(), n, written, int(8*bitmap*i))
		}
	}
}

// decode returns the values of a chunk that begins at some coordinates.
func (d *Dataset) decode(c chunk, begin []int, b *buffers) []byte {
	must(sum(1, c.addr, 1, c.bytes) <= d.f.end, "%s: a chunk is beyond the end of the file", d.Path)
	must(uint64(d.chunkBytes)/maxRatio <= c.bytes, "%s: got a chunk of %d bytes, want %d before compression", d.Path, c.bytes, d.chunkBytes)
	for i, from := range begin {
		if d.bareEdges && from+d.chunk[i] > d.Shape[i] {
			c.mask = undefined
		}
	}
	values := b.take(int(c.bytes))
	d.f.readAt(values, c.addr)
	for i, f := range slices.Backward(d.filters) {
		if c.mask>>i&1 == 0 {
			values = readable[f.id](d, f, values, b)
		}
	}
	must(len(values) == d.chunkBytes, "%s: got a chunk of %d bytes, want %d", d.Path, len(values), d.chunkBytes)
	return values
}
