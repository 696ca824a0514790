package memory

import (
	"cmp"
	"math"
	"slices"

	"cne/internal/selection"
)

// MaxWhitened is the largest width of representations that are whitened at the end: the time
// grows as its cube.
const MaxWhitened = 2048

// A Part is something that takes memory. Key is the configuration's key that decides its
// size, "" if only the data do.
type Part struct {
	What, Key string
	Bytes     float64
}

// An Estimate is a run's memory in bytes. Above 100 MB it is at most 30 % below and 60 %
// above the real peak.
type Estimate struct {
	// Live is the most memory in use at a time, which the run needs at least. Peak is the
	// process's resident memory, with the program itself and garbage.
	Live, Peak int64
	// During is the step that reaches Live, and Parts the arrays in use then, the largest
	// first.
	During string
	Parts  []Part
}

// step records the memory in use during a step.
func (e *Estimate) step(during string, parts ...Part) {
	const program, garbage = 50e6, 1.4 // with the program's small arrays, gaps, and the collector's tables
	sum := 0.
	for _, p := range parts {
		sum += p.Bytes
	}
	if live := int64(min(sum, math.MaxInt64/4)); live > e.Live {
		slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Bytes, a.Bytes) })
		*e = Estimate{live, int64(program + garbage*float64(live)), during, parts}
	}
}

// Points has the numbers that decide the memory of a run on points.
type Points struct {
	// N points are trained on, Held more are held out. A value takes ValueBytes until the
	// components are computed; 0 if the points stay in files. Sparse points have Nonzeros
	// values; Dense reports whether they become dense. Columns is the number of further
	// columns, such as labels.
	N, Held, Width, Nonzeros, Columns int
	Dense                             bool
	ValueBytes                        float64
	// Components is 0 if distances are taken between the points themselves. KeepsInput
	// reports whether a network sees them; Hidden are the widths of its hidden layers, nil
	// for a table.
	Components, Neighbors   int
	Approximate, KeepsInput bool
	Hidden                  []int
	// Moments is the number of the optimiser's arrays that are as large as the parameters,
	// and Listed the number of negatives that each head of a batch draws separately. With
	// AllPairs there are no batches.
	// Embeddings is the number of embeddings trained at a time, and Spearman the number of
	// points whose distances are ranked.
	Dim, NumberBytes, Moments, Batch, Listed, Embeddings, Spearman int
	Device, AllPairs                                               bool
}

// Estimate returns the estimate of the run's memory.
func (p *Points) Estimate() (e Estimate) {
	n, all, d, k, width := float64(p.N), float64(p.N+p.Held), float64(p.Width), float64(p.Neighbors), float64(p.Components)
	input, columns := Part{"points", "", all * d * p.ValueBytes}, Part{"columns of the points", "", 40 * all * float64(p.Columns)}
	if p.Nonzeros > 0 {
		input.Bytes = 8*all + 8*float64(p.Nonzeros)
		if p.Dense {
			input.Bytes += 4 * all * d
		}
	}
	e.step("the points are read", columns, input)

	components, directions := Part{"principal components", "graph.pca", 4 * all * width}, min(n, d)
	if p.Nonzeros > 0 { // the randomised method
		directions = 3 * (width + 14)
	}
	if p.Components == 0 {
		width = d
	} else {
		e.step("principal components are computed", columns, input, components, Part{"the covariance", "", 16 * min(n, d) * directions})
		if !p.KeepsInput {
			input.Bytes = 0
		}
	}

	search := 16 * (k + 16)
	switch {
	case p.Nonzeros > 0 && !p.Dense && p.Components == 0: // a list for each column
		width, search = 2*float64(p.Nonzeros)/max(1, n), 32+8*d/max(1, n)
	case p.Approximate || width <= 8 && !p.Device: // or in a tree
		search = 4 * max(k+5, 43)
	case p.Device: // which has the lists
		search = 16
	}
	e.step("the nearest neighbours are searched", columns, input, components, Part{"nearest neighbours", "graph.k", 12 * n * k},
		Part{"a copy of the points with lists for the search", "graph.k", n * (4*width + search)})

	edges := 1.45 * n * k // 1 if all neighbours are mutual, 2 if none is
	nearest, graph := Part{"nearest neighbours", "graph.k", 4 * n * k}, Part{"the graph", "graph.k", 4*edges + 8*n}
	if p.Nonzeros > 0 && !p.Dense && p.Components == 0 && p.Hidden == nil { // by the randomised method
		e.step("the initial positions are computed", columns, input, nearest, graph,
			Part{"components of the points", "", 40 * min(d, float64(p.Nonzeros)) * float64(p.Dim+14)})
	}
	dim, number, b, at, perEdge, cells := float64(p.Dim), float64(p.NumberBytes), float64(p.Batch), float64(max(1, p.Embeddings)), 20., 0.
	b = min(b, 2*n*k) // a graph has no more edges
	switch {
	case p.Device: // which trains one embedding after the other
		b, at, perEdge = 0, 1, 8
	case p.AllPairs:
		b, perEdge, cells = 0, 8+4/at, 113*n // the embeddings share the weights
	}
	weights, layers, in := Part{"the table with its copies", "model.dim", n * dim}, 0., width
	if p.Hidden != nil {
		weights, at = Part{"the network's weights with their gradients and copies", "model.hidden", 0}, 1
		if p.KeepsInput {
			in = d
		}
		for _, out := range append(slices.Clip(p.Hidden), p.Dim) {
			weights.Bytes += (in + 1) * float64(out)
			in = float64(out)
			layers += in
		}
	}
	weights.Bytes *= number * (2 + at*float64(1+2*p.Moments))
	e.step("the model is trained", columns, input, components, nearest, graph, weights, Part{"cells of points", "", at * cells},
		Part{"the order of the edges", "graph.k", at * perEdge * edges}, Part{"negatives", "loss.negatives", at * 4 * b * float64(p.Listed)},
		Part{"a batch", "train.batch_size", at * (48*b + number*(2.5*min(n, 2*b)*layers+32*b*dim))})

	s := min(float64(p.Spearman), n)
	e.step("the quality is measured", columns, input, components, nearest, graph,
		Part{"distances for the rank correlation", "quality.spearman_sample", 16*s*s + 4*s*(width+dim)},
		Part{"neighbours in the embedding", "quality.k", 40*n + 12*min(n, 1e5)*k})
	return e
}

