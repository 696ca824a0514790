package file

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	gopath "path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/image/colornames"

	"cne/data"
	"cne/internal/elementary"
	"cne/internal/hdf5"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
)

// CellNames is the column of a file of cells that has their names.
const CellNames = "obs_names"

// Cells are the counts of a file of single cells.
type Cells struct {
	Counts *data.Matrix // sparse; Columns are the names of the genes
	Names  []string     // of the cells
	// Other are second names of the genes, such as identifiers; nil without. Kinds are the
	// kinds of features, such as "Gene Expression"; nil if they are not known.
	Other, Kinds []string
}

// userBlock is the size of what .h5mu and MATLAB put in front of HDF5.
const userBlock = 512

func isHDF5(head []byte) bool {
	return strings.HasPrefix(string(head), hdf5.Magic[:4]) || len(head) >= userBlock+4 && string(head[userBlock:userBlock+4]) == hdf5.Magic[:4]
}

// HasCounts reports whether Options say that counts are read from a file of single cells. It
// is false for a file that cannot be read.
func HasCounts(path string, o Options) (counted bool) {
	o.Log = nil
	_ = withCells(context.Background(), path, &o, func(c *cellFile) { counted = c.choose(&o).counts })
	return counted
}

// ReadCells reads the counts of a file of single cells. Options.Layer says which; without
// it, they are X, or raw/X if X does not have whole numbers, or the layer counts. The first
// million values say whether numbers are whole.
func ReadCells(ctx context.Context, path string, o Options) (cells *Cells, err error) {
	err = withCells(ctx, path, &o, func(c *cellFile) {
		m := c.choose(&o)
		kind.Need(m.counts, data.ErrUnsupported, "%s: got values that are not whole numbers, want counts; name the layer that has them (data.layer, --layer)", m.path)
		cells = &Cells{Names: c.names(c.obs, "barcodes"), Counts: &data.Matrix{N: m.n, D: m.d}}
		sized(m.path, "cells", m.n, cells.Names)
		cells.Counts.Columns, cells.Other, cells.Kinds = c.genes(m)
		cells.Counts.CSR = c.csr(m)
	})
	return cells, err
}

// withCells calls do with a file of cells.
func withCells(ctx context.Context, path string, o *Options, do func(c *cellFile)) error {
	in, err := OpenInput(ctx, path)
	if err != nil {
		return err
	}
	defer in.Close()
	return named(path, caught(func() { do(newCells(in, o)) }))
}

// sized fails unless there are n of some values of a matrix.
func sized(path, what string, n int, values []string) {
	kind.Need(len(values) == n, data.ErrShape, "%s: got %d %s, want %d as there are names", path, n, what, len(values))
}

// A cellFile is an HDF5 file of single cells. Its methods fail as kind.Need does.
type cellFile struct {
	*hdf5.File
	in     *Input
	obs    string // the table of the cells
	tenx   string // the group with the matrix of 10x; "" for AnnData
	genome string // of the genes of 10x that are wanted; "" for all
}

// newCells opens a file and finds out which program has written it.
func newCells(in *Input, o *Options) *cellFile {
	in.packed = true
	c := &cellFile{File: kind.Got(hdf5.Open(in.at, in.size)), in: in, obs: "/obs"}
	root := c.columns("/")
	has := func(name string) bool { return slices.Contains(root, name) }
	kind.Need(!has("mod"), data.ErrUnsupported, "the file is of MuData; save one modality in Python: mudata.read(\"FILE.h5mu\").mod[\"rna\"].write_h5ad(\"rna.h5ad\")")
	kind.Need(!has("row_attrs"), data.ErrUnsupported, "the file is of loom; save it in Python: anndata.read_loom(\"FILE.loom\").write_h5ad(\"FILE.h5ad\")")
	if has("obs") {
		return c
	}
	groups := slices.DeleteFunc(slices.Clone(root), func(name string) bool { return !c.has("/"+name+"/barcodes") || !c.has("/"+name+"/indptr") })
	kind.Need(len(groups) > 0, data.ErrUnsupported, "the file is HDF5 with %s, want one of AnnData (.h5ad) or 10x (.h5); save the array in Python with np.save", firstNames(root))
	genome := slices.Index(groups, o.Layer)
	kind.Need(genome >= 0 || len(groups) == 1, data.ErrOption, "data.layer (--layer): got %s, want one of the genomes %s", text.Quote(o.Layer), text.Enumerate(groups))
	if genome < 0 {
		c.genome = o.Layer
	}
	c.tenx = "/" + groups[max(0, genome)]
	c.obs = c.tenx
	return c
}

