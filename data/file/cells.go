package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"cne/data"
	"cne/internal/elementary"
	"cne/internal/hdf5"
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
	Labels       []string // nil without
}

// IsCells reports whether a file is HDF5, and so one of single cells: of AnnData (.h5ad) or
// of 10x's programs (.h5).
func IsCells(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	in, err := OpenInput(context.Background(), path)
	if err != nil {
		return false
	}
	defer in.Close()
	return isHDF5(in.Peek(userBlock+4)) && in.at != nil
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
		want(m.counts, data.ErrUnsupported, "%s: got values that are not whole numbers, want counts; name the layer that has them (data.layer, --layer)", m.path)
		cells = &Cells{Names: c.index(c.obs), Labels: c.labels(&o), Counts: &data.Matrix{N: m.n, D: m.d}}
		cells.Counts.Columns, cells.Other, cells.Kinds = c.genes(m)
		cells.Counts.CSR = m.csr(ctx)
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

// A cellFault is an error on its way to caught.
type cellFault struct{ error }

// got returns a value, or fails with an error.
func got[T any](value T, err error) T {
	if err != nil {
		panic(cellFault{err})
	}
	return value
}

// want fails with an error of a kind unless ok.
func want(ok bool, of error, format string, args ...any) {
	if !ok {
		panic(cellFault{errorf(of, format, args...)})
	}
}

// caught calls do, and returns the error that it fails with, with a kind of package data and
// the remedy.
func caught(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case cellFault:
			err = r.error
		default:
			panic(r)
		}
		switch {
		case errors.Is(err, hdf5.ErrUnsupported):
			err = errorf(data.ErrUnsupported, "%w; write the file again in Python: anndata.read_h5ad(\"OLD.h5ad\").write_h5ad(\"NEW.h5ad\", compression=\"gzip\")", err)
		case errors.Is(err, hdf5.ErrDamaged):
			err = errorf(data.ErrFormat, "%w; fetch or make the file again", err)
		case errors.Is(err, hdf5.ErrNotFound):
			err = errorf(data.ErrFormat, "%w; write the file again with anndata or Cell Ranger", err)
		}
	}()
	do()
	return nil
}

// A cellFile is an HDF5 file of single cells. Its methods fail as got does.
type cellFile struct {
	*hdf5.File
	obs    string // the table of the cells
	tenx   string // the group with the matrix of 10x; "" for AnnData
	genome string // of the genes of 10x that are wanted; "" for all
}

// newCells opens a file and finds out which program has written it.
func newCells(in *Input, o *Options) *cellFile {
	c := &cellFile{File: got(hdf5.Open(in.at, in.size)), obs: "/obs"}
	root := c.members("/")
	has := func(name string) bool { return slices.Contains(root, name) }
	want(!has("mod"), data.ErrUnsupported, "the file is of MuData; save one modality in Python: mudata.read(\"FILE.h5mu\").mod[\"rna\"].write_h5ad(\"rna.h5ad\")")
	want(!has("row_attrs"), data.ErrUnsupported, "the file is of loom; save it in Python: anndata.read_loom(\"FILE.loom\").write_h5ad(\"FILE.h5ad\")")
	if has("obs") {
		return c
	}
	groups := slices.DeleteFunc(root, func(name string) bool { return !c.has("/"+name+"/barcodes") || !c.has("/"+name+"/indptr") })
	want(len(groups) > 0, data.ErrUnsupported, "the file is HDF5 with %s, want one of AnnData (.h5ad) or 10x (.h5); save the array in Python with np.save", firstNames(c.members("/")))
	at := slices.Index(groups, o.Layer)
	want(at >= 0 || len(groups) == 1, data.ErrOption, "data.layer: got %s, want one of the genomes %s", text.Quote(o.Layer), text.Enumerate(groups))
	if at < 0 {
		c.genome = o.Layer
	}
	c.tenx = "/" + groups[max(0, at)]
	c.obs = c.tenx
	return c
}

