package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// This file writes every format that the program reads, rightly and wrongly, without the
// program's own code.

// A table is a matrix of points, a row each.
type table [][]float32

// blobs returns n points of d values around three centres, the same each time. Their
// values are multiples of 1/64, so that they are the same in every format.
func blobs(n, d int) table {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	rows := make(table, n)
	for i := range rows {
		rows[i] = make([]float32, d)
		for j := range rows[i] {
			centre := 6 * math.Sin(float64(7*(i%3)+j))
			rows[i][j] = float32(math.Round(64*(centre+rng.NormFloat64())) / 64)
		}
	}
	return rows
}

// mapped returns the points with each value changed.
func (t table) mapped(f func(row, column int, v float32) float32) table {
	out := make(table, len(t))
	for i := range t {
		out[i] = make([]float32, len(t[i]))
		for j, v := range t[i] {
			out[i][j] = f(i, j, v)
		}
	}
	return out
}

// flat returns the values row by row.
func (t table) flat() []float32 { return slices.Concat(t...) }

// shape returns the numbers of rows and columns as NumPy writes them.
func (t table) shape() string { return fmt.Sprintf("(%d, %d)", len(t), len(t[0])) }

// npy returns the points as an array of float32.
func (t table) npy() []byte { return npy("<f4", t.shape(), little(t.flat())) }

// csv returns the points as text with a separator, a header if there are names, and a
// line ending.
func (t table) csv(separator, ending string, names ...string) []byte {
	var b bytes.Buffer
	line := func(fields []string) { b.WriteString(strings.Join(fields, separator) + ending) }
	if len(names) > 0 {
		line(names)
	}
	for _, row := range t {
		line(fieldsOf(row))
	}
	return b.Bytes()
}

// fieldsOf writes values as text.
func fieldsOf(row []float32) []string {
	fields := make([]string, len(row))
	for j, v := range row {
		fields[j] = strconv.FormatFloat(float64(v), 'g', -1, 32)
	}
	return fields
}

// lines returns n lines of text.
func lines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

// little returns values as bytes, the least significant first; big the other way round.
func little(values any) []byte { return encoded(binary.LittleEndian, values) }
func big(values any) []byte    { return encoded(binary.BigEndian, values) }

func encoded(order binary.ByteOrder, values any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, order, values); err != nil {
		panic(err) // values of a type without a fixed size
	}
	return b.Bytes()
}

// npy returns an array with a header made of a dtype and a shape, and these bytes.
func npy(dtype, shape string, content []byte) []byte {
	return npyHeaded(fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype, shape), content)
}

// npyHeaded returns an array with a header of any text.
func npyHeaded(header string, content []byte) []byte {
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), little(uint16(len(header)))...)
	return slices.Concat(b, []byte(header), content)
}

// gz compresses.
func gz(content []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // there is nothing that could fail in memory
	}
	return b.Bytes()
}

// A member is a file in an archive.
type member struct {
	name    string
	content []byte
}

