package memory

import (
	"cmp"
	"math"
	"slices"
)

// A Part is something that takes memory. Key is the configuration's key that decides its
// size, "" if none does but the number of points or images.
type Part struct {
	What, Key string
	Bytes     float64
}

// An Estimate is what a run takes. It is rough: at most 30 % below what the process has
// resident at its peak, and at most 60 % above, where that is more than 100 MB.
type Estimate struct {
	// Live is the most that is held at a time: less will not do. Peak is what the process
	// has resident, with the program itself and garbage.
	Live, Peak int64
	// During is the step in which Live is reached, and Parts what is held then, the
	// largest first.
	During string
	Parts  []Part
}

// step notes what is held during a step.
func (e *Estimate) step(during string, parts ...Part) {
	// The program itself with its small arrays, and garbage, gaps and the collector's tables
	// beside what is held.
	const program, garbage = 50e6, 1.4
	sum := 0.
	for _, p := range parts {
		sum += p.Bytes
	}
	if live := int64(min(sum, math.MaxInt64/4)); live > e.Live {
		slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Bytes, a.Bytes) })
		*e = Estimate{live, int64(program + garbage*float64(live)), during, parts}
	}
}

// Points is what the memory of a run on points depends on. Its numbers may be 0 where they
// do not matter.
type Points struct {
	N, Held, Width int     // points, how many more are held out, and their values
	ValueBytes     float64 // for each value while there are no components: 0 if they stay in files
	Nonzeros       int     // values that sparse points hold, those held out included
	Columns        int     // columns that are known of the points beside their values
	Components     int     // principal components; 0: none
	Neighbors      int     // of each point, for the graph or the recall
	Approximate    bool    // as they are found
	Edges          int     // 0: as a kNN graph has
	Weighted       bool    // edges are drawn by their weights
	Dim            int
	Hidden         []int // widths of a network's layers; nil: a table
	OnComponents   bool  // the network sees the components
	NumberBytes    int   // 4, or 8 with float64
	Moments        int   // arrays of the optimiser, each as large as the parameters
	Batch          int
	Listed         int // negatives that each head draws on its own
	Embeddings     int // trained at a time; 0: one
	Device         bool
	Spearman       int // points whose distances are ranked
}

// Estimate returns what the run takes.
func (p *Points) Estimate() (e Estimate) {
	n, held, d, k, dim, number := float64(p.N), float64(p.Held), float64(p.Width), float64(p.Neighbors), float64(p.Dim), float64(p.NumberBytes)
	edges := float64(p.Edges)
	if edges == 0 {
		edges = 1.45 * n * k // 1 if all neighbours are mutual, 2 if none is
	}
	known := Part{"columns of the points", "", 40 * (n + held) * float64(p.Columns)}

	values := p.ValueBytes * d
	if p.Nonzeros > 0 {
		values = 8 + 8*float64(p.Nonzeros)/(n+held)
	}
	input := Part{"points", "", (n + held) * values}
	if held > 0 {
		input.Bytes += n * values // both parts are copied from all
	}
	e.step("the points are read", known, input)
	if p.Nonzeros > 0 && p.Components == 0 {
		input.Bytes += 4 * (n + held) * d
		e.step("the points are made dense", known, input)
	}

	components, width := Part{}, d
	if p.Components > 0 {
		width = float64(p.Components)
		components = Part{"principal components", "graph.pca", 4 * (n + held) * width}
		order := min(n, d)
		if p.Nonzeros > 0 { // the randomised method
			order = math.Sqrt(order * (width + 14) * 3)
		}
		e.step("principal components are computed", known, input, components, Part{"the covariance of the points", "", 16 * order * order})
		if p.Hidden == nil || p.OnComponents {
			input = Part{}
		}
	}
	network := p.Hidden != nil
	if network && p.NumberBytes == 4 && !p.OnComponents {
		input.Bytes *= 1.25 // values that are not 0, of points such as MNIST's
	} else if network && p.NumberBytes == 8 {
		input.Bytes += 8 * n * d
	}
	search := 16 * (k + 16)
	if p.Approximate || width <= 8 { // or in a tree
		search = 4 * max(k+5, 43)
	}
	e.step("the nearest neighbours are searched", known, input, components,
		Part{"a copy of the points with lists for the search", "graph.k", n * (4*width + search)}, Part{"nearest neighbours", "graph.k", 12 * n * k})
	nearest := Part{"nearest neighbours", "graph.k", 4 * n * k}
	graph := Part{"the graph", "graph.k", 4*edges + 8*n}

	in, parameters, layers, widest := d, n*dim, 0., "train.batch_size"
	if p.OnComponents {
		in = width
	}
	if network {
		parameters = 0
		for _, out := range append(slices.Clip(p.Hidden), p.Dim) {
			parameters += (in + 1) * float64(out)
			layers += float64(out)
			in = float64(out)
			if out >= 4096 {
				widest = "model.hidden"
			}
		}
	}
	b, at, trained := float64(p.Batch), float64(max(1, p.Embeddings)), 1.
	order := 17 * edges // the list of edges, and the order in which they are taken
	if p.Weighted {
		order += 12 * edges
	}
	batch := number*(2.5*min(n, 2*b)*layers+32*b*dim) + 48*b
	if p.Device {
		order, batch, at, trained = 8*edges, 0, 1, 0
	}
	weights := Part{"the table with its copies", "model.dim", number * parameters * (2 + at*trained*float64(1+2*p.Moments))}
	if network {
		weights.What, weights.Key = "the network's weights with their gradients and copies", "model.hidden"
	}
	e.step("the model is trained", known, input, components, nearest, graph, weights, Part{"the order of the edges", "graph.k", at * order},
		Part{"a batch", widest, at * batch}, Part{"negatives", "loss.negatives", at * trained * 4 * b * float64(p.Listed)})

	s := float64(min(p.Spearman, p.N))
	pairs := 10 * s * s
	if p.Embeddings > 1 { // each leaves some as garbage
		pairs *= 1.25
	}
	e.step("the quality is measured", known, input, components, nearest, graph,
		Part{"distances for the rank correlation", "quality.spearman", pairs + 4*s*(width+dim)},
		Part{"neighbours in the embedding", "quality.k", 40*n + 12*min(n, 1e5)*k})
	return e
}

