package parquet

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"

	"cne/internal/kind"
	"cne/internal/selection"
)

// scratchSize is the number of levels or indices decoded at a time.
const scratchSize = 1 << 10

// A Cursor reads the values of a column in order. It holds one decompressed page; indices
// into a dictionary stay encoded. Several cursors may read from a file at the same time.
type Cursor struct {
	f          *File
	c          *Column
	group      int   // the next row group
	chunk      chunk // its pages to come
	dictionary content

	count   int     // values left of the page
	content content // of the page, not yet taken
	indexed bool    // the page has indices into the dictionary
	indices hybrid

	rep, def         hybrid // levels of the page
	scratch          []uint32
	packed, unpacked []byte // memory of pages

	width int // values of a row; 0: not known
	taken int // values of the pages read

	gaps bool // some values of the page are missing
	// Missing has the indices of the missing numbers in the last call of Numbers, ascending.
	// Their bytes are arbitrary.
	Missing []int
}

// IsMissing reports whether number i of the last call of Numbers is missing.
func (k *Cursor) IsMissing(i int) bool {
	_, missing := slices.BinarySearch(k.Missing, i)
	return missing
}

// Cursor returns a reader of column i.
func (f *File) Cursor(i int) *Cursor {
	c := &f.Columns[i]
	return &Cursor{f: f, c: c, scratch: make([]uint32, 2*scratchSize), width: selection.If(c.List, 0, 1)}
}

// must fails with ErrDamaged unless ok.
func (c *Column) must(ok bool, format string, args ...any) {
	if !ok {
		must(false, "column %.60q: %s", c.Name, fmt.Sprintf(format, args...))
	}
}

// load reads pages until one has values left, or returns false at the end.
func (k *Cursor) load() bool {
	for k.count == 0 {
		if k.chunk.at < k.chunk.end {
			k.readPage()
			continue
		}
		k.c.must(k.chunk.values <= 0, "got fewer values than announced")
		if k.group == len(k.f.groups) {
			*k = Cursor{f: k.f, c: k.c, group: k.group, scratch: k.scratch, width: k.width} // releases pages
			return false
		}
		g := &k.f.groups[k.group]
		k.chunk, k.dictionary = g.chunks[k.c.leaf], content{}
		k.group++
		supported(!k.chunk.encrypted, "column %.60q: got encrypted values, want unencrypted ones", k.c.Name)
		values := k.chunk.values
		k.c.must(values == g.rows || k.c.List && values > g.rows, "got %d values for a row group of %d rows", values, g.rows)
	}
	return true
}

// readPage reads the next page of the chunk.
func (k *Cursor) readPage() {
	var p pageHead
	left := &k.chunk
	for try := headSize; p.size == 0; try *= 8 {
		head := k.f.readAt(make([]byte, min(try, maxHead, left.end-left.at)), left.at)
		var err error
		if p, err = readHead(head); len(head) < try || try >= maxHead {
			kind.Check(err)
		}
	}
	left.at += p.size
	k.c.must(p.compressed <= left.end-left.at, "page extends beyond the column's end")
	k.packed = k.f.readAt(slices.Grow(k.packed[:0], p.compressed)[:p.compressed], left.at)
	left.at += p.compressed
	k.c.must(p.crc.id == 0 || crc32.ChecksumIEEE(k.packed) == uint32(p.crc.number), "page has the wrong checksum")
	isText, isDictionary := k.c.format != nil || k.c.number != nil, p.kind == pageDictionary
	if !isDictionary && p.kind != pageData && p.kind != pageDataV2 {
		return // it has no values
	}
	k.c.must((isText && isDictionary || p.values <= left.values) && (isText || p.uncompressed <= valueRoom*p.values+pageRoom),
		"page claims %d bytes for %d values, of %d in all", p.uncompressed, p.values, left.values)
	levels, body, codec := k.packed[:p.repBytes+p.defBytes], k.packed[p.repBytes+p.defBytes:], left.codec
	if !p.isCompressed {
		codec = codecNone
	}
	if body = decompress(codec, body, p.uncompressed-len(levels), k.unpacked); codec != codecNone {
		k.unpacked = body
	}
	if !isDictionary {
		k.readData(&p, levels, body)
		return
	}
	k.dictionary = k.c.decode(encodingPlain, body, p.values)
	k.dictionary.numbers = slices.Clone(k.dictionary.numbers)
}

