package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/internal/kind"
)

// ints returns a page of whole numbers from 0 on.
func ints(n int) testPage {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
	}
	return testPage{kind: pageData, values: n, body: b}
}

// one returns a file of one column of 32-bit numbers with one page, each changed.
func one(t *testing.T, change func(c *testColumn, p *testPage)) []byte {
	c := testColumn{name: "x", physical: typeInt32, groups: [][]testPage{{ints(10)}}}
	change(&c, &c.groups[0][0])
	return buildFile(t, rand.New(rand.NewPCG(1, 1)), []int{10}, []testColumn{c})
}

// footerOf returns a file of nothing but metadata: a schema, and other fields.
func footerOf(schema []any, fields ...any) []byte {
	return withFooter([]byte(Magic), append([]any{2, schema}, fields...)...)
}

// What cannot be read is refused in words that say why, and as what it is.
func TestRefusals(t *testing.T) {
	sound := one(t, func(*testColumn, *testPage) {})
	if err := read(sound); err != nil {
		t.Fatal(err)
	}
	dictionary := func(entries int, indices ...byte) func(c *testColumn, p *testPage) {
		return func(c *testColumn, p *testPage) {
			d := ints(entries)
			d.kind = pageDictionary
			p.encoding, p.body = encodingDictionary, indices
			c.groups[0] = []testPage{d, *p}
		}
	}
	list := func(rep []uint32, def []uint32) func(c *testColumn, p *testPage) {
		return func(c *testColumn, p *testPage) {
			c.list = true
			*p = ints(len(rep))
			p.rep, p.def = rep, def
			if def == nil {
				p.def = slices.Repeat([]uint32{2}, len(rep))
			}
		}
	}
	texts := func(encoding int, body []byte) func(c *testColumn, p *testPage) {
		return func(c *testColumn, p *testPage) { c.physical, p.encoding, p.body = typeBytes, encoding, body }
	}
	ends := func(last string) []byte { return append(slices.Clone(sound[:len(sound)-4]), last...) }
	for name, tc := range map[string]struct {
		file []byte
		kind error
		want string
	}{
		"nothing":                   {nil, ErrDamaged, "bytes: got 0, want at least 12"},
		"only the ends":             {[]byte("PAR1\x00\x00\x00\x00PAR1"), ErrDamaged, "metadata: got an invalid Thrift encoding"},
		"another end":               {ends("PAR2"), ErrDamaged, `last bytes: got "PAR2", want "PAR1"`},
		"encrypted":                 {ends("PARE"), ErrUnsupported, "encrypted"},
		"metadata of 4 GB":          {append(append([]byte("PAR1"), 0xff, 0xff, 0xff, 0xff), Magic...), ErrDamaged, "metadata: got a size of 4294967295 bytes, want at most 0"},
		"no schema":                 {withFooter([]byte(Magic), 1, int32(1)), ErrDamaged, "schema: got none"},
		"endless schema":            {append(append([]byte(Magic), 0x15, 2, 0x19, 0xfc, 0x80, 0x80, 0x80, 0x80, 1), append([]byte{9, 0, 0, 0}, Magic...)...), ErrDamaged, "metadata: got an invalid Thrift encoding"},
		"children that are not":     {footerOf([]any{root(1 << 30)}), ErrDamaged, "schema: got inconsistent numbers of children"},
		"children too many":         {footerOf([]any{root(0), leaf("x", typeInt32)}), ErrDamaged, "schema: got inconsistent numbers of children"},
		"deep":                      {append(append([]byte(Magic), bytes.Repeat([]byte{0x1c}, 40)...), append([]byte{40, 0, 0, 0}, Magic...)...), ErrDamaged, "metadata: got an invalid Thrift encoding"},
		"rows without row groups":   {footerOf([]any{root(1), leaf("x", typeInt32)}, 3, int64(5)), ErrDamaged, "rows of the row groups: got 0, want 5"},
		"columns that are missing":  {footerOf([]any{root(1), leaf("x", typeInt32)}, 3, int64(5), 4, []any{structure(3, int64(5))}), ErrDamaged, "columns of a row group: got 0, want 1"},
		"negative rows":             {footerOf([]any{root(0)}, 3, int64(-5), 4, []any{structure(3, int64(-5))}), ErrDamaged, "rows of a row group: got -5, want 0 to 2147483647"},
		"brotli":                    {one(t, func(c *testColumn, _ *testPage) { c.codec = 4 }), ErrUnsupported, "compression: got Brotli"},
		"LZO":                       {one(t, func(c *testColumn, _ *testPage) { c.codec = 3 }), ErrUnsupported, "compression: got LZO"},
		"LZ4":                       {one(t, func(c *testColumn, _ *testPage) { c.codec = 7 }), ErrUnsupported, "compression: got LZ4"},
		"codec 99":                  {one(t, func(c *testColumn, _ *testPage) { c.codec = 99 }), ErrUnsupported, "an unknown codec"},
		"codec -1":                  {one(t, func(c *testColumn, _ *testPage) { c.codec = -1 }), ErrUnsupported, "an unknown codec"},
		"encoding 4":                {one(t, func(_ *testColumn, p *testPage) { p.encoding = 4 }), ErrUnsupported, "encoding 4"},
		"differences of floats":     {one(t, func(c *testColumn, p *testPage) { c.physical, p.encoding = typeFloat, encodingDelta }), ErrUnsupported, "encoding 5"},
		"runs of numbers":           {one(t, func(_ *testColumn, p *testPage) { p.encoding = encodingRLE }), ErrUnsupported, "encoding 3"},
		"split texts":               {one(t, texts(encodingSplit, nil)), ErrUnsupported, "encoding 9"},
		"fewer values":              {one(t, func(_ *testColumn, p *testPage) { p.body = p.body[:39] }), ErrDamaged, "fewer values than announced"},
		"fewer split values":        {one(t, func(_ *testColumn, p *testPage) { p.body, p.encoding = p.body[:39], encodingSplit }), ErrDamaged, "fewer values than announced"},
		"fewer rows":                {one(t, func(_ *testColumn, p *testPage) { p.values = 9 }), ErrDamaged, "got 9 values for a row group of 10 rows"},
		"a page without need":       {one(t, func(_ *testColumn, p *testPage) { p.body = make([]byte, 1<<16) }), ErrDamaged, "claims 65536 bytes for 10 values"},
		"a dictionary without need": {one(t, dictionary(11, append([]byte{1}, runsOf(0, 10)...)...)), ErrDamaged, "for 11 values, of 10 in all"},
		"bytes above 255":           {one(t, func(c *testColumn, p *testPage) { c.logical, c.bits, p.body[5] = logicalInteger, 8, 1 }), ErrDamaged, "got numbers above 255"},
		"no dictionary": {one(t, func(_ *testColumn, p *testPage) {
			p.encoding, p.body = encodingDictionary, append([]byte{1}, runsOf(0, 10)...)
		}), ErrDamaged, "an index that is not in its dictionary"},
		"no indices":             {one(t, dictionary(3)), ErrDamaged, "has no indices"},
		"wide indices":           {one(t, dictionary(3, 33, 20, 0)), ErrDamaged, "has no indices"},
		"index 3 of 3":           {one(t, dictionary(3, append([]byte{2}, runsOf(3, 10)...)...)), ErrDamaged, "an index that is not in its dictionary"},
		"too few indices":        {one(t, dictionary(3, append([]byte{2}, runsOf(2, 9)...)...)), ErrDamaged, "an index that is not in its dictionary"},
		"a run of none":          {one(t, dictionary(3, 2, 0, 1)), ErrDamaged, "an index that is not in its dictionary"},
		"an endless run":         {one(t, dictionary(3, append([]byte{2}, leb(nil, 1<<60)...)...)), ErrDamaged, "an index that is not in its dictionary"},
		"endless packed indices": {one(t, dictionary(3, append([]byte{2}, leb(nil, 1<<31|1)...)...)), ErrDamaged, "an index that is not in its dictionary"},
		"other differences":      {one(t, func(_ *testColumn, p *testPage) { p.encoding, p.body = encodingDelta, differences(make([]int64, 9)) }), ErrDamaged, "page of differences: got inconsistent sizes"},
		"a block of none":        {one(t, func(_ *testColumn, p *testPage) { p.encoding, p.body = encodingDelta, []byte{0, 4, 10, 0} }), ErrDamaged, "page of differences: got inconsistent sizes"},
		"differences of 65 bits": {one(t, func(_ *testColumn, p *testPage) {
			p.encoding, p.body = encodingDelta, append([]byte{0x80, 1, 4, 10, 0, 0, 65, 0, 0, 0}, make([]byte, 300)...)
		}), ErrDamaged, "page of differences: got inconsistent sizes"},
		"levels that end":          {one(t, func(c *testColumn, p *testPage) { c.optional, p.def = true, []uint32{1, 1, 1} }), ErrDamaged, "fewer levels than values"},
		"ragged lists":             {one(t, list([]uint32{0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, nil)), ErrRow, "row 3 (counted from 1), column \"x\": list: got another number of values, want 2"},
		"a list without beginning": {one(t, list([]uint32{1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, nil)), ErrDamaged, "got a start within a list"},
		"null within a list":       {one(t, list(slices.Repeat([]uint32{0, 1}, 10), append([]uint32{2, 2, 2, 0}, slices.Repeat([]uint32{2}, 16)...))), ErrRow, "row 2 (counted from 1), column \"x\": list: got another number of values, want 2"},
		"no snappy": {one(t, func(c *testColumn, p *testPage) {
			p.kind, p.plainBody, c.codec = pageDataV2, false, codecSnappy
			p.body = p.body[:3]
		}), ErrDamaged, "fewer values"},
		"texts beyond the page":   {one(t, texts(encodingPlain, append(binary.LittleEndian.AppendUint32(nil, 1<<31), make([]byte, 40)...))), ErrDamaged, "fewer values than announced"},
		"a text that shares more": {one(t, texts(encodingDeltaBytes, slices.Concat(differences([]int64{0, 2, 0, 0, 0, 0, 0, 0, 0, 0}), differences(slices.Repeat([]int64{1}, 10)), make([]byte, 10)))), ErrDamaged, "got one that shares more bytes"},
		"fixed of other sizes": {one(t, func(c *testColumn, p *testPage) {
			c.physical, c.length, p.encoding, p.body = typeFixed, 3, encodingDeltaBytes, slices.Concat(differences(make([]int64, 10)), differences(slices.Repeat([]int64{2}, 10)), make([]byte, 20))
		}), ErrDamaged, "got values of other than 3 bytes"},
		"texts of negative length": {one(t, texts(encodingDeltaLength, append(differences([]int64{1, -1, 1, 1, 1, 1, 1, 1, 1, 1}), make([]byte, 40)...))), ErrDamaged, "fewer values than announced"},
	} {
		err := read(tc.file)
		if err == nil || !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		checkError(t, err)
	}
	changed := one(t, func(_ *testColumn, p *testPage) { p.crc = true })
	at := bytes.Index(changed, ints(10).body)
	changed[at+8] ^= 1
	if err := read(changed); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("another byte in a page with a checksum: %v", err)
	}
}

// runsOf is a run of equal numbers of up to 8 bits.
func runsOf(v byte, n int) []byte { return append(leb(nil, uint64(n)<<1), v) }

// Columns that cannot be points are told as what they are, and keep no other from being
// read.
func TestKinds(t *testing.T) {
	f := open(t, footerOf([]any{
		root(6),
		leaf("long ago", typeInt96),
		structure(4, "pair", 5, int32(2)), leaf("a", typeInt32), leaf("b", typeInt32),
		leaf("raw", typeFixed),
		leaf("x", typeDouble),
		structure(1, int32(typeInt32), 4, "day", 6, int32(6)),
		structure(1, int32(typeBytes), 4, "price", 6, int32(5)),
	}, 3, int64(0)))
	var got []string
	for _, c := range f.Columns {
		got = append(got, c.Name+" is "+c.Is)
	}
	want := []string{"long ago is a point in time", "pair is a structure of several columns", "raw is of a type other than number and text", "x is a number", "day is a date", "price is a number"}
	if !slices.Equal(got, want) {
		t.Errorf("columns: %q", got)
	}
}

// A file of a few kilobytes takes no more memory than its rows need, whatever its pages
// unpack to and however many columns share them.
func TestBombs(t *testing.T) {
	for name, c := range map[string]testColumn{
		"a page":       {name: "x", physical: typeInt32, groups: [][]testPage{{{kind: pageData, values: 10, body: make([]byte, 16<<20)}}}},
		"a dictionary": {name: "x", physical: typeInt32, groups: [][]testPage{{{kind: pageDictionary, values: 4 << 20, body: make([]byte, 16<<20)}, ints(10)}}},
	} {
		c.codec = codecZstd
		file := buildFile(t, rand.New(rand.NewPCG(1, 1)), []int{10}, slices.Repeat([]testColumn{c}, 4))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read(file)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrDamaged) || used > 1<<19 {
			t.Errorf("%s: %d bytes are allocated for a file of %d (%v)", name, used, len(file), err)
		}
	}
}