// has reports whether there is an object at a path, which can be damaged.
func (c *cellFile) has(path string) bool {
	_, err := c.Object(path)
	return !errors.Is(err, hdf5.ErrNotFound)
}

// dataset returns the dataset at a path.
func (c *cellFile) dataset(path string) *hdf5.Dataset {
	return kind.Got(kind.Got(c.Object(path)).Dataset())
}

// numbers returns all values of a dataset of numbers, as they are stored, and their type.
func numbers(d *hdf5.Dataset) (raw []byte, t scalarType) {
	t = scalarOf(d)
	n, row := d.Rows()
	raw = make([]byte, n*row)
	kind.Check(d.ReadRows(raw, 0, n))
	return raw, t
}

// scalarOf returns the type of numbers.
func scalarOf(d *hdf5.Dataset) scalarType {
	kind.Check(d.Check())
	t := scalarType{'u', d.Type.Size, d.Type.BigEndian}
	switch {
	case d.Type.Class == hdf5.Float:
		t.kind = 'f'
	case d.Type.IsBool():
		t.kind = 'b'
	case d.Type.Signed:
		t.kind = 'i'
	}
	kind.Need(t.kind == 'b' || d.Type.Class == hdf5.Float || d.Type.Class == hdf5.Integer, data.ErrFormat, "%s: got values that are not numbers, want numbers", d.Path)
	return t
}

// texts returns the values of a dataset of one dimension as text. NaN is empty.
func texts(d *hdf5.Dataset) (list []string) {
	kind.Need(len(d.Shape) == 1, data.ErrShape, "%s: got the shape %v, want one dimension", d.Path, d.Shape)
	if n := d.Shape[0]; d.Type.Class == hdf5.Text || d.Type.Class == hdf5.Enum && !d.Type.IsBool() {
		return kind.Got(d.Strings(0, n))
	}
	raw, t := numbers(d)
	for i := range d.Shape[0] {
		label, err := t.label(raw, i)
		kind.Need(err == nil, data.ErrNotFinite, "%s: value %d: %w", d.Path, i+1, err)
		list = append(list, label)
	}
	return list
}

// attribute returns an attribute that is text, or "".
func attribute(o *hdf5.Object, name string) string {
	d, err := o.Attribute(name)
	if err != nil || d.Type.Class != hdf5.Text || len(d.Shape) > 0 && d.Shape[0] != 1 {
		return ""
	}
	return kind.Got(d.Strings(0, 1))[0]
}

// names returns the names of the rows of a table: of cells, or of genes. own are columns of
// 10x that may have them.
func (c *cellFile) names(table string, own ...string) []string {
	name := c.indexName(table, own...)
	kind.Need(name != "", data.ErrFormat, "%s: got no column with the names of the rows; write the file again with anndata", table)
	return c.column(table, name)
}

// indexName returns which column has the names of the rows; "" for none.
func (c *cellFile) indexName(table string, own ...string) string {
	if name := attribute(kind.Got(c.Object(table)), "_index"); name != "" {
		return name
	}
	columns := c.columns(table)
	for _, name := range append(own, "_index", "index") {
		if slices.Contains(columns, name) {
			return name
		}
	}
	return ""
}

// columns returns the columns of a table, or the members of a group; nil if there is none.
func (c *cellFile) columns(table string) (names []string) {
	if !c.has(table) {
		return nil
	}
	o := kind.Got(c.Object(table))
	if o.IsGroup() {
		return slices.DeleteFunc(kind.Got(o.Names()), func(name string) bool { return name == "__categories" })
	}
	return selection.Map(kind.Got(o.Dataset()).Type.Fields, func(f hdf5.Field) string { return f.Name })
}

