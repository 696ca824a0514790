package file

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/internal/text"
)

const (
	// maxCount bounds a count, so sums of counts stay finite.
	maxCount = 1e15
	// freeGenes is the number of genes that a header may announce for any number of counts.
	freeGenes = 1 << 20
)

// mtxFields are the types of values that are read. unsigned-integer is scipy's and double
// that of fast_matrix_market; the specification has the others.
var mtxFields = []string{"integer", "real", "pattern", "unsigned-integer", "double"}

// An mtxReader reads the columns of a matrix in the Matrix Market format, of genes ×
// cells, as sparse points, one for each cell. Entries may be in any order, so it reads
// all at once.
type mtxReader struct {
	heldRows
	line    int  // lines read so far
	pattern bool // entries have no value
}

// heldRows are sparse points that are read all at once.
type heldRows struct {
	head
	load   func() *data.CSR // reads them, or fails; see caught
	matrix *data.Matrix     // once it has been read
	row    int              // rows delivered
}

// openMTX begins to read the cells of a matrix of counts. Its header must say
// "coordinate", "general", and one of mtxFields, and values must be at least 0; the values
// of a pattern are 1. Entries for the same gene and cell are added up, as in
// scipy.io.mmread.
func openMTX(in *Input, _ *Options) reader {
	m := &mtxReader{heldRows: heldRows{head: head{in: in, exact: true, counts: true}}}
	m.sparse, m.load = &m.heldRows, m.readEntries
	m.begin()
	return m
}

// hold reads all points, unless it has done so.
func (m *heldRows) hold() error {
	if m.matrix != nil {
		return nil
	}
	return caught(func() { m.matrix = &data.Matrix{N: m.n, D: m.width, CSR: m.load()} })
}

// rest returns the rows that are not yet delivered. They share memory with m.
func (m *heldRows) rest() (*data.CSR, error) {
	if err := m.hold(); err != nil {
		return nil, err
	}
	rest := m.matrix.Rows(m.row, m.n).CSR
	m.row = m.n
	return rest, nil
}

// read implements reader, of dense rows.
func (m *heldRows) read(dst []float32) (n int, err error) {
	if err := m.hold(); err != nil {
		return 0, err
	}
	rows := min(len(dst)/m.width, m.n-m.row)
	m.matrix.CopyRows(dst[:rows*m.width], m.row)
	if m.row += rows; m.row == m.n {
		err = io.EOF
	}
	return rows * m.width, err
}

// skip implements reader.
func (m *heldRows) skip(rows int) (passed int, err error) {
	rows = min(rows, m.n-m.row)
	m.row += rows
	return rows, nil
}

// nextLine returns the next line, including its line end, if any; comments and empty lines
// are left out, except the first. The line is valid until the next call. After the last line
// it is nil.
func (m *mtxReader) nextLine() []byte {
	for {
		line, err := m.in.r.ReadSlice('\n')
		m.line++
		switch {
		case err == bufio.ErrBufferFull:
			m.bad(line, m.wantEntry())
		case err == io.EOF && len(line) == 0:
			return nil
		case err != nil && err != io.EOF:
			kind.Check(explain(err))
		}
		if text := bytes.TrimSpace(line); m.line == 1 || len(text) > 0 && text[0] != '%' {
			return line
		}
	}
}

