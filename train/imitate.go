package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"cne/data"
	"cne/data/pca"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/model"
	"cne/model/op"
)

// Sizes of the networks of Imitate, and of their training. docs/results.md says what else was
// tried.
const (
	mostLandmarks     = 15_000
	pointsPerLandmark = 2
	hiddenWidth       = 256
	mostValues        = 100 // of a point; wider ones have components
	imitationBatch    = 512
	imitationPasses   = 20
	leastSteps        = 300
	mostSteps         = 20_000
	warmUpSteps       = 50
	sharpness         = 3     // in units of the distance to the nearest landmark
	layersRate        = 0.001 // of the layers before the landmarks
	assignmentRate    = 0.01
	positionsRate     = 0.001 // in units of the positions' standard deviation
	// noise bounds what is added to the values of a point, in units of the distance to the
	// nearest landmark, divided by the square root of their number.
	noise = 1.6
	// probes is the number of points from which the scale of all is found.
	probes = 2000
	// farthest bounds the values of a point in training, in units of their spread: no outlier
	// must decide the steps.
	farthest = 1000
)

// An Imitation says how Imitate trains. Its zero value keeps nothing, and begins anew.
type Imitation struct {
	// Seed draws the landmarks, the order of the points, and their noise.
	Seed uint64
	// Step, if not nil, is called after every step with the number of steps taken, of how
	// many, and the loss of that step, in units of the map's standard deviation.
	Step func(done, of int, loss float64)
	// Checkpoints, if not nil, says when the state is saved: after each Interval, and when the
	// context is done.
	Checkpoints *Checkpoints
	// Resume, if not nil, is a saved state, from which the training continues and ends with
	// the same bits. The points must be the same. If the positions or the seed are others, the
	// error wraps ErrCheckpoint.
	Resume *Checkpoint
}

// FewestToImitate is the smallest number of points that Imitate takes.
const FewestToImitate = 10

// Imitate trains a network of landmarks (model.NewLandmarkMLP) to place dense points [n, in]
// where a map has them, at positions [n, d]. It minimizes the mean distance with Adam. Equal
// points are learnt once, at the position of one of them. The landmarks are a sample of the
// points. o may be nil.
//
// Errors about points that are too few, sparse, or all equal wrap ErrInput.
func Imitate(ctx context.Context, points, positions *data.Matrix, o *Imitation) (_ *model.MLP[float32], err error) {
	defer kind.Catch(&err)
	o = cmp.Or(o, new(Imitation))
	kind.Need(points.CSR == nil && points.N >= FewestToImitate && points.N == positions.N, ErrInput,
		"train: a network learns a map of at least %d dense points", FewestToImitate)
	x := &data.Matrix{N: points.N, D: points.D, X: points.X} // without an Offset
	var components *pca.PCA
	if x.D > mostValues {
		components = kind.Got(pca.Fit(ctx, x, min(mostValues, x.N)))
		x = kind.Got(components.Transform(ctx, x))
	}
	stream := rng.New(o.Seed, rng.Rows, 1)
	rows := different(x, stream.Perm(x.N))
	landmarks := rows[:min(mostLandmarks, len(rows), max(FewestToImitate, len(rows)/pointsPerLandmark))]
	i := imitation{Imitation: o, x: x, y: positions, rows: rows, in: inUnits(x), out: unitsOf(positions), stream: &stream}
	chosen, at := x.Take(landmarks), positions.Take(landmarks)
	if i.in.limit == 0 { // hardly any point differs from the others, but landmarks do
		i.in = inUnits(chosen)
	}
	i.in.unit = nearest(x, chosen)
	kind.Need(i.in.unit > 0 && i.out.unit > 0, ErrInput, "train: all points are equal, or have equal positions, which a network cannot learn")
	spread := i.in.limit / farthest / i.in.unit
	i.in.apply(chosen.X, chosen.X)
	i.out.apply(at.X, at.X)
	network := kind.Got(model.NewLandmarkMLP(model.Landmarks{
		Points: chosen, Positions: at, Sharpness: sharpness, Hidden: hiddenWidth, Spread: spread, Seed: o.Seed,
	}))
	kind.Check(i.train(ctx, network))
	network.Refer(i.in.center, i.in.unit, i.out.center, i.out.unit)
	if components != nil {
		network = kind.Got(network.After(components.Axes, components.Mean))
	}
	network.Freeze()
	return network, nil
}

