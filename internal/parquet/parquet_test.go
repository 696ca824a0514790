package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // small heaps are collected less often
	m.Run()
}

// A kindOfNumber is a type of numbers with its possible encodings.
type kindOfNumber struct {
	name      string
	column    testColumn
	size      int
	encodings []int
}

var kindsOfNumbers = []kindOfNumber{
	{"bool", testColumn{physical: typeBool}, 1, []int{encodingPlain, encodingRLE}},
	{"int32", testColumn{physical: typeInt32}, 4, []int{encodingPlain, encodingDictionary, encodingPlainDictionary, encodingDelta, encodingSplit}},
	{"uint8", testColumn{physical: typeInt32, logical: logicalInteger, bits: 8}, 4, []int{encodingPlain, encodingDictionary, encodingDelta}},
	{"int64", testColumn{physical: typeInt64}, 8, []int{encodingPlain, encodingDictionary, encodingDelta, encodingSplit}},
	{"uint64", testColumn{physical: typeInt64, logical: logicalInteger, bits: 64}, 8, []int{encodingPlain, encodingDelta}},
	{"float16", testColumn{physical: typeFixed, length: 2, logical: logicalFloat16}, 2, []int{encodingPlain, encodingDictionary, encodingSplit, encodingDeltaBytes}},
	{"float", testColumn{physical: typeFloat}, 4, []int{encodingPlain, encodingDictionary, encodingSplit}},
	{"double", testColumn{physical: typeDouble}, 8, []int{encodingPlain, encodingDictionary, encodingSplit}},
}

// draw returns n numbers of the kind, little-endian; some are equal, some extreme.
func (k *kindOfNumber) draw(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n*k.size)
	last := uint64(0)
	for range n {
		switch r.IntN(4) {
		case 0: // the last once more
		case 1:
			last = uint64(r.IntN(20))
		case 2:
			last = r.Uint64()
		case 3:
			last = []uint64{0, 1, math.MaxUint64, 1 << 63, 1 << 31, 1<<31 - 1}[r.IntN(6)]
		}
		if k.size == 1 {
			last &= 1
		}
		if k.column.bits == 8 {
			last &= 255
		}
		b = append(b, binary.LittleEndian.AppendUint64(nil, last)[:k.size]...)
	}
	return b
}

// pages encodes numbers, all of a row group, as pages of a kind.
func (k *kindOfNumber) pages(r *rand.Rand, raw []byte, kind, encoding int, c *testColumn, width int) (pages []testPage) {
	index := make(map[string]uint32)
	if encoding == encodingDictionary || encoding == encodingPlainDictionary {
		d := testPage{kind: pageDictionary, encoding: encodingPlain, crc: true}
		for v := range slices.Chunk(raw, k.size) {
			if _, ok := index[string(v)]; !ok {
				index[string(v)] = uint32(len(index))
				d.body = append(d.body, v...)
			}
		}
		d.values = len(index)
		pages = append(pages, d)
	}
	_, most := c.levels()
	for at, n := 0, len(raw)/k.size; at < n; {
		count := min(n-at, 1+r.IntN(300))
		p := testPage{kind: kind, encoding: encoding, values: count, crc: r.IntN(2) == 0, plainBody: kind == pageDataV2 && r.IntN(3) == 0}
		if most > 0 {
			p.def = slices.Repeat([]uint32{uint32(most)}, count)
		}
		for i := at; c.list && i < at+count; i++ {
			p.rep = append(p.rep, min(1, uint32(i%width)))
		}
		p.body = k.encode(r, raw[at*k.size:(at+count)*k.size], encoding, index)
		pages = append(pages, p)
		at += count
	}
	return pages
}

