package file_test

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
	"cne/data/images"
)

// Files that scipy wrote of one matrix have the same values as NumPy's file of it: with 4
// and 8 bytes, compressed and not, and with unsorted int64 columns, one of them repeated,
// and a stored zero.
func TestOpenCSR(t *testing.T) {
	folder := filepath.Join("testdata", "sparse")
	want := need(file.Read(t.Context(), []string{filepath.Join(folder, "dense.npy")}, file.Options{}))(t)
	for _, name := range []string{"float32", "float64-plain", "untidy-int64", "times4-int64"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder, name+".npz")
			ds := need(file.Read(t.Context(), []string{path}, file.Options{}))(t)
			if ds.Points.CSR == nil || ds.Points.Nonzeros() != 12 || ds.Name != name {
				t.Fatalf("%q has %d values that are not 0", ds.Name, ds.Points.Nonzeros())
			}
			got := need(ds.Points.Dense())(t)
			if name == "times4-int64" {
				for i := range got.X {
					got.X[i] /= 4
				}
			} else {
				sameAfterSkip(t, []string{path, path}, file.Options{})
				blocks, _, err := readBlocks([]string{path, path}, file.Options{}, 3)
				must(t, err)
				if !slices.Equal(blocks.Points.X, slices.Concat(want.Points.X, want.Points.X)) {
					t.Errorf("read in blocks, the points are %v", blocks.Points.X)
				}
			}
			sameMatrix(t, got, want.Points)
			if s := file.Size(t.Context(), []string{path}, file.Options{}); !s.Known() || s.Low != 7 || s.Width != 5 || s.Nonzeros < 12 {
				t.Errorf("its size is %+v", s)
			}
			for i := range want.Points.N {
				for j := range want.Points.D {
					if a, b := got.At(i, j), want.Points.At(i, j); a != b {
						t.Errorf("value %d, %d is %v, want %v", i, j, a, b)
					}
				}
			}
		})
	}
	both := need(file.Read(t.Context(), []string{filepath.Join(folder, "float32.npz"), filepath.Join(folder, "untidy-int64.npz")}, file.Options{}))(t)
	mixed := []string{filepath.Join(folder, "float32.npz"), filepath.Join(folder, "dense.npy")}
	wantError(t, errorOf(file.Read(t.Context(), mixed, file.Options{})), data.ErrShape, mixed[1]+": points: got dense ones, want sparse ones as in "+mixed[0])
	slices.Reverse(mixed)
	wantError(t, errorOf(file.Read(t.Context(), mixed, file.Options{})), data.ErrShape, mixed[1]+": points: got sparse ones, want dense ones as in "+mixed[0])
	if x := need(both.Points.Dense())(t).X; !slices.Equal(x, slices.Concat(want.Points.X, want.Points.X)) {
		t.Errorf("two files together are %v", x)
	}
	for _, paths := range [][]string{{"float32.npz", "dense.npy"}, {"dense.npy", "float32.npz"}} {
		for i := range paths {
			paths[i] = filepath.Join(folder, paths[i])
		}
		wantError(t, errorOf(file.Read(t.Context(), paths, file.Options{})), data.ErrShape, paths[1]+": points: got ")
	}
	wantError(t, errorOf(file.Read(t.Context(), []string{filepath.Join(folder, "csc.npz")}, file.Options{})), data.ErrUnsupported, `csc.npz: format of the sparse matrix: got "csc", want csr (m.tocsr())`)
	wantError(t, errorOf(images.Open(t.Context(), []string{filepath.Join(folder, "float32.npz")}, images.Options{})), data.ErrUnsupported, "got no images, want ")
}

