// Package report shows the results of runs: pictures of embeddings, curves of the
// training, pages to explore embeddings, and tables of quality figures.
package report

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/internal/atomicfile"
)

// A Map is what pictures and pages show: points with labels.
type Map struct {
	Positions *data.Matrix
	Labels    *data.Labels // or nil
	HeldOut   []bool       // nil if no point is
}

// WithHeldOut returns the map of training points and, after them, held-out points. Either
// may be without labels.
func WithHeldOut(m Map, positions *data.Matrix, labels *data.Labels) Map {
	n, held := m.Positions.N, positions.N
	both := Map{Positions: data.NewMatrix(n+held, m.Positions.D), HeldOut: make([]bool, n+held)}
	copy(both.Positions.X, m.Positions.X)
	copy(both.Positions.X[len(m.Positions.X):], positions.Relative(m.Positions.Offset).X)
	both.Positions.Offset = m.Positions.Offset
	if m.Labels != nil || labels != nil {
		both.Labels = data.JoinLabels(m.Labels.OrMissing(n), labels.OrMissing(held))
	}
	for i := range held {
		both.HeldOut[n+i] = true
	}
	return both
}

// InputOrder puts training points and held-out points after them into the order of the
// input, so row numbers on a page are rows of the input. heldRows are the held-out rows,
// ascending.
func (m *Map) InputOrder(heldRows []int) {
	n := m.Positions.N
	from, trained := make([]int, n), 0
	for i := range from {
		k, held := slices.BinarySearch(heldRows, i)
		if m.HeldOut[i] = held; held {
			from[i] = n - len(heldRows) + k
			continue
		}
		from[i] = trained
		trained++
	}
	m.Positions, m.Labels = m.Positions.Take(from), m.Labels.Take(from)
}

// SavePicture draws the map into a file, .png, .svg or .pdf. It warns of characters that no font
// has.
func (m Map) SavePicture(log *slog.Logger, path string, o cne.PictureOptions) error {
	o.Labels, o.HeldOut, o.Format = m.Labels, m.HeldOut, strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	if missing := o.Undrawn(); missing != "" {
		log.Warn("the picture has boxes for characters that no font here can draw: "+missing+"; an .svg (cne plot -o FILE.svg) and a page (cne plot --html) show them", "file", path)
	}
	return save(path, func(w io.Writer) error { return (&cne.Embedding{Positions: m.Positions}).WritePicture(w, o) })
}

// SavePage writes the page of the map into a file.
func (m Map) SavePage(path string, o *cne.PageOptions) error {
	o.Labels, o.HeldOut = m.Labels, m.HeldOut
	return save(path, func(w io.Writer) error { return (&cne.Embedding{Positions: m.Positions}).WritePage(w, *o) })
}

// save writes a file. Errors of the library are shown without their kinds.
func save(path string, write func(io.Writer) error) error {
	if err := atomicfile.Write(path, func(w io.Writer) error { return configs.Cause(write(w)) }); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
