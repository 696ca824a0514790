package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/data/pca"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/simd"
	"cne/model"
)

// Sizes of the networks of Imitate, and of their training. docs/results.md says what else was
// tried.
const (
	mostLandmarks     = 8000
	pointsPerLandmark = 4
	hiddenWidth       = 256
	mostValues        = 100 // of a point; wider ones have components
	imitationBatch    = 512
	imitationPasses   = 20
	leastSteps        = 1000
	mostSteps         = 60_000
	warmUpSteps       = 50
	stepsPerReport    = 100
	sharpness         = 3     // in units of the distance to the nearest landmark
	layersRate        = 0.001 // of the layers before the landmarks
	assignmentRate    = 0.06
	positionsRate     = 0.01 // in units of the positions' standard deviation
	// noise bounds what is added to the values of a point, in units of the distance to the
	// nearest landmark, divided by the square root of their number.
	noise = 1.2
	// probes is the number of points that the distance to the nearest landmark is measured from.
	probes = 2000
)

// Imitate trains a network of landmarks (model.NewLandmarkMLP) to place dense points [n, in]
// where a map has them, at positions [n, d]. It minimizes the mean distance with Adam. The
// landmarks are a sample of the points. step is called after some steps with the number of
// steps taken, of how many, and the loss in units of the map's standard deviation; nil stands
// for none.
//
// Errors about points that are too few, sparse, or all equal wrap ErrInput.
func Imitate(ctx context.Context, points, positions *data.Matrix, seed uint64, step func(done, of int, loss float64)) (*model.MLP[float32], error) {
	const fewest = 10
	if points.CSR != nil || points.N < fewest {
		return nil, kind.Errorf(ErrInput, "train: a network learns a map of at least %d dense points", fewest)
	}
	x := &data.Matrix{N: points.N, D: points.D, X: points.X} // without an Offset
	var components *pca.PCA
	if x.D > mostValues {
		var err error
		if components, err = pca.Fit(ctx, x, min(mostValues, x.N), nil); err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		if x, err = components.Transform(ctx, x, nil); err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
	}
	center, x := centered(x)
	middle, y := centered(positions)
	stream := rng.New(seed, rng.Rows, 1)
	landmarks := stream.Perm(points.N)[:min(mostLandmarks, max(fewest, points.N/pointsPerLandmark))]
	chosen := x.Take(landmarks)
	spread, unit := spreadOf(y), nearest(x, chosen)
	if !(unit > 0) || !(spread > 0) {
		return nil, kind.Errorf(ErrInput, "train: all points are equal, or have equal positions, which a network cannot learn")
	}
	for _, v := range [][]float32{x.X, chosen.X} {
		simd.Divide(v, float32(unit))
	}
	simd.Divide(y.X, float32(spread))
	network, err := model.NewLandmarkMLP(model.Landmarks{
		Points: chosen, Positions: y.Take(landmarks), Sharpness: sharpness, Hidden: hiddenWidth,
		Spread: spreadOf(x), Seed: seed,
	})
	if err != nil {
		return nil, err
	}
	m, err := model.NewImitation(network)
	if err != nil {
		return nil, err
	}
	if err := imitate(ctx, m, x, y, &stream, step); err != nil {
		return nil, err
	}
	network.Refer(center, unit, middle, spread)
	if components != nil {
		if network, err = network.After(components.Axes, components.Mean); err != nil {
			return nil, err
		}
	}
	network.Freeze()
	return network, nil
}

// imitate trains the network of m to place x [n, in] at y [n, d].
func imitate(ctx context.Context, m *model.Imitation, x, y *data.Matrix, stream *rng.Stream, step func(done, of int, loss float64)) error {
	n := x.N
	params := m.Parameters()
	parts := []struct {
		Adam
		params []model.Parameter
		rate   float64
	}{
		{params: params[:6], rate: layersRate}, {params: params[6:8], rate: assignmentRate}, {params: params[8:], rate: positionsRate},
	}
	for i := range parts {
		if err := parts[i].Init(parts[i].params); err != nil {
			return err
		}
	}
	size := min(n, imitationBatch)
	steps := min(mostSteps, max(leastSteps, imitationPasses*n/size))
	var order []int
	next, sum := n, 0.0
	most := noise / math.Sqrt(float64(x.D))
	in, out := data.NewMatrix(size, x.D), data.NewMatrix(size, y.D)
	for t := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if next+size > n {
			order, next = stream.Perm(n), 0
		}
		for i, r := range order[next : next+size] {
			copy(out.Row(i), y.Row(r))
			to := in.Row(i)
			for j, v := range x.Row(r) {
				to[j] = v + float32(float64(most*(2*stream.Float64()-1)))
			}
		}
		loss, err := m.Step(in.X, out.X)
		if err != nil {
			return err
		}
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return fmt.Errorf("train: the network diverged in step %d", t+1)
		}
		next += size
		f := 0.5 * (1 + elementary.CosPi(float64(t)/float64(steps))) * min(1, float64(t+1)/warmUpSteps)
		for i := range parts {
			parts[i].Step(nil, f*parts[i].rate, 0)
		}
		sum += loss
		if step != nil && (t+1)%stepsPerReport == 0 {
			step(t+1, steps, sum/stepsPerReport)
			sum = 0
		}
	}
	return nil
}

// centered returns the means of the columns of a dense matrix, and a copy without them.
func centered(m *data.Matrix) (means []float64, c *data.Matrix) {
	means, c = make([]float64, m.D), m.Clone()
	for i := range m.N {
		for j, v := range m.Row(i) {
			means[j] += float64(v)
		}
	}
	for j := range means {
		means[j] /= float64(m.N)
	}
	for i := range c.N {
		row := c.Row(i)
		for j, v := range row {
			row[j] = float32(float64(v) - means[j])
		}
	}
	return means, c
}

// spreadOf returns the standard deviation of the values of a matrix whose columns are centred.
func spreadOf(m *data.Matrix) float64 {
	sum := 0.0
	for _, v := range m.X {
		sum += float64(float64(v) * float64(v))
	}
	return math.Sqrt(sum / float64(len(m.X)))
}

// nearest returns the median distance of some of the points to the nearest landmark with other
// values, or 0 if all values are the same.
func nearest(points, landmarks *data.Matrix) float64 {
	count := min(points.N, probes)
	distances := make([]float64, count)
	parallel.For(count, 16, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row, least := points.Row(int(int64(i)*int64(points.N)/int64(count))), math.Inf(1)
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
