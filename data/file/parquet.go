package file

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/parquet"
	"cne/internal/selection"
	"cne/internal/text"
)

// pandasIndex is the prefix of the columns that hold pandas' index.
const pandasIndex = "__index_level_"

const (
	// parquetColumns is the number of columns read together, the number of values in a cache
	// line. parquetRows is the number of rows read at a time. The columns are padded by one
	// cache line. Without the padding they would compete for the same few sets of the cache.
	parquetColumns = 16
	parquetRows    = 1 << 10
	parquetStride  = parquetRows + parquetColumns
)

// A parquetReader reads the points of a Parquet file.
type parquetReader struct {
	head
	layout
	file   *parquet.File
	values []parquetColumn // by position; a single column with all values if they are lists
	list   bool
	label  *parquetColumn
	coded  []parquetColumn // of text that becomes numbers
	na     marks           // of a missing value
	done   int             // rows read
}

// A parquetColumn is a column that is being read.
type parquetColumn struct {
	*parquet.Cursor
	scalarType
	exact  bool // float32 holds every value
	name   string
	coding *coded
}

// newParquet reads the descriptions of a file's columns.
func newParquet(in *Input, o *Options) *parquetReader {
	in.packed = true
	f := kind.Got(parquet.Open(in.at, in.size))
	r := &parquetReader{head: head{in: in, n: f.Rows}, file: f, na: newMarks(o.NA)}
	r.names = selection.Map(f.Columns, func(c parquet.Column) string { return text.ValidName(c.Name) })
	return r
}

// openParquet opens points in a Parquet file: either columns of numbers, or one column of
// lists of numbers. Each list is then a point, all lists must have the same length, and
// other columns are skipped. Options says which columns are labels (numbers or text), and
// which to take or drop. Columns that pandas adds for its index are skipped unless
// Options names them.
func openParquet(in *Input, o *Options) reader {
	r := newParquet(in, o)
	r.choose(*o)
	kind.Need(r.n > 0, data.ErrEmpty, "rows: got none, want at least one")
	r.openColumns()
	r.labeled = r.label != nil
	r.isByte = !slices.ContainsFunc(r.with(roleData), func(i int) bool { return !r.file.Columns[i].Byte })
	return r
}

// with returns the columns with the given role.
func (r *parquetReader) with(wanted role) (columns []int) {
	return selection.Where(len(r.roles), func(i int) bool { return r.roles[i] == wanted })
}

// choose sets the roles of the columns.
func (r *parquetReader) choose(opt Options) {
	kind.Need(len(r.names) > 0, data.ErrEmpty, "columns: got none, want at least one")
	r.roles = r.rolesFor(&opt)
	isList := func(i int) bool { c := &r.file.Columns[i]; return c.List && c.Kind != 0 && c.Kind != parquet.Text }
	lists := selection.Pick(r.names, slices.DeleteFunc(r.with(roleData), func(i int) bool { return !isList(i) }))
	oneList(lists, len(opt.Only))
	if r.list = len(lists) == 1; r.list {
		for _, i := range r.with(roleData) {
			if !isList(i) {
				r.roles[i], r.left = roleDrop, append(r.left, r.names[i])
			}
		}
		opt.Columns = nil // its values have no names
	}
	kind.Check(r.settle(r, &r.head, &opt, func(i int, add func(field string, where func() string)) {
		if r.check(i) == nil {
			c := r.column(i)
			for k, field := range r.readTexts(&c, nil, min(r.file.Rows, parquetRows)) {
				add(field, func() string { return fmt.Sprintf("row %d", k+1) })
			}
		}
	}))
	for _, i := range r.with(roleLabel) {
		if err := r.check(i); err != nil {
			kind.Check(fmt.Errorf("label %w", err))
		}
	}
}

