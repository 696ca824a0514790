package parquet

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"
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
	k := &Cursor{f: f, c: &f.Columns[i], scratch: make([]uint32, 2*scratchSize), width: 1}
	if k.c.List {
		k.width = 0
	}
	return k
}

func (k *Cursor) damaged(what string) error {
	return damaged("column %.60q: page %s", k.c.Name, what)
}

// load reads pages until one has values left, or returns io.EOF at the end.
func (k *Cursor) load() error {
	for k.count == 0 {
		if k.chunk.at < k.chunk.end {
			if err := k.readPage(); err != nil {
				return err
			}
			continue
		}
		if k.chunk.values > 0 {
			return damaged("column %.60q: got fewer values than announced", k.c.Name)
		}
		if k.group == len(k.f.groups) {
			*k = Cursor{f: k.f, c: k.c, group: k.group, scratch: k.scratch, width: k.width} // releases pages
			return io.EOF
		}
		g := &k.f.groups[k.group]
		k.chunk, k.dictionary = g.chunks[k.c.leaf], content{}
		k.group++
		if k.chunk.encrypted {
			return unsupported("column %.60q: got encrypted values, want unencrypted ones", k.c.Name)
		}
		if values := k.chunk.values; !k.c.List && values != g.rows || values < g.rows {
			return damaged("column %.60q: got %d values for a row group of %d rows", k.c.Name, values, g.rows)
		}
	}
	return nil
}

// readPage reads the next page of the chunk.
func (k *Cursor) readPage() error {
	var p pageHead
	size, err, left := 0, error(nil), &k.chunk
	for try := headSize; ; try *= 8 {
		head := make([]byte, min(try, maxHead, left.end-left.at))
		if err := readAt(k.f.r, head, int64(left.at)); err != nil {
			return err
		}
		if p, size, err = readHead(head); err == nil {
			break
		}
		if len(head) < try || try >= maxHead {
			return err
		}
	}
	left.at += size
	if p.compressed > left.end-left.at {
		return k.damaged("extends beyond the column's end")
	}
	k.packed = slices.Grow(k.packed[:0], p.compressed)[:p.compressed]
	if err := readAt(k.f.r, k.packed, int64(left.at)); err != nil {
		return err
	}
	left.at += p.compressed
	if p.crc.id != 0 && crc32.ChecksumIEEE(k.packed) != uint32(p.crc.number) {
		return k.damaged("has the wrong checksum")
	}
	isText, isDictionary := k.c.format != nil || k.c.number != nil, p.kind == pageDictionary
	if !isDictionary && p.kind != pageData && p.kind != pageDataV2 {
		return nil // it has no values
	}
	if (!isText || !isDictionary) && p.values > left.values || !isText && p.uncompressed > valueRoom*p.values+pageRoom {
		return k.damaged(fmt.Sprintf("claims %d bytes for %d values, of %d in all", p.uncompressed, p.values, left.values))
	}
	levels, body, codec := k.packed[:p.repBytes+p.defBytes], k.packed[p.repBytes+p.defBytes:], left.codec
	if !p.isCompressed {
		codec = codecNone
	}
	if body, err = decompress(codec, body, p.uncompressed-len(levels), k.unpacked); err != nil {
		return err
	}
	if codec != codecNone {
		k.unpacked = body
	}
	if !isDictionary {
		return k.readData(&p, levels, body)
	}
	k.dictionary, err = k.c.decode(encodingPlain, body, p.values)
	k.dictionary.numbers = slices.Clone(k.dictionary.numbers)
	return err
}

// readData begins a page with values.
func (k *Cursor) readData(p *pageHead, levels, body []byte) (err error) {
	k.rep = hybrid{b: levels[:p.repBytes], width: bits.Len(uint(k.c.maxRep))}
	k.def = hybrid{b: levels[p.repBytes:], width: bits.Len(uint(k.c.maxDef))}
	d := decoder{b: body}
	for _, h := range []*hybrid{&k.rep, &k.def} {
		if p.kind == pageData && h.width > 0 {
			h.b = d.sized()
		}
	}
	if d.err != nil {
		return k.damaged("ends within its levels")
	}
	k.count, k.chunk.values = p.values, k.chunk.values-p.values
	if k.width == 0 {
		return nil // Width needs only the levels
	}
	there, err := k.checkLevels(p.values)
	if err != nil {
		return err
	}
	k.indexed, k.gaps = true, there < p.values
	switch isBool := k.c.physical == typeBool; {
	case p.encoding == encodingDictionary || p.encoding == encodingPlainDictionary:
		width := d.byte()
		if there > 0 && (d.err != nil || width > 32) {
			return k.damaged("has no indices")
		}
		k.indices = hybrid{b: d.b, width: int(width)}
	case isBool && p.encoding == encodingPlain:
		k.indices, k.dictionary.numbers = hybrid{b: d.b, width: 1, packed: true, run: there}, []byte{0, 1}
	case isBool && p.encoding == encodingRLE:
		k.indices, k.dictionary.numbers = hybrid{b: d.sized(), width: 1}, []byte{0, 1}
	default:
		k.indexed = false
		k.content, err = k.c.decode(p.encoding, d.b, there)
	}
	return err
}