// An imitation trains a network to place x [n, in] at y [n, d].
type imitation struct {
	*Imitation
	x, y    *data.Matrix
	rows    []int // the points to learn
	in, out units
	stream  *rng.Stream
}

// units are those that a network computes in.
type units struct {
	center []float64
	unit   float64
	limit  float64 // bounds the distance of a value from its center, in units of the data
}

// apply writes rows in these units to dst.
func (u *units) apply(dst, rows []float32) {
	for i, v := range rows {
		from := min(max(float64(v)-u.center[i%len(u.center)], -u.limit), u.limit)
		dst[i] = float32(from / u.unit)
	}
}

// inUnits returns the units of points, but for the unit. Medians keep outliers from deciding.
func inUnits(x *data.Matrix) units {
	u := units{center: make([]float64, x.D)}
	count := min(x.N, probes)
	column := make([]float64, count)
	var far []float64
	for j := range x.D {
		for i := range column {
			column[i] = float64(x.Row(probe(i, count, x.N))[j])
		}
		slices.Sort(column)
		u.center[j] = column[count/2]
	}
	for i := range count {
		sum := 0.0
		for j, v := range x.Row(probe(i, count, x.N)) {
			d := float64(v) - u.center[j]
			sum += float64(d * d)
		}
		far = append(far, math.Sqrt(sum/float64(x.D)))
	}
	slices.Sort(far)
	// Where most points are equal, the others have the spread.
	first := sort.Search(count-1, func(i int) bool { return far[i] > 0 })
	u.limit = farthest * far[(first+count)/2]
	return u
}

// unitsOf returns the units of positions: their mean and standard deviation.
func unitsOf(y *data.Matrix) units {
	mean, squares := y.Moments(selection.UpTo[int32](y.N))
	return units{center: mean, unit: math.Sqrt(squares / float64(len(y.X))), limit: math.Inf(1)}
}

// probe returns the row of n of the i-th of count probes.
func probe(i, count, n int) int { return int(int64(i) * int64(n) / int64(count)) }

