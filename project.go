package cne

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"cne/data"
	"cne/data/file"
	"cne/data/pca"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model"
	"cne/train"
)

// Save atomically writes the embedding to a safetensors file, with all that Project needs:
// a network's weights under PyTorch's names, or without a network the positions and points
// that were trained on. An empty embedding gives ErrPoints.
func (e *Embedding) Save(path string) error { return e.save(path, e.trainPoints) }

// SaveModel is Save without training points, which may be large or private. After Load,
// UseTrainingPoints supplies them again.
func (e *Embedding) SaveModel(path string) error { return e.save(path, nil) }

func (e *Embedding) save(path string, points *data.Matrix) error {
	if e.model == nil {
		return errEmpty
	}
	d := e.Description
	d.Points = points // Load sets them, too
	return e.model.Save(path, &d)
}

// errEmpty is the error for the zero Embedding.
var errEmpty = fmt.Errorf("%w: the embedding is empty; Embed and Load make one", ErrPoints)

// Load reads an embedding from a file written by Save or the program, from the folder of a
// run, or a network of linear layers saved from PyTorch. Without a network, it takes the
// training points from model.PointsFile next to the file if they are not in it. From a
// folder it takes the Positions of a network's training points, too, if they are there.
//
// Errors name the file. They wrap model.ErrFile if its contents are invalid, ErrImages if it
// holds a network for images, and fs.ErrNotExist if there is none.
func Load(path string) (_ *Embedding, err error) {
	defer kind.Catch(&err)
	from := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		from = filepath.Join(path, model.RunFile)
	}
	saved, err := model.Load(from)
	kind.Need(from == path || !errors.Is(err, fs.ErrNotExist), fs.ErrNotExist,
		"%s: got a folder without %s, want a finished run, or the file", path, model.RunFile)
	kind.Check(err)
	if saved.ResNet != nil {
		return nil, fmt.Errorf("%w: %s", ErrImages, from)
	}
	e := &Embedding{Description: saved.Description, mapper: saved.Network, trainPoints: saved.Points, FromPyTorch: saved.FromPyTorch}
	if network, ok := saved.Network.(saver); ok {
		if e.model = network; from != path {
			e.Positions = positionsOf(filepath.Join(path, "embedding.npy"), e.Dim())
		}
		return e, nil
	}
	e.Positions = &data.Matrix{N: saved.N, D: saved.D, X: saved.Table}
	e.model = kind.Got(model.NewEmbedding(slices.Clone(saved.Table), saved.D, saved.Training.Objective))
	if e.trainPoints == nil {
		points, err := model.LoadPoints(filepath.Join(filepath.Dir(from), model.PointsFile))
		if errors.Is(err, fs.ErrNotExist) {
			return e, nil
		}
		kind.Check(err)
		err = e.UseTrainingPoints(points)
		kind.Need(err == nil, model.ErrFile, "%s and the %s next to it are not of the same run: %w", from, model.PointsFile, err)
	}
	return e, nil
}

