package parquet

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

// A NullError tells of a value that is missing.
type NullError struct {
	Column string
	Row    int // counted from 0
	List   bool
}

func (e *NullError) Error() string {
	what := "is missing (null)"
	if e.List {
		what = "is missing, empty, or has a missing value in it (null)"
	}
	return fmt.Sprintf("row %d (counted from 1), column %.60q: the value %s; fill it in, remove the row, or drop the column", e.Row+1, e.Column, what)
}

// A LengthError tells of a list of another length than those before it.
type LengthError struct {
	Column string
	Row    int // counted from 0
	Length int // of the others
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("row %d (counted from 1), column %.60q: the list does not have %d values, as those before it have; give all points the same number of values", e.Row+1, e.Column, e.Length)
}

// scratchSize is how many levels or indices are decoded at a time.
const scratchSize = 1 << 10

// A Cursor reads the values of a column in their order. It holds a page, decompressed but
// not decoded where a dictionary keeps it small. Several may read from a file at the same
// time.
type Cursor struct {
	f     *File
	c     *Column
	group int   // of the row groups, the one after the current
	at    int64 // where the next page begins
	end   int64 // of the chunk
	codec int
	left  int // values of the chunk in pages to come

	count    int    // values left of the page, missing ones included
	rep, def hybrid // levels
	indices  hybrid // into the dictionary, where the page has any
	indexed  bool
	numbers  []byte   // of the page, not yet taken
	texts    []string // likewise

	dictionary      []byte    // numbers
	floats          []float32 // the same, as Floats has converted them; nil before
	dictionaryTexts []string

	packed, unpacked []byte // memory for pages

	width   int // values of a list; 0: not known
	taken   int // values taken from the file
	scratch []uint32
}

// Cursor begins to read column i.
func (f *File) Cursor(i int) *Cursor {
	return &Cursor{f: f, c: &f.Columns[i], scratch: make([]uint32, scratchSize)}
}

// row is the row of the value that comes next, counted from 0.
func (k *Cursor) row() int { return k.taken / max(1, k.width) }

