// Package data holds points: a float32 matrix and optional labels.
//
// FromRows and FromMat make a Matrix from slices and from gonum matrices; a Matrix is
// itself a mat.Matrix. FromCSR makes sparse points. Points that stay in their files are a
// Source, which reads them in blocks, as often as needed.
//
// Split holds out some points, Labels.Imbalance thins out classes, Scale brings the points to a
// common scale, and Normalize brings them to length 1.
//
// Results have the same bits regardless of GOMAXPROCS.
//
// Other packages read and write files (data/file), read counts of single cells
// (data/counts) and images (data/images), compute principal components (data/pca), and
// find nearest neighbours and make their graph (data/neighbors).
package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/simd"
)

// Kinds of errors of this package and its subpackages, for errors.Is. Errors about files
// may wrap errors of package io/fs instead.
var (
	// ErrFormat is wrapped by errors about files that are damaged, end early, or are not what
	// their names say.
	ErrFormat = errors.New("malformed file")
	// ErrUnsupported is wrapped by errors about valid files of unsupported kinds.
	ErrUnsupported = errors.New("unsupported kind of file")
	// ErrShape is wrapped by errors about widths or sizes that do not agree, and about arrays
	// with a wrong number of dimensions.
	ErrShape = errors.New("shapes do not agree")
	// ErrLabels is wrapped by errors about missing, superfluous or unsuitable labels.
	ErrLabels = errors.New("labels do not agree with the points")
	// ErrNotFinite is wrapped by errors about values that are NaN or infinite.
	ErrNotFinite = errors.New("value is not finite")
	// ErrIncomplete is wrapped, too, if there are such values in all rows.
	ErrIncomplete = errors.New("no row is complete")
	// ErrDirection is wrapped by errors about zero vectors (Cosine), constant vectors
	// (Correlation), latitudes beyond 90 degrees (Haversine) and values that are no distances
	// (Precomputed).
	ErrDirection = errors.New("a point has no direction")
	// ErrEmpty is wrapped by errors about input without points or values, or with too few
	// points.
	ErrEmpty = errors.New("no data")
	// ErrChanged is wrapped by errors about files that have changed between two reads.
	ErrChanged = errors.New("a file has changed")
	// ErrSparse is wrapped by errors about sparse points that must be dense.
	ErrSparse = errors.New("points are sparse")
	// ErrOption is wrapped by errors about arguments and fields of file.Options that are
	// invalid or do not suit the files.
	ErrOption = errors.New("unusable option")
)

// errorf is fmt.Errorf for an error of a kind.
func errorf(of error, format string, args ...any) error {
	return kind.Errorf(of, format, args...)
}

// A Dataset is a set of points, with optional labels and names.
type Dataset struct {
	// Name says what the points are, for titles and logs. file.Read takes it from the name of
	// the first file or folder.
	Name string
	// Points holds one point per row, in input order. It is nil if Stored has the points.
	Points *Matrix
	// Stored has the points if they are not in memory. It is nil if Points has them.
	Stored Source
	// Labels is nil when the points have none.
	Labels *Labels
	// Names has the name of each point, or is nil if the files have no names. The names of
	// the values are Points.Columns.
	Names []string
	// Bytes reports whether every value was an unsigned byte in the files, as pixels of
	// images are, and has not been scaled since. ScaleUnit then divides by 255 even if no
	// value is 255.
	Bytes bool

	// Codings say how columns of a table that are not plain numbers became numbers.
	Codings []Coding

	// Parts says which rows came from which file, for error messages.
	Parts []Part
	// Rows has the row of each point, counted over all files. It is nil if all rows are
	// present.
	Rows []int
}

// A Part describes the points of one file.
type Part struct {
	Name string // path of the file; may be empty
	Rows int    // number of points
	// Lines has the lines of the points in a text file; nil for other files.
	Lines *Lines
}

// Lines maps the rows of a text to its lines. It remembers only rows that do not directly
// follow the previous row's line, and at most the last 65536 of these.
type Lines struct{ breaks []lineBreak }

// A lineBreak is a row, counted from 0, and its line, counted from 1.
type lineBreak struct{ row, line int }

const maxBreaks = 1 << 16