// encode encodes numbers; index has the entries of the dictionary.
func (k *kindOfNumber) encode(r *rand.Rand, raw []byte, encoding int, index map[string]uint32) []byte {
	var small, indices []uint32
	var whole []int64
	for v := range slices.Chunk(raw, k.size) {
		u := binary.LittleEndian.Uint64(append(slices.Clone(v), make([]byte, 8)...))
		if k.size == 4 {
			u = uint64(int32(u))
		}
		small, indices, whole = append(small, uint32(u)), append(indices, index[string(v)]), append(whole, int64(u))
	}
	switch {
	case encoding == encodingRLE:
		return sized(runs(r, small, 1))
	case k.size == 1:
		return packed(small, len(small), 1)
	case encoding == encodingDelta:
		return differences(whole)
	case encoding == encodingSplit:
		return split(raw, k.size)
	case encoding == encodingDeltaBytes:
		return slices.Concat(differences(make([]int64, len(whole))), differences(slices.Repeat([]int64{int64(k.size)}, len(whole))), raw)
	case encoding != encodingPlain:
		width := bits.Len(uint(len(index) - 1))
		return append([]byte{byte(width)}, runs(r, indices, width)...)
	}
	return raw
}

// allPages calls test for each kind of pages with values and each codec.
func allPages(t *testing.T, name string, test func(t *testing.T, kind, codec int)) {
	for _, kind := range []int{pageData, pageDataV2} {
		for _, codec := range []int{codecNone, codecSnappy, codecGzip, codecZstd} {
			t.Run(fmt.Sprintf("%s/pages %d/codec %d", name, kind, codec), func(t *testing.T) { test(t, kind, codec) })
		}
	}
}

// open opens a file.
func open(t *testing.T, file []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Numbers come back as they were written, in every type, encoding, version of pages and
// codec, whether they may be missing or stand in lists, and however many are taken at once.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range kindsOfNumbers {
		for _, encoding := range k.encodings {
			allPages(t, fmt.Sprintf("%s/encoding %d", k.name, encoding), func(t *testing.T, kind, codec int) {
				c, width := k.column, 1
				c.name, c.codec, c.optional, c.list = "x", codec, r.IntN(2) == 0, r.IntN(3) == 0
				if c.list {
					width = 1 + r.IntN(7)
				}
				rows := []int{1 + r.IntN(40), 1000, 1 + r.IntN(700)}
				var want []byte
				for _, n := range rows {
					raw := k.draw(r, n*width)
					want = append(want, raw...)
					c.groups = append(c.groups, k.pages(r, raw, kind, encoding, &c, width))
				}
				f := open(t, buildFile(t, r, rows, []testColumn{c}))
				if got := f.Columns[0]; got.Size != k.size || got.List != c.list || got.Byte != (k.column.bits == 8) || f.Rows != rows[0]+rows[1]+rows[2] {
					t.Fatalf("%d rows of %+v", f.Rows, got)
				}
				cursor, got := f.Cursor(0), make([]byte, len(want))
				if c.list {
					if got, err := cursor.Width(); err != nil || got != width {
						t.Fatalf("lists of %d values, want %d: %v", got, width, err)
					}
				}
				for at := 0; at < len(got); {
					next := min(len(got), at+(1+r.IntN(500))*k.size)
					if err := cursor.Numbers(got[at:next]); err != nil {
						t.Fatal(err)
					}
					at = next
				}
				if err := cursor.End(); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("other numbers come back (%v)", err)
				}
			})
		}
	}
}