// rolesFor implements table. It drops the columns that pandas adds for its index.
func (r *parquetReader) rolesFor(o *Options) []role {
	roles := findRoles(len(r.names), r.names, o)
	wanted := indices(slices.Concat(o.Only, o.Categories, o.Dates), len(r.names), r.names)
	for i, name := range r.names {
		if roles[i] == roleData && strings.HasPrefix(name, pandasIndex) && !slices.Contains(o.Columns, name) && !slices.Contains(wanted, i) {
			roles[i] = roleDrop
		}
	}
	return roles
}

// openColumns opens cursors for the columns.
func (r *parquetReader) openColumns() {
	r.values = make([]parquetColumn, selection.If(r.list, 1, r.width))
	r.coded = nil
	for _, i := range r.with(roleData) {
		c := r.column(i)
		if c.coding = &r.codings[i]; c.coding.Kind == "" {
			r.values[r.position[i]] = c
		} else {
			r.coded = append(r.coded, c)
		}
	}
	for _, i := range r.with(roleLabel) {
		c := r.column(i)
		r.label = &c
	}
	if r.list {
		r.columns = nil
		width, err := r.values[0].Width()
		kind.Need(err != io.EOF, data.ErrEmpty, "column %s: got lists without values, want numbers", text.Quote(r.values[0].name))
		r.width = kind.Got(width, err)
	}
	kind.Need(r.file.Rows <= r.file.Most()/r.width, data.ErrFormat,
		"rows: got %d of %d values in %d bytes, want fewer; the file is damaged", r.file.Rows, r.width, r.in.size)
}

func (r *parquetReader) column(i int) parquetColumn {
	c := &r.file.Columns[i]
	t := scalarType{kind: byte(c.Kind), size: c.Size}
	return parquetColumn{Cursor: r.file.Cursor(i), scalarType: t, exact: c.Byte || t.isFloat32(),
		name: r.names[i]}
}

// read implements reader.
func (r *parquetReader) read(dst []float32) (int, error) {
	rows := min(len(dst)/r.width, r.file.Rows-r.done)
	dst = dst[:rows*r.width]
	if err := caught(func() { r.readRows(dst, rows) }); err != nil {
		return 0, err
	}
	if r.done == r.file.Rows {
		return len(dst), io.EOF
	}
	return len(dst), nil
}

// readRows reads the next rows, and checks that the columns end with the last one.
func (r *parquetReader) readRows(dst []float32, rows int) {
	if r.label != nil {
		r.labels = r.readTexts(r.label, r.labels, rows)
	}
	if r.list {
		r.readLists(dst, rows)
	} else {
		picked, sampled := r.picked(rows)
		r.readColumns(dst, rows, picked, sampled)
		r.readCoded(dst, rows, picked, sampled)
	}
	if r.done += rows; r.done == r.file.Rows {
		for _, cursor := range r.cursors() {
			kind.Check(cursor.End())
		}
	}
}

// picked returns the indices of the next rows that are in the sample, relative to the
// first of the next rows, and the sample's rows to fill.
func (r *parquetReader) picked(rows int) (picked []int, values [][]float64) {
	if r.sample == nil {
		return nil, nil
	}
	first := r.before + r.done
	for i := range rows {
		r.sample.Row(first + i)
	}
	for k, row := range r.sample.Rows() {
		if row >= first {
			picked, values = append(picked, row-first), append(values, r.sample.At(k))
		}
	}
	return picked, values
}

// cursors returns the cursors of all columns with data.
func (r *parquetReader) cursors() (cursors []*parquet.Cursor) {
	for _, c := range slices.Concat(r.values, r.coded) {
		if c.Cursor != nil {
			cursors = append(cursors, c.Cursor)
		}
	}
	return cursors
}

// readCoded reads rows of columns of text that become numbers; see readColumns.
func (r *parquetReader) readCoded(dst []float32, rows int, picked []int, sampled [][]float64) {
	for _, c := range r.coded {
		numbers := make([]float64, c.coding.width)
		for i, field := range r.readTexts(&c, nil, rows) {
			var sample []float64
			if k, ok := slices.BinarySearch(picked, i); ok {
				sample = sampled[k]
			}
			if err := c.coding.write(dst[i*r.width:][:r.width], r.offset, sample, numbers, field); err != nil {
				kind.Check(fmt.Errorf("row %d, %w", r.done+i+1, err))
			}
		}
	}
}