// Add records the line of a row. Rows must be added in order.
func (l *Lines) Add(row, line int) {
	n := len(l.breaks)
	if n > 0 && line-l.breaks[n-1].line == row-l.breaks[n-1].row {
		return
	}
	if n == maxBreaks {
		l.breaks = append(l.breaks[:0], l.breaks[n/2:]...)
	}
	l.breaks = append(l.breaks, lineBreak{row, line})
}

// of returns the line of a row, or 0 if it is not known.
func (l *Lines) of(row int) int {
	if l != nil {
		for _, b := range slices.Backward(l.breaks) {
			if b.row <= row {
				return b.line + row - b.row
			}
		}
	}
	return 0
}

// Check returns an error wrapping ErrEmpty if there are no points, ErrShape if the fields
// of the matrix contradict each other or the number of names is wrong, ErrLabels if the
// number of labels is wrong or a class has no name, and ErrNotFinite if a value is NaN or
// infinite. Rows and columns in the message count from 1. If the file is known, the
// message has its name and the row's line or number. The readers call Check.
func (ds *Dataset) Check() error { return ds.CheckContext(context.Background()) }

// CheckContext is Check, and returns ctx's error if ctx is done first. Reading Stored
// points may take long.
func (ds *Dataset) CheckContext(ctx context.Context) (err error) {
	defer kind.Catch(&err)
	n, _ := ds.Dims()
	kind.Need(n > 0, ErrEmpty, "points: got none, want at least one")
	points := ds.Source()
	kind.Check(CheckPoints(points))
	kind.Check(ds.Labels.Check(n))
	kind.Need(ds.Names == nil || len(ds.Names) == n, ErrShape, "names: got %d, want %d, one for each point", len(ds.Names), n)
	return checkFinite(ctx, points, func(row, column int, v float32) error {
		return NotFinite(ds.RowName(row), ds.Columns(), column, v)
	})
}

// CheckFinite returns an error wrapping ErrNotFinite that names the first NaN or infinity
// of a source, or nil. It reads the points, unless their files were checked when they were
// opened; other errors are as for Each.
func CheckFinite(ctx context.Context, s Source) error {
	return checkFinite(ctx, s, func(row, column int, v float32) error {
		return NotFinite(fmt.Sprintf("row %d", row+1), s.Block(0).Columns, column, v)
	})
}

// checkFinite reports the first NaN or infinity of a source through fault.
func checkFinite(ctx context.Context, s Source, fault func(row, column int, v float32) error) error {
	if _, finite := describe(s); finite {
		return nil
	}
	var first error
	bad, n := 0, 0
	err := s.Each(ctx, 0, func(lo int, block *Matrix) error {
		n = lo + block.N
		if row, column, v, ok := block.FirstNotFinite(); ok {
			first = cmp.Or(first, fault(lo+row, column, v))
			bad += len(block.Missing(block.N))
		}
		return nil
	})
	if err == nil && bad == n && n > 1 {
		return errorf(ErrNotFinite, "%w; %w: all %d have missing or infinite values", first, ErrIncomplete, n)
	}
	if err == nil && bad > 1 {
		return errorf(ErrNotFinite, "%w; %d of %d rows have missing or infinite values", first, bad, n)
	}
	return cmp.Or(err, first)
}

// Dims returns the number of points and the number of values per point; zeros without
// points.
func (ds *Dataset) Dims() (n, d int) {
	if ds == nil || ds.Source() == nil {
		return 0, 0
	}
	return ds.Source().Dims()
}

// Source returns Points or Stored, or nil if there are no points.
func (ds *Dataset) Source() Source {
	if ds.Stored != nil || ds.Points == nil {
		return ds.Stored
	}
	return ds.Points
}

// Size returns the size that ds would have with more additional points.
func (ds *Dataset) Size(more int) Size {
	n, d := ds.Dims()
	size := SizeOf(n+more, d)
	size.Nonzeros = ds.Points.Nonzeros()
	if ds.Stored != nil {
		size.Storage, _ = describe(ds.Stored)
	}
	return size
}

// Columns returns the names of the values of a point; nil if they have none.
func (ds *Dataset) Columns() []string { return ds.Source().Block(0).Columns }

