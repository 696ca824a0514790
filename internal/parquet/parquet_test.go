package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func crcOf(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

// A kindOfNumber is a type of numbers with the encodings in which it may stand.
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
	{"float16", testColumn{physical: typeFixed, length: 2, logical: logicalFloat16}, 2, []int{encodingPlain, encodingDictionary, encodingSplit}},
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

// pages encodes numbers, all of a row group, as pages of a version.
func (k *kindOfNumber) pages(r *rand.Rand, raw []byte, version, encoding int, c *testColumn, width int) (pages []testPage) {
	n := len(raw) / k.size
	var entries []byte
	index := make(map[string]uint32)
	if encoding == encodingDictionary || encoding == encodingPlainDictionary {
		for i := range n {
			v := string(raw[i*k.size : (i+1)*k.size])
			if _, ok := index[v]; !ok {
				index[v] = uint32(len(index))
				entries = append(entries, v...)
			}
		}
		pages = append(pages, testPage{kind: pageDictionary, encoding: encodingPlain, values: len(index), body: entries, crc: true})
	}
	_, most := c.levels()
	for at := 0; at < n; {
		count := min(n-at, 1+r.IntN(300))
		p := testPage{kind: map[int]int{1: pageData, 2: pageDataV2}[version], encoding: encoding, values: count, crc: r.IntN(2) == 0, plainBody: version == 2 && r.IntN(3) == 0}
		part := raw[at*k.size : (at+count)*k.size]
		if most > 0 {
			p.def = slices.Repeat([]uint32{uint32(most)}, count)
		}
		for i := range count {
			if c.list {
				p.rep = append(p.rep, min(1, uint32((at+i)%width)))
			}
		}
		switch encoding {
		case encodingPlain, encodingRLE:
			p.body = part
			if k.size == 1 {
				v := make([]uint32, count)
				for i, x := range part {
					v[i] = uint32(x)
				}
				p.body = packed(v, count, 1)
				if encoding == encodingRLE {
					body := runs(r, v, 1)
					p.body = append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
				}
			}
		case encodingDictionary, encodingPlainDictionary:
			v := make([]uint32, count)
			for i := range v {
				v[i] = index[string(part[i*k.size:(i+1)*k.size])]
			}
			bits := width32(len(index) - 1)
			p.body = append([]byte{byte(bits)}, runs(r, v, bits)...)
		case encodingDelta:
			v := make([]int64, count)
			for i := range v {
				if k.size == 4 {
					v[i] = int64(int32(binary.LittleEndian.Uint32(part[4*i:])))
				} else {
					v[i] = int64(binary.LittleEndian.Uint64(part[8*i:]))
				}
			}
			p.body = differences(v)
		case encodingSplit:
			p.body = split(part, k.size)
		}
		pages = append(pages, p)
		at += count
	}
	return pages
}

func width32(most int) int {
	n := 0
	for ; most > 0; most >>= 1 {
		n++
	}
	return n
}

// Numbers come back as they were written, in every type, encoding, version of pages and
// codec, whether they may be missing or stand in lists, and however many are taken at once.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range kindsOfNumbers {
		for _, encoding := range k.encodings {
			for version := 1; version <= 2; version++ {
				for _, codec := range []int{codecNone, codecSnappy, codecGzip, codecZstd} {
					optional, list := r.IntN(2) == 0, r.IntN(3) == 0
					t.Run(fmt.Sprintf("%s/encoding %d/version %d/codec %d/%v %v", k.name, encoding, version, codec, optional, list), func(t *testing.T) {
						c := k.column
						c.name, c.codec, c.optional, c.list = "x", codec, optional, list
						width := 1
						if list {
							width = 1 + r.IntN(7)
						}
						var rows []int
						var want []byte
						for _, n := range []int{1 + r.IntN(40), 1000, 1 + r.IntN(700)} {
							raw := k.draw(r, n*width)
							want = append(want, raw...)
							rows = append(rows, n)
							c.groups = append(c.groups, k.pages(r, raw, version, encoding, &c, width))
						}
						file := buildFile(t, r, rows, []testColumn{c})
						f, err := Open(bytes.NewReader(file), int64(len(file)))
						if err != nil {
							t.Fatal(err)
						}
						if got := f.Columns[0]; got.Size != k.size || got.List != list || got.Byte != (k.column.bits == 8) || f.Rows != rows[0]+rows[1]+rows[2] {
							t.Fatalf("%d rows of %+v", f.Rows, got)
						}
						whole := func(r *rand.Rand, take func(cursor *Cursor, lo, hi int) error) {
							cursor := f.Cursor(0)
							if list {
								if got, err := cursor.Width(); err != nil || got != width {
									t.Fatalf("lists of %d values, want %d: %v", got, width, err)
								}
							}
							for at, n := 0, len(want)/k.size; at < n; {
								next := min(n, at+1+r.IntN(500))
								if err := take(cursor, at, next); err != nil {
									t.Fatal(err)
								}
								at = next
							}
							if err := cursor.End(); err != nil {
								t.Fatal(err)
							}
						}
						got := make([]byte, len(want))
						whole(r, func(c *Cursor, lo, hi int) error { return c.Numbers(got[lo*k.size : hi*k.size]) })
						if !bytes.Equal(got, want) {
							t.Fatal("other numbers come back")
						}
					})
				}
			}
		}
	}
}