// readData begins a page with values.
func (k *Cursor) readData(p *pageHead, levels, body []byte) {
	k.rep = hybrid{b: levels[:p.repBytes], width: bits.Len(uint(k.c.maxRep))}
	k.def = hybrid{b: levels[p.repBytes:], width: bits.Len(uint(k.c.maxDef))}
	d := decoder{body, "a page ends within its levels, or has no indices"}
	for _, h := range []*hybrid{&k.rep, &k.def} {
		if p.kind == pageData && h.width > 0 {
			h.b = d.sized()
		}
	}
	k.count, k.chunk.values = p.values, k.chunk.values-p.values
	if k.width == 0 {
		return // Width needs only the levels
	}
	there := k.checkLevels(p.values)
	k.indexed, k.gaps = true, there < p.values
	switch isBool := k.c.physical == typeBool; {
	case p.encoding == encodingDictionary || p.encoding == encodingPlainDictionary:
		if k.indices = (hybrid{}); there > 0 {
			width := int(d.byte())
			d.must(width <= 32)
			k.indices = hybrid{b: d.b, width: width}
		}
	case isBool && p.encoding == encodingPlain:
		k.indices, k.dictionary.numbers = hybrid{b: d.b, width: 1, packed: true, run: there}, []byte{0, 1}
	case isBool && p.encoding == encodingRLE:
		k.indices, k.dictionary.numbers = hybrid{b: d.sized(), width: 1}, []byte{0, 1}
	default:
		k.indexed = false
		k.content = k.c.decode(p.encoding, d.b, there)
	}
}

// What may be wrong with a page.
const fewLevels, wrongIndex = "page has fewer levels than values", "page has an index that is not in its dictionary"

// checkLevels checks the levels of a page of the given number of values, which for lists
// includes null lists: all lists must have the same width. It returns how many values are
// not null.
func (k *Cursor) checkLevels(values int) (there int) {
	def, most := k.def, uint32(k.c.maxDef) // a copy, since the values' readers read them again
	full := def.all(values, most)
	if full && !k.c.List {
		k.taken += values
		return values
	}
	within := k.taken % k.width
	for at := 0; at < values; at += scratchSize {
		n := min(values-at, scratchSize)
		defs, reps := k.scratch[:n], k.scratch[scratchSize:][:n]
		k.c.must(def.next(defs) && (!k.c.List || k.rep.next(reps)), fewLevels)
		for i, v := range defs {
			if k.c.must(v <= most, "page has an invalid level"); v == most {
				there++
			}
			if !k.c.List {
				k.taken++
				continue
			}
			isNull := int(v) < k.c.itemDef
			// A list begins with level 0 and continues with level 1.
			if reps[i] != uint32(min(1, within)) || isNull && within > 0 {
				row := k.taken / k.width
				if within == 0 {
					row = max(1, row) - 1
				}
				kind.Fail(ErrRow, "row %d (counted from 1), column %.60q: list: got another number of values, want %d as in the rows before",
					row+1, k.c.Name, k.width)
			}
			if isNull {
				k.taken += k.width
			} else if k.taken, within = k.taken+1, within+1; within == k.width {
				within = 0
			}
		}
	}
	return there
}

