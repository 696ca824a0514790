package neighbors

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/internal/kind"
)

// member returns an array as NumPy saves it. Values must have a fixed size.
func member(descr, shape string, values any) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	b = append(b, header...)
	var order binary.ByteOrder = binary.LittleEndian
	if strings.HasPrefix(descr, ">") {
		order = binary.BigEndian
	}
	b, err := binary.Append(b, order, values)
	if err != nil {
		panic(err)
	}
	return b
}

// zipped makes an archive of members.
func zipped(members map[string][]byte, method uint16) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			panic(err)
		}
		w.Write(members[name])
	}
	z.Close()
	return b.Bytes()
}

// csr returns the members of scipy's file of the graph 0→1, 0→2, 2→0.
func csr() map[string][]byte {
	return map[string][]byte{
		"indices.npy": member("<i4", "(3,)", []int32{1, 2, 0}),
		"indptr.npy":  member("<i4", "(4,)", []int32{0, 2, 2, 3}),
		"format.npy":  member("|S3", "()", []byte("csr")),
		"shape.npy":   member("<i8", "(2,)", []int64{3, 3}),
		"data.npy":    member("<f8", "(3,)", []float64{1, .5, 1}),
	}
}

func decode(b []byte) (g *Graph, err error) {
	defer kind.Catch(&err)
	g = decodeCSR(bytes.NewReader(b), int64(len(b)))
	g.dropZeros()
	return g, nil
}

// decodeFile is ReadFile for a file's contents.
func decodeFile(b []byte) (*Graph, error) {
	g, _, err := decodeNearest(bytes.NewReader(b), int64(len(b)), math.MaxInt, false, nil)
	return g, err
}

func equalGraphs(a, b *Graph) bool {
	return a.N == b.N && slices.Equal(a.Indptr, b.Indptr) && slices.Equal(a.Indices, b.Indices)
}

func TestDecodeNPZ(t *testing.T) {
	plain := &Graph{N: 3, Indptr: []int64{0, 2, 2, 3}, Indices: []int32{1, 2, 0}}
	withoutFirst := &Graph{N: 3, Indptr: []int64{0, 1, 1, 2}, Indices: []int32{2, 0}}
	for _, tc := range []struct {
		name   string
		change map[string][]byte
		want   *Graph
	}{
		{"as scipy writes it", nil, plain},
		{"64-bit indices", map[string][]byte{
			"indices.npy": member("<i8", "(3,)", []int64{1, 2, 0}),
			"indptr.npy":  member("<i8", "(4,)", []int64{0, 2, 2, 3})}, plain},
		{"big-endian, unsigned, small", map[string][]byte{
			"indices.npy": member(">u2", "(3,)", []uint16{1, 2, 0}),
			"indptr.npy":  member("|u1", "(4,)", []uint8{0, 2, 2, 3}),
			"shape.npy":   member(">i4", "(2,)", []int32{3, 3})}, plain},
		{"format as characters", map[string][]byte{"format.npy": member("<U3", "()", []rune("csr"))}, plain},
		{"format with padding", map[string][]byte{"format.npy": member("|S5", "(1,)", []byte("csr\x00\x00"))}, plain},
		{"header of Python 2", map[string][]byte{"shape.npy": member("<i8", "(2L,)", []int64{3, 3})}, plain},
		{"a further member", map[string][]byte{"_is_array.npy": member("|b1", "()", []bool{true})}, plain},
		{"boolean data", map[string][]byte{"data.npy": member("|b1", "(3,)", []bool{true, true, true})}, plain},
		{"a zero", map[string][]byte{"data.npy": member("<i8", "(3,)", []int64{0, 1, 1})}, withoutFirst},
		{"a negative zero", map[string][]byte{"data.npy": member("<f4", "(3,)", []float32{float32(math.Copysign(0, -1)), 1, 1})}, withoutFirst},
		{"a big-endian negative zero", map[string][]byte{"data.npy": member(">f8", "(3,)", []float64{math.Copysign(0, -1), 1, 1})}, withoutFirst},
		{"only zeros", map[string][]byte{"data.npy": member("|i1", "(3,)", []int8{0, 0, 0})},
			&Graph{N: 3, Indptr: []int64{0, 0, 0, 0}}},
		{"zeros at row ends, empty rows", map[string][]byte{
			"indices.npy": member("<i4", "(4,)", []int32{1, 2, 0, 1}),
			"indptr.npy":  member("<i4", "(6,)", []int32{0, 0, 1, 1, 4, 4}),
			"shape.npy":   member("<i8", "(2,)", []int64{5, 5}),
			"data.npy":    member("|u1", "(4,)", []uint8{0, 1, 1, 0})},
			&Graph{N: 5, Indptr: []int64{0, 0, 0, 0, 2, 2}, Indices: []int32{0, 2}}},
		{"a self loop of weight zero", map[string][]byte{
			"indices.npy": member("<i4", "(3,)", []int32{0, 2, 0}),
			"data.npy":    member("<f4", "(3,)", []float32{0, 1, 1})}, withoutFirst},
		{"unsorted columns", map[string][]byte{"indices.npy": member("<i4", "(3,)", []int32{2, 1, 0})}, plain},
		{"an edge twice", map[string][]byte{"indices.npy": member("<i4", "(3,)", []int32{2, 2, 0})}, withoutFirst},
		{"empty", map[string][]byte{
			"indices.npy": member("<i4", "(0,)", []int32{}),
			"indptr.npy":  member("<i4", "(1,)", []int32{0}),
			"shape.npy":   member("<i8", "(2,)", []int64{0, 0}),
			"data.npy":    member("<f4", "(0,)", []float32{})}, &Graph{Indptr: []int64{0}}},
	} {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			members := csr()
			maps.Copy(members, tc.change)
			got, err := decode(zipped(members, method))
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
				continue
			}
			if !equalGraphs(got, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.name, *got, *tc.want)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
	}
}