// What may be wrong with a page.
const fewLevels, wrongIndex = "has fewer levels than values", "has an index that is not in its dictionary"

// checkLevels checks the levels of a page of the given number of values, which for lists
// includes null lists: all lists must have the same width. It returns how many values are
// not null.
func (k *Cursor) checkLevels(values int) (there int, err error) {
	def, most := k.def, uint32(k.c.maxDef) // a copy, since the values' readers read them again
	full := def.all(values, most)
	if full && !k.c.List {
		k.taken += values
		return values, nil
	}
	within := k.taken % k.width
	for at := 0; at < values; at += scratchSize {
		n := min(values-at, scratchSize)
		defs, reps := k.scratch[:n], k.scratch[scratchSize:][:n]
		if !def.next(defs) || k.c.List && !k.rep.next(reps) {
			return 0, k.damaged(fewLevels)
		}
		for i, v := range defs {
			if v == most {
				there++
			} else if v > most {
				return 0, k.damaged("has an invalid level")
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
				return 0, k.c.badRow(row, fmt.Sprintf("list: got another number of values, want %d as in the rows before", k.width))
			}
			if isNull {
				k.taken += k.width
			} else if k.taken, within = k.taken+1, within+1; within == k.width {
				within = 0
			}
		}
	}
	return there, nil
}

// Numbers fills dst with the next numbers, little-endian and of the column's size; lists
// are concatenated, and dst must have room for whole ones. Missing ones are in Missing; for
// a null or empty list, all its numbers. A list of another length gives ErrRow. If fewer
// numbers are left than fit dst, the error is io.EOF and they are lost.
func (k *Cursor) Numbers(dst []byte) error {
	k.Missing = k.Missing[:0]
	for size, done := k.c.Size, 0; len(dst) > 0; {
		if err := k.load(); err != nil {
			return err
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
			if n = min(n, scratchSize); !k.indices.next(k.scratch[:n]) || !lookUp(dst, k.dictionary.numbers, size, k.scratch[:n]) {
				return k.damaged(wrongIndex)
			}
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
func (k *Cursor) Texts(to []string, n int) ([]string, error) {
	one := k.scratch[:1]
	for range n {
		if err := k.load(); err != nil {
			return to, err
		}
		text := ""
		k.def.next(one) // they have been counted
		switch {
		case one[0] != uint32(k.c.maxDef): // missing
		case !k.indexed:
			text, k.content.texts = k.content.texts[0], k.content.texts[1:]
		case !k.indices.next(one) || one[0] >= uint32(len(k.dictionary.texts)):
			return to, k.damaged(wrongIndex)
		default:
			text = k.dictionary.texts[one[0]]
		}
		to = append(to, text)
		k.count--
	}
	return to, nil
}

// End returns nil if all values have been taken.
func (k *Cursor) End() error {
	if err := k.load(); err != io.EOF {
		return cmp.Or(err, damaged("column %.60q: got more values than rows", k.c.Name))
	}
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
func (k *Cursor) Width() (width int, _ error) {
	probe, level := *k, make([]uint32, 2)
	for {
		err := probe.load()
		switch {
		case err == nil && (!probe.rep.next(level[:1]) || !probe.def.next(level[1:])):
			return 0, k.damaged(fewLevels)
		case width > 0 && (err == io.EOF || err == nil && level[0] == 0):
			k.width = width
			return width, nil
		case err != nil:
			return 0, err
		case width == 0 && level[0] != 0:
			return 0, damaged("column %.60q: got a start within a list", k.c.Name)
		case width > k.f.Most():
			return 0, damaged("column %.60q: got a first list of more than %d values", k.c.Name, width)
		}
		if int(level[1]) >= k.c.itemDef {
			width++
		}
		probe.count--
	}
}