// column returns a column of a table as text; missing values are empty.
func (c *cellFile) column(table, name string) []string {
	if o := kind.Got(c.Object(table)); !o.IsGroup() { // anndata before 0.7
		return c.categories(kind.Got(kind.Got(o.Dataset()).Field(name)), "/uns/"+name+"_categories")
	}
	path := table + "/" + name
	o := kind.Got(c.Object(path))
	if !o.IsGroup() {
		names := table + "/__categories/" + name
		_, err := o.Attribute("categories")
		kind.Need(err != nil || c.has(names), data.ErrUnsupported, "%s: its categories are not in __categories; write the file again with a newer anndata", path)
		return c.categories(kind.Got(o.Dataset()), names)
	}
	switch is := attribute(o, "encoding-type"); is {
	case "categorical":
		kind.Need(c.has(path+"/categories"), data.ErrFormat, "%s: it has no categories; write the file again with anndata", path)
		return c.categories(c.dataset(path+"/codes"), path+"/categories")
	case "nullable-integer", "nullable-boolean", "nullable-string-array":
		values := texts(c.dataset(path + "/values"))
		mask, t := numbers(c.dataset(path + "/mask"))
		sized(path, "values of the mask", len(mask)/t.size, values)
		for i := range values {
			if t.number(mask, i) != 0 {
				values[i] = ""
			}
		}
		return values
	default:
		kind.Fail(data.ErrUnsupported, "%s: got a column of the kind %s, want categories, text or numbers; write it in Python as adata.obs[%q].astype(str)", path, text.Quote(is), name)
		return nil
	}
}

// values returns those at a path, which are no categories.
func (c *cellFile) values(path string) []string {
	o := kind.Got(c.Object(path))
	if o.IsGroup() && attribute(o, "encoding-type") != "categorical" {
		return c.column(gopath.Split(path))
	}
	return texts(kind.Got(o.Dataset()))
}

// categories returns the text for each code, by a list of the categories at a path, or the
// values themselves if there is no such list.
func (c *cellFile) categories(codes *hdf5.Dataset, path string) (list []string) {
	if !c.has(path) {
		return texts(codes)
	}
	names := append(c.values(path), "") // the last one is for −1
	for i, code := range wholeNumbers(codes) {
		kind.Need(code >= -1 && code < len(names)-1, data.ErrFormat, "%s: got the code %d in row %d (counted from 0), want −1 to %d", codes.Path, code, i, len(names)-2)
		list = append(list, names[(code+len(names))%len(names)])
	}
	return list
}

// Categories returns the categories of a column of a file of cells in their order, and
// their colours, 0xRRGGBB or −1 for one that is not known; nil if there are none.
func Categories(path, column string) (names []string, colors []int32) {
	if !IsCells(path) {
		return nil, nil
	}
	_ = withCells(context.Background(), path, &Options{}, func(c *cellFile) {
		for _, path := range []string{c.obs + "/" + column + "/categories", c.obs + "/__categories/" + column, "/uns/" + column + "_categories"} {
			if names == nil && c.has(path) {
				names = c.values(path)
			}
		}
		if path := "/uns/" + column + "_colors"; names != nil && c.has(path) {
			for _, s := range texts(c.dataset(path)) {
				color := int32(-1)
				if v, err := strconv.ParseUint(strings.TrimPrefix(s, "#"), 16, 32); err == nil && len(s) >= 7 {
					color = int32(v >> (4 * (len(s) - 7))) // without the opacity
				} else if v, ok := colornames.Map[strings.ToLower(s)]; ok {
					color = int32(v.R)<<16 | int32(v.G)<<8 | int32(v.B)
				}
				colors = append(colors, color)
			}
		}
	})
	return names, colors
}

// otherNames are the columns that can have second names of the genes. kindNames are those
// with their kinds.
var (
	otherNames = []string{"gene_ids", "gene_id", "ensembl_id", "feature_id", "gene_symbols", "gene_symbol", "gene_names", "gene_name", "feature_name", "name"}
	kindNames  = []string{"feature_types", "feature_type"}
)