// numbers returns an npy array of one dimension.
func numbers[T int32 | int64 | float32 | float64 | uint8](values ...T) []byte {
	descr := map[string]string{"int32": "<i4", "int64": "<i8", "float32": "<f4", "float64": "<f8", "uint8": "|u1"}[fmt.Sprintf("%T", *new(T))]
	var b []byte
	for _, v := range values {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	return npy(fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", descr, len(values)), b...)
}

// A csrFile has the arrays of a file; nil leaves one out.
type csrFile struct{ format, shape, indptr, indices, values []byte }

// soundCSR is the matrix [[0, 1.5, 0], [2, 0, -3]].
func soundCSR() csrFile {
	return csrFile{
		npy("{'descr': '|S3', 'fortran_order': False, 'shape': (), }", []byte("csr")...),
		numbers[int64](2, 3), numbers[int32](0, 1, 3), numbers[int32](1, 0, 2), numbers[float32](1.5, 2, -3),
	}
}

func (c csrFile) archive(method uint16) []byte {
	var entries []entry
	for _, e := range []entry{{"indices.npy", c.indices}, {"indptr.npy", c.indptr}, {"format.npy", c.format}, {"shape.npy", c.shape}, {"data.npy", c.values}} {
		if e.content != nil {
			entries = append(entries, e)
		}
	}
	return zipOf(method, entries...)
}

func TestOpenCSRFaults(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, tc := range map[string]struct {
		spoil func(c *csrFile)
		kind  error
		want  string
	}{
		"sound": {func(*csrFile) {}, nil, ""},
		"unicode format": {func(c *csrFile) {
			c.format = npy("{'descr': '<U3', 'fortran_order': False, 'shape': (), }", []byte("c\x00\x00\x00s\x00\x00\x00r\x00\x00\x00")...)
		}, nil, ""},
		"bytes":     {func(c *csrFile) { c.values = numbers[uint8](1, 2, 3) }, nil, ""},
		"no format": {func(c *csrFile) { c.format = nil }, data.ErrFormat, `arrays of a sparse matrix: got "indices", "indptr", "shape", "data", want format, too, as scipy.sparse.save_npz writes it`},
		"coo": {func(c *csrFile) {
			c.format = npy("{'descr': '|S3', 'fortran_order': False, 'shape': (), }", []byte("coo")...)
		}, data.ErrUnsupported, `format of the sparse matrix: got "coo", want csr (m.tocsr())`},
		"format of number": {func(c *csrFile) { c.format = numbers[int32](1) }, data.ErrFormat, "the array format.npy: values: got the type i4, want text"},
		"format cut":       {func(c *csrFile) { c.format = c.format[:9] }, data.ErrFormat, "the array format.npy: the file ends within its npy header"},
		"no shape":         {func(c *csrFile) { c.shape = nil }, data.ErrFormat, `arrays of a sparse matrix: got "indices", "indptr", "format", "data", want shape, too, as scipy.sparse.save_npz writes it`},
		"shape of one":     {func(c *csrFile) { c.shape = numbers[int64](2) }, data.ErrShape, "entries: got 1, want 2"},
		"negative shape":   {func(c *csrFile) { c.shape = numbers[int64](2, -3) }, data.ErrFormat, "got 2×-3, want at most 2147483647 columns"},
		"absurd shape":     {func(c *csrFile) { c.shape = numbers[int64](math.MaxInt64, 3) }, data.ErrFormat, "got 9223372036854775807×3, want at most 2147483647 columns"},
		"absurd width":     {func(c *csrFile) { c.shape = numbers[int64](2, 1<<31) }, data.ErrFormat, "got 2×2147483648, want at most 2147483647 columns"},
		"no columns":       {func(c *csrFile) { c.shape = numbers[int64](2, 0) }, data.ErrEmpty, "sparse matrix: got 2×0, want at least one row and one column"},
		"shape of floats":  {func(c *csrFile) { c.shape = numbers[float64](2, 3) }, data.ErrFormat, "the array shape.npy: values: got the type f8, want whole numbers"},
		"more rows":        {func(c *csrFile) { c.shape = numbers[int64](3, 3) }, data.ErrFormat, "entries: got 3, want 4, one more than rows"},
		"no data":          {func(c *csrFile) { c.values = nil }, data.ErrFormat, `arrays of a sparse matrix: got "indices", "indptr", "format", "shape", want data, too, as scipy.sparse.save_npz writes it`},
		"fewer values":     {func(c *csrFile) { c.values = numbers[float32](1, 2) }, data.ErrFormat, "entries: got 3, want 2, one for each value"},
		"2-d data":         {func(c *csrFile) { c.values = byteArray("(3, 1)", 1, 2, 3) }, data.ErrShape, "the array data.npy: shape: got 3×1, want one dimension"},
		"begins at 1":      {func(c *csrFile) { c.indptr = numbers[int32](1, 1, 3) }, data.ErrFormat, "entry 0: got 1, want 0"},
		"descends":         {func(c *csrFile) { c.indptr = numbers[int32](0, 3, 1) }, data.ErrFormat, "the array indptr.npy: entry 2 (counted from 0): got 1, want 3 (the entry before) to 3 (the number of values)"},
		"beyond":           {func(c *csrFile) { c.indptr = numbers[int64](0, 1, 1<<62) }, data.ErrFormat, "entry 2 (counted from 0): got 4611686018427387904, want 1 (the entry before) to 3 (the number of values)"},
		"before the end":   {func(c *csrFile) { c.indptr = numbers[int32](0, 1, 2) }, data.ErrFormat, "last entry: got 2, want 3, the number of values"},
		"column":           {func(c *csrFile) { c.indices = numbers[int32](1, 0, 3) }, data.ErrFormat, "the array indices.npy: entry 2 (counted from 0), in row 2: got column 3, want 0 to 2"},
		"negative column":  {func(c *csrFile) { c.indices = numbers[int64](1, -1, 2) }, data.ErrFormat, "entry 1 (counted from 0), in row 2: got column -1, want 0 to 2"},
		"narrow negative column": {func(c *csrFile) {
			c.shape = numbers[int64](2, 300)
			c.indices = npy("{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }\n", 1, 0, 0xff)
		}, data.ErrFormat, "entry 2 (counted from 0), in row 2: got column -1, want 0 to 299"},
		"float columns": {func(c *csrFile) { c.indices = numbers[float32](1, 0, 2) }, data.ErrFormat, "the array indices.npy: values: got the type"},
		"columns of bools": {func(c *csrFile) {
			c.indices = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n", 1, 0, 1)
		}, data.ErrFormat, "the array indices.npy: values: got the type"},
		"texts": {func(c *csrFile) {
			c.values = npy("{'descr': '|S2', 'fortran_order': False, 'shape': (3,), }\n", make([]byte, 6)...)
		}, data.ErrFormat, "the array data.npy: values: got the type S2, want numbers"},
		"NaN":         {func(c *csrFile) { c.values = numbers[float64](1, 2, math.NaN()) }, data.ErrNotFinite, "a.npz: row 2: column 3: got NaN"},
		"infinity":    {func(c *csrFile) { c.values = numbers[float32](inf, 2, 3) }, data.ErrNotFinite, "a.npz: row 1: column 2: got +Inf"},
		"too large":   {func(c *csrFile) { c.values = numbers[float64](1, 2e300, 3) }, data.ErrNotFinite, "a.npz: row 2: column 1"},
		"cut values":  {func(c *csrFile) { c.values = c.values[:len(c.values)-5] }, data.ErrFormat, "the array data.npy: values: got 1, want 3 (shape 3); the file is truncated"},
		"more values": {func(c *csrFile) { c.values = append(c.values, 0) }, data.ErrFormat, "the array data.npy: got more bytes than the header announces, want the end of the file"},
	} {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			c := soundCSR()
			tc.spoil(&c)
			path := put(t, t.TempDir(), "a.npz", c.archive(method))
			t.Run(name, func(t *testing.T) {
				ds, err := file.Read(t.Context(), []string{path}, file.Options{})
				wantError(t, err, tc.kind, tc.want)
				for row := range 2 { // whichever is wanted
					wantError(t, errorOf(file.ReadRows(t.Context(), []string{path}, file.Options{}, []int{row}, 2)), tc.kind, tc.want)
				}
				if tc.kind == nil && (ds.Points.N != 2 || ds.Points.D != 3 || ds.Points.At(1, 2) == 0 || ds.Points.At(0, 0) != 0) {
					t.Errorf("the points are %+v", ds.Points.CSR)
				}
				if tc.kind != nil && !strings.Contains(err.Error(), "a.npz: ") {
					t.Errorf("the error does not name the file: %v", err)
				}
			})
		}
	}
}

// Labels in the archive of a sparse matrix belong to its rows, and a header with absurd
// sizes takes no memory.
func TestOpenCSRBeside(t *testing.T) {
	c := soundCSR()
	entries := []entry{{"indices.npy", c.indices}, {"indptr.npy", c.indptr}, {"format.npy", c.format}, {"shape.npy", c.shape}, {"data.npy", c.values}}
	path := put(t, t.TempDir(), "a.npz", zipOf(zip.Deflate, append(entries, entry{"labels.npy", numbers[int32](7, 9)})...))
	ds, err := file.Read(t.Context(), []string{path}, file.Options{})
	if err != nil || !slices.Equal(ds.Labels.Value, []float64{7, 9}) {
		t.Fatal(err, ds)
	}
	path = put(t, t.TempDir(), "a.npz", zipOf(zip.Deflate, append(entries, entry{"labels.npy", numbers[int32](7)})...))
	wantError(t, errorOf(file.Read(t.Context(), []string{path}, file.Options{})), data.ErrLabels, "labels: got 1, want 2, one for each point")

	c.indices = npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000,), }", 1, 2)
	c.values = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,), }", 1, 2)
	c.shape = numbers[int64](2, math.MaxInt32)
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		path := put(t, t.TempDir(), "a.npz", c.archive(method))
		if n := allocated(func() {
			wantError(t, errorOf(file.Read(t.Context(), []string{path}, file.Options{})), data.ErrFormat, "a.npz: ")
		}); n > 1<<24 {
			t.Errorf("%d bytes were allocated", n)
		}
	}
}