// Weights that differ are no error, but known; those that are negative or no finite numbers
// are refused.
func TestDecodeNPZWeights(t *testing.T) {
	inf := math.Inf(-1)
	for _, tc := range []struct {
		name     string
		data     []byte
		weighted bool
		fault    string
	}{
		{"ones", member("<f8", "(3,)", []float64{1, 1, 1}), false, ""},
		{"another weight", member("<f4", "(3,)", []float32{.5, .5, .5}), false, ""},
		{"zeros aside", member("<f8", "(3,)", []float64{0, 2, 2}), false, ""},
		{"truths", member("|b1", "(3,)", []bool{true, false, true}), false, ""},
		{"unequal", member("<f8", "(3,)", []float64{1e-7, 500, 1}), true, ""},
		{"unequal integers", member("<i2", "(3,)", []int16{3, 3, 4}), true, ""},
		{"the largest", member("<f4", "(3,)", []float32{math.MaxFloat32, 1, 1}), true, ""},
		{"negative", member("<f4", "(3,)", []float32{1, -.5, 1}), false, "data.npy: row 0, column 2 (counted from 0): got -0.5, want weights or distances of at least 0"},
		{"rounded below 0", member("<f4", "(3,)", []float32{1e4, -.004, 1e4}), true, ""},
		{"cosine distances", member("<f4", "(3,)", []float32{.05, -1.1920929e-7, .06}), true, ""},
		{"NaN", member("<f4", "(3,)", []float32{1, 1, float32(math.NaN())}), false, "data.npy: row 2, column 0 (counted from 0): got NaN or infinity"},
		{"infinite", member("<f8", "(3,)", []float64{1, inf, 1}), false, "row 0, column 2 (counted from 0): got NaN or infinity"},
		{"big-endian", member(">f8", "(3,)", []float64{inf, 1, 1}), false, "row 0, column 1 (counted from 0): got NaN or infinity"},
		{"half", member("<u2", "(3,)", []uint16{0x3c00, 0x7c00, 0x3c00}), false, "row 0, column 2 (counted from 0): got NaN or infinity"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			members := csr()
			members["data.npy"] = bytes.Replace(tc.data, []byte("<u2"), []byte("<f2"), 1)
			g, err := decode(zipped(members, zip.Store))
			if tc.fault != "" {
				if !errors.Is(err, ErrInvalidGraph) || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("error %v, want %q", err, tc.fault)
				}
				return
			}
			if err != nil || (g.Weights != nil) != tc.weighted {
				t.Errorf("the weights are %v, error %v", g.Weights, err)
			}
		})
	}
}