// Texts do, too, where missing ones are empty.
func TestTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{"", "a", "ab", "größe", strings.Repeat("long ", 100), "abc"}
	for _, encoding := range []int{encodingPlain, encodingDictionary, encodingDeltaLength} {
		for version := 1; version <= 2; version++ {
			for _, codec := range []int{codecNone, codecSnappy, codecGzip, codecZstd} {
				t.Run(fmt.Sprintf("encoding %d/version %d/codec %d", encoding, version, codec), func(t *testing.T) {
					c := testColumn{name: "x", physical: typeBytes, codec: codec, optional: r.IntN(2) == 0}
					var want []string
					var rows []int
					for _, n := range []int{1, 700} {
						var pages []testPage
						if encoding == encodingDictionary {
							pages = append(pages, testPage{kind: pageDictionary, encoding: encodingPlain, values: len(words), body: plainTexts(words)})
						}
						for at := 0; at < n; {
							count := min(n-at, 1+r.IntN(200))
							p := testPage{kind: map[int]int{1: pageData, 2: pageDataV2}[version], encoding: encoding, values: count}
							var texts []string
							var at32 []uint32
							for range count {
								if c.optional {
									p.def = append(p.def, uint32(min(1, r.IntN(4))))
									if p.def[len(p.def)-1] == 0 {
										want = append(want, "")
										continue
									}
								}
								k := r.IntN(len(words))
								texts, at32, want = append(texts, words[k]), append(at32, uint32(k)), append(want, words[k])
							}
							p.body = encodeTexts(r, encoding, texts, at32)
							pages = append(pages, p)
							at += count
						}
						c.groups, rows = append(c.groups, pages), append(rows, n)
					}
					file := buildFile(t, r, rows, []testColumn{c})
					f, err := Open(bytes.NewReader(file), int64(len(file)))
					if err != nil {
						t.Fatal(err)
					}
					cursor := f.Cursor(0)
					var got []string
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
	}
}

// encodeTexts encodes texts, of which at are the entries of a dictionary.
func encodeTexts(r *rand.Rand, encoding int, texts []string, at []uint32) []byte {
	switch encoding {
	case encodingDictionary:
		return append([]byte{5}, runs(r, at, 5)...)
	case encodingDeltaLength:
		var lengths []int64
		for _, s := range texts {
			lengths = append(lengths, int64(len(s)))
		}
		return append(differences(lengths), strings.Join(texts, "")...)
	}
	return plainTexts(texts)
}

// otherFiles were written by two other writers, parquet-go and arrow-go.
func otherFiles(t testing.TB) []string {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.parquet"))
	if err != nil || len(paths) != 8 {
		t.Fatalf("files of other writers: %q, %v", paths, err)
	}
	return paths
}

// valueOf is what column name of row i holds in these files, as float64; of lists the
// value at place k.
func valueOf(name string, i, k int) float64 {
	switch name {
	case "b":
		return map[bool]float64{true: 1}[i%3 == 0]
	case "i8":
		return float64(i - 50)
	case "i16":
		return float64(i*300 - 15000)
	case "i32":
		return float64(i*i*1000 - 2000000)
	case "i64":
		return float64(int64(i-50) << 40)
	case "u8":
		return float64(uint8(i * 5))
	case "u16":
		return float64(i * 655)
	case "u32":
		return float64(4000000000 + i)
	case "u64":
		return float64(1<<63 + uint64(i))
	case "f16":
		return float64(i) / 4
	case "f32":
		return float64(float32(i) / 3)
	case "f64":
		return float64(i) / 7
	}
	return float64(3*i + k)
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
	case c.Kind == Float: // of those here none is subnormal
		if u == 0 {
			return 0
		}
		return math.Ldexp(float64(u&1023|1024), int(u>>10&31)-25)
	case c.Kind == Signed && c.Size == 4:
		return float64(int32(u))
	case c.Kind == Signed:
		return float64(int64(u))
	case c.Kind == Unsigned || c.Kind == Bool:
		return float64(u)
	}
	t.Fatalf("column %q is %s", c.Name, c.Is)
	return 0
}

// What other writers write is read as they mean it.
func TestOtherWriters(t *testing.T) {
	for _, path := range otherFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Open(bytes.NewReader(file), int64(len(file)))
			if err != nil {
				t.Fatal(err)
			}
			if f.Rows != 100 || len(f.Columns) < 10 {
				t.Fatalf("%d rows of %d columns", f.Rows, len(f.Columns))
			}
			for ci := range f.Columns {
				c, cursor := &f.Columns[ci], f.Cursor(ci)
				if c.Kind == Text {
					texts, err := cursor.Texts(nil, f.Rows)
					if errors.Is(err, ErrUnsupported) && strings.Contains(err.Error(), "encoding 7") {
						continue // DELTA_BYTE_ARRAY, which nobody writes unasked
					}
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
				width := 1
				if c.List {
					if width, err = cursor.Width(); err != nil || width != 3 {
						t.Fatalf("%s: lists of %d, %v", c.Name, width, err)
					}
				}
				if c.Byte != (c.Name == "u8") {
					t.Errorf("%s: Byte is %v", c.Name, c.Byte)
				}
				raw := make([]byte, f.Rows*width*c.Size)
				if err := cursor.Numbers(raw); err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				for at := range f.Rows * width {
					got, want := number(t, c, raw[at*c.Size:(at+1)*c.Size]), valueOf(c.Name, at/width, at%width)
					if got != want {
						t.Fatalf("%s: row %d is %v, want %v", c.Name, at/width, got, want)
					}
				}
				if err := cursor.End(); err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
			}
		})
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

// mostRows is how many rows of a column a test takes, of which a damaged file may claim
// any number.
const mostRows = 1 << 16

func readColumn(f *File, i int) error {
	c, cursor := &f.Columns[i], f.Cursor(i)
	switch {
	case c.Kind == 0 || f.Rows > mostRows:
		return nil
	case c.Kind == Text && c.List:
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

// Files that are cut are refused, and of which a byte is another are refused or read;
// neither takes more memory than a few pages, nor panics.
func TestDamage(t *testing.T) {
	for _, path := range otherFiles(t) {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(file); n += 67 {
			if err := read(file[:n]); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("%s: of %d bytes %d are read: %v", path, len(file), n, err)
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tries := 0
		for i := 0; i < len(file); i += 41 {
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
