package projection

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/model"
)

// A Source is where points come from, in blocks: see data.Blocks, which is one.
type Source interface {
	D() int
	Labeled() bool
	Skip(rows int) (skipped int, err error)
	Next(dst *data.Matrix) (int, error)
	Labels() []string
	Row(i int) string
	Close() error
}

// Rows is a range of the rows of the input, counted from 0.
type Rows struct {
	First int
	End   int // the row after the last; 0: to the end of the input
}

// ParseRows reads a range such as 0:1000, :1000 or 1000:, which ends before its second number.
func ParseRows(s string) (r Rows, ok bool) {
	first, end, ok := strings.Cut(s, ":")
	number := func(s string) (n int) {
		if s != "" && ok {
			var err error
			n, err = strconv.Atoi(s)
			ok = err == nil && n >= 0
		}
		return n
	}
	r = Rows{number(first), number(end)}
	return r, ok && (end == "" || r.First < r.End)
}

func (r Rows) String() string {
	if r.End == 0 {
		return fmt.Sprintf("%d:", r.First)
	}
	return fmt.Sprintf("%d:%d", r.First, r.End)
}

// beyond is the error of a range that an input of n rows does not have.
func (r Rows) beyond(n int) error {
	return fmt.Errorf("--rows is %v, but there are %d points; rows are counted from 0, and the last is %d", r, n, n-1)
}

// Open opens the points of files, or those that are built in, for a model: those of a range.
func Open(ctx context.Context, e *cne.Embedding, paths []string, opt data.Options, rows Rows) (Source, error) {
	points, err := open(ctx, e.Description.Preprocessing, paths, opt, rows)
	if err != nil || rows == (Rows{}) {
		return points, err
	}
	skipped, err := points.Skip(rows.First)
	if err == nil && skipped < rows.First {
		err = rows.beyond(skipped)
	}
	if err != nil {
		points.Close()
		return nil, err
	}
	return &window{points, rows, rows.First}, nil
}

// open opens all points.
func open(ctx context.Context, before *model.Preprocessing, paths []string, opt data.Options, rows Rows) (Source, error) {
	if before != nil && before.Counts != nil {
		opt.Columns = before.Counts.Names
		counts, err := data.OpenCounts(ctx, paths, opt)
		if err != nil {
			return nil, err
		}
		return &countsSource{held{n: counts.Cells}, counts, before.Counts}, nil
	}
	if i := slices.IndexFunc(paths, data.IsCounts); i >= 0 {
		return nil, fmt.Errorf("%s holds counts of single-cell sequencing, but the model was not trained on counts; give points of the kind that it was trained on", paths[i])
	}
	opt = before.Reading(opt)
	builtin := slices.IndexFunc(paths, func(path string) bool { return strings.HasPrefix(path, configs.BuiltinPrefix) })
	if builtin < 0 {
		// The end of an array is known before any of it is placed.
		if size := data.PointsSize(ctx, paths, opt); size.Known() && rows.End > size.Low {
			return nil, rows.beyond(size.Low)
		}
		return data.OpenBlocks(ctx, paths, opt)
	}
	name := paths[builtin]
	if len(paths) > 1 {
		return nil, fmt.Errorf("%s goes with no other file; place them one after the other", name)
	}
	if opt.LabelColumn != "" || len(opt.Drop) > 0 || opt.Header != data.HeaderAuto {
		return nil, fmt.Errorf("%s has labels and no columns; leave --label-column, --drop and --header out", name)
	}
	set, err := data.Builtin(strings.TrimPrefix(name, configs.BuiltinPrefix))
	if err != nil {
		return nil, err
	}
	return OfDataset(set), nil
}

// A window is a range of the rows of a source.
type window struct {
	Source
	rows Rows
	at   int // the next row
}

func (w *window) Next(dst *data.Matrix) (int, error) {
	some := *dst
	if w.rows.End > 0 {
		if some.N = min(dst.N, w.rows.End-w.at); some.N == 0 {
			return 0, io.EOF
		}
		some.X = dst.X[:some.N*dst.D]
	}
	n, err := w.Source.Next(&some)
	dst.Columns, dst.Offset = some.Columns, some.Offset
	w.at += n
	if err == io.EOF && (w.at < w.rows.End || w.at == w.rows.First) {
		err = w.rows.beyond(w.at)
	}
	return n, err
}

func (w *window) Row(i int) string { return w.Source.Row(w.rows.First + i) }

// held are rows in memory of which some come next.
type held struct{ n, from, to int }

// take returns which of the rows come next, at most so many.
func (h *held) take(most int) (from, to int) {
	h.from, h.to = h.to, min(h.n, h.to+most)
	return h.from, h.to
}

// Skip implements Source.
func (h *held) Skip(rows int) (int, error) {
	from, to := h.take(rows)
	return to - from, nil
}

// Close implements Source.
func (h *held) Close() error { return nil }

// OfDataset is a data set in memory as a Source.
func OfDataset(set *data.Dataset) Source { return &datasetSource{held{n: set.Points.N}, set} }

type datasetSource struct {
	held
	set *data.Dataset
}

func (s *datasetSource) D() int { return s.set.Points.D }

func (s *datasetSource) Labeled() bool { return s.set.Labels != nil }

func (s *datasetSource) Next(dst *data.Matrix) (int, error) {
	from, to := s.take(dst.N)
	if from == to {
		return 0, io.EOF
	}
	copy(dst.X, s.set.Points.X[from*dst.D:to*dst.D])
	return to - from, nil
}

func (s *datasetSource) Labels() []string {
	var names []string
	for _, c := range s.set.Labels.Class[s.from:s.to] {
		names = append(names, s.set.Labels.Names[c])
	}
	return names
}

func (s *datasetSource) Row(i int) string { return fmt.Sprintf("%s: row %d", s.set.Name, i+1) }

// A countsSource is counts in memory as a Source.
type countsSource struct {
	held
	counts  *data.Counts
	scaling *data.CountScaling
}

func (s *countsSource) D() int { return len(s.scaling.Genes) }

func (s *countsSource) Labeled() bool { return false }

func (s *countsSource) Labels() []string { return nil }

func (s *countsSource) Next(dst *data.Matrix) (int, error) {
	from, to := s.take(dst.N)
	if from == to {
		return 0, io.EOF
	}
	if err := s.scaling.ApplyTo(dst.Rows(0, to-from), s.counts, from); err != nil {
		return 0, fmt.Errorf("%s: %w", s.counts.Name, err)
	}
	return to - from, nil
}

func (s *countsSource) Row(i int) string {
	if s.counts.CellNames != nil {
		return fmt.Sprintf("%s: cell %d (%s)", s.counts.Name, i+1, s.counts.CellNames[i])
	}
	return fmt.Sprintf("%s: cell %d", s.counts.Name, i+1)
}
