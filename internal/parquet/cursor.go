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

// scratchSize is how many levels or indices are decoded at a time.
const scratchSize = 1 << 10

// A Cursor reads the values of a column in their order. It holds a page, decompressed but,
// of numbers that a dictionary keeps small, not decoded. Several may read from a file at
// the same time.
type Cursor struct {
	f          *File
	c          *Column
	group      int // of the row groups, the one after the current
	at, end    int // of the chunk's pages to come
	codec      int
	left       int // values of the chunk in pages to come
	dictionary content

	count   int     // values left of the page
	content content // of the page, not yet taken
	indexed bool    // the numbers of the page are those of the dictionary that indices tell
	indices hybrid

	rep, def hybrid // levels of the page
	scratch  []uint32

	width int // values of a row; 0: not known
	taken int // values taken from the file
}

// Cursor begins to read column i.
func (f *File) Cursor(i int) *Cursor {
	k := &Cursor{f: f, c: &f.Columns[i], scratch: make([]uint32, scratchSize), width: 1}
	if k.c.List {
		k.width = 0
	}
	return k
}

func (k *Cursor) damaged(what string) error {
	return damaged("a page of the column %.60q %s", k.c.Name, what)
}

// load makes sure that the page has values left; io.EOF tells that there are no more.
func (k *Cursor) load() error {
	for k.count == 0 {
		if k.at < k.end {
			if err := k.readPage(); err != nil {
				return err
			}
			continue
		}
		if k.left > 0 {
			return damaged("the column %.60q has fewer values than it says", k.c.Name)
		}
		if k.group == len(k.f.groups) {
			k.dictionary, k.content = content{}, content{}
			return io.EOF
		}
		g := &k.f.groups[k.group]
		k.group++
		chunk := &g.chunks[k.c.leaf]
		if chunk.encrypted {
			return unsupported("the column %.60q is encrypted; write the file without encryption", k.c.Name)
		}
		if !k.c.List && chunk.values != g.rows || chunk.values < g.rows {
			return damaged("the column %.60q has %d values for the %d rows of a row group", k.c.Name, chunk.values, g.rows)
		}
		k.at, k.end, k.codec, k.left = chunk.start, chunk.start+chunk.bytes, chunk.codec, chunk.values
		k.dictionary = content{}
	}
	return nil
}

// readPage reads the next page of the chunk.
func (k *Cursor) readPage() error {
	var p pageHead
	size, err := 0, error(nil)
	for try := headSize; ; try *= 8 {
		head := make([]byte, min(try, k.end-k.at))
		if err := readAt(k.f.r, head, int64(k.at)); err != nil {
			return err
		}
		if p, size, err = readHead(head); err == nil {
			break
		}
		if len(head) < try || try >= maxHead {
			return err
		}
	}
	k.at += size
	if p.compressed > k.end-k.at {
		return k.damaged("goes beyond its end")
	}
	b := make([]byte, p.compressed)
	if err := readAt(k.f.r, b, int64(k.at)); err != nil {
		return err
	}
	k.at += p.compressed
	if p.crc >= 0 && int(crc32.ChecksumIEEE(b)) != p.crc {
		return k.damaged("has another checksum than it should have")
	}
	isText, isDictionary := k.c.Kind == Text, p.kind == pageDictionary
	if !isDictionary && p.kind != pageData && p.kind != pageDataV2 {
		return nil // it has no values
	}
	if (!isText || !isDictionary) && p.values > k.left || !isText && p.uncompressed > valueRoom*p.values+pageRoom {
		return k.damaged(fmt.Sprintf("claims to hold %d bytes for %d values, of %d in all", p.uncompressed, p.values, k.left))
	}
	if !isDictionary {
		return k.readData(&p, b)
	}
	if b, err = decompress(k.codec, b, p.uncompressed); err != nil {
		return err
	}
	if p.encoding == encodingPlainDictionary {
		p.encoding = encodingPlain
	}
	k.dictionary, err = k.c.decode(p.encoding, b, p.values)
	return err
}

func (k *Cursor) readData(p *pageHead, b []byte) (err error) {
	levels, rest := b[:p.repBytes+p.defBytes], b[p.repBytes+p.defBytes:]
	codec := k.codec
	if !p.isCompressed {
		codec = codecNone
	}
	if rest, err = decompress(codec, rest, p.uncompressed-len(levels)); err != nil {
		return err
	}
	k.rep, k.def = newHybrid(levels[:p.repBytes], bits.Len(uint(k.c.maxRep))), newHybrid(levels[p.repBytes:], bits.Len(uint(k.c.maxDef)))
	for _, h := range []*hybrid{&k.rep, &k.def} {
		if p.kind == pageDataV2 || h.width == 0 {
			continue
		}
		if len(rest) < 4 || uint64(binary.LittleEndian.Uint32(rest)) > uint64(len(rest)-4) {
			return k.damaged("ends within its levels")
		}
		n := 4 + int(binary.LittleEndian.Uint32(rest))
		h.b, rest = rest[4:n], rest[n:]
	}
	k.count, k.left = p.values, k.left-p.values
	if k.width == 0 {
		return nil // Width wants the levels alone
	}
	there, err := k.checkLevels(p.values)
	if err != nil {
		return err
	}
	k.indexed = p.encoding == encodingDictionary || p.encoding == encodingPlainDictionary
	if !k.indexed {
		k.content, err = k.c.decode(p.encoding, rest, there)
	} else if len(rest) > 0 && rest[0] <= 32 {
		k.indices = newHybrid(rest[1:], int(rest[0]))
	} else if there > 0 {
		return k.damaged("has no indices")
	}
	return err
}