// members returns the names in a group; nil if there is none.
func (c *cellFile) members(path string) []string {
	if !c.has(path) {
		return nil
	}
	return got(got(c.Object(path)).Names())
}

// has reports whether there is an object at a path, which can be damaged.
func (c *cellFile) has(path string) bool {
	_, err := c.Object(path)
	return !errors.Is(err, hdf5.ErrNotFound)
}

// dataset returns the dataset at a path.
func (c *cellFile) dataset(path string) *hdf5.Dataset { return got(got(c.Object(path)).Dataset()) }

// numbers returns all values of a dataset of numbers, as they are stored, and their type.
func numbers(d *hdf5.Dataset) (raw []byte, t scalarType) {
	t = scalarOf(d)
	n, row := d.Rows()
	raw = make([]byte, n*row)
	got(0, d.ReadRows(raw, 0, n))
	return raw, t
}

// scalarOf returns the type of numbers.
func scalarOf(d *hdf5.Dataset) scalarType {
	got(0, d.Check())
	t := scalarType{'u', d.Type.Size, d.Type.BigEndian}
	switch {
	case d.Type.Class == hdf5.Float:
		t.kind = 'f'
	case d.Type.IsBool():
		t.kind = 'b'
	case d.Type.Signed:
		t.kind = 'i'
	}
	want(t.kind == 'b' || d.Type.Class == hdf5.Float || d.Type.Class == hdf5.Integer, data.ErrFormat, "%s: got values that are not numbers, want numbers", d.Path())
	return t
}

// texts returns the values of a dataset of one dimension as text. NaN is empty.
func texts(d *hdf5.Dataset) []string {
	want(len(d.Shape) == 1, data.ErrShape, "%s: got the shape %v, want one dimension", d.Path(), d.Shape)
	if n := d.Shape[0]; d.Type.Class == hdf5.Text || d.Type.Class == hdf5.Enum && !d.Type.IsBool() {
		return got(d.Strings(0, n))
	}
	raw, t := numbers(d)
	list := make([]string, d.Shape[0])
	for i := range list {
		switch v := t.number(raw, i); {
		case t.kind == 'b':
			list[i] = []string{"False", "True"}[t.integer(raw, i)]
		case t.isWide():
			list[i] = strconv.FormatUint(t.bits64(raw, i), 10)
		case t.kind != 'f':
			list[i] = strconv.FormatInt(t.integer(raw, i), 10)
		case v == v:
			list[i] = strconv.FormatFloat(v, 'g', -1, 8*max(4, t.size))
		}
	}
	return list
}

// attribute returns an attribute that is text, or "".
func attribute(o *hdf5.Object, name string) string {
	d, err := o.Attribute(name)
	if err != nil || d.Type.Class != hdf5.Text || len(d.Shape) > 0 && d.Shape[0] != 1 {
		return ""
	}
	return got(d.Strings(0, 1))[0]
}

// index returns the names of the rows of a table: of cells, or of genes.
func (c *cellFile) index(table string) []string {
	if c.tenx != "" {
		return texts(c.dataset(table + "/barcodes"))
	}
	name := c.indexName(table)
	want(name != "", data.ErrFormat, "%s: got no column with the names of the rows; write the file again with anndata", table)
	return c.column(table, name)
}

// count returns the number of cells.
func (c *cellFile) count() int {
	path := c.obs
	if c.tenx != "" {
		path += "/barcodes"
	} else if got(c.Object(path)).IsGroup() {
		path += "/" + c.indexName(path)
	}
	if o := got(c.Object(path)); !o.IsGroup() {
		n, _ := got(o.Dataset()).Rows()
		return n
	}
	return len(c.index(c.obs)) // a column in several parts
}

// indexName returns which column has the names of the rows; "" for none.
func (c *cellFile) indexName(table string) string {
	if name := attribute(got(c.Object(table)), "_index"); name != "" {
		return name
	}
	for _, name := range c.columns(table) {
		if name == "_index" || name == "index" {
			return name
		}
	}
	return ""
}