// FuzzCSR reads arrays of any bytes as a sparse matrix, whole and in blocks.
func FuzzCSR(f *testing.F) {
	for _, spoil := range []func(c *csrFile){func(*csrFile) {}, func(c *csrFile) { c.indptr = numbers[int64](0, 3, 3) }, func(c *csrFile) { c.values = numbers[float64](1, 2, 3) }} {
		c := soundCSR()
		spoil(&c)
		f.Add(c.shape, c.indptr, c.indices, c.values, true)
	}
	f.Fuzz(func(t *testing.T, shape, indptr, indices, values []byte, stored bool) {
		c := csrFile{soundCSR().format, shape, indptr, indices, values}
		method := zip.Deflate
		if stored {
			method = zip.Store
		}
		path := put(t, t.TempDir(), "a.npz", c.archive(method))
		ds, err := file.Read(t.Context(), []string{path}, file.Options{})
		checkRead(t, ds, err)
		if err != nil || ds.Points.D > 1<<12 {
			return
		}
		whole := need(ds.Points.Dense())(t)
		b := need(file.Open(t.Context(), []string{path}, file.Options{}))(t)
		defer b.Close()
		block, at := data.NewMatrix(2, b.Width()), 0
		for {
			n, err := b.Next(block)
			if err == io.EOF {
				break
			}
			must(t, err)
			if !slices.Equal(block.X[:n*b.Width()], whole.X[at:at+n*b.Width()]) {
				t.Fatalf("the rows from %d on are others in blocks", at/b.Width())
			}
			at += n * b.Width()
		}
		if at != len(whole.X) {
			t.Fatalf("there are %d values in blocks, and %d in all", at, len(whole.X))
		}
	})
}

