package hdf5

import "math/bits"

// oldTree calls leaf with the key and the address of each child of the leaves of a B-tree
// of version 1. Keys have the given size.
func (f *File) oldTree(what string, addr uint64, is, key int, leaf func(key *cursor, child uint64)) {
	seen := make(map[uint64]bool)
	var node func(addr uint64, level int)
	node = func(addr uint64, level int) {
		head := uint64(8 + 2*f.offset)
		c := f.read(what, addr, head)
		c.magic("TREE")
		got, own, count := c.int(1), c.int(1), c.uint(2)
		c.must(got == is, "got type %d, want %d", got, is)
		c.must(!seen[addr] && (level < 0 || own == level), "its nodes form a cycle")
		seen[addr] = true
		c = f.read(what, addr+head, count*uint64(key+f.offset))
		for range count {
			k := &cursor{f: f, what: what, b: c.bytes(key)}
			if child := c.addr(); own > 0 {
				node(child, own-1)
			} else {
				leaf(k, child)
			}
		}
	}
	if addr != undefined {
		node(addr, -1)
	}
}

// records calls do with the records of a B-tree of version 2.
func (f *File) records(what string, addr uint64, is int, do func(*cursor)) {
	h := f.readBlock(what, "BTHD", addr, uint64(22+f.offset+f.length))
	h.version(0, 0)
	got, size, record, depth := h.int(1), h.uint(4), h.uint(2), h.int(2)
	h.skip(2)
	h.must(got == is && record > 0 && size >= 10+record && depth <= 32, "got nodes of type %d and %d bytes with records of %d, %d levels deep", got, size, record, depth)
	// The bytes of the number of records in a node, and below a node of each level from
	// the leaves.
	most := (size - 10) / record
	below, own := []int{0}, limitBytes(most)
	for all := most; len(below) <= depth; {
		pointer := uint64(f.offset + own + below[len(below)-1])
		h.must(size >= 10+pointer, "its nodes are too small")
		n := (size - 10 - pointer) / (record + pointer)
		all = sum(n+1, all, 1, n)
		below = append(below, limitBytes(all))
	}
	seen := make(map[uint64]bool)
	var node func(addr, count uint64, level int)
	node = func(addr, count uint64, level int) {
		h.must(!seen[addr], "its nodes form a cycle")
		seen[addr] = true
		magic, pointers, pointer := "BTLF", uint64(0), 0
		if level > 0 {
			magic, pointers, pointer = "BTIN", count+1, f.offset+own+below[level-1]
		}
		c := f.readBlock(what, magic, addr, sum(1, 10, count, record, pointers, uint64(pointer)))
		c.skip(2)
		here := c.bytes(int(count * record))
		for i := range max(count, pointers) {
			if level > 0 {
				child, n := c.addr(), c.uint(own)
				c.skip(below[level-1])
				node(child, n, level-1)
			}
			if i < count {
				do(&cursor{f: f, what: what, b: here[i*record : (i+1)*record]})
			}
		}
	}
	if root, count := h.addr(), h.uint(2); root != undefined {
		node(root, count, depth)
	}
}

// limitBytes returns the number of bytes for numbers up to most.
func limitBytes(most uint64) int { return (bits.Len64(most)-1)/8 + 1 }

// A heap is a fractal heap.
type heap struct {
	f                     *File
	what                  string // for messages
	start, direct         uint64 // bytes of the first and the largest direct blocks
	width, rows           uint64 // of the doubling table
	root                  uint64
	offsetBytes, lenBytes int
	checked               bool               // direct blocks have checksums
	blocks                map[uint64]*cursor // that have been read
}

// heap reads the header of a fractal heap.
func (f *File) heap(what string, addr uint64) *heap {
	c := f.readBlock(what, "FRHP", addr, uint64(26+12*f.length+3*f.offset))
	c.version(0, 0)
	c.skip(2)
	supported(c.int(2) == 0, "%s: got a fractal heap with filters", what)
	h := &heap{f: f, what: what, blocks: make(map[uint64]*cursor), checked: c.uint(1)&2 != 0}
	most := c.uint(4)
	c.skip(10*f.length + 2*f.offset)
	h.width, h.start, h.direct = c.uint(2), c.len(), c.len()
	offsetBits := c.int(2)
	c.skip(2)
	h.root, h.rows = c.addr(), c.uint(2)
	c.must(bits.OnesCount64(h.width) == 1 && bits.OnesCount64(h.start) == 1 && bits.OnesCount64(h.direct) == 1 && h.start <= h.direct && h.direct <= 1<<32 && offsetBits <= 64,
		"got a table of width %d with blocks from %d to %d bytes", h.width, h.start, h.direct)
	h.offsetBytes, h.lenBytes = (offsetBits+7)/8, min((bits.Len64(h.direct)+6)/8, limitBytes(most))
	return h
}

// object returns the object with an ID.
func (h *heap) object(id *cursor) []byte {
	first := id.int(1)
	if first>>4 == 2 { // in the ID itself
		return id.bytes(first&15 + 1)
	}
	supported(first>>4 == 0, "%s: got an attribute of more than 64 KiB", h.what)
	offset, n := id.uint(h.offsetBytes), id.uint(h.lenBytes)
	direct := uint64(bits.Len64(h.direct)-bits.Len64(h.start)) + 2 // rows of direct blocks
	addr, begin, size := h.root, uint64(0), h.start                // of the block that has the offset
	for rows := h.rows; rows > 0; {
		must(rows <= 64, "%s: got a table of %d rows", h.what, rows)
		c := h.block(addr, sum(1, uint64(9+h.f.offset+h.offsetBytes), rows*h.width, uint64(h.f.offset)), "FHIB")
		row := uint64(bits.Len64((offset - begin) / (h.start * h.width)))
		begin += h.start * h.width * (1 << row >> 1)
		c.must(row < rows, "an object is outside the heap")
		size = h.start << row >> min(1, row) // rows 0 and 1 have the same
		k := (offset - begin) / size
		begin += k * size
		c.next = 5 + h.f.offset + h.offsetBytes + int(row*h.width+k)*h.f.offset
		addr, rows = c.addr(), 0
		if row >= direct {
			rows = uint64(bits.Len64(size)-bits.Len64(h.start*h.width)) + 1
		}
	}
	c := h.block(addr, size, "FHDB")
	c.next = int(min(offset-begin, uint64(len(c.b))))
	return c.bytes(int(n))
}

// block returns a block of n bytes.
func (h *heap) block(addr, n uint64, magic string) *cursor {
	if c := h.blocks[addr]; c != nil {
		return c
	}
	c := h.f.read(h.what, addr, n)
	c.magic(magic)
	if magic == "FHIB" {
		c.checksum()
	} else if h.checked { // over the block with zeros instead of the checksum
		c.next = 5 + h.f.offset + h.offsetBytes
		sum := uint32(c.uint(4))
		clear(c.b[c.next-4 : c.next])
		c.must(lookup3(c.b) == sum, "the checksum is wrong")
	}
	h.blocks[addr] = c
	return c
}