// Texts do, too, where missing ones are empty.
func TestTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{"", "a", "ab", "größe", strings.Repeat("long ", 100), "abc"}
	for _, encoding := range []int{encodingPlain, encodingDictionary, encodingDeltaLength, encodingDeltaBytes} {
		allPages(t, fmt.Sprintf("encoding %d", encoding), func(t *testing.T, kind, codec int) {
			c := testColumn{name: "x", physical: typeBytes, codec: codec, optional: r.IntN(2) == 0}
			var want []string
			rows := []int{1, 700}
			for _, n := range rows {
				var pages []testPage
				if encoding == encodingDictionary {
					pages = append(pages, testPage{kind: pageDictionary, encoding: encodingPlain, values: len(words), body: plainTexts(words)})
				}
				for at := 0; at < n; {
					p := testPage{kind: kind, encoding: encoding, values: min(n-at, 1+r.IntN(200))}
					at += p.values
					var texts []string
					var indices []uint32
					var lengths []int64
					for range p.values {
						there := uint32(1)
						if c.optional {
							there = uint32(min(1, r.IntN(4)))
							p.def = append(p.def, there)
						}
						k := int(there) * r.IntN(len(words)) // the first is empty
						want = append(want, words[k])
						if there == 1 {
							texts, indices, lengths = append(texts, words[k]), append(indices, uint32(k)), append(lengths, int64(len(words[k])))
						}
					}
					switch encoding {
					case encodingPlain:
						p.body = plainTexts(texts)
					case encodingDictionary:
						p.body = append([]byte{5}, runs(r, indices, 5)...)
					case encodingDeltaLength:
						p.body = append(differences(lengths), strings.Join(texts, "")...)
					case encodingDeltaBytes:
						p.body = deltaBytes(texts)
					}
					pages = append(pages, p)
				}
				c.groups = append(c.groups, pages)
			}
			f := open(t, buildFile(t, r, rows, []testColumn{c}))
			cursor, got, err := f.Cursor(0), []string(nil), error(nil)
			for len(got) < f.Rows {
				if got, err = cursor.Texts(got, min(f.Rows-len(got), 1+r.IntN(300))); err != nil {
					t.Fatal(err)
				}
			}
			if err := cursor.End(); err != nil || !slices.Equal(got, want) {
				t.Fatalf("other texts come back (%v)", err)
			}
		})
	}
}

// deltaBytes is DELTA_BYTE_ARRAY of texts.
func deltaBytes(texts []string) []byte {
	var shared, lengths []int64
	rest, last := "", ""
	for _, s := range texts {
		n := 0
		for n < min(len(s), len(last)) && s[n] == last[n] {
			n++
		}
		shared, lengths, rest, last = append(shared, int64(n)), append(lengths, int64(len(s)-n)), rest+s[n:], s
	}
	return append(slices.Concat(differences(shared), differences(lengths)), rest...)
}