// columns returns the columns of a table.
func (c *cellFile) columns(table string) (names []string) {
	if o := got(c.Object(table)); !o.IsGroup() {
		for _, f := range got(o.Dataset()).Type.Fields {
			names = append(names, f.Name)
		}
		return names
	}
	return slices.DeleteFunc(c.members(table), func(name string) bool { return name == "__categories" })
}

// column returns a column of a table as text; missing values are empty.
func (c *cellFile) column(table, name string) []string {
	if o := got(c.Object(table)); !o.IsGroup() { // anndata before 0.7
		return c.categories(got(got(o.Dataset()).Field(name)), "/uns/"+name+"_categories")
	}
	path := table + "/" + name
	o := got(c.Object(path))
	if !o.IsGroup() {
		names := table + "/__categories/" + name
		_, err := o.Attribute("categories")
		want(err != nil || c.has(names), data.ErrUnsupported, "%s: its categories are not in __categories; write the file again with a newer anndata", path)
		return c.categories(got(o.Dataset()), names)
	}
	switch is := attribute(o, "encoding-type"); is {
	case "categorical":
		want(c.has(path+"/categories"), data.ErrFormat, "%s: it has no categories; write the file again with anndata", path)
		return c.categories(c.dataset(path+"/codes"), path+"/categories")
	case "nullable-integer", "nullable-boolean", "nullable-string-array":
		values := texts(c.dataset(path + "/values"))
		mask, t := numbers(c.dataset(path + "/mask"))
		want(len(mask) == len(values)*t.size, data.ErrShape, "%s: got a mask of %d values, want %d", path, len(mask)/t.size, len(values))
		for i := range values {
			if t.number(mask, i) != 0 {
				values[i] = ""
			}
		}
		return values
	default:
		want(false, data.ErrUnsupported, "%s: got a column of the kind %s, want categories, text or numbers; write it in Python as adata.obs[%q].astype(str)", path, text.Quote(is), name)
		return nil
	}
}

// categories returns the text for each code, by a list of the categories at a path, or the
// values themselves if there is no such list.
func (c *cellFile) categories(codes *hdf5.Dataset, path string) []string {
	if !c.has(path) {
		return texts(codes)
	}
	names := texts(c.dataset(path))
	list := make([]string, 0, 64)
	for i, code := range wholeNumbers(codes) {
		want(code >= -1 && code < len(names), data.ErrFormat, "%s: got the code %d in row %d (counted from 0), want −1 to %d", codes.Path(), code, i, len(names)-1)
		if code < 0 {
			list = append(list, "")
		} else {
			list = append(list, names[code])
		}
	}
	return list
}

// otherNames are the columns of var that can have second names of the genes.
var otherNames = []string{"gene_ids", "gene_id", "ensembl_id", "feature_id", "gene_symbols", "gene_symbol", "gene_names", "gene_name", "feature_name"}