// Offset returns the Offset of the points; nil if they have none.
func (ds *Dataset) Offset() []float64 { return ds.Source().Block(0).Offset }

// NotFinite returns an error wrapping ErrNotFinite for the value v in a column, counted
// from 0, of the described row. names are the names of the columns, or nil.
func NotFinite(row string, names []string, column int, v float32) error {
	limit := selection.If(v == v, " of at most 3.4e38", "")
	return errorf(ErrNotFinite, "%s: %s: got %v, want a finite number%s (float32)", row, columnName(names, column), v, limit)
}

// columnName names a column for a message.
func columnName(names []string, column int) string {
	if names != nil {
		return fmt.Sprintf("column %q", names[column])
	}
	return fmt.Sprintf("column %d", column+1)
}

// RowName names row i of the parts, counted from 0: by its file and its line in a text,
// or otherwise by its number, counted from 1. several reports whether there are other
// parts.
func RowName(parts []Part, several bool, i int) string {
	row := i
	for _, p := range parts {
		if row < p.Rows {
			if p.Name == "" {
				break
			}
			if line := p.Lines.of(row); line > 0 {
				return fmt.Sprintf("%s:%d", p.Name, line)
			}
			if !several {
				return fmt.Sprintf("%s: row %d", p.Name, row+1)
			}
			return fmt.Sprintf("%s: row %d (row %d over all files)", p.Name, row+1, i+1)
		}
		row -= p.Rows
	}
	return fmt.Sprintf("row %d", i+1)
}

// RowName names row i of ds, counted from 0, by its file if that is known, and by its line
// or number.
func (ds *Dataset) RowName(i int) string {
	parts := ds.Parts
	if parts == nil {
		parts = []Part{{Name: ds.Name, Rows: math.MaxInt}}
	}
	return RowName(parts, len(parts) > 1, ds.Origin(i))
}

// Origin returns the row of point i, counted from 0 over all files. It is i unless Split,
// Imbalance or another method has left out points.
func (ds *Dataset) Origin(i int) int {
	if ds.Rows == nil {
		return i
	}
	return ds.Rows[i]
}

// Missing returns the first n rows with values that are NaN or infinite. Values that sparse
// points leave out are 0.
func (m *Matrix) Missing(n int) (rows []int) {
	return selection.Where(n, func(i int) bool {
		_, values := m.stored(i)
		return !simd.AllFinite(values)
	})
}

// stored returns the values of point i that are in memory, and their columns if the points are
// sparse.
func (m *Matrix) stored(i int) (columns []int32, values []float32) {
	if m.CSR != nil {
		return m.CSR.Row(i)
	}
	return nil, m.Row(i)
}

// ZeroRows returns the rows among the first n whose values are all 0, such as documents without
// words, or for Correlation all equal.
func (m *Matrix) ZeroRows(n int, metric Metric) (rows []int) {
	return selection.Where(n, func(i int) bool {
		_, values := m.stored(i)
		all := 0.0
		for j, v := range values {
			at := float64(v)
			if m.Offset != nil {
				at += m.Offset[j]
			}
			if j == 0 && metric == Correlation && len(values) == m.D {
				all = at
			}
			if at != all {
				return false
			}
		}
		return true
	})
}

// FillMissing replaces values of m that are NaN or infinite, and returns their number.
// fill has the replacement for each column.
func (m *Matrix) FillMissing(fill []float32) (filled int) {
	x := m.held()
	for i, v := range x {
		if !simd.IsFinite(v) {
			x[i] = fill[m.column(i)]
			filled++
		}
	}
	if m.CSR != nil && filled > 0 {
		m.CSR.Tidy() // some may be 0 now
	}
	return filled
}

// FiniteMeans returns the mean of the finite values of each column, among them the zeros
// that sparse points leave out. It is NaN for a column without finite values.
func (m *Matrix) FiniteMeans() []float32 {
	sum, count, mean := make([]float64, m.D), make([]float64, m.D), make([]float32, m.D)
	selection.Fill(count, float64(m.N))
	for i, v := range m.held() {
		if j := m.column(i); simd.IsFinite(v) {
			sum[j] += float64(v)
		} else {
			count[j]--
		}
	}
	for j := range mean {
		mean[j] = float32(sum[j] / count[j])
	}
	return mean
}