// begin reads the head of a file: its first line, comments, and the line with the numbers
// of rows, columns and entries. It fails for sizes that a header may not announce. With other
// sizes, the number of counts that are found bounds the memory for reading.
func (m *mtxReader) begin() {
	first := m.nextLine()
	words := strings.Fields(strings.ToLower(string(first)))
	if len(words) != 5 || words[1] != "matrix" {
		m.bad(first, mtxMagic+" matrix coordinate integer general")
	}
	layout, field, symmetry := words[2], words[3], words[4]
	kind.Need(layout == "coordinate", data.ErrUnsupported,
		"matrix: got %.40q, want coordinate (sparse); save it as an array with np.save", layout)
	kind.Need(slices.Contains(mtxFields, field), data.ErrUnsupported, "values: got %.40q, want %s", field, text.Enumerate(mtxFields))
	kind.Need(symmetry == "general", data.ErrUnsupported,
		"matrix: got %.40q, want general, with genes as rows and cells as columns; is this a graph?", symmetry)
	m.pattern = field == "pattern"
	line := m.nextLine()
	kind.Need(line != nil, data.ErrFormat, "the file ends before the numbers of its rows, columns and entries")
	if _, err := fmt.Sscanf(string(line), "%d%d%d\n", &m.width, &m.n, &m.nonzeros); err != nil || min(m.width, m.n, m.nonzeros) < 0 {
		m.bad(line, "the numbers of rows, columns and entries")
	}
	kind.Need(min(m.width, m.n, m.nonzeros) > 0, data.ErrEmpty,
		"matrix: got %d genes (rows), %d cells (columns) and %d counts, want at least one of each", m.width, m.n, m.nonzeros)
	kind.Need(max(m.width, m.n) <= math.MaxInt32, data.ErrUnsupported,
		"matrix: got %d×%d, want at most %d rows and columns", m.width, m.n, math.MaxInt32)
	shortest := selection.If(m.pattern, "1 1\n", "1 1 1\n")
	kind.Need(m.in.packed || m.in.size < 0 || int64(m.nonzeros) <= (m.in.size+1)/int64(len(shortest)), data.ErrFormat,
		"bytes: got %d, want enough for %d entries; the file is truncated", m.in.size, m.nonzeros)
	kind.Need(m.n/2 <= m.nonzeros, data.ErrEmpty,
		"matrix: got %d cells (columns) with %d counts, want the filtered matrix, with genes as rows", m.n, m.nonzeros)
	kind.Need(m.width <= freeGenes || m.width <= m.nonzeros, data.ErrFormat,
		"genes (rows): got %d, want no more than the %d counts", m.width, m.nonzeros)
}

// bad fails for a line that is not what is wanted.
func (m *mtxReader) bad(line []byte, want string) {
	kind.Check(&lineError{m.line, errorf(data.ErrFormat, "got %.60q, want %s", bytes.TrimSpace(line), want)})
}

// readEntries reads all entries.
func (m *mtxReader) readEntries() *data.CSR {
	size := m.in.trusted(m.nonzeros)
	b := entries{gene: make([]int32, 0, size), value: make([]float32, 0, size)}
	found := 0
	for {
		buffered, _ := m.in.r.Peek(m.in.r.Buffered()) // cannot fail, the bytes are there
		plain, lines := m.plain(&b, buffered[:bytes.LastIndexByte(buffered, '\n')+1], m.nonzeros-found)
		m.in.r.Discard(len(plain)) // cannot fail
		m.line += lines
		found += lines

		line := m.nextLine()
		if line == nil {
			break
		}
		row, column, value := m.entry(line)
		if found++; found > m.nonzeros {
			m.bad(line, fmt.Sprintf("the end after the %d entries that the header announces", m.nonzeros))
		}
		b.add(row-1, column-1, value)
	}
	kind.Need(found == m.nonzeros, data.ErrFormat, "entries: got %d, want %d; the file is truncated", found, m.nonzeros)
	return b.matrix(m.n)
}

// plain reads up to limit entries from the start of text, as long as whole lines have the
// usual form: three whole numbers separated by spaces. It stops before any other line. It
// returns the text that it has read, and its number of lines.
func (m *mtxReader) plain(b *entries, text []byte, limit int) (read []byte, lines int) {
	i := 0
	for ; lines < limit; lines++ {
		row, j := wholeNumber(text, i)
		column, k := wholeNumber(text, j)
		value, next := 1, k
		if !m.pattern {
			value, next = wholeNumber(text, k)
		}
		if uint(row-1) >= uint(m.width) || uint(column-1) >= uint(m.n) || value < 0 || text[j-1] != ' ' || !m.pattern && text[k-1] != ' ' ||
			text[next-1] != '\n' {
			break
		}
		b.add(row-1, column-1, float64(value))
		i = next
	}
	return text[:i], lines
}

