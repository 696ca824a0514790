package file

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"cne/data"
)

// WriteCSV writes points as a table with a header: columns x, y and z for up
// to three values per point and x1, x2, … for more, a column called label if
// labels is not nil, and a last one called name if names is not nil. Numbers are
// written with as many digits as it takes to read the same float32 again. The error
// is that of w, or ErrLabels or ErrShape if the arguments contradict each other.
func WriteCSV(w io.Writer, m *data.Matrix, labels *data.Labels, names []string) error {
	if err := data.CheckDense(m); err != nil {
		return err
	}
	if names != nil && len(names) != m.N {
		return errorf(data.ErrShape, "names: got %d, want %d, one for each point", len(names), m.N)
	}
	if err := labels.Check(m.N); err != nil {
		return err
	}
	out, err := newCSVWriter(w, m.D, labels != nil, names != nil)
	if err != nil {
		return err
	}
	m = m.Relative(nil)
	for i := range m.N {
		label := ""
		if labels != nil {
			label = labels.Names[labels.Class[i]]
		}
		name := ""
		if names != nil {
			name = names[i]
		}
		out.writeRow(m.Row(i), label, name)
	}
	return out.Close()
}

// A CSVWriter writes a table as WriteCSV does, without names, block by block.
type CSVWriter struct {
	out            *bufio.Writer
	d              int
	labeled, named bool
	line           []byte
}

// NewCSVWriter begins a table of points of d values, with a column of labels
// if labelled. A d below 1 gives ErrShape.
func NewCSVWriter(w io.Writer, d int, labeled bool) (*CSVWriter, error) {
	return newCSVWriter(w, d, labeled, false)
}

func newCSVWriter(w io.Writer, d int, labeled, named bool) (*CSVWriter, error) {
	if d < 1 {
		return nil, errorf(data.ErrShape, "values per point: got %d, want at least 1", d)
	}
	c := &CSVWriter{out: bufio.NewWriterSize(w, readBuffer), d: d, labeled: labeled, named: named}
	line := c.line
	for j := range d {
		if j > 0 {
			line = append(line, ',')
		}
		if d <= 3 {
			line = append(line, "xyz"[j])
		} else {
			line = strconv.AppendInt(append(line, 'x'), int64(j)+1, 10)
		}
	}
	if labeled {
		line = append(line, ",label"...)
	}
	if named {
		line = append(line, ",name"...)
	}
	c.line = append(line, '\n')
	_, err := c.out.Write(c.line)
	return c, err
}

// Write adds the rows of m with their labels, which are nil for a table
// without. Rows of another width give ErrShape, no rows ErrEmpty, and labels
// that are not one per row, or not wanted, ErrLabels; other errors are those
// of the underlying writer, and last.
func (c *CSVWriter) Write(m *data.Matrix, labels []string) error {
	if err := checkWidth(m, c.d); err != nil {
		return err
	}
	switch {
	case c.labeled && len(labels) != m.N:
		return errorf(data.ErrLabels, "labels: got %d, want %d, one for each point", len(labels), m.N)
	case !c.labeled && labels != nil:
		return errorf(data.ErrLabels, "labels: got some, want none in a table without a column for them")
	}
	m = m.Relative(nil)
	for i := range m.N {
		label := ""
		if c.labeled {
			label = labels[i]
		}
		c.writeRow(m.Row(i), label, "")
	}
	// Without new bytes, Write returns the error of earlier ones.
	_, err := c.out.Write(nil)
	return err
}

// writeRow writes a row; errors are kept by the buffer.
func (c *CSVWriter) writeRow(row []float32, label, name string) {
	line := c.line[:0]
	for j, v := range row {
		if j > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendFloat(line, float64(v), 'g', -1, 32)
	}
	if c.labeled {
		line = appendField(append(line, ','), label)
	}
	if c.named {
		line = appendField(append(line, ','), name)
	}
	c.line = append(line, '\n')
	c.out.Write(c.line)
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