// genes returns the names, second names and kinds of the columns of a matrix, nil if there
// are none.
func (c *cellFile) genes(m *cellMatrix) (names, other, kinds []string) {
	first := func(read func(name string) []string, has []string, list ...string) []string {
		for _, name := range list {
			if slices.Contains(has, name) {
				found := read(name)
				want(len(found) == m.d, data.ErrShape, "%s: got %d genes, want %d names as in %s", m.path, m.d, len(found), name)
				return found
			}
		}
		return nil
	}
	switch {
	case c.tenx != "":
		read := func(name string) []string { return texts(c.dataset(c.tenx + name)) }
		var has []string
		for _, group := range []string{"", "/features"} {
			for _, name := range c.members(c.tenx + group) {
				has = append(has, group+"/"+name)
			}
		}
		names, other = first(read, has, "/features/id", "/genes"), first(read, has, "/features/name", "/gene_names")
		kinds = first(read, has, "/features/feature_type")
		if c.genome == "" {
			break
		}
		genomes := first(read, has, "/features/genome")
		want(slices.Contains(genomes, c.genome) && kinds != nil, data.ErrOption, "data.layer: got %s, want a genome of the file, such as %s",
			text.Quote(c.genome), firstNames(slices.Compact(slices.Sorted(slices.Values(genomes)))))
		for i, genome := range genomes {
			if genome != c.genome {
				kinds[i] = "genome " + genome
			}
		}
	case m.table != "":
		read, has := func(name string) []string { return c.column(m.table, name) }, c.columns(m.table)
		names = first(func(string) []string { return c.index(m.table) }, []string{m.table}, m.table)
		other, kinds = first(read, has, otherNames...), first(read, has, "feature_types")
	}
	for i, name := range names {
		names[i] = text.ValidName(name)
	}
	return names, other, kinds
}

// labels reads the label column; nil if none is wanted.
func (c *cellFile) labels(o *Options) []string {
	if o.LabelColumn == "" {
		return nil
	}
	t := newCellTable(c, &Options{})
	return t.column(got(findColumn(o.LabelColumn, len(t.names), t.names)))
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
		want(o.Obsm == "", data.ErrOption, "data.obsm: got %s for a file of 10x, want null", text.Quote(o.Obsm))
		m := c.matrix(c.tenx, "")
		want(m.counts, data.ErrFormat, "%s: got values that are not whole numbers of at least 0, want counts", m.path)
		return m
	}
	raw := [2]string{"/raw/X", "/raw/var"}
	if c.has("/raw.X") { // anndata before 0.7
		raw = [2]string{"/raw.X", "/raw.var"}
	}
	member := func(key, group, name, table string) *cellMatrix {
		want(c.has(group+"/"+name), data.ErrOption, "%s: got %s, want a member of %s, which has %s", key, text.Quote(name), group,
			cmp.Or(text.Few(c.members(group), text.Printable), "none"))
		return c.matrix(group+"/"+name, table)
	}
	switch {
	case o.Obsm != "":
		return member("data.obsm (--obsm)", "/obsm", o.Obsm, "")
	case o.Layer == "X":
		return c.matrix("/X", "/var")
	case o.Layer == "raw" || o.Layer == "raw/X":
		return c.matrix(raw[0], raw[1])
	case o.Layer != "":
		return member("data.layer (--layer)", "/layers", o.Layer, "/var")
	}
	var x *cellMatrix
	why := "it has counts"
	for _, at := range [][2]string{{"/X", "/var"}, raw, {"/layers/counts", "/var"}} {
		if !c.has(at[0]) {
			continue
		}
		m := c.matrix(at[0], at[1])
		if m.counts {
			return c.because(o, m, why)
		}
		if at[0] == "/X" {
			x, why = m, "it has counts, and X does not; data.layer: X takes X"
		}
	}
	want(x != nil, data.ErrFormat, "there is no X in the file, and no counts; set data.layer or data.obsm to a matrix")
	return c.because(o, x, "there are no counts; its values are taken as they are")
}

// because logs why a matrix was chosen.
func (c *cellFile) because(o *Options, m *cellMatrix, why string) *cellMatrix {
	if o.Log != nil {
		o.Log.Info("chose a matrix of the file", "matrix", m.path[1:], "because", why)
	}
	return m
}

// wholeSample is the number of values that say whether a matrix has counts.
const wholeSample = 1 << 20

