package quality

import (
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/internal/parallel"
	"cne/internal/rng"
)

// KNNRecall returns the mean share of a point's k nearest neighbours in the
// embedding that are among its k nearest in the data, from 0 to 1. Both
// arguments are n×k: entries i·k to i·k+k−1 are the neighbours of point i,
// counted from 0, in any order, the point itself not among them. Errors wrap
// ErrInput, and ErrUndefined if there are no points.
func KNNRecall(inData, inEmbedding []int32, k int) (float64, error) {
	points := 0
	if k > 0 {
		points = len(inData) / k
	}
	return recall(inData, inEmbedding, k, points, "points")
}

// HeldOutRecall returns the mean share of a held-out point's k nearest
// training points in the embedding that are among its k nearest training
// points in the data, from 0 to 1. Both lists are held-out points × k, as
// KNNRecall's are, of training points numbered from 0 to training−1. Errors
// are KNNRecall's.
func HeldOutRecall(inData, inEmbedding []int32, k, training int) (float64, error) {
	return recall(inData, inEmbedding, k, training, "training points")
}

// recall is the mean share of k neighbours in the embedding, out of so many
// points, that are neighbours in the data. What names these points in errors.
func recall(inData, inEmbedding []int32, k, points int, what string) (float64, error) {
	if k < 1 || len(inData)%k != 0 || len(inEmbedding) != len(inData) {
		return 0, fmt.Errorf("%w: %d and %d neighbours are not two lists of %d for each point", ErrInput, len(inData), len(inEmbedding), k)
	}
	n := len(inData) / k
	if n == 0 {
		return 0, fmt.Errorf("%w: the recall of no points", ErrUndefined)
	}
	for _, list := range [][]int32{inData, inEmbedding} {
		for e, j := range list {
			if j < 0 || int(j) >= points {
				return 0, fmt.Errorf("%w: point %d (counted from 0) has %d as a neighbour, but there are %s 0 to %d", ErrInput, e/k, j, what, points-1)
			}
		}
	}
	const grain = 1 << 13
	hits := make([]int, parallel.Pieces(n, grain))
	parallel.For(n, grain, func(piece, lo, hi int) {
		owner := make([]int32, points) // point of which an entry is a neighbour in the data, plus 1
		for i := lo; i < hi; i++ {
			for _, j := range inData[i*k : (i+1)*k] {
				owner[j] = int32(i) + 1
			}
			for _, j := range inEmbedding[i*k : (i+1)*k] {
				if owner[j] == int32(i)+1 {
					hits[piece]++
					owner[j] = 0 // count a neighbour listed twice once
				}
			}
		}
	})
	total := 0
	for _, h := range hits {
		total += h
	}
	return float64(total) / float64(len(inData)), nil
}

// KNNAccuracy returns the share, from 0 to 1, of held-out points that a
// k-nearest-neighbour classifier in the embedding gets right. The stream
// decides which points are held out: round(n·testShare) of them, drawn without
// replacement and without regard to class; 1/7 holds out 10 000 of MNIST's
// 70 000. The classifier knows the others.
//
// Neighbours are exact, of two at the same distance the one with the lower row
// counts as nearer. The class with most neighbours wins; of classes with
// equally many, the one with the nearest member.
//
// classes[i] is the class of row i, any numbers. Errors wrap ErrInput or
// ErrNotFinite.
func KNNAccuracy(embedding *data.Matrix, classes []int32, k int, testShare float64, stream rng.Stream) (float64, error) {
	test, known, err := drawTest(embedding, classes, k, testShare, stream)
	if err != nil {
		return 0, err
	}
	c := newClassifier(embedding.D, k)
	for _, i := range known {
		c.learn(embedding.Row(i), classes[i])
	}
	return c.accuracy(len(test), func(i int) ([]float32, int32) { return embedding.Row(test[i]), classes[test[i]] }), nil
}

// drawTest checks the arguments of KNNAccuracy and returns the points that are held
// out, and, in order, those that are not.
func drawTest(embedding *data.Matrix, classes []int32, k int, testShare float64, stream rng.Stream) (test, known []int, err error) {
	n, err := points(embedding.X, embedding.D, "embedding")
	if err != nil {
		return nil, nil, err
	}
	if len(classes) != n {
		return nil, nil, fmt.Errorf("%w: %d classes for %d points", ErrInput, len(classes), n)
	}
	if !(testShare > 0 && testShare < 1) {
		return nil, nil, fmt.Errorf("%w: test share %v; give a number between 0 and 1", ErrInput, testShare)
	}
	held := int(math.Round(float64(n) * testShare))
	if held < 1 {
		return nil, nil, fmt.Errorf("%w: test share %v of %d points holds none out", ErrInput, testShare, n)
	}
	if k < 1 || k > n-held {
		return nil, nil, fmt.Errorf("%w: %d neighbours; give a number from 1 to %d, the points that are not held out", ErrInput, k, n-held)
	}
	order := stream.Perm(n)
	known = order[held:]
	slices.Sort(known)
	return order[:held], known, nil
}

