package file

import (
	"bufio"
	"cmp"
	"io"
	"strconv"
	"strings"

	"cne/data"
	"cne/internal/kind"
)

// The columns of labels and of names that WriteCSV writes.
const (
	LabelColumn = "label"
	NameColumn  = "name"
)

// WriteCSV writes points as a table with a header: columns x, y and z for up to three
// values per point and x1, x2, … for more, LabelColumn if labels is not nil, and at last
// NameColumn if names is not nil. Numbers have as many digits as are needed to read the
// same float32 again. Errors wrap data.ErrLabels or data.ErrShape for inconsistent
// arguments, or are w's.
func WriteCSV(w io.Writer, m *data.Matrix, labels *data.Labels, names []string) (err error) {
	defer kind.Catch(&err)
	kind.Check(data.CheckDense(m))
	kind.Check(labels.Check(m.N))
	out := kind.Got(NewCSVWriter(w, m.D, labels != nil, names != nil))
	return cmp.Or(out.Write(m, labels.All(), names), out.Close())
}

// A CSVWriter writes a table as WriteCSV does, block by block.
type CSVWriter struct {
	out            *bufio.Writer
	d              int
	labeled, named bool
	line           []byte
}

// NewCSVWriter begins a table of points of d values, with a column of labels if labelled,
// and of names if named. The error wraps data.ErrShape for d below 1, or is w's.
func NewCSVWriter(w io.Writer, d int, labeled, named bool) (_ *CSVWriter, err error) {
	defer kind.Catch(&err)
	kind.Need(d >= 1, data.ErrShape, "values per point: got %d, want at least 1", d)
	c := &CSVWriter{out: bufio.NewWriterSize(w, readBuffer), d: d, labeled: labeled, named: named}
	var names []string
	for j := range d {
		name := "x" + strconv.Itoa(j+1)
		if d <= 3 {
			name = "xyz"[j : j+1]
		}
		names = append(names, name)
	}
	if labeled {
		names = append(names, LabelColumn)
	}
	if named {
		names = append(names, NameColumn)
	}
	kind.Got(c.out.WriteString(strings.Join(names, ",") + "\n"))
	return c, nil
}

// Write adds the rows of m with their labels and names; these are nil for a table without.
// The error wraps data.ErrShape for rows of another width, data.ErrEmpty for no rows, and
// data.ErrLabels or data.ErrShape for a wrong number of labels or names, or unexpected
// ones. Other errors come from the underlying writer, and every later call returns them.
func (c *CSVWriter) Write(m *data.Matrix, labels, names []string) (err error) {
	defer kind.Catch(&err)
	checkWidth(m, c.d)
	fit := func(texts []string, wanted bool) bool {
		return wanted == (texts != nil) && (!wanted || len(texts) == m.N)
	}
	kind.Need(fit(labels, c.labeled), data.ErrLabels,
		"labels: got %d, want one for each of %d points in a table with a column for them", len(labels), m.N)
	kind.Need(fit(names, c.named), data.ErrShape,
		"names: got %d, want one for each of %d points in a table with a column for them", len(names), m.N)
	m = m.Relative(nil)
	for i := range m.N {
		line := c.line[:0]
		for j, v := range m.Row(i) {
			if j > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendFloat(line, float64(v), 'g', -1, 32)
		}
		if labels != nil {
			line = appendField(append(line, ','), labels[i])
		}
		if names != nil {
			line = appendField(append(line, ','), names[i])
		}
		c.line = append(line, '\n')
		kind.Got(c.out.Write(c.line))
	}
	return nil
}

// Close writes what is left in the buffer. It does not close the underlying
// writer.
func (c *CSVWriter) Close() error { return c.out.Flush() }

// appendField appends a field, in quotation marks if it needs them.
func appendField(line []byte, field string) []byte {
	if field == "" || strings.ContainsAny(field, ",;\t\"\r\n") {
		field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
	}
	return append(line, field...)
}