// matrix describes the matrix at a path.
func (c *cellFile) matrix(path, table string) *cellMatrix {
	m := &cellMatrix{path: path, table: table}
	var shape []int
	if o := got(c.Object(path)); o.IsGroup() {
		shape = c.sparse(o, m)
	} else {
		m.values = got(o.Dataset())
		shape = m.values.Shape
	}
	want(len(shape) == 2 && min(shape[0], shape[1]) > 0 && max(shape[0], shape[1]) <= math.MaxInt32, data.ErrShape,
		"%s: got the shape %v, want cells × genes, at least one of each", path, shape)
	m.n, m.d, m.t = shape[0], shape[1], scalarOf(m.values)
	names := c.count()
	want(names == m.n, data.ErrShape, "%s: got %d rows, want %d as there are names of cells", path, m.n, names)
	n, row := m.values.Rows()
	n = min(n, max(1, wholeSample*m.t.size/max(1, row)))
	raw := make([]byte, n*row)
	got(0, m.values.ReadRows(raw, 0, n))
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
	for name, to := range map[string]**hdf5.Dataset{"/data": &m.values, "/indices": &m.indices, "/indptr": &m.indptr} {
		*to = c.dataset(m.path + name)
		want(len((*to).Shape) == 1, data.ErrShape, "%s%s: got the shape %v, want one dimension", m.path, name, (*to).Shape)
	}
	if c.tenx != "" { // genes × cells
		shape = wholeNumbers(c.dataset(m.path + "/shape"))
		slices.Reverse(shape)
		return shape
	}
	is := cmp.Or(attribute(o, "encoding-type"), attribute(o, "h5sparse_format"))
	m.byGene = strings.HasPrefix(is, "csc")
	want(m.byGene || strings.HasPrefix(is, "csr"), data.ErrUnsupported, "%s: got the kind %s, want a matrix; save it in Python as an array", m.path, text.Quote(is))
	d, err := o.Attribute("shape")
	if err != nil {
		d = got(o.Attribute("h5sparse_shape"))
	}
	return wholeNumbers(d)
}

// wholeNumbers returns the values of a dataset of integers.
func wholeNumbers(d *hdf5.Dataset) []int {
	raw, t := numbers(d)
	want(t.kind != 'f', data.ErrFormat, "%s: got fractions, want whole numbers", d.Path())
	list := make([]int, len(raw)/t.size)
	for i := range list {
		list[i] = int(t.integer(raw, i))
	}
	return list
}

// blocks calls do with the values of rows of a dataset, some whole chunks at a time.
func blocks(ctx context.Context, d *hdf5.Dataset, do func(lo int, raw []byte)) {
	n, row := d.Rows()
	step, chunk := max(1, 8*wholeSample/max(1, row)), d.ChunkRows()
	step = min(max(n, 1), (step+chunk-1)/chunk*chunk)
	raw := make([]byte, step*row)
	for lo := 0; lo < n; lo += step {
		hi := min(n, lo+step)
		got(0, cmp.Or(ctx.Err(), d.ReadRows(raw[:(hi-lo)*row], lo, hi)))
		do(lo, raw[:(hi-lo)*row])
	}
}

// csr reads the matrix, without zeros.
func (m *cellMatrix) csr(ctx context.Context) *data.CSR {
	c := &data.CSR{Start: []int{0}}
	if m.indices == nil {
		row := make([]float32, m.d)
		blocks(ctx, m.values, func(_ int, raw []byte) {
			for ; len(raw) > 0; raw = raw[m.d*m.t.size:] {
				m.t.float32s(row, raw[:m.d*m.t.size])
				for j, v := range row {
					if v != 0 {
						c.Column, c.Value = append(c.Column, int32(j)), append(c.Value, v)
					}
				}
				c.Start = append(c.Start, len(c.Value))
			}
		})
		return c
	}
	rows, columns := m.n, m.d
	if m.byGene {
		rows, columns = columns, rows
	}
	nonzeros, indices := m.values.Shape[0], m.indices.Shape[0]
	t := scalarOf(m.indices)
	c.Start = wholeNumbers(m.indptr)
	want(indices == nonzeros && len(c.Start) == rows+1 && c.Start[0] == 0 && c.Start[rows] == nonzeros && slices.IsSorted(c.Start) && t.kind != 'f', data.ErrFormat,
		"%s: %d values, %d indices and %d entries of indptr for %d rows contradict each other; write the file again", m.path, nonzeros, indices, len(c.Start), rows)
	c.Column, c.Value = make([]int32, nonzeros), make([]float32, nonzeros)
	blocks(ctx, m.values, func(lo int, raw []byte) { m.t.float32s(c.Value[lo:lo+len(raw)/m.t.size], raw) })
	blocks(ctx, m.indices, func(lo int, raw []byte) {
		for i := range len(raw) / t.size {
			j := t.bits64(raw, i)
			if j >= uint64(columns) {
				want(false, data.ErrFormat, "%s: value %d of indices (counted from 0): got %d, want 0 to %d", m.path, lo+i, t.integer(raw, i), columns-1)
			}
			c.Column[lo+i] = int32(j)
		}
	})
	if m.byGene {
		c = transposed(c, columns)
	}
	c.Tidy()
	return c
}