// Weights are in the order of the sorted columns; weights of the same edge are
// added up.
func TestDecodeWeights(t *testing.T) {
	for name, tc := range map[string]struct {
		data    []byte
		columns []int32
		want    []float32
	}{
		"float32":   {member("<f4", "(3,)", []float32{0.5, -1e-7, 3}), nil, []float32{0.5, 1e-7, 3}},
		"float64":   {member(">f8", "(3,)", []float64{1e300, 1e-300, 3}), nil, []float32{math.MaxFloat32, math.SmallestNonzeroFloat32, 3}},
		"half":      {bytes.Replace(member("<u2", "(3,)", []uint16{0x3c00, 0x4200, 0x0001}), []byte("<u2"), []byte("<f2"), 1), nil, []float32{1, 3, 0x1p-24}},
		"int8":      {member("|i1", "(3,)", []int8{5, 127, 1}), nil, []float32{5, 127, 1}},
		"int64":     {member("<i8", "(3,)", []int64{5, 6, 7}), nil, []float32{5, 6, 7}},
		"uint64":    {member("<u8", "(3,)", []uint64{1 << 63, 6, 7}), nil, []float32{1 << 63, 6, 7}},
		"unsorted":  {member("<f4", "(3,)", []float32{1, 2, 3}), []int32{2, 1, 0}, []float32{2, 1, 3}},
		"twice":     {member("<f4", "(3,)", []float32{1, 2, 4}), []int32{2, 2, 0}, []float32{3, 4}},
		"one zero":  {member("<f4", "(3,)", []float32{1, 0, 4}), nil, []float32{1, 4}},
		"all equal": {member("<f4", "(3,)", []float32{4, 4, 4}), nil, nil},
	} {
		members := csr()
		members["data.npy"] = tc.data
		if tc.columns != nil {
			members["indices.npy"] = member("<i4", "(3,)", tc.columns)
		}
		g, err := decode(zipped(members, zip.Store))
		if err != nil || !slices.Equal(g.Weights, tc.want) || g.Validate() != nil {
			t.Errorf("%s: %v, %v", name, g, err)
		}
	}
}