// readColumns reads rows of columns with a value each. It also puts the picked rows into
// those of the sample.
func (r *parquetReader) readColumns(dst []float32, rows int, picked []int, sampled [][]float64) {
	groups := parallel.Pieces(r.width, parquetColumns)
	faults := make([]error, groups)
	parallel.For(r.width, parquetColumns, func(group, lo, hi int) {
		raw := make([]byte, 8*parquetRows)
		turned := make([]float32, parquetColumns*parquetStride)
		next := 0 // of those picked
		for from := 0; from < rows; from += parquetRows {
			count := min(parquetRows, rows-from)
			last := next
			for last < len(picked) && picked[last] < from+count {
				last++
			}
			for j := lo; j < hi; j++ {
				c := &r.values[j]
				if c.Cursor == nil { // readCoded
					continue
				}
				out := turned[(j-lo)*parquetStride:][:count]
				far := r.offset != nil && r.offset[j] != 0
				if err := c.Numbers(raw[:count*c.size]); err != nil {
					faults[group] = r.short(err)
					return
				}
				c.float32s(out, raw)
				c.mark(r.na, out)
				for i := 0; far && i < len(out); i++ {
					out[i] = float32(c.minus(raw, i, r.offset[j]))
				}
				for k := next; k < last && !c.exact; k++ {
					sampled[k][j] = c.minus(raw, picked[k]-from, 0)
					if c.IsMissing(picked[k] - from) {
						sampled[k][j] = math.NaN()
					}
				}
				for _, i := range c.Missing {
					out[i] = float32(math.NaN())
				}
			}
			next = last
			putColumns(dst[from*r.width+lo:], r.width, turned, count, hi-lo)
		}
	})
	kind.Check(cmp.Or(faults...))
}

// mark adds values that stand for missing ones to c.Missing.
func (c *parquetColumn) mark(na marks, values []float32) {
	if na.numbers == nil {
		return
	}
	for i, v := range values {
		if slices.Contains(na.numbers, v) {
			c.Missing = append(c.Missing, i)
		}
	}
	slices.Sort(c.Missing)
	c.Missing = slices.Compact(c.Missing)
}

// putColumns transposes n values of count columns, stored parquetStride values apart, into
// rows of width values, a square block at a time.
func putColumns(dst []float32, width int, columns []float32, n, count int) {
	var square [parquetColumns][parquetColumns]float32
	i := 0
	for ; count == parquetColumns && i+parquetColumns <= n; i += parquetColumns {
		for j := range parquetColumns {
			column := (*[parquetColumns]float32)(columns[j*parquetStride+i:])
			for k, v := range column {
				square[k][j] = v
			}
		}
		for k := range square {
			copy(dst[(i+k)*width:], square[k][:])
		}
	}
	for ; i < n; i++ {
		row := dst[i*width:][:count]
		for j := range row {
			row[j] = columns[j*parquetStride+i]
		}
	}
}

// readLists reads rows that are lists.
func (r *parquetReader) readLists(dst []float32, rows int) {
	c, d := &r.values[0], r.width
	r.exact = c.exact
	tile := max(1, readBuffer/(d*c.size))
	raw := make([]byte, min(tile, rows)*d*c.size)
	for from := 0; from < rows; from += tile {
		count := min(tile, rows-from)
		kind.Check(r.short(c.Numbers(raw[:count*d*c.size])))
		values := dst[from*d : (from+count)*d]
		c.float32s(values, raw)
		c.mark(r.na, values)
		for _, i := range c.Missing {
			if copy(raw[i*c.size:], make([]byte, c.size)); c.kind == 'f' && c.size == 8 { // for the sample
				binary.LittleEndian.PutUint64(raw[i*8:], math.Float64bits(math.NaN()))
			}
		}
		r.convertAll(c.scalarType, values, raw, (r.done+from)*d)
		for _, i := range c.Missing {
			values[i] = float32(math.NaN())
		}
	}
}