// load makes sure that the page has values left; io.EOF tells that there are no more.
func (k *Cursor) load() error {
	for k.count == 0 {
		for k.at == k.end {
			if k.left > 0 {
				return damaged("the column %.60q has fewer values than it says", k.c.Name)
			}
			if k.group == len(k.f.groups) {
				*k = Cursor{f: k.f, c: k.c, group: k.group, width: k.width, taken: k.taken, scratch: k.scratch}
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
			k.dictionary, k.floats, k.dictionaryTexts = nil, nil, nil
		}
		if err := k.readPage(); err != nil {
			return err
		}
	}
	return nil
}

// readPage reads the next page of the chunk.
func (k *Cursor) readPage() error {
	var p pageHead
	head := make([]byte, 0, headSize)
	size, err := 0, error(nil)
	for try := int64(headSize); ; try *= 8 {
		n := min(try, k.end-k.at)
		head = append(head[:0], make([]byte, n)...)
		if err := readAt(k.f.r, head, k.at); err != nil {
			return err
		}
		if p, size, err = readHead(head); err == nil {
			break
		}
		if n < try || try >= maxHead {
			return err
		}
	}
	k.at += int64(size)
	if int64(p.compressed) > k.end-k.at {
		return damaged("a page of the column %.60q goes beyond its end", k.c.Name)
	}
	k.packed = slices.Grow(k.packed[:0], p.compressed)
	b := k.packed[:p.compressed]
	if err := readAt(k.f.r, b, k.at); err != nil {
		return err
	}
	k.at += int64(p.compressed)
	if p.crc >= 0 && int64(crc32.ChecksumIEEE(b)) != p.crc {
		return damaged("a page of the column %.60q has another checksum than it should have", k.c.Name)
	}
	switch p.kind {
	case pageDictionary:
		return k.readDictionary(&p, b)
	case pageData, pageDataV2:
		return k.readData(&p, b)
	}
	return nil // others have no values
}

// checkRoom refuses a page of numbers that claims to take more than its values can need.
func (k *Cursor) checkRoom(p *pageHead) error {
	if k.c.Kind != Text && (p.values > k.left || p.uncompressed > valueRoom*p.values+pageRoom) {
		return damaged("a page of the column %.60q claims to hold %d bytes for %d values, of %d in all", k.c.Name, p.uncompressed, p.values, k.left)
	}
	return nil
}

func (k *Cursor) readDictionary(p *pageHead, b []byte) error {
	if err := k.checkRoom(p); err != nil {
		return err
	}
	b, err := decompress(k.codec, b, p.uncompressed, nil)
	if err != nil {
		return err
	}
	if p.encoding == encodingPlainDictionary {
		p.encoding = encodingPlain
	}
	if k.c.Kind == Text {
		k.dictionaryTexts, err = texts(k.c, p.encoding, b, p.values)
		return err
	}
	numbers, err := plain(k.c, p.encoding, b, p.values)
	if err != nil {
		return err
	}
	k.dictionary, k.floats = slices.Clone(numbers[:p.values*k.c.Size]), nil
	return k.checkBytes(k.dictionary)
}

// checkBytes refuses numbers above 255 in a column that says that it has none.
func (k *Cursor) checkBytes(numbers []byte) error {
	if !k.c.Byte {
		return nil
	}
	all := uint32(0)
	for i := 0; i+4 <= len(numbers); i += 4 {
		all |= binary.LittleEndian.Uint32(numbers[i:])
	}
	if all > math.MaxUint8 {
		return damaged("the column %.60q says that its numbers are from 0 to 255, and has others", k.c.Name)
	}
	return nil
}

func (k *Cursor) readData(p *pageHead, b []byte) (err error) {
	if p.values > k.left {
		return damaged("the column %.60q has more values than it says", k.c.Name)
	}
	if err := k.checkRoom(p); err != nil {
		return err
	}
	levels := b[:p.repBytes+p.defBytes]
	rest := b[len(levels):]
	codec := k.codec
	if !p.isCompressed {
		codec = codecNone
	}
	if rest, err = decompress(codec, rest, p.uncompressed-len(levels), k.unpacked); err != nil {
		return err
	}
	if codec != codecNone {
		k.unpacked = rest
	}
	if p.kind == pageDataV2 {
		k.rep, k.def = newHybrid(levels[:p.repBytes], width(k.c.maxRep)), newHybrid(levels[p.repBytes:], width(k.c.maxDef))
	} else {
		take := func(most int) (h hybrid) {
			if most == 0 || err != nil {
				return h
			}
			if len(rest) < 4 || uint64(binary.LittleEndian.Uint32(rest)) > uint64(len(rest)-4) {
				err = damaged("a page of the column %.60q ends within its levels", k.c.Name)
				return h
			}
			n := 4 + int(binary.LittleEndian.Uint32(rest))
			h = newHybrid(rest[4:n], width(most))
			rest = rest[n:]
			return h
		}
		k.rep, k.def = take(k.c.maxRep), take(k.c.maxDef)
		if err != nil {
			return err
		}
	}
	// How many values are there is known once the levels have been read.
	there := p.values
	if k.c.maxDef > 0 {
		if there, err = k.present(p.values); err != nil {
			return err
		}
	}
	k.numbers, k.texts, k.indexed = nil, nil, false
	switch {
	case p.encoding == encodingDictionary || p.encoding == encodingPlainDictionary:
		if len(rest) == 0 && there > 0 || len(rest) > 0 && rest[0] > 32 {
			return damaged("a page of the column %.60q has no indices", k.c.Name)
		}
		if k.indexed = true; len(rest) > 0 {
			k.indices = newHybrid(rest[1:], int(rest[0]))
		}
	case k.c.Kind == Text:
		k.texts, err = texts(k.c, p.encoding, rest, there)
	default:
		if k.numbers, err = plain(k.c, p.encoding, rest, there); err == nil {
			err = k.checkBytes(k.numbers[:there*k.c.Size])
		}
	}
	k.count = p.values
	k.left -= p.values
	return err
}

// present counts the values of a page that are not missing.
func (k *Cursor) present(values int) (there int, err error) {
	def := k.def // a copy, so that the levels can be read again
	for values > 0 {
		same, ok := def.equal(values, uint32(k.c.maxDef), k.scratch)
		there, values = there+same, values-same
		if !ok {
			return 0, k.noLevels()
		}
		if values == 0 {
			break
		}
		if !def.next(k.scratch[:1]) {
			return 0, k.noLevels()
		}
		values--
	}
	return there, nil
}

func (k *Cursor) noLevels() error {
	return damaged("a page of the column %.60q has fewer levels than values", k.c.Name)
}

// Numbers fills dst with the numbers that come next, little-endian and of the column's
// size, those of lists one after the other. A missing one gives a *NullError. After the
// last one comes io.EOF, also where there are too few for dst; then these are lost.
func (k *Cursor) Numbers(dst []byte) error {
	size := k.c.Size
	for len(dst) > 0 {
		if err := k.load(); err != nil {
			return err
		}
		n := min(k.count, len(dst)/size)
		if err := k.skipLevels(n); err != nil {
			return err
		}
		if k.indexed {
			if err := k.lookUp(dst[:n*size], n); err != nil {
				return err
			}
		} else {
			copy(dst, k.numbers[:n*size])
			k.numbers = k.numbers[n*size:]
		}
		dst = dst[n*size:]
		k.count -= n
		k.taken += n
	}
	return nil
}

// Floats fills dst with the numbers that come next, as Numbers does, each as convert makes
// it of its bytes: the same for equal ones, and the same function in each call.
func (k *Cursor) Floats(dst []float32, convert func(dst []float32, src []byte)) error {
	for len(dst) > 0 {
		if err := k.load(); err != nil {
			return err
		}
		n := min(k.count, len(dst))
		if err := k.skipLevels(n); err != nil {
			return err
		}
		if k.indexed {
			if err := k.lookUpFloats(dst[:n], convert); err != nil {
				return err
			}
		} else {
			convert(dst[:n], k.numbers)
			k.numbers = k.numbers[n*k.c.Size:]
		}
		dst = dst[n:]
		k.count -= n
		k.taken += n
	}
	return nil
}

// lookUpFloats is lookUp for Floats.
func (k *Cursor) lookUpFloats(dst []float32, convert func(dst []float32, src []byte)) error {
	if k.floats == nil {
		k.floats = make([]float32, len(k.dictionary)/k.c.Size)
		convert(k.floats, k.dictionary)
	}
	for len(dst) > 0 {
		part := k.scratch[:min(len(dst), len(k.scratch))]
		if !k.indices.next(part) {
			return k.noIndices()
		}
		for i, at := range part {
			if at >= uint32(len(k.floats)) {
				return k.noIndices()
			}
			dst[i] = k.floats[at]
		}
		dst = dst[len(part):]
	}
	return nil
}

// End returns nil if all values have been taken.
func (k *Cursor) End() error {
	err := k.load()
	if err == io.EOF {
		return nil
	}
	if err == nil && k.c.List {
		err = k.skipLevels(1)
	}
	if err == nil {
		err = damaged("the column %.60q has more values than rows", k.c.Name)
	}
	return err
}

// skipLevels passes over the levels of n values, which have to be those of values that
// are there, and of lists of one width.
func (k *Cursor) skipLevels(n int) error {
	if k.c.maxDef > 0 {
		same, ok := k.def.equal(n, uint32(k.c.maxDef), k.scratch)
		if !ok {
			return k.noLevels()
		}
		if same < n {
			k.taken += same
			return &NullError{k.c.Name, k.row(), k.c.List}
		}
	}
	if k.c.maxRep == 0 {
		return nil
	}
	// Every list begins with level 0, and goes on with level 1.
	for at := k.taken; n > 0; {
		within := at % k.width
		want, most := uint32(1), k.width-within
		if within == 0 {
			want, most = 0, 1
		}
		most = min(most, n)
		same, ok := k.rep.equal(most, want, k.scratch)
		if !ok {
			return k.noLevels()
		}
		if same < most {
			row := (at + same) / k.width
			if within == 0 {
				row-- // goes on
			}
			return &LengthError{k.c.Name, max(0, row), k.width}
		}
		at, n = at+most, n-most
	}
	return nil
}

// lookUp puts n numbers of the dictionary into dst.
func (k *Cursor) lookUp(dst []byte, n int) error {
	size := k.c.Size
	for done := 0; done < n; {
		part := k.scratch[:min(n-done, len(k.scratch))]
		if !k.indices.next(part) {
			return k.noIndices()
		}
		out := dst[done*size : (done+len(part))*size]
		entries := uint32(len(k.dictionary) / size)
		for _, at := range part {
			if at >= entries {
				return k.noIndices()
			}
		}
		switch size {
		case 4:
			for i, at := range part {
				binary.LittleEndian.PutUint32(out[4*i:], binary.LittleEndian.Uint32(k.dictionary[4*at:]))
			}
		case 8:
			for i, at := range part {
				binary.LittleEndian.PutUint64(out[8*i:], binary.LittleEndian.Uint64(k.dictionary[8*at:]))
			}
		default:
			for i, at := range part {
				copy(out[i*size:(i+1)*size], k.dictionary[int(at)*size:])
			}
		}
		done += len(part)
	}
	return nil
}

func (k *Cursor) noIndices() error {
	return damaged("a page of the column %.60q asks for what its dictionary does not have", k.c.Name)
}

// Skip passes over rows, before any value has been taken, and reads nothing of row groups
// that they fill. Errors are those of Numbers.
func (k *Cursor) Skip(rows int) error {
	perRow := max(1, k.width)
	for k.group < len(k.f.groups) && rows >= k.f.groups[k.group].rows {
		rows -= k.f.groups[k.group].rows
		k.taken += k.f.groups[k.group].rows * perRow
		k.group++
	}
	if k.c.Kind == Text {
		for rows > 0 {
			n := min(rows, scratchSize)
			if _, err := k.Texts(make([]string, 0, n), n); err != nil {
				return err
			}
			rows -= n
		}
		return nil
	}
	passed := make([]byte, k.c.Size*min(scratchSize, rows*perRow))
	for left := rows * perRow; left > 0; {
		n := min(left, scratchSize)
		if err := k.Numbers(passed[:n*k.c.Size]); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// Groups returns how many rows each of the row groups has.
func (f *File) Groups() []int {
	rows := make([]int, len(f.groups))
	for i, g := range f.groups {
		rows[i] = g.rows
	}
	return rows
}

// Texts appends n texts that come next; missing ones are empty. Equal ones share their
// memory where the file has a dictionary of them.
func (k *Cursor) Texts(to []string, n int) ([]string, error) {
	for n > 0 {
		if err := k.load(); err != nil {
			return to, err
		}
		missing := false
		if k.c.maxDef > 0 {
			if !k.def.next(k.scratch[:1]) {
				return to, k.noLevels()
			}
			missing = k.scratch[0] != uint32(k.c.maxDef)
		}
		switch {
		case missing:
			to = append(to, "")
		case k.indexed:
			if !k.indices.next(k.scratch[:1]) || k.scratch[0] >= uint32(len(k.dictionaryTexts)) {
				return to, k.noIndices()
			}
			to = append(to, k.dictionaryTexts[k.scratch[0]])
		default:
			to, k.texts = append(to, k.texts[0]), k.texts[1:]
		}
		k.count--
		k.taken++
		n--
	}
	return to, nil
}

// Width finds out how many values the first list of a column of lists has, and has
// the cursor expect as many of the others. Without rows it gives io.EOF.
func (k *Cursor) Width() (int, error) {
	probe := &Cursor{f: k.f, c: k.c, scratch: make([]uint32, 1)}
	for width := 0; ; width++ {
		err := probe.load()
		if err == io.EOF && width > 0 {
			k.width = width
			return width, nil
		}
		if err != nil {
			return 0, err
		}
		if width > k.f.Most() {
			return 0, damaged("the column %.60q claims to begin with a list of more than %d values", k.c.Name, width)
		}
		if !probe.rep.next(probe.scratch[:1]) {
			return 0, probe.noLevels()
		}
		if probe.scratch[0] == 0 && width > 0 {
			k.width = width
			return width, nil
		}
		if probe.scratch[0] != 0 && width == 0 {
			return 0, damaged("the column %.60q begins within a list", k.c.Name)
		}
		if !probe.def.next(probe.scratch[:1]) {
			return 0, probe.noLevels()
		}
		if probe.scratch[0] != uint32(k.c.maxDef) {
			return 0, &NullError{k.c.Name, 0, true}
		}
		probe.count--
	}
}