// genes returns the names, second names and kinds of the columns of a matrix, nil if there
// are none.
func (c *cellFile) genes(m *cellMatrix) (names, other, kinds []string) {
	if m.table == "" {
		return nil, nil, nil
	}
	columns := c.columns(m.table)
	// first returns the first of some columns that is there and does not repeat the names.
	first := func(list []string) []string {
		for _, name := range list {
			if slices.Contains(columns, name) {
				values := c.column(m.table, name)
				sized(m.path, "genes", m.d, values)
				if !slices.Equal(values, names) {
					return values
				}
			}
		}
		return nil
	}
	names = c.names(m.table, "id", "genes")
	sized(m.path, "genes", m.d, names)
	names = selection.Map(names, text.ValidName)
	other, kinds = first(otherNames), first(kindNames)
	if c.genome == "" {
		return names, other, kinds
	}
	genomes := first([]string{"genome"})
	kind.Need(slices.Contains(genomes, c.genome) && kinds != nil, data.ErrOption, "data.layer: got %s, want a genome of the file, such as %s",
		text.Quote(c.genome), firstNames(slices.Compact(slices.Sorted(slices.Values(genomes)))))
	for i, genome := range genomes {
		if genome != c.genome {
			kinds[i] = "genome " + genome
		}
	}
	return names, other, kinds
}

// A cellMatrix is a matrix of cells × genes, or of other values of cells.
type cellMatrix struct {
	path   string
	table  string // of the columns; "" without
	n, d   int
	values *hdf5.Dataset // all, or those that are not 0
	t      scalarType
	// indices and indptr are nil for a dense matrix. byGene reports whether indptr says where
	// each column begins.
	indices, indptr *hdf5.Dataset
	byGene          bool
	counts          bool // it has whole numbers of at least 0
}

// choose returns the matrix that options say, or the first with counts.
func (c *cellFile) choose(o *Options) *cellMatrix {
	if c.tenx != "" {
		kind.Need(o.Obsm == "", data.ErrOption, "data.obsm: got %s for a file of 10x, want null", text.Quote(o.Obsm))
		table := c.tenx
		if c.has(table + "/features") {
			table += "/features"
		}
		m := c.matrix(c.tenx, table)
		kind.Need(m.counts, data.ErrFormat, "%s: got values that are not whole numbers of at least 0, want counts", m.path)
		return m
	}
	raw := [2]string{"/raw/X", "/raw/var"}
	if c.has("/raw.X") { // anndata before 0.7
		raw = [2]string{"/raw.X", "/raw.var"}
	}
	if from, ok := map[string][2]string{"X": {"/X", "/var"}, "raw": raw, "raw/X": raw}[o.Layer]; ok && c.has(from[0]) {
		return c.matrix(from[0], from[1])
	}
	key, group, name, table := "data.layer (--layer)", "/layers", o.Layer, "/var"
	if o.Obsm != "" {
		key, group, name, table = "data.obsm (--obsm)", "/obsm", o.Obsm, ""
	}
	if name != "" {
		kind.Need(c.has(group+"/"+name), data.ErrOption, "%s: got %s, want a member of %s, which has %s", key, text.Quote(name), group, c.members(group))
		return c.matrix(group+"/"+name, table)
	}
	var m *cellMatrix
	why := "there are no counts; its values are taken as they are"
	for _, from := range [][2]string{{"/X", "/var"}, raw, {"/layers/counts", "/var"}} {
		if !c.has(from[0]) || attribute(kind.Got(c.Object(from[0])), "encoding-type") == "null" {
			continue
		}
		if found := c.matrix(from[0], from[1]); found.counts {
			if why = "it has counts"; m != nil {
				why += ", and X does not; data.layer: X takes X"
			}
			m = found
			break
		} else if from[0] == "/X" {
			m = found
		}
	}
	kind.Need(m != nil, data.ErrFormat, "there is no X in the file, and no counts; set data.obsm (--obsm) to a member of /obsm, which has %s, or data.layer (--layer) to one of /layers, which has %s",
		c.members("/obsm"), c.members("/layers"))
	if o.Log != nil {
		o.Log.Info("chose a matrix of the file", "matrix", m.path[1:], "because", why)
	}
	return m
}

// members names the members of a group.
func (c *cellFile) members(group string) string {
	return cmp.Or(text.Few(c.columns(group), text.Printable), "none")
}

// wholeSample is the number of values that say whether a matrix has counts.
const wholeSample = 1 << 20