// A graph is refused for what data.Open refuses a matrix for, in the same words, and for what
// makes it none.
func TestDecodeNPZRefuses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change map[string][]byte // nil contents: the member is missing
		want   string
	}{
		{"another format", map[string][]byte{"format.npy": member("|S3", "()", []byte("csc"))},
			`format of the sparse matrix: got "csc", want csr (m.tocsr())`},
		{"two formats", map[string][]byte{"format.npy": member("|S3", "(2,)", []byte("csrcsr"))}, `format of the sparse matrix: got "csr, csr", want csr (m.tocsr())`},
		{"no indices", map[string][]byte{"indices.npy": nil}, `arrays of a sparse matrix: got "data", "format", "indptr", "shape", want indices, too, as scipy.sparse.save_npz writes it`},
		{"not square", map[string][]byte{"shape.npy": member("<i8", "(2,)", []int64{3, 4})}, "matrix: got 3 rows and 4 columns, want as many of both"},
		{"three dimensions", map[string][]byte{"shape.npy": member("<i8", "(3,)", []int64{3, 3, 3})}, "entries: got 3, want 2"},
		{"huge shape", map[string][]byte{"shape.npy": member("<i8", "(2,)", []int64{1 << 40, 1 << 40})}, "got 1099511627776×1099511627776, want at most 2147483647 columns"},
		{"shape beyond int64", map[string][]byte{"shape.npy": member("<u8", "(2,)", []uint64{1 << 63, 1 << 63})}, "got -9223372036854775808×-9223372036854775808, want at most 2147483647 columns"},
		{"shape against indptr", map[string][]byte{"shape.npy": member("<i8", "(2,)", []int64{1 << 30, 1 << 30})}, "entries: got 4, want 1073741825, one more than rows"},
		{"falling indptr", map[string][]byte{"indptr.npy": member("<i4", "(4,)", []int32{0, 2, 1, 3})}, "the array indptr.npy: entry 2 (counted from 0): got 1, want 2 (the entry before) to 3 (the number of values)"},
		{"indptr beyond int64", map[string][]byte{"indptr.npy": member("<u8", "(4,)", []uint64{0, 2, 1 << 63, 3})}, "indptr.npy: entry 2"},
		{"unused indices", map[string][]byte{"indptr.npy": member("<i4", "(4,)", []int32{0, 1, 1, 1})}, "the array indptr.npy: last entry: got 1, want 3, the number of values"},
		{"column beyond the matrix", map[string][]byte{"indices.npy": member("<i4", "(3,)", []int32{1, 3, 0})}, "the array indices.npy: entry 1 (counted from 0), in row 1: got column 3, want 0 to 2"},
		{"column beyond int64", map[string][]byte{"indices.npy": member("<u8", "(3,)", []uint64{1, 1 << 63, 0})}, "indices.npy: entry 1"},
		{"scalar indices", map[string][]byte{"indices.npy": member("<i4", "()", []int32{1})}, "the array indices.npy: shape: got (), want one dimension"},
		{"objects", map[string][]byte{"data.npy": member("|O8", "(3,)", []int64{1, 1, 1})}, `the array data.npy: dtype: got "|O8", want bool or numbers of up to 64 bits, or text for labels; x.astype('float32') or x.astype(str) converts it`},
		{"long doubles", map[string][]byte{"data.npy": member("<f16", "(3,)", make([]byte, 48))}, `dtype: got "<f16", want bool or numbers of up to 64 bits, or text for labels; x.astype('float32') or x.astype(str) converts it`},
		{"fractional indices", map[string][]byte{"indices.npy": member("<f8", "(3,)", []float64{1, 2, 0})}, "the array indices.npy: values: got the type f8, want whole numbers"},
		{"complex data", map[string][]byte{"data.npy": member("<c8", "(3,)", []complex64{1i, 1, -1})}, `the array data.npy: dtype: got "<c8", want bool or numbers of up to 64 bits, or text for labels; x.astype('float32') or x.astype(str) converts it`},
		{"signed size", map[string][]byte{"data.npy": member("<f+4", "(3,)", make([]byte, 12))}, `dtype: got "<f+4", want bool or numbers of up to 64 bits, or text for labels; x.astype('float32') or x.astype(str) converts it`},
		{"a self loop", map[string][]byte{"indices.npy": member("<i4", "(3,)", []int32{1, 2, 2})},
			"row 2 (counted from 0): got an edge to itself, want none (g.setdiag(0), g.eliminate_zeros())"},
		{"more announced than there is", map[string][]byte{"indices.npy": member("<i4", "(4611686018427387905,)", []int32{1})}, "the array indices.npy: shape: got 4611686018427387905, want one that fits into memory"},
		{"empty member", map[string][]byte{"format.npy": {}}, `the array format.npy: first bytes: got "", want "\x93NUMPY" of an npy file`},
		{"version 9", map[string][]byte{"format.npy": []byte("\x93NUMPY\x09\x00\x00\x00")}, "version of the npy format: got 9, want 1 to 3"},
		{"cut off version 2", map[string][]byte{"format.npy": []byte("\x93NUMPY\x02\x00\x40\x00")}, "the file ends within its npy header"},
		{"endless header", map[string][]byte{"format.npy": []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{")}, "npy header: got 4294967295 bytes, want at most 65536"},
	} {
		members := csr()
		maps.Copy(members, tc.change)
		maps.DeleteFunc(members, func(_ string, b []byte) bool { return b == nil })
		_, err := decode(zipped(members, zip.Deflate))
		if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrInvalidGraph) {
			t.Errorf("%s: error %v, want an ErrInvalidGraph with %q", tc.name, err, tc.want)
		}
	}
}

func TestDecodeNPZRefusesBrokenArchives(t *testing.T) {
	whole := zipped(csr(), zip.Store)
	flipped := slices.Clone(whole)
	at := bytes.Index(flipped, csr()["data.npy"]) + len(csr()["data.npy"]) - 1
	flipped[at] ^= 1
	for _, tc := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"empty", nil, "the npz archive cannot be read"},
		{"text", []byte("0 1\n1 2\n"), "the npz archive cannot be read"},
		{"cut off", whole[:len(whole)/2], "the npz archive cannot be read"},
		{"a bit flipped", flipped, "the array data.npy: the compressed data are damaged (zip: checksum error)"},
	} {
		if _, err := decode(tc.bytes); err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrInvalidGraph) {
			t.Errorf("%s: error %v, want an ErrInvalidGraph with %q", tc.name, err, tc.want)
		}
	}
	for cut := range whole {
		if _, err := decode(whole[:cut]); err == nil {
			t.Errorf("the first %d of %d bytes were read as a graph", cut, len(whole))
		}
	}
}

