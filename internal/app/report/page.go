// Package report shows the results of runs: pictures of embeddings, curves of the
// training, pages to explore embeddings, and tables of quality figures.
package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/data/images"
	"cne/data/neighbors"
	"cne/internal/app/rundir"
	"cne/internal/atomicfile"
	"cne/internal/explorer"
	"cne/internal/kind"
	"cne/internal/plot"
	"cne/internal/selection"
	"cne/train/quality"
)

// FilePage returns the page of an embedding that was read from files. images may be nil.
func FilePage(ctx context.Context, log *slog.Logger, files []string, m *Map, images *images.Set, w Wanted,
	o file.Options) (*cne.PageOptions, error) {
	page := &cne.PageOptions{Images: images}
	return page, Annotate(ctx, log, page, rundir.Table{Paths: files, Options: o}, w, m.Positions.N, nil)
}

// RunPage returns the page of the embedding in a run folder, which may put the points into
// another order. If images is nil and withImages is true, the page has the run's images, if
// its configuration wants them. It has the annotations that w asks for, and the run's.
func RunPage(ctx context.Context, log *slog.Logger, folder string, m *Map, images *images.Set, withImages bool,
	w Wanted) (_ *cne.PageOptions, err error) {
	defer kind.Catch(&err)
	if c := PretrainedConfig(folder); c != nil {
		return pretrainedPage(ctx, log, folder, c, m, images, withImages, w)
	}
	// For a run that left points out, rows are the rows that it kept.
	c := runConfig(log, folder, withImages)
	rows := kind.Got(pageRows(ctx, folder, m, c.Data.Holdout.Share > 0 && !c.Data.LeavesOut()))
	n := selection.If(rows == nil, m.Positions.N, 0) // 0: the run may have left rows out
	metrics := rundir.ReadMetrics(folder)
	if w.Data != nil {
		c.Data.Path = w.Data
	}
	if withImages && images == nil && len(c.Data.Path) > 0 {
		images = kind.Got(RunImages(ctx, log, c, m.Positions.N, rows))
	}
	page := &cne.PageOptions{Facts: Facts(&metrics.Figures, metrics.Z), Images: images}
	// A page of a run with data.sample has all points, in the order of the input.
	sample := kind.Got(rundir.ReadRows(ctx, filepath.Join(folder, rundir.SampleRowsFile), math.MaxInt32))
	if rows != nil { // where these rows are on the page
		index := make(map[int]int, len(rows))
		for i, row := range rows {
			index[row] = i
		}
		for k, row := range sample {
			sample[k] = index[row]
		}
	}
	page.Neighbors = m.Neighbors(log, rundir.KeptNeighbors(folder, c.Graph.Cache), sample)
	return page, Annotate(ctx, log, page, rundir.TableOf(c), w.orOf(c), n, rows)
}

// runConfig returns the configuration of the run in a folder, with paths relative to the
// current folder. If it cannot be read, it is empty and a warning is logged; a missing
// one is logged only if missed.
func runConfig(log *slog.Logger, folder string, missed bool) *configs.Config {
	c, origins, err := configs.Train.Load(&configs.Sources{File: filepath.Join(folder, rundir.ConfigFile)})
	if err != nil {
		if missed || !errors.Is(err, fs.ErrNotExist) {
			log.Warn("images, names and columns that the run has are left out of the page", "reason", err)
		}
		c = &configs.Config{}
	}
	rundir.LocateInputs(folder, c, origins)
	return c
}

// pageRows returns the rows of the input of the points in a run's picture. If these are
// all rows, it returns nil and puts the points into the order of the input. complete reports
// whether they are, with the held-out points.
func pageRows(ctx context.Context, folder string, m *Map, complete bool) ([]int, error) {
	rows, err := rundir.ReadRows(ctx, filepath.Join(folder, rundir.RowsFile), math.MaxInt32)
	if err != nil || m.HeldOut == nil {
		return rows, err
	}
	if complete {
		rows = nil
	}
	largest := selection.If(rows != nil, math.MaxInt32, m.Positions.N)
	path := filepath.Join(folder, rundir.HeldRowsFile)
	heldRows, err := rundir.ReadRows(ctx, path, largest)
	if err != nil {
		return nil, err
	}
	if held := m.Positions.N - slices.Index(m.HeldOut, true); heldRows != nil && len(heldRows) != held {
		return nil, fmt.Errorf("%s: got %d rows, want %d, one per held-out point", path, len(heldRows), held)
	}
	switch {
	case rows != nil:
		return slices.Concat(rows, heldRows), nil
	case heldRows != nil:
		m.InputOrder(heldRows)
	}
	return nil, nil
}

// thumbnail is the height and width in pixels of images that are larger, or of several sizes.
const thumbnail = 96