// HeldOutAccuracy returns the share, from 0 to 1, of held-out points that a
// k-nearest-neighbour classifier which knows the training points gets right,
// by KNNAccuracy's rules. trainClasses[i] is the class of training point i,
// heldClasses[i] that of held-out point i; a held-out point of a class that no
// training point has counts as wrong. Errors wrap ErrInput or ErrNotFinite, and
// ErrUndefined if no point is held out.
func HeldOutAccuracy(train *data.Matrix, trainClasses []int32, held *data.Matrix, heldClasses []int32, k int) (float64, error) {
	n, tests, err := checkHeldOut(train, trainClasses, held, heldClasses, k)
	if err != nil {
		return 0, err
	}
	c := newClassifier(train.D, k)
	for i := range n {
		c.learn(train.Row(i), trainClasses[i])
	}
	return c.accuracy(tests, func(i int) ([]float32, int32) { return held.Row(i), heldClasses[i] }), nil
}

// checkHeldOut checks the arguments of HeldOutAccuracy and returns how many points
// there are of both kinds.
func checkHeldOut(train *data.Matrix, trainClasses []int32, held *data.Matrix, heldClasses []int32, k int) (n, tests int, err error) {
	n, err = points(train.X, train.D, "training points' embedding")
	if err != nil {
		return 0, 0, err
	}
	tests, err = points(held.X, held.D, "held-out points' embedding")
	switch {
	case err != nil:
		return 0, 0, err
	case held.D != train.D:
		return 0, 0, fmt.Errorf("%w: held-out points of %d coordinates, training points of %d", ErrInput, held.D, train.D)
	case len(trainClasses) != n:
		return 0, 0, fmt.Errorf("%w: %d classes for %d training points", ErrInput, len(trainClasses), n)
	case len(heldClasses) != tests:
		return 0, 0, fmt.Errorf("%w: %d classes for %d held-out points", ErrInput, len(heldClasses), tests)
	case k < 1 || k > n:
		return 0, 0, fmt.Errorf("%w: %d neighbours; give a number from 1 to %d, the training points", ErrInput, k, n)
	case tests == 0:
		return 0, 0, fmt.Errorf("%w: the accuracy on no points", ErrUndefined)
	}
	return n, tests, nil
}

// A classifier gives a point the class that most of its k nearest neighbours
// have.
type classifier struct {
	k           int
	class       []int32     // of each point that it knows
	coordinates [][]float64 // of these points, coordinate after coordinate
}

func newClassifier(d, k int) *classifier {
	return &classifier{k: k, coordinates: make([][]float64, d)}
}

func (c *classifier) learn(p []float32, class int32) {
	c.class = append(c.class, class)
	for l, v := range p {
		c.coordinates[l] = append(c.coordinates[l], float64(v))
	}
}

// accuracy returns the share of n points whose class is found.
func (c *classifier) accuracy(n int, test func(i int) (p []float32, class int32)) float64 {
	const grain = 64
	right := make([]int, parallel.Pieces(n, grain))
	parallel.For(n, grain, func(piece, lo, hi int) {
		nearest := newNearest(c.k)
		distances := make([]float64, min(len(c.class), 4096))
		for i := lo; i < hi; i++ {
			p, class := test(i)
			nearest.reset()
			for first := 0; first < len(c.class); first += len(distances) {
				last := min(len(c.class), first+len(distances))
				squaredDistances(distances[:last-first], p, c.coordinates, first)
				nearest.add(distances[:last-first], first)
			}
			if vote(nearest.rows, c.class) == class {
				right[piece]++
			}
		}
	})
	total := 0
	for _, r := range right {
		total += r
	}
	return float64(total) / float64(n)
}

// squaredDistances fills out with the distances from p to the points first,
// first+1, …
func squaredDistances(out []float64, p []float32, coordinates [][]float64, first int) {
	for c, column := range coordinates {
		column = column[first : first+len(out)]
		x := float64(p[c])
		if c == 0 {
			for j, v := range column {
				out[j] = (x - v) * (x - v)
			}
			continue
		}
		for j, v := range column {
			out[j] += float64((x - v) * (x - v))
		}
	}
}

// nearest keeps the k smallest distances seen, in increasing order.
type nearest struct {
	distances []float64
	rows      []int32
}

func newNearest(k int) *nearest {
	return &nearest{make([]float64, k), make([]int32, k)}
}

func (n *nearest) reset() {
	for i := range n.distances {
		n.distances[i], n.rows[i] = math.Inf(1), -1
	}
}

// add considers rows first, first+1, … at these distances. Rows come in
// increasing order, so that an equal distance later on is not nearer.
func (n *nearest) add(distances []float64, first int) {
	last := len(n.distances) - 1
	limit := n.distances[last]
	for j, d := range distances {
		if d >= limit {
			continue
		}
		i := last
		for ; i > 0 && n.distances[i-1] > d; i-- {
			n.distances[i], n.rows[i] = n.distances[i-1], n.rows[i-1]
		}
		n.distances[i], n.rows[i] = d, int32(first+j)
		limit = n.distances[last]
	}
}

// vote returns the most frequent class among rows, which are in order of
// distance; of equally frequent ones the one met first.
func vote(rows []int32, class []int32) int32 {
	var winner int32
	best := 0
	for i, r := range rows {
		count := 0
		for _, s := range rows[i:] {
			if class[s] == class[r] {
				count++
			}
		}
		if count > best { // a class's count is complete where it is met first
			best, winner = count, class[r]
		}
	}
	return winner
}