// matrix describes the matrix at a path.
func (c *cellFile) matrix(path, table string) *cellMatrix {
	m := &cellMatrix{path: path, table: table}
	var shape []int
	if o := kind.Got(c.Object(path)); o.IsGroup() {
		shape = c.sparse(o, m)
	} else {
		m.values = kind.Got(o.Dataset())
		shape = m.values.Shape
	}
	kind.Need(len(shape) == 2 && min(shape[0], shape[1]) > 0 && max(shape[0], shape[1]) <= math.MaxInt32, data.ErrShape,
		"%s: got the shape %v, want cells × genes, at least one of each", path, shape)
	m.n, m.d, m.t = shape[0], shape[1], scalarOf(m.values)
	n, row := m.values.Rows()
	n = min(n, max(1, wholeSample*m.t.size/max(1, row)))
	raw := make([]byte, n*row)
	kind.Check(m.values.ReadRows(raw, 0, n))
	for i := range len(raw) / m.t.size {
		v := m.t.number(raw, i)
		if m.counts = m.counts || v > 0; v < 0 || v != math.Trunc(v) {
			m.counts = false
			break
		}
	}
	return m
}

// sparse describes a sparse matrix, and returns its shape.
func (c *cellFile) sparse(o *hdf5.Object, m *cellMatrix) (shape []int) {
	is := cmp.Or(attribute(o, "encoding-type"), attribute(o, "h5sparse_format"))
	m.byGene = strings.HasPrefix(is, "csc")
	kind.Need(c.tenx != "" || m.byGene || strings.HasPrefix(is, "csr"), data.ErrUnsupported, "%s: got the kind %s, want a matrix; save it in Python as an array", m.path, text.Quote(is))
	for name, to := range map[string]**hdf5.Dataset{"/data": &m.values, "/indices": &m.indices, "/indptr": &m.indptr} {
		*to = c.dataset(m.path + name)
		kind.Need(len((*to).Shape) == 1, data.ErrShape, "%s%s: got the shape %v, want one dimension", m.path, name, (*to).Shape)
	}
	if c.tenx != "" { // genes × cells
		shape = wholeNumbers(c.dataset(m.path + "/shape"))
		slices.Reverse(shape)
		return shape
	}
	d, err := o.Attribute("shape")
	if err != nil {
		d = kind.Got(o.Attribute("h5sparse_shape"))
	}
	return wholeNumbers(d)
}

// wholeNumbers returns the values of a dataset of integers.
func wholeNumbers(d *hdf5.Dataset) []int {
	raw, t := numbers(d)
	kind.Need(t.kind != 'f', data.ErrFormat, "%s: got fractions, want whole numbers", d.Path)
	list := make([]int, len(raw)/t.size)
	for i := range list {
		list[i] = int(t.integer(raw, i))
	}
	return list
}

// reader returns a reader of the values of a dataset, with only the given columns
// if columns is not nil.
func (c *cellFile) reader(d *hdf5.Dataset, columns []int) *arrayReader {
	n, row := d.Rows()
	t := scalarOf(d)
	width := selection.If(columns == nil, row/t.size, len(columns))
	return &arrayReader{head: head{in: c.in, n: n, width: width, exact: t.isFloat32(), member: d.Path}, array: array{t, []int{n, width}, false},
		total: n * width, values: &cellBytes{d: d, columns: columns, size: t.size, bytes: row, wanted: width * t.size}}
}