// GivenImages returns the images that paths name, one for each of n points. Files that
// cannot be decoded are white, or are left out if n is the number of the others, with a
// warning.
func GivenImages(ctx context.Context, log *slog.Logger, paths []string, n int) (*images.Set, error) {
	o := images.Options{Thumbnail: thumbnail}
	set, err := images.Open(ctx, paths, o)
	if errors.Is(err, images.ErrSizes) {
		o.Size = thumbnail
		set, err = images.Open(ctx, paths, o)
	}
	if o.SkipBroken = err == nil && set.N != n && set.N-len(set.Skipped) == n; o.SkipBroken {
		set, err = images.Open(ctx, paths, o)
	}
	if err != nil {
		return nil, fmt.Errorf("--images: %w", err)
	}
	if set.N != n {
		return nil, fmt.Errorf("--images: got %d images, want %d, one per point in the same order", set.N, n)
	}
	WarnSkipped(log, set)
	return set, nil
}

// Facts returns an embedding's quality figures for a page. z is NC-t-SNE's learnt
// constant, or nil.
func Facts(f *quality.Figures, z *float64) []cne.Fact {
	facts := cne.Facts(f)
	if z != nil {
		facts = append(facts, roundedFact("learnt Z", *z, "The normalisation constant that NC-t-SNE has learnt, on the scale of the partition function, which it approaches; neither direction is better."))
	}
	return facts
}

// roundedFact returns a figure of any size with three digits.
func roundedFact(name string, value float64, meaning string) cne.Fact {
	return cne.Fact{Name: name, Value: plot.Rounded(value), Meaning: meaning}
}

// RunImages returns the images of a run's n points in order, or of the given rows of
// data.path followed by data.holdout if rows is not nil. It returns nil if the points are
// not images of one size. Errors are logged, because a page without images is better than
// none; only ctx's error is returned.
func RunImages(ctx context.Context, log *slog.Logger, c *configs.Config, n int, rows []int) (*images.Set, error) {
	images, err := allImages(ctx, c)
	if err == nil && images != nil && rows != nil {
		images, err = takeImages(images, rows)
	}
	if err == nil && images != nil && images.N != n {
		err = fmt.Errorf("data.path: got %d images, want %d as in the embedding", images.N, n)
	}
	if err != nil && ctx.Err() == nil {
		log.Warn("the images of the points are left out of the page", "reason", rundir.Moved(err, rundir.PlotData))
		return nil, nil
	}
	return images, ctx.Err()
}

// allImages returns the images of data.path and, after them, of the files of data.holdout;
// nil unless all are images of one size. It reads the files again, since the points that
// were read from them are scaled.
func allImages(ctx context.Context, c *configs.Config) (all *images.Set, err error) {
	files := [][]string{c.Data.Path}
	if held := c.Data.Holdout.Paths; len(held) > 0 {
		files = append(files, held)
	}
	for _, paths := range files {
		if slices.ContainsFunc(paths, file.IsTable) || slices.ContainsFunc(paths, file.IsCells) ||
			slices.ContainsFunc(paths, func(path string) bool { return counts.Is(path, file.Options{}) }) {
			return nil, nil
		}
		set, err := images.Open(ctx, paths, images.Options{})
		switch {
		case errors.Is(err, data.ErrUnsupported) || errors.Is(err, data.ErrShape):
			return nil, nil
		case err != nil:
			return nil, err
		case all == nil:
			all = set
		case set.H != all.H || set.W != all.W || set.C != all.C:
			return nil, nil
		default:
			all.Pixels, all.N = slices.Concat(all.Pixels, set.Pixels), all.N+set.N
			all.Labels, all.Train = nil, nil
		}
	}
	return all, nil
}

// takeImages returns the images of the given rows, without labels.
func takeImages(set *images.Set, rows []int) (*images.Set, error) {
	taken := &images.Set{Name: set.Name, N: len(rows), H: set.H, W: set.W, C: set.C}
	for _, i := range rows {
		if i < 0 || i >= set.N {
			return nil, fmt.Errorf("data.path: got %d images, but row %d was embedded", set.N, i)
		}
		taken.Pixels = append(taken.Pixels, set.Image(i)...)
	}
	return taken, nil
}

// Neighbors returns the nearest neighbours that the page of a map shows, of those of the
// points that a run was trained on; nil for none. rows are the rows of these points in the
// map; nil for all that are not held out.
func (m *Map) Neighbors(log *slog.Logger, nb *neighbors.Neighbors, rows []int) *neighbors.Neighbors {
	n := m.Positions.N
	if rows == nil {
		rows = selection.Where(n, func(i int) bool { return m.HeldOut == nil || !m.HeldOut[i] })
	}
	if nb == nil || nb.N != len(rows) || slices.Max(rows) >= n {
		return nil // none, or of other points
	}
	k := min(nb.K, explorer.NeighborsShown(n))
	if k == 0 {
		log.Info("there are too many points to show their nearest neighbours on the page", "points", n)
		return nil
	}
	all := &neighbors.Neighbors{N: n, K: k, Index: slices.Repeat([]int32{-1}, n*k)}
	for i, row := range rows {
		for r, j := range nb.Of(i)[:k] {
			all.Index[k*row+r] = int32(rows[j])
		}
	}
	return all
}

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
