package projection

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"cne"
	"cne/configs"
	"cne/data"
)

// A Source is where points come from, in blocks: see data.Blocks, which is one.
type Source interface {
	D() int
	Labeled() bool
	Skip(points int) error
	Next(dst *data.Matrix) (int, error)
	Labels() []string
	Row(i int) string
	Borders() (from, to data.Border)
	Close() error
}

// Open opens the points of files, or those that are built in, for a model. Without a shard
// they are all points, else one part of them.
func Open(ctx context.Context, e *cne.Embedding, paths []string, opt data.Options, shard *data.Shard) (Source, error) {
	before := e.Description.Preprocessing
	if before != nil && before.Counts != nil {
		return openCounts(ctx, before.Counts, paths, opt, shard)
	}
	if i := slices.IndexFunc(paths, data.IsCounts); i >= 0 {
		return nil, fmt.Errorf("%s holds counts of single-cell sequencing, but the model was not trained on counts; give points of the kind that it was trained on", paths[i])
	}
	opt = before.Reading(opt)
	builtin := slices.IndexFunc(paths, isBuiltin)
	switch {
	case builtin < 0 && shard != nil:
		return data.OpenShard(ctx, paths, opt, *shard)
	case builtin < 0:
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
	return OfDataset(set, shard), nil
}

// OfDataset is a data set in memory as a Source. Without a shard it is all of its points,
// else one part of them.
func OfDataset(set *data.Dataset, shard *data.Shard) Source {
	return &datasetSource{set: set, rows: rowsOf(shard, set.Points.N)}
}

func isBuiltin(path string) bool { return strings.HasPrefix(path, configs.BuiltinPrefix) }

// rows are those of points in memory that are delivered, from lo on and before hi, and at
// is the next.
type rows struct{ lo, hi, at int }

// rowsOf returns those of n rows that belong to a part, or all.
func rowsOf(shard *data.Shard, n int) rows {
	if shard == nil {
		return rows{0, n, 0}
	}
	lo, hi := shard.Cut(n)
	return rows{lo, hi, lo}
}

// take returns which of the rows come next, at most so many.
func (r *rows) take(most int) (from, to int) {
	from = r.at
	r.at = min(r.hi, r.at+most)
	return from, r.at
}

// Skip implements Source.
func (r *rows) Skip(points int) error {
	if _, to := r.take(points); to-r.lo < points {
		return fmt.Errorf("there are %d points, fewer than the %d that are to be passed over", r.hi-r.lo, points)
	}
	return nil
}

// Borders implements Source.
func (r *rows) Borders() (from, to data.Border) {
	return data.Border{At: int64(r.lo)}, data.Border{At: int64(r.hi)}
}

// Close implements Source.
func (r *rows) Close() error { return nil }

// A datasetSource is what OfDataset returns.
type datasetSource struct {
	rows
	set      *data.Dataset
	from, to int // the last block
}

func (s *datasetSource) D() int { return s.set.Points.D }

func (s *datasetSource) Labeled() bool { return s.set.Labels != nil }

func (s *datasetSource) Next(dst *data.Matrix) (int, error) {
	if s.from, s.to = s.take(dst.N); s.from == s.to {
		return 0, io.EOF
	}
	copy(dst.X, s.set.Points.X[s.from*dst.D:s.to*dst.D])
	return s.to - s.from, nil
}

func (s *datasetSource) Labels() []string {
	var names []string
	for _, c := range s.set.Labels.Class[s.from:s.to] {
		names = append(names, s.set.Labels.Names[c])
	}
	return names
}

func (s *datasetSource) Row(i int) string { return fmt.Sprintf("%s: row %d", s.set.Name, s.lo+i+1) }

// A countsSource is counts in memory as a Source.
type countsSource struct {
	rows
	counts  *data.Counts
	scaling *data.CountScaling
}

// openCounts opens the input of a model that was trained on counts.
func openCounts(ctx context.Context, scaling *data.CountScaling, paths []string, opt data.Options, shard *data.Shard) (Source, error) {
	opt.Columns = scaling.Names
	counts, err := data.OpenCounts(ctx, paths, opt)
	if err != nil {
		return nil, err
	}
	return &countsSource{rowsOf(shard, counts.Cells), counts, scaling}, nil
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
		return fmt.Sprintf("%s: cell %d (%s)", s.counts.Name, s.lo+i+1, s.counts.CellNames[s.lo+i])
	}
	return fmt.Sprintf("%s: cell %d", s.counts.Name, s.lo+i+1)
}