// Images has the numbers that decide the memory of a run on images.
type Images struct {
	// N images of Bytes bytes each are in memory. Training uses batches of Batch images
	// with two views of Size×Size pixels each; 0 for no training. Whole images have
	// Whole×Whole pixels.
	N, Bytes, Batch, Size, Listed, Width, Hidden, Out, Whole int
	// Monitored images are classified during training. At the end some are Placed,
	// Represented, or Evaluated: by Pixels pixel values, if that is not 0.
	Monitored, Placed, Represented, Evaluated, Pixels int
	Device                                            bool
}

// Estimate returns the estimate of the run's memory.
func (r *Images) Estimate() (e Estimate) {
	w, hidden, b, side := float64(r.Width), float64(r.Hidden), float64(r.Batch), float64(r.Whole*r.Whole)
	images := Part{"images", "", float64(r.N) * float64(r.Bytes)}
	e.step("the images are read", images, Part{"images that are decoded", "", images.Bytes / 2})
	// At most 256 images go through the network at a time, and fewer large ones.
	work := Part{"the network at work", "views.whole_size", 16*w*max(side, min(256*side, 1<<20)) + 16000*w*w}
	batch := Part{"a batch", "train.batch_size", 128*w*b*float64(r.Size*r.Size) + 16000*w*w}
	if r.Size > 64 {
		batch.Key = "views.size"
	}
	if r.Device {
		work.Bytes, batch.Bytes, b = 0, 0, 0
	}
	// Representations are copied for the search for neighbours, and standardised; the inverse of
	// their covariance preconditions the classifier. At the end narrow ones are also whitened.
	classify := func(during string, images int, d float64, parts ...Part) {
		covariance := Part{"the covariance", "data.size", 24 * d * d}
		if images == 0 || d > 4096 {
			covariance.Bytes = 0
		}
		e.step(during, append(parts, covariance, Part{"representations with their copies", "", 12 * float64(images) * d})...)
	}
	whitened := func(d float64) Part {
		return Part{"whitened representations", "", selection.If(d <= MaxWhitened, 4*float64(r.Evaluated)*d, 0)}
	}
	const weights = "weights with their gradients and copies" // seven arrays
	if r.Batch > 0 {
		classify("the network is trained", r.Monitored, 8*w, images, batch, Part{"negatives", "loss.negatives", 4 * b * float64(r.Listed)},
			Part{"the network's " + weights, "network.width", 28 * 2730 * w * w},
			Part{"the head's " + weights, "network.hidden", 28 * 8 * w * hidden},
			Part{"the output's " + weights, "network.out", 28 * hidden * float64(r.Out)})
	}
	if r.Placed > 0 {
		e.step("the images are placed", images, work, Part{"positions", "", 4 * float64(r.Placed) * float64(r.Out)})
	}
	if r.Represented > 0 {
		e.step("the images are represented", images, work, Part{"representations", "", 32 * float64(r.Represented) * w})
	}
	if r.Pixels > 0 {
		classify("the pixels are classified", r.Evaluated, float64(r.Pixels), images, whitened(float64(r.Pixels)))
	} else if r.Evaluated > 0 {
		classify("the network is evaluated", r.Evaluated, 8*w, images, work, whitened(8*w))
	}
	return e
}