func TestFromCSR(t *testing.T) {
	m, err := data.FromCSR(2, 3, []int32{0, 3, 4}, []int32{2, 0, 2, 1}, []float64{1, 5, 0.5, 0})
	if err != nil || m.Nonzeros() != 2 || m.At(0, 2) != 1.5 || m.At(0, 0) != 5 || m.At(1, 1) != 0 {
		t.Fatal(m, err)
	}
	for name, tc := range map[string]struct {
		n, d            int
		indptr, indices []int
		value           float64
		kind            error
		want            string
	}{
		"nothing":    {0, 3, []int{0}, nil, 1, data.ErrEmpty, "sparse matrix: got 0×3"},
		"wide":       {1, math.MaxInt32 + 1, []int{0, 1}, []int{0}, 1, data.ErrShape, "columns of the sparse matrix: got 2147483648"},
		"no indptr":  {1, 3, nil, []int{0}, 1, data.ErrShape, "0 entries in indptr"},
		"short":      {2, 3, []int{0, 1}, []int{0}, 1, data.ErrShape, "2 entries in indptr"},
		"end":        {1, 3, []int{0, 2}, []int{0}, 1, data.ErrShape, "from 0 to the number of values"},
		"descending": {2, 3, []int{0, 2, 1}, []int{0}, 1, data.ErrShape, "entry 2 of indptr (counted from 0): got 1"},
		"column":     {1, 3, []int{0, 1}, []int{3}, 1, data.ErrShape, "entry 0 of indices (counted from 0): got 3"},
		"negative":   {1, 3, []int{0, 1}, []int{-1}, 1, data.ErrShape, "entry 0 of indices (counted from 0): got -1"},
		"NaN":        {1, 3, []int{0, 1}, []int{1}, math.NaN(), data.ErrNotFinite, "row 1: column 2: got NaN"},
	} {
		values := make([]float64, len(tc.indices))
		for i := range values {
			values[i] = tc.value
		}
		_, err := data.FromCSR(tc.n, tc.d, tc.indptr, tc.indices, values)
		t.Run(name, func(t *testing.T) { wantError(t, err, tc.kind, tc.want) })
	}
}