// FuzzRead reads any bytes as a file.
func FuzzRead(f *testing.F) {
	for _, file := range otherFiles(f) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) { checkError(t, read(file)) })
}

// FuzzLevels compares decoded small numbers with the encoded ones, read in parts and
// compared with one of them, and decodes arbitrary bytes.
func FuzzLevels(f *testing.F) {
	f.Add([]byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1}, uint8(1), uint64(1))
	f.Add(bytes.Repeat([]byte{7, 7, 3}, 50), uint8(3), uint64(5))
	f.Add([]byte{255, 254, 0, 0}, uint8(32), uint64(9))
	f.Fuzz(func(t *testing.T, raw []byte, width uint8, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := int(width % 33)
		v := make([]uint32, len(raw))
		for i, x := range raw {
			v[i] = uint32((uint64(x) * 0x01010101) & (1<<w - 1))
		}
		encoded := runs(r, v, w)
		h, got := hybrid{b: encoded, width: w}, make([]uint32, len(v))
		for at := 0; at < len(got); {
			next := min(len(got), at+1+r.IntN(20))
			if !h.next(got[at:next]) {
				t.Fatalf("numbers %d to %d are missing", at, next)
			}
			at = next
		}
		if !slices.Equal(got, v) {
			t.Fatalf("%v come back as %v", v, got)
		}
		h = hybrid{b: raw, width: w}
		h.next(got)
	})
}