// short replaces io.EOF by an error that says that the file is too short.
func (r *parquetReader) short(err error) error {
	if err == io.EOF {
		return errorf(data.ErrFormat, "column: got fewer values than the %d rows; the file is damaged", r.file.Rows)
	}
	return err
}

// readTexts appends the text of the next rows of a column. Missing values are empty.
func (r *parquetReader) readTexts(c *parquetColumn, to []string, rows int) []string {
	had := len(to)
	if c.isText() {
		var err error
		to, err = c.Texts(to, rows)
		kind.Check(r.short(err))
	}
	raw := make([]byte, c.size*min(rows, parquetRows))
	for len(to) < had+rows {
		count := min(parquetRows, had+rows-len(to))
		kind.Check(r.short(c.Numbers(raw[:count*c.size])))
		for i := range count {
			label, err := "", error(nil)
			if !c.IsMissing(i) {
				label, err = c.scalarType.label(raw, i)
			}
			if err != nil {
				kind.Check(fmt.Errorf("row %d, column %s: %w", r.done+len(to)-had+1, text.Quote(c.name), err))
			}
			to = append(to, label)
		}
	}
	for i, field := range to[had:] {
		if !utf8.ValidString(field) {
			kind.Fail(data.ErrFormat,
				"row %d (counted from 1), column %s: got %.40q, want text in UTF-8", r.done+i+1, text.Quote(c.name), field)
		}
		if field = strings.TrimSpace(field); text.IsMissing(field) || r.na.has(field) {
			field = ""
		}
		to[had+i] = field
	}
	return to
}

// skip implements reader. It does not read row groups that are skipped as a whole.
func (r *parquetReader) skip(rows int) (passed int, err error) {
	rows = min(rows, r.file.Rows-r.done)
	if rows == 0 {
		return 0, nil
	}
	if r.done > 0 {
		if err := caught(r.openColumns); err != nil {
			return 0, err
		}
	}
	end := r.done + rows
	for _, cursor := range r.cursors() {
		r.done = cursor.SkipGroups(end)
	}
	if r.label != nil {
		r.label.SkipGroups(end)
	}
	labels, to := r.labels, r.conversion
	r.conversion = conversion{} // of no row that is skipped
	for err == nil && r.done < end {
		_, err = r.read(make([]float32, r.width*min(end-r.done, parquetRows)))
	}
	r.labels, r.conversion = labels, to
	if err != nil && err != io.EOF {
		return 0, err
	}
	return rows, nil
}

// parquetTable begins to read the columns of a Parquet file.
func parquetTable(in *Input, o *Options) table { return newParquet(in, o) }

// fields implements table.
func (r *parquetReader) fields() (names []string, columns int) { return r.names, len(r.names) }

// inspector implements table.
func (r *parquetReader) inspector(i int) *inspector {
	switch c := &r.file.Columns[i]; {
	case c.Kind == parquet.Text && !c.List:
		return new(inspector)
	case c.Kind == 0 || c.Kind == parquet.Text:
		return &inspector{none: c.Is}
	}
	return nil
}

// check implements table.
func (r *parquetReader) check(i int) error {
	if c := &r.file.Columns[i]; c.Kind == 0 || c.List {
		return errorf(data.ErrUnsupported, "column %s: got %s, want numbers or text", text.Quote(r.names[i]), c.Is)
	}
	return nil
}

// scan implements table.
func (r *parquetReader) scan(columns []int, each func(where func() string, fields []string) error) {
	all := make([][]string, len(columns))
	for k, i := range columns {
		kind.Check(r.check(i))
		c := r.column(i)
		all[k] = r.readTexts(&c, nil, r.file.Rows)
	}
	eachRow(r.file.Rows, all, each)
}