// What may be wrong with a page.
const (
	fewLevels  = "has fewer levels than values"
	wrongIndex = "asks for what its dictionary does not have"
)

// checkLevels makes sure of a page with so many values that no number is missing, and that
// all lists have the same width. It returns how many values are there.
func (k *Cursor) checkLevels(values int) (there int, err error) {
	if k.c.maxDef == 0 {
		return values, nil
	}
	def, most := k.def, uint32(k.c.maxDef) // a copy, since Texts reads them again
	within := k.taken % k.width
	for at := k.taken; at < k.taken+values; {
		part := k.scratch[:min(k.taken+values-at, len(k.scratch))]
		if !def.next(part) {
			return 0, k.damaged(fewLevels)
		}
		for i, v := range part {
			if v == most {
				there++
			} else if k.c.Kind != Text {
				return 0, k.missing((at + i) / k.width)
			}
		}
		if k.c.List && !k.rep.next(part) {
			return 0, k.damaged(fewLevels)
		}
		for i := 0; k.c.List && i < len(part); i++ {
			// Every list begins with level 0, and goes on with level 1.
			if begins := within == 0; begins != (part[i] == 0) {
				row := (at + i) / k.width
				if begins {
					row = max(1, row) - 1
				}
				return 0, k.c.badRow(row, fmt.Sprintf("the list does not have %d values, as those before it have; give all points the same number of values", k.width))
			}
			if within++; within == k.width {
				within = 0
			}
		}
		at += len(part)
	}
	return there, nil
}

// missing is the error for a value that is missing in a row.
func (k *Cursor) missing(row int) error {
	what := "is missing (null)"
	if k.c.List {
		what = "is missing, empty, or has a missing value in it (null)"
	}
	return k.c.badRow(row, "the value "+what+"; fill it in, remove the row, or drop the column")
}

// pass counts n values of the page as taken.
func (k *Cursor) pass(n int) { k.count, k.taken = k.count-n, k.taken+n }

// Numbers fills dst with the numbers that come next, little-endian and of the column's
// size, those of lists one after the other. A missing one, or a list of another length,
// gives an ErrRow. After the last one comes io.EOF, also where there are too few for dst;
// then these are lost.
func (k *Cursor) Numbers(dst []byte) error {
	for size := k.c.Size; len(dst) > 0; {
		if err := k.load(); err != nil {
			return err
		}
		n := min(k.count, len(dst)/size)
		if !k.indexed {
			copy(dst, k.content.numbers[:n*size])
			k.content.numbers = k.content.numbers[n*size:]
		} else {
			n = min(n, len(k.scratch))
			if !k.indices.next(k.scratch[:n]) || !lookUp(dst, k.dictionary.numbers, size, k.scratch[:n]) {
				return k.damaged(wrongIndex)
			}
		}
		dst = dst[n*size:]
		k.pass(n)
	}
	return nil
}

// lookUp puts numbers of a dictionary into dst, or returns false if it does not have them.
func lookUp(dst, dictionary []byte, size int, indices []uint32) bool {
	if int(slices.Max(indices)) >= len(dictionary)/size {
		return false
	}
	for i, at := range indices {
		if size == 4 {
			binary.NativeEndian.PutUint32(dst[4*i:], binary.NativeEndian.Uint32(dictionary[4*at:]))
		} else {
			copy(dst[i*size:(i+1)*size], dictionary[int(at)*size:])
		}
	}
	return true
}

// Texts appends n texts that come next; missing ones are empty. Equal ones share their
// memory where the file has a dictionary of them.
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
		k.pass(1)
	}
	return to, nil
}

// End returns nil if all values have been taken.
func (k *Cursor) End() error {
	if err := k.load(); err != io.EOF {
		return cmp.Or(err, damaged("the column %.60q has more values than rows", k.c.Name))
	}
	return nil
}

// SkipGroups passes over the row groups that so many rows fill, before any value has been
// taken, and returns the rows of these.
func (k *Cursor) SkipGroups(rows int) (skipped int) {
	for ; k.group < len(k.f.groups) && skipped+k.f.groups[k.group].rows <= rows; k.group++ {
		skipped += k.f.groups[k.group].rows
	}
	k.taken = skipped * k.width
	return skipped
}

// Width finds out how many values the first list of a column of lists has, and has
// the cursor expect as many of the others. Without rows it gives io.EOF.
func (k *Cursor) Width() (int, error) {
	probe, one := *k, make([]uint32, 1)
	probe.width = 0
	for width := 0; ; width++ {
		err := probe.load()
		if err == nil && !probe.rep.next(one) {
			err = k.damaged(fewLevels)
		}
		switch {
		case width > 0 && (err == io.EOF || err == nil && one[0] == 0):
			k.width = width
			return width, nil
		case err != nil:
			return 0, err
		case width > k.f.Most():
			return 0, damaged("the column %.60q claims to begin with a list of more than %d values", k.c.Name, width)
		case width == 0 && one[0] != 0:
			return 0, damaged("the column %.60q begins within a list", k.c.Name)
		case !probe.def.next(one):
			return 0, k.damaged(fewLevels)
		case one[0] != uint32(k.c.maxDef):
			return 0, k.missing(0)
		}
		probe.count--
	}
}