func (m *imitation) train(ctx context.Context, network *model.MLP[float32]) (err error) {
	defer kind.Catch(&err)
	graph := kind.Got(model.NewImitation(network))
	n := len(m.rows)
	size := min(n, imitationBatch)
	steps := min(mostSteps, max(leastSteps, imitationPasses*n/size))
	learnt := kind.Got(op.ArrayOf(m.y.X, m.y.N, m.y.D))
	state := Checkpoint{Progress: Progress{Seed: m.Seed, Total: steps}, arrays: []NamedArray{{"map", learnt}}}
	// Two parameters for each layer: three before the landmarks, the weights of landmarks, and
	// the positions.
	params := graph.Parameters()
	parts := []struct {
		Adam
		params []model.Parameter
		rate   float64
	}{
		{params: params[:6], rate: layersRate}, {params: params[6:8], rate: assignmentRate}, {params: params[8:], rate: positionsRate},
	}
	for i := range parts {
		p := &parts[i]
		kind.Check(p.Init(p.params))
		for _, x := range p.params {
			state.arrays = append(state.arrays, NamedArray{parameterPrefix + x.Name, x.Value})
		}
		for _, x := range p.State() {
			state.arrays = append(state.arrays, NamedArray{fmt.Sprint(optimizerPrefix, i, ".", x.Name), x.Value})
		}
	}
	begun := 0
	if m.Resume != nil {
		kind.Check(m.Resume.restoreImitation(&state))
		begun = m.Resume.Progress.Epochs
	}
	var order []int
	next, saved := n, time.Now()
	most := noise / math.Sqrt(float64(m.x.D))
	x, y := data.NewMatrix(size, m.x.D), data.NewMatrix(size, m.y.D)
	for t := range steps {
		if next+size > n {
			order, next = m.stream.Perm(n), 0
		}
		rows := order[next : next+size]
		next += size
		if t < begun { // only draws, as in the steps before
			*m.stream = m.stream.At(uint64(len(x.X)))
			continue
		}
		err := ctx.Err()
		if c := m.Checkpoints; c != nil && (err != nil || c.Interval > 0 && time.Since(saved) >= c.Interval) {
			state.Progress.Epochs, saved = t, time.Now()
			err = errors.Join(err, c.Save(&state))
		}
		kind.Check(err)
		for i, k := range rows {
			m.out.apply(y.Row(i), m.y.Row(m.rows[k]))
			m.in.apply(x.Row(i), m.x.Row(m.rows[k]))
		}
		for i, v := range x.X {
			x.X[i] = v + float32(float64(most*(2*m.stream.Float64()-1)))
		}
		loss := kind.Got(graph.Step(x.X, y.X))
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return fmt.Errorf("train: the network diverged in step %d", t+1)
		}
		f := 0.5 * (1 + elementary.CosPi(float64(t)/float64(steps))) * min(1, float64(t+1)/warmUpSteps)
		for i := range parts {
			parts[i].Step(nil, f*parts[i].rate, 0)
		}
		if m.Step != nil {
			m.Step(t+1, steps, loss)
		}
	}
	return nil
}

// restoreImitation takes over the arrays of the checkpoint, if it is of the same imitation as now.
func (c *Checkpoint) restoreImitation(now *Checkpoint) error {
	p, at := &c.Progress, slices.IndexFunc(c.arrays, func(a NamedArray) bool { return a.Name == "map" })
	if p.Seed != now.Progress.Seed || p.Total != now.Progress.Total || p.Epochs < 0 || p.Epochs > p.Total || at < 0 ||
		!slices.Equal(op.Data[float32](c.arrays[at].Value), op.Data[float32](now.arrays[0].Value)) {
		return fmt.Errorf("%w: it is of another map, or seed", ErrCheckpoint)
	}
	return restore(now.arrays[1:], slices.Delete(slices.Clone(c.arrays), at, at+1))
}

// different returns the rows of an order, which it changes, without copies of earlier ones: two
// landmarks at a place would leave none for other points, and many copies would outweigh all others.
func different(x *data.Matrix, order []int) (rows []int) {
	hashes := make([]uint64, 0, x.N)
	for _, hash := range x.RowHashes() {
		hashes = append(hashes, hash)
	}
	kinds := slices.Clone(hashes)
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	seen := make([]bool, len(kinds))
	rows = order[:0]
	for _, i := range order {
		if k, _ := slices.BinarySearch(kinds, hashes[i]); !seen[k] {
			seen[k], rows = true, append(rows, i)
		}
	}
	return rows
}

// nearest returns the median distance of some of the points to the nearest landmark with other
// values, or 0 if all values are the same.
func nearest(points, landmarks *data.Matrix) float64 {
	count := min(points.N, probes)
	distances := make([]float64, count)
	parallel.For(count, 16, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row, least := points.Row(probe(i, count, points.N)), math.Inf(1)
			for k := range landmarks.N {
				d2 := 0.0
				for j, v := range landmarks.Row(k) {
					diff := float64(row[j]) - float64(v)
					d2 += float64(diff * diff)
				}
				if d2 > 0 {
					least = min(least, d2)
				}
			}
			distances[i] = least
		}
	})
	slices.Sort(distances)
	if d2 := distances[count/2]; !math.IsInf(d2, 1) {
		return math.Sqrt(d2)
	}
	return 0
}