// zipped returns a zip archive.
func zipped(method uint16, members ...member) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		f, err := z.CreateHeader(&zip.FileHeader{Name: m.name, Method: method})
		if err == nil {
			_, err = f.Write(m.content)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// npz returns an archive of arrays as np.savez writes it.
func npz(members ...member) []byte { return zipped(zip.Store, members...) }

// tarred returns a tar archive.
func tarred(members ...member) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		err := w.WriteHeader(&tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.content))})
		if err == nil {
			_, err = w.Write(m.content)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// idx returns an IDX file of a type, with sizes and content as they are given.
func idx(kind byte, content []byte, sizes ...uint32) []byte {
	b := []byte{0, 0, kind, byte(len(sizes))}
	return slices.Concat(b, big(sizes), content)
}

// cut returns the first bytes of a file; if n is negative, all but the last.
func cut(content []byte, n int) []byte {
	if n < 0 {
		n += len(content)
	}
	return content[:n]
}

// patched returns a copy in which bytes from a place on are others; a negative place
// counts from the end.
func patched(content []byte, at int, with ...byte) []byte {
	content = slices.Clone(content)
	if at < 0 {
		at += len(content)
	}
	copy(content[at:], with)
	return content
}

// csr returns a graph as scipy's save_npz writes it.
func csr(n int, indptr, indices []int32, data []float32) []byte {
	return csrOf(map[string][]byte{}, n, indptr, indices, data)
}

// csrOf returns such a graph with some of its arrays replaced by others; nil leaves an
// array out.
func csrOf(others map[string][]byte, n int, indptr, indices []int32, data []float32) []byte {
	arrays := []member{
		{"indices.npy", npy("<i4", fmt.Sprintf("(%d,)", len(indices)), little(indices))},
		{"indptr.npy", npy("<i4", fmt.Sprintf("(%d,)", len(indptr)), little(indptr))},
		{"format.npy", npy("|S3", "()", []byte("csr"))},
		{"shape.npy", npy("<i8", "(2,)", little([]int64{int64(n), int64(n)}))},
		{"data.npy", npy("<f4", fmt.Sprintf("(%d,)", len(data)), little(data))},
	}
	var members []member
	for _, a := range arrays {
		if content, ok := others[a.name]; ok {
			a.content = content
		}
		if a.content != nil {
			members = append(members, a)
		}
	}
	return npz(members...)
}

// ring returns the parts of a graph in which each of n points has the points beside it
// in a circle as neighbours.
func ring(n int) (indptr, indices []int32, data []float32) {
	for i := range n {
		a, b := int32((i+n-1)%n), int32((i+1)%n)
		indptr = append(indptr, int32(2*i))
		indices = append(indices, min(a, b), max(a, b))
		data = append(data, 1, 1)
	}
	return append(indptr, int32(2*n)), indices, data
}

// tensors returns a safetensors file with a header of any text and these bytes.
func tensors(header string, content []byte) []byte {
	return slices.Concat(little(uint64(len(header))), []byte(header), content)
}

// A tensor is one of float32 in a safetensors file.
type tensor struct {
	name   string
	shape  []int
	values []float32
}

// safetensors returns a sound file, as PyTorch writes it.
func safetensors(all ...tensor) []byte {
	header := make(map[string]any)
	var content []byte
	for _, t := range all {
		b := little(t.values)
		header[t.name] = map[string]any{"dtype": "F32", "shape": t.shape, "data_offsets": []int{len(content), len(content) + len(b)}}
		content = append(content, b...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return tensors(string(text), content)
}

// picture returns a PNG of noise around a colour.
func picture(width, height int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	base := uint8(40 + 60*(seed%3))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.NRGBA{base + uint8(rng.IntN(50)), base, 255 - base, 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// pictures returns n images of size×size×3 bytes as an array, with their labels.
func pictures(n, size int) (images, labels []byte) {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(size)))
	content := make([]byte, n*size*size*3)
	classes := make([]byte, n)
	for i := range n {
		classes[i] = byte(i % 3)
		for j := range size * size * 3 {
			content[i*size*size*3+j] = byte(60*(i%3+j%3) + rng.IntN(40))
		}
	}
	return npy("|u1", fmt.Sprintf("(%d, %d, %d, 3)", n, size, size), content), npy("|u1", fmt.Sprintf("(%d,)", n), classes)
}

// A column is one of a Parquet file, with its values one after the other.
type column struct {
	name     string
	physical int // 0 bool, 1 int32, 2 int64, 4 float, 5 double, 6 text
	values   []byte
	count    int
	// What a sound file does not have: other numbers in the metadata, a level of
	// definition for each value, or lengths of lists.
	codec, claimed, page int
	converted            int // 0: none
	present              []bool
	lists                []int
}

// columnsOf returns the points as columns of float32 called a, b, c and so on.
func columnsOf(t table) []column {
	all := make([]column, len(t[0]))
	for j := range all {
		var v []float32
		for i := range t {
			v = append(v, t[i][j])
		}
		all[j] = column{name: string(rune('a' + j)), physical: 4, values: little(v), count: len(v)}
	}
	return all
}

// texts returns a column of texts.
func texts(name string, values ...string) column {
	c := column{name: name, physical: 6, count: len(values), converted: 1} // UTF8 is 0
	for _, s := range values {
		c.values = append(append(c.values, little(uint32(len(s)))...), s...)
	}
	return c
}

// A thrift is a structure in Thrift's compact protocol, of which the fields come in the
// order of their numbers.
type thrift struct {
	b    []byte
	last int
}

func (t *thrift) field(id, kind int) {
	t.b = append(t.b, byte((id-t.last)<<4|kind))
	t.last = id
}

func (t *thrift) number(id, kind int, v int64) { // kind 5: of 32 bits, 6: of 64
	t.field(id, kind)
	t.b = binary.AppendVarint(t.b, v)
}

func (t *thrift) text(id int, s string) {
	t.field(id, 8)
	t.b = append(binary.AppendUvarint(t.b, uint64(len(s))), s...)
}

func (t *thrift) list(id int, of ...*thrift) {
	t.field(id, 9)
	t.b = append(binary.AppendUvarint(append(t.b, 0xfc), uint64(len(of))), slices.Concat(ended(of)...)...)
}

func (t *thrift) inside(id int, s *thrift) {
	t.field(id, 12)
	t.b = append(t.b, ended([]*thrift{s})[0]...)
}

// ended returns structures with the zero that ends each.
func ended(all []*thrift) (b [][]byte) {
	for _, s := range all {
		b = append(b, append(slices.Clone(s.b), 0))
	}
	return b
}

// parquet returns a Parquet file of one row group with one page of each column, of so many
// rows.
func parquet(rows int64, columns ...column) []byte {
	out := []byte("PAR1")
	schema, chunks := []*thrift{{}}, []*thrift(nil)
	schema[0].text(4, "schema")
	schema[0].number(5, 5, int64(len(columns)))
	for _, c := range columns {
		levels := c.levels()
		body := slices.Concat(levels, c.values)
		var page, head thrift
		head.number(1, 5, int64(c.count))
		head.number(2, 5, 0)
		head.number(3, 5, 3)
		head.number(4, 5, 3)
		page.number(1, 5, 0)
		page.number(2, 5, int64(max(c.page, len(body))))
		page.number(3, 5, int64(len(body)))
		page.inside(5, &head)
		start := len(out)
		out = append(append(append(out, page.b...), 0), body...)

		var meta, chunk, e thrift
		meta.number(1, 5, int64(c.physical))
		meta.number(4, 5, int64(c.codec))
		meta.number(5, 6, int64(max(c.claimed, c.count)))
		meta.number(7, 6, int64(len(out)-start))
		meta.number(9, 6, int64(start))
		chunk.inside(3, &meta)
		chunks = append(chunks, &chunk)
		if c.lists != nil {
			var outer, inner thrift
			outer.number(3, 5, 0)
			outer.text(4, c.name)
			outer.number(5, 5, 1)
			outer.number(6, 5, 3)
			inner.number(3, 5, 2)
			inner.text(4, "list")
			inner.number(5, 5, 1)
			schema = append(schema, &outer, &inner)
		}
		e.number(1, 5, int64(c.physical))
		if c.present != nil {
			e.number(3, 5, 1)
		} else {
			e.number(3, 5, 0)
		}
		e.text(4, c.name)
		if c.converted > 0 {
			e.number(6, 5, int64(c.converted-1))
		}
		schema = append(schema, &e)
	}
	var group, footer thrift
	group.list(1, chunks...)
	group.number(3, 6, rows)
	footer.number(1, 5, 2)
	footer.list(2, schema...)
	footer.number(3, 6, rows)
	footer.list(4, &group)
	foot := append(footer.b, 0)
	return slices.Concat(out, foot, little(uint32(len(foot))), []byte("PAR1"))
}

// levels returns where lists begin, and which values are there: runs of one number each.
func (c *column) levels() []byte {
	var rep, def []byte
	for _, n := range c.lists {
		rep = append(rep, 2, 0)
		if n > 1 {
			rep = append(append(rep, byte((n-1)<<1)), 1)
		}
		def = append(def, byte(n<<1), 1)
	}
	for _, there := range c.present {
		def = append(def, 2, 0)
		if there {
			def[len(def)-1] = 1
		}
	}
	var b []byte
	for _, levels := range [][]byte{rep, def} {
		if levels != nil {
			b = append(append(b, little(uint32(len(levels)))...), levels...)
		}
	}
	return b
}

// sparse returns points as scipy's save_npz writes a CSR matrix, without the zeros, with
// some of its arrays replaced by others; nil leaves an array out.
func sparse(t table, others map[string][]byte) []byte {
	indptr, indices, values := t.rows()
	arrays := map[string][]byte{"shape.npy": npy("<i8", "(2,)", little([]int64{int64(len(t)), int64(len(t[0]))}))}
	for name, content := range others {
		arrays[name] = content
	}
	return csrOf(arrays, len(t), indptr, indices, values)
}

// rows returns the parts of a CSR matrix.
func (t table) rows() (indptr, indices []int32, values []float32) {
	indptr = []int32{0}
	for _, row := range t {
		for j, v := range row {
			if v != 0 {
				indices, values = append(indices, int32(j)), append(values, v)
			}
		}
		indptr = append(indptr, int32(len(indices)))
	}
	return indptr, indices, values
}