// Numbers fills dst with the next numbers, little-endian and of the column's size; lists
// are concatenated, and dst must have room for whole ones. Missing ones are in Missing; for
// a null or empty list, all its numbers. A list of another length gives ErrRow. If fewer
// numbers are left than fit dst, the error is io.EOF and they are lost.
func (k *Cursor) Numbers(dst []byte) (err error) {
	defer kind.Catch(&err)
	k.Missing = k.Missing[:0]
	for size, done := k.c.Size, 0; len(dst) > 0; {
		if !k.load() {
			return io.EOF
		}
		n, taken := min(k.count, len(dst)/size), 0
		if k.gaps { // there is no number where one is missing
			n = 1
		}
		switch {
		case k.gaps && k.def.next(k.scratch[:1]) && k.scratch[0] != uint32(k.c.maxDef):
			if taken = 1; k.c.List && int(k.scratch[0]) < k.c.itemDef {
				n = min(k.width, len(dst)/size)
			}
			for i := range n {
				k.Missing = append(k.Missing, done+i)
			}
		case !k.indexed:
			copy(dst, k.content.numbers[:n*size])
			k.content.numbers = k.content.numbers[n*size:]
		default:
			n = min(n, scratchSize)
			k.c.must(k.indices.next(k.scratch[:n]) && lookUp(dst, k.dictionary.numbers, size, k.scratch[:n]), wrongIndex)
		}
		dst, done = dst[n*size:], done+n
		k.count -= cmp.Or(taken, n)
	}
	return nil
}

// lookUp puts numbers of a dictionary into dst, or returns false if it does not have them.
func lookUp(dst, dictionary []byte, size int, indices []uint32) bool {
	for _, at := range indices {
		from := int(at) * size
		if from >= len(dictionary) {
			return false
		}
		if size == 4 {
			binary.NativeEndian.PutUint32(dst, binary.NativeEndian.Uint32(dictionary[from:]))
		} else {
			copy(dst, dictionary[from:from+size])
		}
		dst = dst[size:]
	}
	return true
}

// Texts appends the next n texts; missing texts are empty. Equal texts from a dictionary
// share memory.
func (k *Cursor) Texts(to []string, n int) (_ []string, err error) {
	defer kind.Catch(&err)
	one := k.scratch[:1]
	for range n {
		if !k.load() {
			return to, io.EOF
		}
		text := ""
		k.def.next(one) // they have been counted
		switch {
		case one[0] != uint32(k.c.maxDef): // missing
		case !k.indexed:
			text, k.content.texts = k.content.texts[0], k.content.texts[1:]
		default:
			k.c.must(k.indices.next(one) && one[0] < uint32(len(k.dictionary.texts)), wrongIndex)
			text = k.dictionary.texts[one[0]]
		}
		to = append(to, text)
		k.count--
	}
	return to, nil
}

// End returns nil if all values have been taken.
func (k *Cursor) End() (err error) {
	defer kind.Catch(&err)
	k.c.must(!k.load(), "got more values than rows")
	return nil
}

// SkipGroups skips the row groups that lie within the first rows, and returns their number
// of rows. No value must have been read.
func (k *Cursor) SkipGroups(rows int) (skipped int) {
	for ; k.group < len(k.f.groups) && skipped+k.f.groups[k.group].rows <= rows; k.group++ {
		skipped += k.f.groups[k.group].rows
	}
	k.taken = skipped * k.width
	return skipped
}

// Width returns the length of the first list of a column of lists that is neither null nor
// empty; the cursor then expects the same of the other lists. Without one it returns io.EOF.
func (k *Cursor) Width() (width int, err error) {
	defer kind.Catch(&err)
	for probe, level := *k, make([]uint32, 2); probe.load(); probe.count-- {
		k.c.must(probe.rep.next(level[:1]) && probe.def.next(level[1:]), fewLevels)
		if width > 0 && level[0] == 0 {
			break
		}
		k.c.must(width > 0 || level[0] == 0, "got a start within a list")
		if int(level[1]) >= k.c.itemDef {
			width++
		}
		k.c.must(width <= k.f.Most(), "got a first list of more than %d values", width)
	}
	if k.width = width; width == 0 {
		err = io.EOF
	}
	return width, err
}