// Scaling, normalising, splitting and selecting sparse points give what they give of the
// same points as dense ones, and what would make them dense is refused.
func TestSparsePointsAsDense(t *testing.T) {
	indptr, indices, values := []int{0}, []int{}, normal(4, 40, 5).X
	for i := range values {
		indices = append(indices, (i*i+i/5)%12)
		if i%5 == 4 {
			indptr = append(indptr, i+1)
		}
	}
	m := fromCSR(t, 40, 12, indptr, indices, values)
	sparse := &data.Dataset{Points: m.Clone(), Labels: nil}
	same := &data.Dataset{Points: need(m.Dense())(t)}
	for points, want := range map[*data.Matrix]bool{m: false, m.Rows(3, 4): true} {
		if equal, err := data.AllEqual(t.Context(), points); err != nil || equal != want {
			t.Errorf("%d points are all equal: %t, %v", points.N, equal, err)
		}
	}
	if m.Rows(3, 9).At(2, 5) != m.At(5, 5) {
		t.Error("rows differ")
	}
	for _, ds := range []*data.Dataset{sparse, same} {
		must(t, ds.Normalize(t.Context(), data.Cosine, need(ds.Scale(t.Context(), data.ScaleUnit))(t)))
	}
	sameMatrix(t, need(sparse.Points.Dense())(t), same.Points)
	a, b, _, errSparse := sparse.Split(0.3, 1)
	c, d, _, errSame := same.Split(0.3, 1)
	if errSparse != nil || errSame != nil {
		t.Fatal(errSparse, errSame)
	}
	sameMatrix(t, need(a.Points.Dense())(t), c.Points)
	sameMatrix(t, need(b.Points.Dense())(t), d.Points)

	wantError(t, errorOf(sparse.Scale(t.Context(), data.ScaleStandard)), data.ErrSparse, "scaling: got standard or an offset for sparse points, want unit or none")
	wantError(t, sparse.Normalize(t.Context(), data.Correlation, nil), data.ErrSparse, "metric: got correlation for sparse points, want euclidean or cosine")
	wantError(t, file.WriteNPY(io.Discard, m), data.ErrSparse, "want dense ones (Matrix.Dense)")
	wantError(t, errorOf(fromCSR(t, 1<<20, 1<<20, make([]int, 1<<20+1), nil, nil).Dense()), data.ErrSparse, "1048576 sparse points of 1048576 values")
	zero := &data.Dataset{Points: fromCSR(t, 2, 3, []int{0, 1, 1}, []int{1}, []float32{2})}
	wantError(t, zero.Normalize(t.Context(), data.Cosine, nil), data.ErrDirection, "row 2 of 2 points: got values that are all 0, want at least one other")

	names := []string{"a", "b", "c"}
	named := fromCSR(t, 2, 3, []int{0, 2, 3}, []int{0, 2, 1}, []float32{1, 2, 3})
	named.Columns = names
	selected, left, err := named.Select([]string{"c", "a"})
	if err != nil || !slices.Equal(left, []string{"b"}) || !slices.Equal(need(selected.Dense())(t).X, []float32{2, 1, 0, 0}) {
		t.Error(selected, left, err)
	}
}

// A matrix without values keeps its rows before the rows of the next file.
func TestMatrixMarketOfZeros(t *testing.T) {
	const head = "%%MatrixMarket matrix coordinate integer general\n"
	folder := t.TempDir()
	zeros := put(t, folder, "zeros.mtx", []byte(head+"2 1 1\n1 1 0\n"))
	ones := put(t, folder, "ones.mtx", []byte(head+"2 1 1\n2 1 1\n"))
	ds := need(file.Read(t.Context(), []string{zeros, ones}, file.Options{}))(t)
	sameMatrix(t, need(ds.Points.Dense())(t), matrix(2, 2, 0, 0, 0, 1))
}