// transposed returns the columns of a sparse matrix as rows.
func transposed(c *data.CSR, columns int) *data.CSR {
	t := &data.CSR{Start: make([]int, columns+1), Column: make([]int32, len(c.Column)), Value: make([]float32, len(c.Value))}
	for _, j := range c.Column {
		t.Start[j+1]++
	}
	for j := range columns {
		t.Start[j+1] += t.Start[j]
	}
	next := slices.Clone(t.Start)
	for i := range len(c.Start) - 1 {
		column, value := c.Row(i)
		for k, j := range column {
			t.Column[next[j]], t.Value[next[j]] = int32(i), value[k]
			next[j]++
		}
	}
	return t
}

// openCells opens values of cells as points, as they are. Options.Layer or Options.Obsm says
// which. Options.Columns are the genes to take, by name.
func openCells(in *Input, o *Options) (r reader, err error) {
	err = caught(func() {
		want(len(o.Only)+len(o.Categories)+len(o.Dates) == 0, data.ErrOption, "columns: got columns, categories or dates for a file of cells, want data.layer or data.obsm")
		c := newCells(in, o)
		m := c.choose(o)
		labels := c.labels(o)
		h := head{in: in, n: m.n, width: m.d, exact: m.t.isFloat32(), counts: m.counts && o.Layer+o.Obsm == "", packed: true, labeled: labels != nil}
		h.columns, _, _ = c.genes(m)
		var place []int // of each wanted gene
		if o.Columns != nil && h.columns != nil {
			var err error
			place, _, err = data.MatchColumns(o.Columns, h.columns)
			got(0, err)
			h.columns, h.width = o.Columns, len(o.Columns)
		}
		if m.indices == nil {
			r = &cellReader{head: h, m: m, place: place, all: labels}
			return
		}
		held := &heldRows{head: h, all: labels, load: func() (rows *data.CSR, err error) {
			err = caught(func() { rows = m.csr(context.Background()) })
			if err == nil && place != nil {
				rows = rows.SelectColumns(place, m.d)
			}
			return rows, err
		}}
		held.nonzeros, held.sparse = m.values.Shape[0], held
		r = held
	})
	return r, err
}

// A cellReader reads the rows of a dense matrix.
type cellReader struct {
	head
	m     *cellMatrix
	place []int
	all   []string // labels
	row   int
	raw   []byte
}