// Images is what the memory of a run on images depends on. Its numbers may be 0 where they
// do not matter.
type Images struct {
	N, Bytes            int  // images that are held, and the bytes of one
	Batch, Size         int  // images, of which there are two views of Size×Size pixels; 0: nothing is trained
	Listed              int  // negatives that each head draws on its own
	Width, Hidden, Out  int  // of the network
	Begun               bool // there is another network, from which it begins
	Device              bool
	Whole               int // whole images of Whole×Whole pixels go through the network
	Monitored           int // images that are classified meanwhile
	Represented, Placed int // images that are represented, or placed, in the end
	Evaluated, Pixels   int // images that are classified in the end, by so many pixel values if not by the network
}

// Estimate returns what the run takes.
func (r *Images) Estimate() (e Estimate) {
	w, hidden, out, side, b := float64(r.Width), float64(r.Hidden), float64(r.Out), float64(r.Whole), float64(r.Batch)
	convolutions, first, last := 2730*w*w, 8*w*hidden, hidden*out
	parameters := 4 * (convolutions + first + last)
	weights := Part{"the network's weights with their gradients and copies", "network.width", 6 * parameters}
	switch {
	case max(first, last) <= convolutions:
	case last > first && out >= hidden:
		weights.Key = "network.out"
	default:
		weights.Key = "network.hidden"
	}
	if r.Begun {
		weights.Bytes += parameters
	}
	images := Part{"images", "", float64(r.N) * float64(r.Bytes)}
	// At most 256 images go through the network at a time, and fewer large ones.
	atWork := Part{"the network at work", "views.whole_size", 16*w*max(side*side, min(256*side*side, 1<<20)) + 1.5*parameters}
	batch := Part{"a batch", "train.batch_size", 64*w*2*b*float64(r.Size*r.Size) + 1.5*parameters}
	if r.Size > 64 {
		batch.Key = "views.size"
	}
	if r.Device {
		atWork.Bytes, batch.Bytes, b = 0, 0, 0
	}
	// Representations with a copy of as many numbers for the search, and one that is
	// standardised; the classifier is preconditioned by the inverse of their covariance.
	classify := func(images int, d float64) []Part {
		covariance := Part{"the covariance of the pixels", "data.size", 0}
		if d <= 4096 {
			covariance.Bytes = 24 * d * d
		}
		return []Part{{"representations with their copies", "", 12 * float64(images) * d}, covariance}
	}
	if r.Batch > 0 {
		e.step("the network is trained", append(classify(r.Monitored, 8*w), images, weights, batch,
			Part{"negatives", "loss.negatives", 4 * b * float64(r.Listed)})...)
	}
	e.step("the images are placed", images, atWork, Part{"positions", "", 4 * float64(r.Placed) * out})
	if r.Represented > 0 {
		e.step("the images are represented", images, atWork, Part{"representations", "", 32 * float64(r.Represented) * w})
	}
	if r.Pixels > 0 {
		e.step("the pixels are classified", append(classify(r.Evaluated, float64(r.Pixels)), images)...)
	} else if r.Evaluated > 0 {
		e.step("the network is evaluated", append(classify(r.Evaluated, 8*w), images, atWork)...)
	}
	return e
}
