package projection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/internal/app/report"
	"cne/internal/atomicfile"
	"cne/internal/ctxio"
	"cne/internal/parallel"
)

// Sizes of a block: about how many values, so that what is done to them finds
// them in the cache, and how many rows at least and at most.
const (
	blockValues  = 1 << 21
	minBlockRows = 16
	MaxBlockRows = 1 << 15
)

// A Projection places points. When its context has ended, the embedding may still be at
// work on a block that nobody waits for; use it for nothing else then.
type Projection struct {
	Embedding *cne.Embedding
	SkipBad   bool     // points with a value that is not finite get NaNs, and are no errors
	Picture   *Picture // gets all positions; nil for none

	Count   int // points written
	Bad     int // of them, those without a position
	Elapsed time.Duration
}

// A block is some points of the input that follow each other.
type block struct {
	n         int // rows in use
	points    *data.Matrix
	positions *data.Matrix
	labels    []string
	bad       []bool // points without a position
	err       error  // why there are no more points; io.EOF after the last
}

func newBlock(width, d int) *block {
	rows := min(max(minBlockRows, blockValues/width), MaxBlockRows)
	return &block{points: data.NewMatrix(rows, width), positions: data.NewMatrix(rows, d), bad: make([]bool, rows)}
}

// read fills the block.
func (b *block) read(points Source) {
	if b.n, b.err = points.Next(b.points); b.err == nil {
		b.labels = slices.Clone(points.Labels())
	}
}

// Write places all points and writes their positions to a file that ends in .npy or .csv,
// complete or not at all.
func (p *Projection) Write(ctx context.Context, path string, points Source) error {
	var failed error // of the points, not of the file
	err := atomicfile.WriteSeek(path, func(w io.WriteSeeker) error {
		out, err := newPositionWriter(path, w, p.Embedding.Dim(), points.Labeled())
		if err != nil {
			return err
		}
		var unwritten error
		failed = p.place(ctx, points, func(m *data.Matrix, labels []string) error {
			p.Picture.add(m, labels)
			unwritten = out.write(m, labels)
			return unwritten
		})
		if unwritten != nil {
			failed = nil
			return unwritten
		}
		if failed != nil {
			return failed
		}
		return out.close()
	})
	if failed == nil && err != nil {
		return fmt.Errorf("the positions cannot be written to %s (%w); make room, or choose another --output", path, err)
	}
	return failed
}

// place reads and places all points, and calls write with their positions block by block;
// labels are nil if there are none.
func (p *Projection) place(ctx context.Context, points Source, write func(positions *data.Matrix, labels []string) error) error {
	start := time.Now()
	defer func() { p.Elapsed = time.Since(start) }()
	d := p.Embedding.Dim()
	current, next := newBlock(points.D(), d), newBlock(points.D(), d)
	for current.err == nil {
		// A block is read while the one before it is placed.
		_, err := ctxio.Await(ctx, func() (_ struct{}, err error) {
			parallel.For(2, 1, func(piece, _, _ int) {
				if piece == 0 {
					next.read(points)
				} else {
					err = p.placeBlock(ctx, current)
				}
			})
			return
		})
		var bad *cne.PointError
		if errors.As(err, &bad) {
			return fmt.Errorf("%s: %s; fix the values, or give --skip-bad to pass over such points", points.Row(p.Count+bad.Row), bad.Fault)
		}
		if err != nil {
			return err
		}
		if err := p.record(current, write); err != nil {
			return err
		}
		current, next = next, current
	}
	if current.err != io.EOF {
		return current.err
	}
	return nil
}

// placeBlock finds the positions of a block of points, which it prepares in place.
func (p *Projection) placeBlock(ctx context.Context, b *block) error {
	if b.n == 0 {
		return nil
	}
	var skipped []bool
	if p.SkipBad {
		skipped = b.bad[:b.n]
	}
	_, err := p.Embedding.ProjectBlock(ctx, b.positions.Rows(0, b.n), b.points.Rows(0, b.n), skipped)
	return err
}

// record counts the points of a block, and writes their positions.
func (p *Projection) record(b *block, write func(positions *data.Matrix, labels []string) error) error {
	if b.n == 0 {
		return nil
	}
	for _, bad := range b.bad[:b.n] {
		if bad {
			p.Bad++
		}
	}
	p.Count += b.n
	return write(b.positions.Rows(0, b.n), b.labels)
}

// A positionWriter writes positions block by block, as an array or a table.
type positionWriter struct {
	array *data.NPYWriter
	table *data.CSVWriter
}

func newPositionWriter(path string, w io.WriteSeeker, d int, labeled bool) (*positionWriter, error) {
	var p positionWriter
	var err error
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		p.table, err = data.NewCSVWriter(w, d, labeled)
	} else {
		p.array, err = data.NewNPYWriter(w, d)
	}
	return &p, err
}

func (p *positionWriter) write(m *data.Matrix, labels []string) error {
	if p.array != nil {
		return p.array.Write(m)
	}
	return p.table.Write(m, labels)
}

func (p *positionWriter) close() error {
	if p.array != nil {
		return p.array.Close()
	}
	return p.table.Close()
}

// A Picture is what there is to draw of positions.
type Picture struct {
	d         int
	positions []float32
	labels    []string
}

// add keeps those positions that are some.
func (p *Picture) add(m *data.Matrix, labels []string) {
	if p == nil {
		return
	}
	p.d = m.D
	for i := range m.N {
		if row := m.Row(i); row[0] == row[0] { // no NaN
			p.positions = append(p.positions, row...)
			if labels != nil {
				p.labels = append(p.labels, labels[i])
			}
		}
	}
}

// Draw makes the picture, in a file that ends in .png or .svg.
func (p *Picture) Draw(path string) error {
	if len(p.positions) == 0 {
		return errors.New("there is nothing to draw: no point has a position")
	}
	var labels *data.Labels
	if p.labels != nil {
		labels = data.NewLabels(p.labels)
	}
	return report.Scatter(&data.Matrix{N: len(p.positions) / p.d, D: p.d, X: p.positions}, labels, configs.Plot{}).Save(path)
}