// csr reads the matrix, without zeros.
func (c *cellFile) csr(m *cellMatrix) *data.CSR {
	all := &data.CSR{Start: []int{0}}
	if m.indices == nil {
		row, r := make([]float32, m.d), c.reader(m.values, nil)
		for range m.n {
			if _, err := r.read(row); err != io.EOF {
				kind.Check(err)
			}
			all.AppendRow(row)
		}
		return all
	}
	rows, width, t := m.n, m.d, scalarOf(m.indices)
	if m.byGene {
		rows, width = width, rows
	}
	total, indices := m.values.Shape[0], m.indices.Path
	all.Start = wholeNumbers(m.indptr)
	kind.Need(len(all.Start) == rows+1, data.ErrFormat, "%s: got %d numbers, want %d", m.indptr.Path, len(all.Start), rows+1)
	kind.Need(all.Start[0] == 0 && all.Start[rows] == total && slices.IsSorted(all.Start), data.ErrFormat,
		"%s: got numbers that do not ascend from 0 to %d, the number of values", m.indptr.Path, total)
	kind.Need(m.indices.Shape[0] == total, data.ErrFormat, "%s: got %d numbers, want %d, one for each value", indices, m.indices.Shape[0], total)
	kind.Need(t.kind != 'f', data.ErrFormat, "%s: got fractions, want whole numbers", indices)
	all.Column, all.Value = make([]int32, total), make([]float32, total)
	kind.Check(m.indices.Each(func(first int, raw []byte) {
		plain := t.size == 4 && !t.big // faster
		for i := range len(raw) / t.size {
			j := int64(0)
			if plain {
				j = int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
			} else {
				j = t.integer(raw, i)
			}
			if j < 0 || j >= int64(width) {
				kind.Fail(data.ErrFormat, "%s: entry %d (counted from 0): got %d, want 0 to %d", indices, first+i, j, width-1)
			}
			all.Column[first+i] = int32(j)
		}
	}))
	kind.Check(m.values.Each(func(first int, raw []byte) { m.t.float32s(all.Value[first:][:len(raw)/m.t.size], raw) }))
	if m.byGene {
		all = all.Transpose(m.n)
	}
	all.Tidy()
	return all
}

// openCells opens values of cells as points, as they are. Options.Layer or Options.Obsm says
// which. Options.Columns are the genes to take, by name.
func openCells(in *Input, o *Options) reader {
	c := newCells(in, o)
	m := c.choose(o)
	h := head{in: in, n: m.n, width: m.d, exact: m.t.isFloat32(), counts: m.counts && o.Layer+o.Obsm == ""}
	if h.labeled = o.LabelColumn != ""; h.labeled {
		t := newCellTable(c, &Options{})
		labels := t.column(findColumn(o.LabelColumn, len(t.names), t.names))
		sized(m.path, "cells", m.n, labels)
		h.labels = selection.Map(labels, strings.TrimSpace)
	}
	h.columns, _, _ = c.genes(m)
	var genes []int // the wanted columns; nil for all
	if o.Columns != nil && h.columns != nil {
		var err error
		genes, _, err = data.MatchColumns(o.Columns, h.columns)
		kind.Check(err)
		h.columns, h.width = o.Columns, len(o.Columns)
	}
	if m.indices == nil {
		a := c.reader(m.values, genes)
		a.head = h
		return a
	}
	held := &heldRows{head: h, load: func() *data.CSR {
		rows := c.csr(m)
		if genes != nil {
			rows = rows.SelectColumns(genes, m.d)
		}
		return rows
	}}
	held.nonzeros, held.sparse = m.values.Shape[0], held
	return held
}

// cellBytes are the values of a dataset, with only the given columns if columns is
// not nil. It reads some whole chunks at a time.
type cellBytes struct {
	d         *hdf5.Dataset
	columns   []int
	size      int // bytes of a value
	bytes     int // of a row, and wanted ones of them
	wanted    int
	row       int
	raw, left []byte
}

// full implements valueBytes.
func (b *cellBytes) full(p []byte) (n int, err error) {
	for n < len(p) {
		if len(b.left) == 0 {
			all, chunk := b.d.Shape[0], b.d.ChunkRows()
			rows := min(all-b.row, (max(1, 4*wholeSample/b.bytes)+chunk-1)/chunk*chunk-b.row%chunk)
			b.raw = slices.Grow(b.raw[:0], rows*b.bytes)[:rows*b.bytes]
			if err := caught(func() { kind.Check(b.d.ReadRows(b.raw, b.row, b.row+rows)) }); err != nil {
				return n, err
			}
			b.row += rows
			if b.left = b.raw; b.columns != nil {
				b.left = nil
				for i := 0; i < len(b.raw); i += b.bytes {
					for _, j := range b.columns {
						b.left = append(b.left, b.raw[i+j*b.size:][:b.size]...)
					}
				}
			}
		}
		k := copy(p[n:], b.left)
		n, b.left = n+k, b.left[k:]
	}
	return n, nil
}