// FuzzDifferences compares how whole numbers come back with how they were encoded, and
// reads any bytes as such.
func FuzzDifferences(f *testing.F) {
	f.Add(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1<<63), 1<<63-1))
	f.Add(bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 300))
	f.Add(differences([]int64{1, 2, 3}))
	decode := func(b []byte, n int) (v []int64, rest []byte, err error) {
		defer kind.Catch(&err)
		v, rest = deltas(b, n)
		return v, rest, nil
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v []int64
		for at := 0; at+8 <= len(raw); at += 8 {
			v = append(v, int64(binary.LittleEndian.Uint64(raw[at:])))
		}
		got, rest, err := decode(append(differences(v), "rest"...), len(v))
		if err != nil || !slices.Equal(got, v) || string(rest) != "rest" && len(v) > 0 {
			t.Fatalf("%v come back as %v, before %q (%v)", v, got, rest, err)
		}
		for _, count := range []int{0, 1, 33, 1000} {
			if got, _, err := decode(raw, count); err == nil && len(got) != count {
				t.Fatalf("%d numbers, want %d", len(got), count)
			} else if err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatalf("the error %q is of no kind", err)
			}
		}
	})
}

// The metadata of a file take no more memory than in the file, whatever they hold.
func TestMemoryOfMetadata(t *testing.T) {
	const n = 1 << 20
	unknown := []any{}
	for range n {
		unknown = append(unknown, []byte{thriftStop})
	}
	footer := structure(1, int32(1), 99, unknown)
	b := append(binary.LittleEndian.AppendUint32(append([]byte(Magic), footer...), uint32(len(footer))), Magic...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Open(bytes.NewReader(b), int64(len(b)))
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err == nil || !strings.Contains(err.Error(), "schema: got none") || used > 2*n {
		t.Errorf("%d bytes of metadata take %d: %v", len(footer), used, err)
	}
}

// Numbers are where they belong among missing ones, within a page and across pages.
func TestMissingNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	const rows = 3000
	for _, encoding := range []int{encodingPlain, encodingDictionary} {
		c := testColumn{name: "x", physical: typeInt32, optional: true, groups: [][]testPage{nil}}
		if encoding == encodingDictionary {
			d := ints(rows)
			d.kind = pageDictionary
			c.groups[0] = []testPage{d}
		}
		var missing []int
		for from := 0; from < rows; from += rows / 2 {
			p := testPage{kind: pageData, encoding: encoding, values: rows / 2}
			var there []uint32
			for i := from; i < from+rows/2; i++ {
				if i%1000 < 5 || r.IntN(3) == 0 {
					missing, p.def = append(missing, i), append(p.def, 0)
				} else {
					there, p.def = append(there, uint32(i)), append(p.def, 1)
				}
			}
			if encoding == encodingDictionary {
				p.body = append([]byte{12}, runs(r, there, 12)...)
			}
			for _, v := range there {
				if encoding == encodingPlain {
					p.body = binary.LittleEndian.AppendUint32(p.body, v)
				}
			}
			c.groups[0] = append(c.groups[0], p)
		}
		content := buildFile(t, r, []int{rows}, []testColumn{c})
		f, err := Open(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		cursor := f.Cursor(0)
		var found []int
		for at := 0; at < rows; at += 750 {
			part := make([]byte, 4*750)
			if err := cursor.Numbers(part); err != nil {
				t.Fatal(err)
			}
			for i := range 750 {
				if cursor.IsMissing(i) {
					found = append(found, at+i)
				} else if v := binary.LittleEndian.Uint32(part[4*i:]); v != uint32(at+i) {
					t.Fatalf("encoding %d: number %d is %d", encoding, at+i, v)
				}
			}
		}
		if err := cursor.End(); err != nil || !slices.Equal(found, missing) {
			t.Errorf("encoding %d: %d are missing, want %d (%v)", encoding, len(found), len(missing), err)
		}
	}
}