// A false size in an array's header that the archive's directory confirms is detected from
// the content, before memory is allocated for it.
func TestDecodeNPZRefusesFalseSizes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		count int64   // of indices: announced in the header, the directory and indptr
		held  []int32 // indices that there are
		want  string
	}{
		{"nearly none", 1 << 36, make([]int32, 3), "indices.npy: the compressed data end early"},
		{"too few", 1 << 36, make([]int32, 100000), "the array indices.npy: "},
		{"too many", 99999, make([]int32, 100000), "the array indices.npy: "},
	} {
		members := csr()
		members["indptr.npy"] = member("<i8", "(4,)", []int64{0, 2, 2, tc.count})
		delete(members, "indices.npy")
		delete(members, "data.npy")
		array := member("<i4", fmt.Sprintf("(%d,)", tc.count), tc.held)
		header := uint64(len(array) - 4*len(tc.held))

		var packed, b bytes.Buffer
		fw := need(flate.NewWriter(&packed, flate.BestSpeed))(t)
		need(fw.Write(array))(t)
		must(t, fw.Close())
		z := zip.NewWriter(&b)
		for name, contents := range members {
			w, err := z.Create(name)
			if err == nil {
				_, err = w.Write(contents)
			}
			must(t, err)
		}
		for _, name := range []string{"indices.npy", "data.npy"} {
			w, err := z.CreateRaw(&zip.FileHeader{
				Name: name, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(array),
				CompressedSize64: uint64(packed.Len()), UncompressedSize64: header + 4*uint64(tc.count),
			})
			if err == nil {
				_, err = w.Write(packed.Bytes())
			}
			must(t, err)
		}
		must(t, z.Close())

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decode(b.Bytes())
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrInvalidGraph) {
			t.Errorf("%s: error %v, want an ErrInvalidGraph with %q", tc.name, err, tc.want)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 16<<20 {
			t.Errorf("%s: %d bytes of memory were taken for an archive of %d", tc.name, taken, b.Len())
		}
	}
}