// pass implements valueBytes.
func (b *cellBytes) pass(n int64) (int64, error) {
	b.row += int(n) / b.wanted
	return n, nil
}

// atEnd implements valueBytes.
func (b *cellBytes) atEnd() error { return nil }

// A cellTable has the columns of a file of cells: their names, the columns of obs, and the
// genes, by their names and their second names.
type cellTable struct {
	*cellFile
	names []string
	own   int         // columns of obs, and one with the names
	m     *cellMatrix // of the genes; nil if they cannot be read
	kinds []string    // of the genes; nil if they are not known
	rows  *data.CSR   // of m, once a gene has been read
}

// cellColumns begins to read the columns of a file of cells.
func cellColumns(in *Input, o *Options) table {
	return newCellTable(newCells(in, o), &Options{Layer: o.Layer})
}

// newCellTable finds the columns.
func newCellTable(c *cellFile, o *Options) *cellTable {
	t := &cellTable{cellFile: c, names: []string{CellNames}}
	if c.tenx == "" {
		index := c.indexName(c.obs)
		t.names = append(t.names, slices.DeleteFunc(c.columns(c.obs), func(name string) bool { return name == CellNames || name == index })...)
	}
	t.own = len(t.names)
	var names, other []string
	_ = caught(func() { // cells may have no genes
		m := c.choose(o)
		names, other, t.kinds = c.genes(m)
		t.m = m
	})
	taken := make(map[string]bool)
	for _, list := range [][]string{names, other} {
		for _, name := range t.names { // columns of obs, and names of genes before second names
			taken[name] = true
		}
		for _, name := range list {
			if taken[name] {
				name = ""
			}
			t.names = append(t.names, name)
		}
	}
	return t
}

// fields implements table.
func (t *cellTable) fields() ([]string, int) { return t.names, len(t.names) }

// check implements table.
func (t *cellTable) check(i int) error {
	return caught(func() {
		if i < t.own {
			t.column(i)
		}
	})
}

// rolesFor implements table. No column is a part of points.
func (t *cellTable) rolesFor(o *Options) []role {
	kind.Check(o.CheckColumns(true))
	return slices.Repeat([]role{roleDrop}, len(t.names))
}

// inspector implements table.
func (t *cellTable) inspector(int) *inspector { return nil }

// scan implements table.
func (t *cellTable) scan(columns []int, each func(where func() string, fields []string) error) {
	n, lists := 0, make([][]string, len(columns))
	for k, i := range columns {
		lists[k] = t.column(i)
		n = len(lists[0])
		sized(t.obs, "rows", n, lists[k])
	}
	eachRow(n, lists, each)
}

// column returns a column, one text for each cell.
func (t *cellTable) column(i int) (list []string) {
	switch {
	case i >= t.own:
		if t.rows == nil {
			t.rows = t.csr(t.m)
		}
		return GeneValues(t.rows, (i-t.own)%t.m.d, t.m.counts, t.kinds)
	case i == 0:
		list = t.cellFile.names(t.obs, "barcodes")
	default:
		list = t.cellFile.column(t.obs, t.names[i])
	}
	for _, s := range list {
		kind.Need(utf8.ValidString(s), data.ErrFormat, "%s/%s: got %.40q, want text in UTF-8; decode it in Python, as x.str.decode(\"latin-1\")", t.obs, t.names[i], s)
	}
	return list
}

// GeneValues returns a column of a matrix as text. Counts are scaled to the median library
// size, of genes of the same kind if kinds are not nil, and become log2(x+1).
func GeneValues(rows *data.CSR, g int, counts bool, kinds []string) []string {
	n := len(rows.Start) - 1
	value, size := make([]float64, n), make([]float64, n)
	for i := range value {
		genes, values := rows.Row(i)
		for k, v := range values {
			if kinds == nil || kinds[genes[k]] == kinds[g] {
				size[i] += float64(v)
			}
			if int(genes[k]) == g {
				value[i] = float64(v)
			}
		}
	}
	median := selection.Median(slices.Clone(size))
	list := make([]string, n)
	for i, v := range value {
		if counts && v > 0 {
			v = elementary.Log2(float64(v/size[i]*median) + 1)
		}
		list[i] = strconv.FormatFloat(v, 'g', 5, 64)
	}
	return list
}