// positionsOf reads the positions in d dimensions in a file; nil if there is no file. It
// fails as kind.Need does.
func positionsOf(path string, d int) *data.Matrix {
	set, err := file.Read(context.Background(), []string{path}, file.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kind.Check(err)
	_, got := set.Dims()
	kind.Need(got == d, model.ErrFile, "%s: got %d coordinates, want %d as the model has", path, got, d)
	return set.Points
}

// WriteONNX writes the network with its preprocessing as an ONNX file, for other programs; see
// model.MLP.WriteONNX. Without a network the error wraps model.ErrONNX.
func (e *Embedding) WriteONNX(w io.Writer) error {
	if e.model == nil {
		return errEmpty
	}
	network, ok := e.mapper.(interface {
		WriteONNX(w io.Writer, p *model.Preprocessing) error
	})
	if !ok {
		return fmt.Errorf("%w: it is a map without a network; LearnNetwork (cne train --resume RUN --network) makes one learn it", model.ErrONNX)
	}
	return network.WriteONNX(w, e.Description.Preprocessing)
}

// LearnNetwork makes a network learn where the map has its training points (train.Imitate). From
// then on the network places new points, and is saved instead of the training points. Positions
// stay those of the map; the network's of the same points differ a little. It computes in
// float32. o may be nil; its Seed counts for nothing, since the map's is taken.
//
// It is an error if the embedding has a network (ErrPoints), lacks its training points
// (ErrNoTrainingPoints), or if they are sparse, distances, too few or all equal (ErrPoints). If
// ctx is done, the embedding stays as it was. Others wrap train.ErrCheckpoint.
func (e *Embedding) LearnNetwork(ctx context.Context, o *train.Imitation) error {
	points := e.trainPoints
	e.mu.Lock()
	_, without := e.mapper.(*train.Projector)
	without = without || e.mapper == nil
	e.mu.Unlock()
	switch {
	case !without:
		return fmt.Errorf("%w: the embedding has a network already", ErrPoints)
	case e.model == nil || e.Positions == nil:
		return errEmpty
	case points == nil:
		return ErrNoTrainingPoints
	case points.CSR != nil:
		return fmt.Errorf("%w: got sparse ones, which a network cannot learn; embed their principal components (graph.pca)", ErrPoints)
	case points.Metric == data.Precomputed:
		return fmt.Errorf("%w: got distances, which a network cannot learn", ErrPoints)
	}
	how := *cmp.Or(o, new(train.Imitation))
	how.Seed = e.Description.Training.Seed
	network, err := train.Imitate(ctx, points, e.trainedPositions(), &how)
	if err != nil {
		if errors.Is(err, train.ErrInput) {
			err = fmt.Errorf("%w: %w", ErrPoints, err)
		}
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mapper, e.model, e.trainPoints = network, network, nil
	e.placer.Store(nil)
	return nil
}

// UseTrainingPoints sets the training points [n, p] of an embedding without a network that
// was saved without them. They must be preprocessed, as Description.Preprocessing.Apply
// does with points as they were read. Errors wrap ErrPoints.
func (e *Embedding) UseTrainingPoints(points *data.Matrix) (err error) {
	defer kind.Catch(&err)
	kind.Check(checkPoints(points))
	if e.mapper == nil && e.Positions == nil {
		return errEmpty
	}
	_, without := e.mapper.(*train.Projector)
	kind.Expect(e.mapper == nil || without, ErrPoints, "got training points for a network, want none")
	kind.Expect(points.N == e.trainedPositions().N, ErrPoints, "got %d training points, want %d", points.N, e.trainedPositions().N)
	if p := e.Description.Preprocessing; p != nil {
		kind.Expect(p.Out() == points.D, ErrPoints, "got training points of %d values, want %d as points are prepared", points.D, p.Out())
	}
	e.trainPoints, e.mapper = points, nil
	e.placer.Store(nil)
	return nil
}

// UseDevice sets the device used by Project; nil means the CPU. The device must stay open.
// Networks of float64 stay on the CPU.
func (e *Embedding) UseDevice(d *model.Device) error {
	e.placer.Store(nil)
	switch mapper := e.mapper.(type) {
	case *model.MLP[float32]:
		return mapper.UseDevice(d)
	case *train.Projector: // tied to its device
		if d != e.device && !(d.OnHost() && e.device.OnHost()) {
			e.mapper = nil
		}
	}
	e.device = d
	return nil
}

// HasTrainingPoints reports whether the embedding has all that Project needs: the training
// points, or a network.
func (e *Embedding) HasTrainingPoints() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.model != nil && (e.mapper != nil || e.Positions == nil || e.trainPoints != nil)
}

// Projector returns the mapper from points, preprocessed as Description.Preprocessing
// says, to positions: the network, or a train.Projector. Without a network the embedding
// must have its training points (ErrNoTrainingPoints), and the first call builds a search
// index, which ctx can cancel. An empty embedding gives ErrPoints.
func (e *Embedding) Projector(ctx context.Context) (_ model.Mapper, err error) {
	defer kind.Catch(&err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mapper != nil {
		return e.mapper, nil
	}
	if e.model == nil || e.Positions == nil {
		return nil, errEmpty
	}
	if e.trainPoints == nil {
		return nil, ErrNoTrainingPoints
	}
	table, points := e.trainedPositions(), *e.trainPoints
	if before := e.Description.Preprocessing; before != nil {
		before.Metric.Mark(&points, before.Scaler)
	}
	e.mapper = kind.Got(train.NewProjector(ctx, e.device, &points, table.X, table.D, e.Description.Training))
	return e.mapper, nil
}

// Width returns the dimension of the points that Project accepts. An empty embedding gives
// ErrPoints. Without preprocessing, network and training points the error is
// ErrNoTrainingPoints.
func (e *Embedding) Width() (int, error) {
	if before := e.Description.Preprocessing; before != nil {
		return before.Width, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.mapper != nil:
		width, _ := e.mapper.Size()
		return width, nil
	case e.model == nil || e.Positions == nil:
		return 0, errEmpty
	case e.trainPoints == nil:
		return 0, ErrNoTrainingPoints
	}
	return e.trainPoints.D, nil
}

// Dim returns the number of dimensions of the embedding; 0 if it is empty.
func (e *Embedding) Dim() int {
	switch {
	case e.Positions != nil:
		return e.Positions.D
	case e.mapper == nil:
		return 0
	}
	_, d := e.mapper.Size()
	return d
}

// Projection has the options of ProjectRows. The zero value places all points, and stops
// with an error at the first that cannot be placed.
type Projection struct {
	// SkipBad gives points that cannot be placed NaNs as positions.
	SkipBad bool
	// Division, if not nil, says which of the points were trained on, and which are left
	// out. The former keep their positions, and the latter get none, whatever their values
	// are.
	Division *Division
	// First is the row number of the first point. It is not 0 if the caller has skipped
	// points (file.Rows.Skip).
	First int
	// Most is the largest number of points to place; 0 means all.
	Most int
}

// A ProjectedBlock has the positions of consecutive points, but those left out.
type ProjectedBlock struct {
	First     int   // row of the first point
	Rows      []int // of Positions
	Positions *data.Matrix
	Labels    []string // one per point; nil without labels
	Bad       int      // number of points that could not be placed
}

// A PointError describes a point that cannot be placed. It wraps ErrPoints.
type PointError struct {
	Row   int    // counted from 0
	Name  string // such as "points.csv: row 18"
	Fault string // the reason
}

func (e *PointError) Error() string { return fmt.Sprintf("%v: %s: %s", ErrPoints, e.Name, e.Fault) }

// Unwrap returns ErrPoints.
func (e *PointError) Unwrap() error { return ErrPoints }

// Sizes of a block. The values of a block should fit into the cache. The rows per
// processor keep all processors busy without making a block slow.
const (
	blockValues           = 1 << 21
	minBlockRows          = 16
	blockRowsPerProcessor = 1 << 10
	// A device needs more rows to be busy. The number of values is limited, too.
	deviceBlockRows   = 1 << 15
	deviceBlockValues = 1 << 24
)

// Project returns the positions [r, Dim] of points [r, D]; see ProjectRows. It does not
// change the points. If the columns have names, here and in training, they are matched by
// name. Their order does not matter, and extra columns are ignored. Errors are as for
// ProjectRows; a missing column gives ErrPoints.
func (e *Embedding) Project(ctx context.Context, points *data.Matrix) (*data.Matrix, error) {
	if err := checkPoints(points); err != nil {
		return nil, err
	}
	dst := data.NewMatrix(points.N, e.Dim())
	return dst, e.ProjectInto(ctx, dst, points)
}

// ProjectInto is Project that writes the positions to dst [r, Dim]. For a few dense points
// and a network it allocates no memory, unless it matches columns, or the network is of
// float64.
func (e *Embedding) ProjectInto(ctx context.Context, dst, points *data.Matrix) (err error) {
	defer kind.Catch(&err)
	kind.Check(checkPoints(points))
	if before := e.Description.Preprocessing; before != nil {
		if points, _, err = points.Select(before.Columns); err != nil {
			return fmt.Errorf("%w: %w", ErrPoints, err)
		}
	}
	p := kind.Got(e.newPlacer(ctx, points.D))
	if dst == nil || dst.CSR != nil || dst.N != points.N || dst.D != p.dim || len(dst.X) != dst.N*dst.D {
		return fmt.Errorf("%w: the matrix for the positions: want %d×%d", ErrPoints, points.N, p.dim)
	}
	if points.CSR != nil {
		return e.projectSet(ctx, dst, &data.Dataset{Points: points}, Projection{})
	}
	for lo := 0; lo < points.N; lo += p.block {
		kind.Check(ctx.Err())
		if err := p.place(dst, points, lo, min(lo+p.block, points.N), nil); err != nil {
			if bad, ok := errors.AsType[*PointError](err); ok {
				bad.Name = data.RowName(nil, false, bad.Row)
			}
			return err
		}
	}
	return nil
}

// ProjectSet is Project for the points of a set, which need not be in memory. Their
// columns must be the training points' columns.
func (e *Embedding) ProjectSet(ctx context.Context, set *data.Dataset, o Projection) (*data.Matrix, error) {
	n, _ := set.Dims()
	if o.Division != nil {
		n -= len(o.Division.Left)
	}
	all := data.NewMatrix(n, e.Dim())
	return all, e.projectSet(ctx, all, set, o)
}

func (e *Embedding) projectSet(ctx context.Context, dst *data.Matrix, set *data.Dataset, o Projection) error {
	rows := file.Of(set)
	defer rows.Close()
	written := 0
	return e.ProjectRows(ctx, rows, o, func(b *ProjectedBlock) error {
		written += copy(dst.X[written:], b.Positions.X)
		return nil
	})
}

// ProjectRows places new points and calls write with their positions, block by block in
// order. A block is valid until write returns. A network maps the points. Without a
// network, each point starts among its nearest training points and is then optimised,
// while the training points stay fixed. A point's position does not depend on other new
// points. One block is read while the other is placed, so two blocks are in memory. Read
// points from files with the options of Description.Preprocessing.Reading. ProjectRows
// does not close rows.
//
// The error wraps ErrPoints if points have another width, o.Division does not fit or,
// unless o.SkipBad is set, a point cannot be placed (*PointError); or it is
// ErrNoTrainingPoints, or comes from rows, write, ctx or the device.
func (e *Embedding) ProjectRows(ctx context.Context, rows file.Rows, o Projection, write func(b *ProjectedBlock) error) (err error) {
	defer kind.Catch(&err)
	p := kind.Got(e.newPlacement(ctx, rows, o))
	at := o.First
	current, next := p.newBlock(), p.newBlock()
	for current.err == nil {
		kind.Check(ctx.Err())
		var failed error
		parallel.For(2, 1, func(piece, _, _ int) {
			if piece == 0 {
				p.read(next, rows, at+current.n)
			} else {
				failed = p.placeBlock(current)
			}
		})
		if bad, ok := errors.AsType[*PointError](failed); ok {
			bad.Name = rows.RowName(bad.Row)
		}
		kind.Check(failed)
		if current.n > 0 {
			kind.Check(write(&current.ProjectedBlock))
			at += current.n
		}
		current, next = next, current
	}
	switch {
	case current.err != io.EOF:
		return current.err
	case p.trained < len(p.Division.Trained):
		return fmt.Errorf("%w: trained on row %d: got %d points, want all points of the input", ErrPoints, p.Division.Trained[p.trained], at)
	}
	return nil
}

// A placement is one run of ProjectRows.
type placement struct {
	Projection
	*placer
	size      int          // points per block
	learnt    *data.Matrix // positions of the rows trained on
	trained   int          // number of these already passed
	others    []int        // the positions of a block that are to be found
	positions *data.Matrix // of others
	skipped   []bool       // which of others could not be placed; nil without SkipBad
}

// A placedBlock has consecutive points and their positions.
type placedBlock struct {
	ProjectedBlock
	n      int          // points in use
	points *data.Matrix // the points are its first rows
	memory *data.Matrix // memory of points
	all    *data.Matrix // memory of Positions
	err    error        // why reading ended; io.EOF after the last point
}

// newPlacement returns the placement for a call of ProjectRows.
func (e *Embedding) newPlacement(ctx context.Context, rows file.Rows, o Projection) (_ *placement, err error) {
	defer kind.Catch(&err)
	placer := kind.Got(e.newPlacer(ctx, rows.Width()))
	p := &placement{Projection: o, placer: placer, size: placer.block, learnt: e.trainedPositions()}
	if o.Division == nil {
		p.Division = new(Division)
	} else if n := len(o.Division.Trained); p.learnt == nil || p.learnt.N != n {
		return nil, fmt.Errorf("%w: Division: got %d rows that were trained on, want those of the embedding", ErrPoints, n)
	}
	if n, known := rows.Len(); o.Most > 0 || known {
		p.size = min(p.size, cmp.Or(o.Most, n))
	}
	p.others, p.positions = make([]int, 0, p.size), data.NewMatrix(p.size, p.dim)
	if o.SkipBad {
		p.skipped = make([]bool, p.size)
	}
	return p, nil
}

func (p *placement) newBlock() *placedBlock {
	return &placedBlock{memory: data.NewMatrix(p.size, p.width), all: data.NewMatrix(p.size, p.positions.D)}
}

// read fills the block with the next points.
func (p *placement) read(b *placedBlock, rows file.Rows, first int) {
	size := p.size
	if p.Most > 0 {
		size = min(size, p.First+p.Most-first)
	}
	b.First, b.points = first, b.memory.Rows(0, size)
	if size == 0 {
		b.n, b.err = 0, io.EOF
	} else if b.n, b.err = rows.Next(b.points); b.err == nil {
		b.Labels = slices.Clone(rows.Labels())
	}
}

// placeBlock finds the positions of a block.
func (p *placement) placeBlock(b *placedBlock) error {
	b.Rows, b.Bad, p.others = b.Rows[:0], 0, p.others[:0]
	// Points to be placed move to the front. Placing without a network is slow, and the
	// others need none.
	for i := range b.n {
		row, at := b.First+i, len(b.Rows)
		if contains(p.Division.Left, row) {
			continue
		}
		b.Rows = append(b.Rows, row)
		if b.Labels != nil {
			b.Labels[at] = b.Labels[i]
		}
		if trained := p.Division.Trained; p.trained < len(trained) && trained[p.trained] == row {
			copy(b.all.Row(at), p.learnt.Row(p.trained))
			p.trained++
			continue
		}
		if k := len(p.others); k < i {
			copy(b.points.Row(k), b.points.Row(i))
		}
		p.others = append(p.others, at)
	}
	b.Positions, b.Labels = b.all.Rows(0, len(b.Rows)), b.Labels[:min(len(b.Rows), len(b.Labels))]
	n := len(p.others)
	if n == 0 {
		return nil
	}
	skipped := p.skipped
	if skipped != nil {
		skipped = skipped[:n]
		clear(skipped)
	}
	placed := p.positions.Rows(0, n)
	if err := p.place(placed, b.points, 0, n, skipped); err != nil {
		if bad, ok := errors.AsType[*PointError](err); ok {
			bad.Row = b.Rows[p.others[bad.Row]]
		}
		return err
	}
	for k, i := range p.others {
		row := b.all.Row(i)
		copy(row, placed.Row(k))
		if skipped != nil && skipped[k] {
			b.Bad++
			selection.Fill(row, float32(math.NaN()))
		}
	}
	return nil
}

// A placer places points by an embedding. Any number of goroutines may use it at once.
type placer struct {
	before     *model.Preprocessing
	components *pca.Transformer // nil for none
	mapper     model.Mapper
	width, dim int
	block      int  // points that are placed together
	piece      int  // points of a block that a core prepares together
	separate   bool // each piece is mapped by itself
	spaces     sync.Pool
}

// A placerSpace has the memory for a piece, and for the prepared points of a block if this
// is mapped as a whole.
type placerSpace struct {
	points, prepared data.Matrix
}

const (
	// pieceValues is the approximate number of values of a piece, so that it stays in a core's
	// cache. Its rows are a multiple of tileRows, the rows of the tiles of matrix products.
	pieceValues  = 1 << 16
	tileRows     = 12
	maxPieceRows = 8 * tileRows
)

// newPlacer returns the placer for points of the given width. Only the first call makes it.
func (e *Embedding) newPlacer(ctx context.Context, width int) (_ *placer, err error) {
	defer kind.Catch(&err)
	p := e.placer.Load()
	if p == nil || p.before != e.Description.Preprocessing {
		want, mapper := kind.Got(e.Width()), kind.Got(e.Projector(ctx))
		p = &placer{before: e.Description.Preprocessing, mapper: mapper, width: want, dim: e.Dim()}
		p.spaces.New = func() any { return new(placerSpace) }
		if p.before != nil && p.before.PCA != nil {
			p.components = p.before.PCA.Transformer()
		}
		p.block = min(max(minBlockRows, blockValues/p.width), blockRowsPerProcessor*runtime.GOMAXPROCS(0))
		p.piece = min(max(1, pieceValues/p.width/tileRows)*tileRows, maxPieceRows)
		if network, ok := mapper.(interface{ OnHost() bool }); !e.device.OnHost() || ok && !network.OnHost() {
			p.block = max(p.block, min(deviceBlockRows, deviceBlockValues/p.width))
		} else {
			p.separate = ok
		}
		e.placer.Store(p)
	}
	if p.width != width {
		return nil, fmt.Errorf("%w: got points of %d values, want %d as in training", ErrPoints, width, p.width)
	}
	return p, nil
}

// resize makes m a matrix of n×d values, whatever they are.
func resize(m *data.Matrix, n, d int) {
	m.N, m.D, m.X = n, d, slices.Grow(m.X[:0], n*d)[:n*d]
}

// place writes the positions of points lo to hi−1 to the same rows of dst. Points that
// cannot be placed are marked in skipped, which begins with point lo; if it is nil, the
// first is a *PointError.
func (p *placer) place(dst, points *data.Matrix, lo, hi int, skipped []bool) error {
	if p.separate && hi-lo <= p.piece {
		return p.placePiece(dst, points, lo, hi, skipped)
	}
	whole := p.spaces.Get().(*placerSpace)
	defer p.spaces.Put(whole)
	in, _ := p.mapper.Size()
	if !p.separate {
		resize(&whole.prepared, hi-lo, in)
	}
	errs := make([]error, parallel.Pieces(hi-lo, p.piece))
	parallel.For(hi-lo, p.piece, func(piece, from, to int) {
		var marks []bool
		if skipped != nil {
			marks = skipped[from:to]
		}
		if p.separate {
			errs[piece] = p.placePiece(dst, points, lo+from, lo+to, marks)
			return
		}
		s := p.spaces.Get().(*placerSpace)
		defer p.spaces.Put(s)
		errs[piece] = p.prepare(s, whole.prepared.X[from*in:to*in], points, lo+from, lo+to, marks)
	})
	if err := cmp.Or(errs...); err != nil || p.separate {
		return err
	}
	return p.mapTo(dst, whole.prepared.X, points, lo, hi, skipped)
}

// placePiece is place for points of one piece, on the calling goroutine.
func (p *placer) placePiece(dst, points *data.Matrix, lo, hi int, skipped []bool) error {
	s := p.spaces.Get().(*placerSpace)
	defer p.spaces.Put(s)
	in, _ := p.mapper.Size()
	resize(&s.prepared, hi-lo, in)
	if err := p.prepare(s, s.prepared.X, points, lo, hi, skipped); err != nil {
		return err
	}
	return p.mapTo(dst, s.prepared.X, points, lo, hi, skipped)
}

// prepare writes the mapper's input for points lo to hi−1 to x.
func (p *placer) prepare(s *placerSpace, x []float32, points *data.Matrix, lo, hi int, skipped []bool) error {
	m := &s.points
	if p.components == nil {
		*m = data.Matrix{N: hi - lo, D: p.width, X: x}
	} else {
		resize(m, hi-lo, p.width)
	}
	m.Offset, m.Columns = points.Offset, points.Columns
	copy(m.X, points.X[lo*p.width:hi*p.width])
	if p.before != nil && p.before.Fill != nil {
		m.FillMissing(p.before.Fill)
	}
	scaled, err := p.before.ApplyInPlace(m, skipped)
	if err != nil {
		if noDirection, ok := errors.AsType[*data.DirectionError](err); ok {
			return &PointError{Row: lo + noDirection.Rows[0], Fault: noDirection.Metric.NoDirection()}
		}
		return err
	}
	if scaled != m { // its columns had another order
		copy(m.X, scaled.X)
	}
	if p.components != nil {
		p.components.To(x, m.X)
	}
	return p.reject(x, points, lo, hi, skipped)
}

// mapTo maps x, the prepared points lo to hi−1.
func (p *placer) mapTo(dst *data.Matrix, x []float32, points *data.Matrix, lo, hi int, skipped []bool) error {
	positions := dst.X[lo*p.dim : hi*p.dim]
	if err := p.mapper.ProjectTo(positions, x); err != nil {
		return err
	}
	return p.reject(positions, points, lo, hi, skipped)
}

// reject marks points lo to hi−1 in skipped, and clears their rows of x, if these have a
// value that is not finite. If skipped is nil, it returns a PointError for the first.
func (p *placer) reject(x []float32, points *data.Matrix, lo, hi int, skipped []bool) error {
	width := len(x) / (hi - lo)
	for i := range hi - lo {
		row := x[i*width : (i+1)*width]
		if simd.AllFinite(row) {
			continue
		}
		if skipped == nil {
			return &PointError{Row: lo + i, Fault: p.fault(points, lo+i)}
		}
		skipped[i] = true
		clear(row)
	}
	return nil
}

// fault says why point i cannot be placed.
func (p *placer) fault(points *data.Matrix, i int) string {
	row := points.Row(i)
	at := simd.FirstNotFinite(row)
	switch {
	case at < 0 || p.before != nil && p.before.Fill != nil:
		return "the values are too large for this model"
	case points.Columns != nil:
		return fmt.Sprintf("column %q: got %v, want a finite number", points.Columns[at], row[at])
	}
	return fmt.Sprintf("value %d: got %v, want a finite number", at+1, row[at])
}

// trainedPositions returns the positions of the points that the embedding was trained on.
func (e *Embedding) trainedPositions() *data.Matrix {
	if e.trainPositions != nil {
		return e.trainPositions
	}
	return e.Positions
}