// Lists that are null or empty, and null among the numbers of a list, are missing numbers,
// however many are taken at once.
func TestMissingLists(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, encoding := range []int{encodingPlain, encodingDictionary} {
		allPages(t, fmt.Sprintf("encoding %d", encoding), func(t *testing.T, kind, codec int) {
			const width, rows = 3, 700
			c := testColumn{name: "x", physical: typeInt32, codec: codec, optional: r.IntN(2) == 0, list: true}
			_, most := c.levels()
			var pages []testPage
			if encoding == encodingDictionary {
				pages = append(pages, testPage{kind: pageDictionary, encoding: encodingPlain, values: 50, body: ints(50).body})
			}
			var want []int // -1: missing
			for row := 0; row < rows; {
				p := testPage{kind: kind, encoding: encoding}
				var there []uint32
				for end := min(rows, row+1+r.IntN(90)); row < end; row++ {
					if row == 0 || r.IntN(3) == 0 { // null, or empty
						p.rep, p.def = append(p.rep, 0), append(p.def, uint32(r.IntN(most-1)))
						want = append(want, -1, -1, -1)
						continue
					}
					for i := range width {
						v, level := r.IntN(50), most
						if r.IntN(5) == 0 {
							v, level = -1, most-1
						} else {
							there = append(there, uint32(v))
						}
						p.rep, p.def, want = append(p.rep, uint32(min(1, i))), append(p.def, uint32(level)), append(want, v)
					}
				}
				p.values = len(p.rep)
				if p.body = append([]byte{6}, runs(r, there, 6)...); encoding == encodingPlain {
					p.body = nil
					for _, v := range there {
						p.body = binary.LittleEndian.AppendUint32(p.body, v)
					}
				}
				pages = append(pages, p)
			}
			c.groups = [][]testPage{pages}
			f := open(t, buildFile(t, r, []int{rows}, []testColumn{c}))
			cursor := f.Cursor(0)
			if got, err := cursor.Width(); err != nil || got != width {
				t.Fatalf("lists of %d values: %v", got, err)
			}
			for at := 0; at < len(want); {
				raw := make([]byte, min(len(want)-at, width*(1+r.IntN(100)))*4)
				if err := cursor.Numbers(raw); err != nil {
					t.Fatal(err)
				}
				for i := range len(raw) / 4 {
					got := int(binary.LittleEndian.Uint32(raw[4*i:]))
					if cursor.IsMissing(i) {
						got = -1
					}
					if got != want[at+i] {
						t.Fatalf("number %d is %d, want %d", at+i, got, want[at+i])
					}
				}
				at += len(raw) / 4
			}
			if err := cursor.End(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Decimals are the nearest numbers; dates, times and UUIDs are text.
func TestLogicalTypes(t *testing.T) {
	little := func(v ...int64) (raw [][]byte) {
		for _, v := range v {
			raw = append(raw, binary.LittleEndian.AppendUint64(nil, uint64(v)))
		}
		return raw
	}
	const day = 24 * 60 * 60
	for name, tc := range map[string]struct {
		physical, length int
		fields           []any // of the schema
		raw              [][]byte
		texts            []string  // of the others
		numbers          []float64 // of decimals; otherwise nil
	}{
		"decimal of 4 bytes":  {typeInt32, 0, []any{6, int32(5), 7, int32(2), 8, int32(9)}, little(0, 5, -5, 12345, -100), nil, []float64{0, .05, -.05, 123.45, -1}},
		"decimal of 8 bytes":  {typeInt64, 0, []any{10, structure(5, structure(1, int32(3), 2, int32(18)))}, little(1, 999999999999999999, -999999999999999999), nil, []float64{.001, 999999999999999.999, -999999999999999.999}},
		"whole decimal":       {typeInt64, 0, []any{10, structure(5, structure(1, int32(0), 2, int32(18)))}, little(7, -7), nil, []float64{7, -7}},
		"decimal of 16 bytes": {typeFixed, 16, []any{10, structure(5, structure(1, int32(10), 2, int32(38)))}, [][]byte{append(make([]byte, 15), 1), bytes.Repeat([]byte{0xff}, 16), append([]byte{0x4b, 0x3b, 0x4c, 0xa8, 0x5a, 0x86, 0xc4, 0x7a}, 0x09, 0x8a, 0x22, 0x3f, 0xff, 0xff, 0xff, 0xff)}, nil, []float64{1e-10, -1e-10, 1e28}},
		"decimal of bytes":    {typeBytes, 0, []any{6, int32(5), 7, int32(1), 8, int32(30)}, [][]byte{{}, {0x7f}, {0x80}, {0x00, 0xff}, append([]byte{1}, make([]byte, 12)...)}, nil, []float64{0, 12.7, -12.8, 25.5, 7922816251426433759354395033.6}},
		"date":                {typeInt32, 0, []any{6, int32(6)}, little(0, 18262, -1), []string{"1970-01-01", "2020-01-01", "1969-12-31"}, nil},
		"milliseconds":        {typeInt64, 0, []any{6, int32(9)}, little(1500, -1), []string{"1970-01-01 00:00:01.5", "1969-12-31 23:59:59.999"}, nil},
		"microseconds":        {typeInt64, 0, []any{10, structure(8, structure(2, structure(2, structure())))}, little(1577836800000001), []string{"2020-01-01 00:00:00.000001"}, nil},
		"nanoseconds":         {typeInt64, 0, []any{10, structure(8, structure(2, structure(3, structure())))}, little(1577923200000000000), []string{"2020-01-02 00:00:00"}, nil},
		"time":                {typeInt32, 0, []any{6, int32(7)}, little(day * 500), []string{"12:00:00"}, nil},
		"fine time":           {typeInt64, 0, []any{10, structure(7, structure(2, structure(3, structure())))}, little(day * 250000000), []string{"06:00:00"}, nil},
		"96 bits":             {typeInt96, 0, nil, [][]byte{append(little(day * 250000000)[0], 0x8e, 0x3d, 0x25, 0)}, []string{"1970-01-03 06:00:00"}, nil},
		"UUID":                {typeFixed, 16, []any{10, structure(14, structure())}, [][]byte{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xd, 0xe, 0xff}}, []string{"00010203-0405-0607-0809-0a0b0c0d0eff"}, nil},
		"fixed text":          {typeFixed, 2, nil, [][]byte{[]byte("ab"), []byte("cd")}, []string{"ab", "cd"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var body []byte
			for _, raw := range tc.raw {
				switch tc.physical {
				case typeInt32:
					raw = raw[:4]
				case typeBytes:
					raw = sized(raw)
				}
				body = append(body, raw...)
			}
			element := append([]any{1, int32(tc.physical), 2, int32(tc.length), 4, "x"}, tc.fields...)
			page := (&testPage{kind: pageData, encoding: encodingPlain, values: len(tc.raw), body: body}).bytes(t, rand.New(rand.NewPCG(1, 1)), &testColumn{})
			chunk := structure(3, structure(1, int32(tc.physical), 4, int32(0), 5, int64(len(tc.raw)), 7, int64(len(page)), 9, int64(4)))
			f := open(t, withFooter(append([]byte(Magic), page...), 2, []any{root(1), structure(element...)}, 3, int64(len(tc.raw)), 4, []any{structure(1, []any{chunk}, 3, int64(len(tc.raw)))}))
			if tc.numbers == nil {
				texts, err := f.Cursor(0).Texts(nil, f.Rows)
				if err != nil || !slices.Equal(texts, tc.texts) || f.Columns[0].Kind != Text {
					t.Errorf("texts: %q (%v), want %q", texts, err, tc.texts)
				}
				return
			}
			raw := make([]byte, 8*f.Rows)
			if err := f.Cursor(0).Numbers(raw); err != nil {
				t.Fatal(err)
			}
			for i, want := range tc.numbers {
				if got := math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])); got != want {
					t.Errorf("number %d is %v, want %v", i, got, want)
				}
			}
		})
	}
}

// otherFiles returns files that two other writers wrote, parquet-go and arrow-go, by name.
func otherFiles(t testing.TB) map[string][]byte {
	files := make(map[string][]byte)
	paths, err := filepath.Glob(filepath.Join("testdata", "*.parquet"))
	for _, path := range paths {
		file, failed := os.ReadFile(path)
		files[filepath.Base(path)], err = file, errors.Join(err, failed)
	}
	if err != nil || len(files) != 8 {
		t.Fatalf("files of other writers: %q, %v", paths, err)
	}
	return files
}

// valueOf returns the value of each column in row i of these files. Lists hold 3i, 3i + 1
// and 3i + 2.
var valueOf = map[string]func(i int) float64{
	"b":   func(i int) float64 { return map[bool]float64{true: 1}[i%3 == 0] },
	"i8":  func(i int) float64 { return float64(i - 50) },
	"i16": func(i int) float64 { return float64(i*300 - 15000) },
	"i32": func(i int) float64 { return float64(i*i*1000 - 2000000) },
	"i64": func(i int) float64 { return float64(int64(i-50) << 40) },
	"u8":  func(i int) float64 { return float64(uint8(i * 5)) },
	"u16": func(i int) float64 { return float64(i * 655) },
	"u32": func(i int) float64 { return float64(4000000000 + i) },
	"u64": func(i int) float64 { return float64(1<<63 + uint64(i)) },
	"f16": func(i int) float64 { return float64(i) / 4 },
	"f32": func(i int) float64 { return float64(float32(i) / 3) },
	"f64": func(i int) float64 { return float64(i) / 7 },
}

// number returns the value of a number as it stands in a file.
func number(t *testing.T, c *Column, b []byte) float64 {
	u := uint64(0)
	for k, x := range b {
		u |= uint64(x) << (8 * k)
	}
	switch {
	case c.Kind == Float && c.Size == 8:
		return math.Float64frombits(u)
	case c.Kind == Float && c.Size == 4:
		return float64(math.Float32frombits(uint32(u)))
	case c.Kind == Float && u > 0: // of those here none is subnormal
		return math.Ldexp(float64(u&1023|1024), int(u>>10&31)-25)
	case c.Kind == Signed && c.Size == 4:
		return float64(int32(u))
	case c.Kind == Signed:
		return float64(int64(u))
	case c.Kind == 0 || c.Kind == Text:
		t.Fatalf("column %q is %s", c.Name, c.Is)
	}
	return float64(u)
}

// What other writers write is read as they mean it.
func TestOtherWriters(t *testing.T) {
	for name, file := range otherFiles(t) {
		t.Run(name, func(t *testing.T) {
			f := open(t, file)
			if f.Rows != 100 || len(f.Columns) < 10 {
				t.Fatalf("%d rows of %d columns", f.Rows, len(f.Columns))
			}
			for ci := range f.Columns {
				c, cursor := &f.Columns[ci], f.Cursor(ci)
				if c.Kind == Text {
					texts, err := cursor.Texts(nil, f.Rows)
					if err != nil {
						t.Fatalf("%s: %v", c.Name, err)
					}
					for i, got := range texts {
						want := fmt.Sprintf("name of row %d", i)
						if c.Name == "text" {
							want = fmt.Sprintf("text %d", i%7)
							if i%5 == 0 {
								want = ""
							}
						}
						if got != want {
							t.Fatalf("%s: row %d is %q, want %q", c.Name, i, got, want)
						}
					}
					continue
				}
				if c.Byte != (c.Name == "u8") {
					t.Errorf("%s: Byte is %v", c.Name, c.Byte)
				}
				value := valueOf[c.Name]
				if value == nil {
					value = func(at int) float64 { return float64(at) }
				}
				wantNumbers(t, f, ci, value)
			}
		})
	}
}

// wantNumbers compares the numbers of a column; lists have 3.
func wantNumbers(t *testing.T, f *File, ci int, value func(at int) float64) {
	t.Helper()
	c, cursor, n := &f.Columns[ci], f.Cursor(ci), f.Rows
	if c.List {
		n *= 3
		if width, err := cursor.Width(); err != nil || width != 3 {
			t.Fatalf("%s: lists of %d, %v", c.Name, width, err)
		}
	}
	raw := make([]byte, n*c.Size)
	if err := errors.Join(cursor.Numbers(raw), cursor.End()); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	for at := range n {
		if got, want := number(t, c, raw[at*c.Size:(at+1)*c.Size]), value(at); got != want {
			t.Fatalf("%s: value %d is %v, want %v", c.Name, at, got, want)
		}
	}
}

// read takes all that a file has; the error is the first.
func read(file []byte) error {
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	var first error
	for i := range f.Columns {
		if err := readColumn(f, i); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// mostRows limits the rows that a test reads, as a damaged file may claim any number.
const mostRows = 1 << 16

func readColumn(f *File, i int) error {
	c, cursor := &f.Columns[i], f.Cursor(i)
	switch {
	case c.Kind == 0 || f.Rows > mostRows || c.Kind == Text && c.List:
		return nil
	case c.Kind == Text:
		_, err := cursor.Texts(nil, f.Rows)
		return err
	}
	width := 1
	if c.List {
		var err error
		if width, err = cursor.Width(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	part := make([]byte, min(f.Rows*width, 1<<10)*c.Size)
	for left := f.Rows * width; left > 0 && width <= mostRows; left -= len(part) / c.Size {
		if err := cursor.Numbers(part[:min(left, 1<<10)*c.Size]); err != nil {
			return err
		}
	}
	return cursor.End()
}

// checkError fails unless an error of reading says what kind it is, in a sentence.
func checkError(t *testing.T, err error) {
	t.Helper()
	known := errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrRow) || err == io.EOF
	if err != nil && !known {
		t.Fatalf("the error %q (%T) is of no kind", err, err)
	}
}

// Truncated files are refused; files with a changed byte are refused or read. Neither takes
// more memory than a few pages, or panics.
func TestDamage(t *testing.T) {
	for path, file := range otherFiles(t) {
		for n := 0; n < len(file); n += 97 {
			if err := read(file[:n]); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("%s: of %d bytes %d are read: %v", path, len(file), n, err)
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tries := 0
		for i := 0; i < len(file); i += 67 {
			changed := bytes.Clone(file)
			changed[i] ^= []byte{0x01, 0x80, 0xff}[i%3]
			checkError(t, read(changed))
			tries++
		}
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / uint64(tries); each > 4<<20 {
			t.Errorf("%s: %d bytes are allocated for each of %d changes", path, each, tries)
		}
	}
}