// read implements reader. It reads some whole chunks at a time.
func (r *cellReader) read(dst []float32) (n int, err error) {
	m := r.m
	bytes, chunk := m.d*m.t.size, m.values.ChunkRows()
	step := max(1, wholeSample/m.d)
	step = (step + chunk - 1) / chunk * chunk
	for len(dst)-n >= r.width && r.row < r.n {
		rows := min((len(dst)-n)/r.width, r.n-r.row, step-r.row%chunk)
		raw := slices.Grow(r.raw[:0], rows*bytes)[:rows*bytes]
		if err := caught(func() { got(0, m.values.ReadRows(raw, r.row, r.row+rows)) }); err != nil {
			return n, err
		}
		r.raw = raw
		if r.place != nil {
			raw = make([]byte, 0, rows*r.width*m.t.size)
			for i := range rows {
				for _, j := range r.place {
					raw = append(raw, r.raw[i*bytes+j*m.t.size:][:m.t.size]...)
				}
			}
		}
		r.convertAll(m.t, dst[n:n+rows*r.width], raw, r.row*r.width)
		if r.all != nil {
			r.head.labels = append(r.head.labels, r.all[r.row:r.row+rows]...)
		}
		n += rows * r.width
		r.row += rows
	}
	if r.row == r.n {
		err = io.EOF
	}
	return n, err
}

// skip implements reader.
func (r *cellReader) skip(rows int) (int, error) {
	rows = min(rows, r.n-r.row)
	r.row += rows
	return rows, nil
}

// A cellTable has the columns of a file of cells: their names, the columns of obs, and the
// genes, by their names and their second names.
type cellTable struct {
	*cellFile
	names []string
	own   int         // columns of obs, and one with the names
	m     *cellMatrix // of the genes; nil if they cannot be read
}

// cellColumns begins to read the columns of a file of cells.
func cellColumns(in *Input, o *Options) (t table, err error) {
	err = caught(func() { t = newCellTable(newCells(in, o), &Options{Layer: o.Layer}) })
	return t, err
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
		names, other, _ = c.genes(m)
		t.m = m
	})
	taken := make(map[string]bool)
	for i, name := range slices.Concat(t.names, names, other) {
		if i >= t.own {
			if taken[name] { // the first one has the name
				name = ""
			}
			t.names = append(t.names, name)
		}
		taken[name] = true
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
func (t *cellTable) rolesFor(*Options) ([]role, error) {
	return slices.Repeat([]role{roleDrop}, len(t.names)), nil
}

// inspector implements table.
func (t *cellTable) inspector(int) *inspector { return nil }

// scan implements table.
func (t *cellTable) scan(columns []int, each func(where func() string, fields []string) error) error {
	return caught(func() {
		var lists [][]string
		for _, i := range columns {
			lists = append(lists, t.column(i))
		}
		fields := make([]string, len(columns))
		for row := 0; len(lists) > 0 && row < len(lists[0]); row++ {
			for k, list := range lists {
				fields[k] = list[row]
			}
			got(0, each(func() string { return fmt.Sprintf("row %d", row+1) }, fields))
		}
	})
}

// column returns a column, one text for each cell.
func (t *cellTable) column(i int) (list []string) {
	switch {
	case i >= t.own:
		return GeneValues(t.m.csr(context.Background()), (i-t.own)%t.m.d, t.m.counts)
	case i == 0:
		return t.index(t.obs)
	}
	list = t.cellFile.column(t.obs, t.names[i])
	n := t.count()
	want(len(list) == n, data.ErrShape, "%s/%s: got %d values, want %d as there are names of cells", t.obs, t.names[i], len(list), n)
	return list
}

// GeneValues returns a column of a matrix as text. Counts are scaled to the median library
// size, and become log2(x+1).
func GeneValues(rows *data.CSR, g int, counts bool) []string {
	n := len(rows.Start) - 1
	value, size := make([]float64, n), make([]float64, n)
	for i := range value {
		genes, values := rows.Row(i)
		for k, v := range values {
			size[i] += float64(v)
			if int(genes[k]) == g {
				value[i] = float64(v)
			}
		}
	}
	sorted := slices.Sorted(slices.Values(size))
	median := (sorted[(n-1)/2] + sorted[n/2]) / 2
	list := make([]string, n)
	for i, v := range value {
		if counts && v > 0 {
			v = elementary.Log2(v/size[i]*median + 1)
		}
		list[i] = strconv.FormatFloat(v, 'g', 5, 64)
	}
	return list
}
