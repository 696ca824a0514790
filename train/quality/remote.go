package quality

import (
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/device"
	"cne/internal/rng"
	"cne/internal/simd"
)

// The figures on an accelerator: those that look at all pairs of points.

// The pairs are cut into pieces of pairRows rows and pairColumns columns, whose sums
// are added up here, in the order of the pieces. The kernel knows pairRows, which
// is also its number of threads.
const (
	pairRows    = 256
	pairColumns = 2048
	tileSide    = 16 // pairs of a tile of distances, in both directions
)

// PartitionFunctionOn is PartitionFunction on a device: for float32, an accelerator
// computes the terms in single precision and adds up 32 of them before it goes on in
// double precision, so that the results agree to 1e-6. Embeddings of float64 stay on
// the CPU. Errors are also the device's.
func PartitionFunctionOn[T Float](on *device.Device, embedding []T, d int) (float64, error) {
	e, ok := any(embedding).([]float32)
	if on.OnHost() || !ok {
		return PartitionFunction(embedding, d)
	}
	n, err := points(embedding, d, "embedding")
	if err != nil || n < 2 {
		return 0, err
	}
	sums, err := remotePairs(on, e, n, d, nil, simd.Bound[float32]{})
	if err != nil {
		return 0, err
	}
	return 2 * sums[0], nil
}

// remotePairs adds up on an accelerator, over the unordered pairs, 1/(1+x) of the
// squared distances x, or the losses of discriminators if there are any.
func remotePairs(on *device.Device, e []float32, n, d int, discriminators []Discriminator, bound simd.Bound[float32]) ([]float64, error) {
	pieces := (n + pairRows - 1) / pairRows * ((n + pairColumns - 1) / pairColumns)
	count := max(1, len(discriminators))
	var terms []float32
	for _, p := range discriminators {
		terms = append(terms, float32(p.slope), float32(p.offset))
	}
	memory, err := on.AllocPieces(pieces*count*8, len(e)*4, len(terms)*4)
	if err != nil {
		return nil, err
	}
	defer memory.Free()
	if err := device.Upload(on, memory.At(1), planesOf(e, n, d)); err != nil {
		return nil, err
	}
	if err := device.Upload(on, memory.At(2), terms); err != nil {
		return nil, err
	}
	l := device.Launch{Grid: pieces * count, Block: pairRows}
	if len(discriminators) == 0 {
		err = on.Launch("metrics_partition", l, device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Int(n), device.Int(d), device.Int(pairColumns))
	} else {
		limit := float64(1 / bound.Clamp())
		err = on.Launch("metrics_losses", l, device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Arg(memory.At(2)), device.Int(n), device.Int(d),
			device.Int(pairColumns), device.F32(limit), device.F32(math.Log(limit)))
	}
	if err != nil {
		return nil, err
	}
	parts := make([]float64, pieces*count)
	if err := device.Download(on, parts, memory.At(0)); err != nil {
		return nil, err
	}
	sums := make([]float64, count)
	for k := range sums {
		for _, v := range parts[k*pieces : (k+1)*pieces] {
			sums[k] += v
		}
	}
	return sums, nil
}

// ExpectedLossesOn is ExpectedLosses on a device: an accelerator computes the sums
// over pairs, as PartitionFunctionOn does. Embeddings of float64, and constants
// beyond the range of float32, stay on the CPU. Errors are also the device's.
func ExpectedLossesOn[T Float](on *device.Device, heads, tails []int32, embedding []T, d, m int, clamp float64, discriminators ...Discriminator) ([]float64, error) {
	return expectedLosses(heads, tails, embedding, d, m, clamp, discriminators, func(n int) ([]float64, error) {
		e, ok := any(embedding).([]float32)
		if on.OnHost() || !ok || len(discriminators) == 0 || slices.ContainsFunc(discriminators, Discriminator.extreme) {
			return lossesOfPairs(embedding, n, d, clamp, discriminators), nil
		}
		return remotePairs(on, e, n, d, discriminators, simd.BoundOf[float32](clamp))
	})
}

// SpearmanOn is Spearman on a device, with the same result: an accelerator computes
// the distances, for which it needs 8 bytes of memory for each pair, and the CPU
// ranks them. Errors are also the device's.
func SpearmanOn(on *device.Device, x, y *data.Matrix, sample int, stream rng.Stream) (float64, error) {
	if on.OnHost() {
		return Spearman(x, y, sample, stream)
	}
	a, b, err := sampled(x, y, sample, stream)
	if err != nil {
		return 0, err
	}
	return correlate(len(a)/x.D, func(out []uint64) error { return remoteDistances(on, out, a, x.D) },
		func(out []uint64) error { return remoteDistances(on, out, b, y.D) })
}

// remoteDistances is distances on an accelerator.
func remoteDistances(on *device.Device, out []uint64, x []float32, d int) error {
	memory, err := on.AllocPieces(len(out)*8, len(x)*4)
	if err != nil {
		return err
	}
	defer memory.Free()
	if err := device.Upload(on, memory.At(1), x); err != nil {
		return err
	}
	n := len(x) / d
	tiles := (n + tileSide - 1) / tileSide
	if err := on.Launch("metrics_distances", device.Launch{Grid: tiles * tiles, Block: tileSide * tileSide},
		device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Int(n), device.Int(d)); err != nil {
		return err
	}
	return device.Download(on, out, memory.At(0))
}

// KNNAccuracyOn is KNNAccuracy on a device, which finds the neighbours
// (neighbors.SearchOn). In four and more dimensions the rounding of their distances
// may decide otherwise between equally near ones. Errors are also the device's.
func KNNAccuracyOn(on *device.Device, embedding *data.Matrix, classes []int32, k int, testShare float64, stream rng.Stream) (float64, error) {
	if on.OnHost() {
		return KNNAccuracy(embedding, classes, k, testShare, stream)
	}
	test, known, err := drawTest(embedding, classes, k, testShare, stream)
	if err != nil {
		return 0, err
	}
	pick := func(rows []int) (*data.Matrix, []int32) {
		class := make([]int32, len(rows))
		for p, i := range rows {
			class[p] = classes[i]
		}
		return &data.Matrix{N: len(rows), D: embedding.D, X: gather(embedding.X, embedding.D, rows)}, class
	}
	base, baseClass := pick(known)
	queries, class := pick(test)
	return remoteAccuracy(on, base, baseClass, queries, class, k)
}

// HeldOutAccuracyOn is to HeldOutAccuracy what KNNAccuracyOn is to KNNAccuracy.
func HeldOutAccuracyOn(on *device.Device, train *data.Matrix, trainClasses []int32, held *data.Matrix, heldClasses []int32, k int) (float64, error) {
	if on.OnHost() {
		return HeldOutAccuracy(train, trainClasses, held, heldClasses, k)
	}
	if _, _, err := checkHeldOut(train, trainClasses, held, heldClasses, k); err != nil {
		return 0, err
	}
	return remoteAccuracy(on, train, trainClasses, held, heldClasses, k)
}

// remoteAccuracy is classifier.accuracy for checked arguments.
func remoteAccuracy(on *device.Device, base *data.Matrix, baseClass []int32, queries *data.Matrix, class []int32, k int) (float64, error) {
	found, err := neighbors.SearchOn(on, base, queries, k)
	if err != nil {
		return 0, err
	}
	right := 0
	for i, c := range class {
		if vote(found.Of(i), baseClass) == c {
			right++
		}
	}
	return float64(right) / float64(len(class)), nil
}
