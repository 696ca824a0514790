package counts

import (
	"fmt"
	"io"

	"cne/data"
	"cne/data/file"
)

// A cellRows is the cells of a matrix as points.
type cellRows struct {
	scaling *Scaling
	counts  *Matrix
	next    int // the next cell
}

// Rows returns the points that Apply makes of the cells, which are made a block at a time.
func (s *Scaling) Rows(c *Matrix) file.Rows { return &cellRows{scaling: s, counts: c} }

// Width implements file.Rows.
func (r *cellRows) Width() int { return len(r.scaling.Genes) }

// Columns implements file.Rows.
func (r *cellRows) Columns() []string { return r.scaling.Names }

// Len implements file.Rows.
func (r *cellRows) Len() (n int, known bool) { return r.counts.Cells, true }

// Next implements file.Rows.
func (r *cellRows) Next(dst *data.Matrix) (int, error) {
	n := min(dst.N, r.counts.Cells-r.next)
	if n == 0 {
		return 0, io.EOF
	}
	if err := r.scaling.ApplyTo(dst.Rows(0, n), r.counts, r.next); err != nil {
		return 0, fmt.Errorf("%s: %w", r.counts.Name, err)
	}
	dst.Columns = r.scaling.Names
	r.next += n
	return n, nil
}

// Labeled implements file.Rows.
func (r *cellRows) Labeled() bool { return false }

// Labels implements file.Rows.
func (r *cellRows) Labels() []string { return nil }

// Skip implements file.Rows.
func (r *cellRows) Skip(rows int) (skipped int, err error) {
	skipped = min(rows, r.counts.Cells-r.next)
	r.next += skipped
	return skipped, nil
}

// RowName implements file.Rows.
func (r *cellRows) RowName(i int) string {
	if r.counts.CellNames != nil {
		return fmt.Sprintf("%s: cell %d (%s)", r.counts.Name, i+1, r.counts.CellNames[i])
	}
	return fmt.Sprintf("%s: cell %d", r.counts.Name, i+1)
}

// Close implements file.Rows.
func (r *cellRows) Close() error { return nil }