// wholeNumber parses the digits at text[i:] and skips the byte after them. It returns -1
// for no digits, for more than nine, or if nothing follows them.
func wholeNumber(text []byte, i int) (v, next int) {
	begin := i
	for ; i < len(text); i++ {
		c := text[i] - '0'
		if c > 9 {
			if uint(i-begin-1) >= 9 {
				return -1, i + 1
			}
			return v, i + 1
		}
		v = 10*v + int(c)
	}
	return -1, i
}

// wantEntry says in messages what a line has.
func (m *mtxReader) wantEntry() string {
	return selection.If(m.pattern, "a row and a column", "a row, a column and a value")
}

// entry reads an entry in any notation.
func (m *mtxReader) entry(line []byte) (row, column int, value float64) {
	fields := bytes.Fields(line)
	if m.pattern {
		fields = append(fields, []byte("1"))
	}
	if len(fields) != 3 {
		m.bad(line, m.wantEntry())
	}
	row, errRow := strconv.Atoi(string(fields[0]))
	column, errColumn := strconv.Atoi(string(fields[1]))
	value, err := text.ParseFloat(string(fields[2]), 64)
	switch {
	case err == nil && !simd.IsFinite(value):
		kind.Check(&lineError{m.line, errorf(data.ErrNotFinite, "value: got %.60q, want a finite number", fields[2])})
	case cmp.Or(errRow, errColumn, err) != nil:
		m.bad(line, m.wantEntry())
	case row < 1 || row > m.width || column < 1 || column > m.n:
		m.bad(line, fmt.Sprintf("a row up to %d and a column up to %d, as the header announces", m.width, m.n))
	case value < 0:
		m.bad(line, "a count of 0 or more; was the matrix scaled or centred?")
	case value > maxCount:
		m.bad(line, "a count")
	}
	return row, column, value
}

// entries collects the entries of a matrix in any order. As long as the cells are in
// order, as in files of 10x, it only counts the entries of each.
type entries struct {
	gene  []int32
	value []float32
	count []int   // of the entries of each cell, up to the last that has some
	cell  []int32 // of each entry, once the cells are out of order; nil before
}

// add adds an entry. Values of 0 are left out.
func (b *entries) add(row, column int, v float64) {
	if float32(v) == 0 {
		return
	}
	if b.cell == nil && (column < len(b.count)-1 || column > 4*len(b.gene)+freeGenes) {
		// From now on the cell of each entry is recorded. Memory then depends on the number of
		// entries, not on the cell numbers in the file.
		b.cell = make([]int32, 0, cap(b.gene))
		for c, n := range b.count {
			b.cell = append(b.cell, slices.Repeat([]int32{int32(c)}, n)...)
		}
	}
	if b.cell != nil {
		b.cell = append(b.cell, int32(column))
	} else {
		if len(b.count) <= column {
			b.count = append(b.count, make([]int, column+1-len(b.count))...)
		}
		b.count[column]++
	}
	b.gene = append(b.gene, int32(row))
	b.value = append(b.value, float32(v))
}

// matrix returns the rows of the cells, in order.
func (b *entries) matrix(cells int) *data.CSR {
	c := &data.CSR{Start: make([]int, cells+1), Column: b.gene, Value: b.value}
	if b.cell == nil {
		copy(c.Start[1:], b.count)
	}
	for _, cell := range b.cell {
		c.Start[cell+1]++
	}
	selection.Accumulate(c.Start)
	if b.cell != nil {
		c.Column, b.gene = byCell(b.gene, b.cell, c.Start), nil
		c.Value, b.value = byCell(b.value, b.cell, c.Start), nil
	}
	c.Tidy()
	return c
}

// byCell orders what entries have by their cells, whose first indices are in start.
func byCell[T int32 | float32](of []T, cell []int32, start []int) []T {
	next, ordered := slices.Clone(start), make([]T, len(of))
	for k, c := range cell {
		ordered[next[c]] = of[k]
		next[c]++
	}
	return ordered
}