// A graph of all sizes of rows, the edges symmetric or not.
func sample() *Graph {
	g := &Graph{N: 70, Indptr: []int64{0}}
	for i := range g.N {
		for j := range i {
			if i%3 != 0 {
				g.Indices = append(g.Indices, int32(j))
			}
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

func TestNPZRoundTrip(t *testing.T) {
	for _, g := range []*Graph{sample(), {N: 4, Indptr: make([]int64, 5)}, {Indptr: []int64{0}}} {
		path := filepath.Join(t.TempDir(), "graph.npz")
		for range 2 { // the second time over the first file
			must(t, g.WriteNPZ(path))
		}
		got := need(ReadFile(t.Context(), path))(t)
		if !equalGraphs(got, g) {
			t.Errorf("read %v, wrote %v", *got, *g)
		}
		files, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(files) != 1 {
			t.Errorf("%d files were left in the folder, want 1 (%v)", len(files), err)
		}
	}
}

// What is written is, member by member, what scipy writes.
func TestEncodeNPZ(t *testing.T) {
	g := &Graph{N: 3, Indptr: []int64{0, 2, 2, 3}, Indices: []int32{1, 2, 0}}
	var a, b bytes.Buffer
	must(t, errors.Join(g.EncodeNPZ(&a), g.EncodeNPZ(&b)))
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same graph gave different bytes")
	}
	want := csr()
	want["data.npy"] = member("<f4", "(3,)", []float32{1, 1, 1})
	z := need(zip.NewReader(bytes.NewReader(a.Bytes()), int64(a.Len())))(t)
	for _, f := range z.File {
		r := need(f.Open())(t)
		got := need(io.ReadAll(r))(t)
		if !bytes.Equal(got, want[f.Name]) {
			t.Errorf("%s is %q, want %q", f.Name, got, want[f.Name])
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("members %v are missing", slices.Collect(maps.Keys(want)))
	}
}

type failingWriter struct{ after int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.after -= len(b); w.after < 0 {
		return 0, errors.New("the disk is full")
	}
	return len(b), nil
}

func TestWriteNPZFails(t *testing.T) {
	dir := t.TempDir()
	invalid := &Graph{N: 1, Indptr: []int64{0, 1}, Indices: []int32{0}}
	path := filepath.Join(dir, "graph.npz")
	if err := invalid.WriteNPZ(path); !errors.Is(err, ErrInvalidGraph) || !strings.Contains(err.Error(), "graph.npz") {
		t.Errorf("error %v, want an ErrInvalidGraph that names the file", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("%d files were left over", len(files))
	}
	if err := sample().WriteNPZ(filepath.Join(dir, "nowhere", "graph.npz")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that says that there is no such folder", err)
	}
	var whole bytes.Buffer
	must(t, sample().EncodeNPZ(&whole))
	for after := 0; after < whole.Len(); after += 50 {
		if err := sample().EncodeNPZ(&failingWriter{after}); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("error %v when the disk is full after %d bytes", err, after)
		}
	}
}

func TestReadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.npz")
	if _, err := ReadFile(t.Context(), path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "broken.npz") {
		t.Errorf("error %v, want one that says that broken.npz does not exist", err)
	}
	must(t, os.WriteFile(path, []byte("PK"), 0o600))
	if _, err := ReadFile(t.Context(), path); !errors.Is(err, ErrInvalidGraph) || !strings.Contains(err.Error(), "broken.npz") {
		t.Errorf("error %v, want an ErrInvalidGraph that names broken.npz", err)
	}
}

// checkDecoded fails if a graph came out of the archive that is not valid or
// does not survive a round trip.
func checkDecoded(t *testing.T, archive []byte) {
	g, err := decode(archive)
	if err != nil {
		if !errors.Is(err, ErrInvalidGraph) {
			t.Fatalf("error %v is no ErrInvalidGraph", err)
		}
		return
	}
	must(t, g.Validate())
	var b bytes.Buffer
	must(t, g.EncodeNPZ(&b))
	again := need(decode(b.Bytes()))(t)
	if !equalGraphs(g, again) {
		t.Fatal("the graph changed in a round trip")
	}
}

func FuzzDecodeNPZ(f *testing.F) {
	f.Add(zipped(csr(), zip.Store))
	f.Add(zipped(csr(), zip.Deflate))
	f.Fuzz(checkDecoded)
}

// FuzzDecodeMembers gets past the archive's checksums.
func FuzzDecodeMembers(f *testing.F) {
	c := csr()
	f.Add(c["indices.npy"], c["indptr.npy"], c["format.npy"], c["shape.npy"], c["data.npy"])
	f.Add(member(">u2", "(3,)", []uint16{1, 2, 0}), c["indptr.npy"], member("<U3", "()", []rune("csr")), c["shape.npy"], member(">f8", "(3,)", []float64{2, 0, -1}))
	f.Fuzz(func(t *testing.T, indices, indptr, format, shape, data []byte) {
		checkDecoded(t, zipped(map[string][]byte{
			"indices.npy": indices, "indptr.npy": indptr, "format.npy": format, "shape.npy": shape, "data.npy": data,
		}, zip.Store))
	})
}

func BenchmarkNPZ(b *testing.B) {
	n, k := 70000, 21
	if testing.Short() {
		n = 10000
	}
	g := &Graph{N: n, Indptr: []int64{0}}
	for i := range n {
		for j := range k {
			g.Indices = append(g.Indices, int32((i+1+j*j*j)%n))
		}
		slices.Sort(g.Indices[i*k:])
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	var file bytes.Buffer
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			file.Reset()
			must(b, g.EncodeNPZ(&file))
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			need(decode(file.Bytes()))(b)
		}
	})
}
