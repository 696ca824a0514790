package roofline

import (
	"fmt"
	"math"
)

// The work of the operations that benchmarks time. Numbers of instructions are those of
// what NVIDIA's assembler (ptxas 11.8) makes of the kernels for sm_90, counted along the
// way that a thread usually takes: docs/gpu.md says how. All others follow from the
// algorithm alone.

// sector is what a random access to the cache moves, in bytes.
const sector = 32

// wait is how many cycles a value takes at least to be read from shared memory and
// written back, so that the next step finds it.
const wait = 30

// Copy is a copy of bytes within the device's memory.
func Copy(bytes int) Work {
	moved := 2 * float64(bytes)
	return Work{Bytes: moved, Footprint: moved}
}

// Product is a product of an [m, k] and a [k, n] matrix, in TF32 or in float32.
func Product(m, n, k int, tf32 bool) Work {
	a, b, c := float64(m)*float64(k), float64(k)*float64(n), float64(m)*float64(n)
	w := Work{Bytes: 4 * (a + b + c), Footprint: 4 * (a + b + c)}
	if tf32 {
		w.TF32 = a * float64(n)
	} else {
		w.FMA = a * float64(n)
	}
	return w
}

// Pairs is the loss of so many pairs of points in d dimensions by their Euclidean
// distance, with its gradient: d differences and d multiply-adds for the distance, d
// products and 2d sums for the derivatives of both points, some ten more for the loss,
// with two reciprocals and a logarithm.
func Pairs(pairs, d int) Work {
	n := float64(pairs)
	return Work{FMA: n * float64(5*d+10), Special: 3 * n}
}

// Cosines is the same by the cosine of points of unit length: d multiply-adds for the
// cosine and for the derivative of each point.
func Cosines(pairs, d int, tf32 bool) Work {
	n := float64(pairs)
	w := Work{Special: 2 * n}
	if tf32 {
		w.TF32 = n * float64(3*d)
	} else {
		w.FMA = n * float64(3*d)
	}
	return w
}

// Shuffle is the order of an epoch of so many edges, which are distributed over buckets
// and exchanged within each: an edge, of 8 bytes, is read and written twice. The
// exchanges of a bucket, 32 at a time, wait for each other.
func Shuffle(edges, buckets int) Work {
	n := float64(edges)
	return Work{Part: "shuffle", Bytes: 32 * n, Footprint: 24 * n, Chain: n / float64(buckets) / 32 * wait}
}

// Distinct is the search for the distinct points of an epoch's batches. An edge, of 8
// bytes, is read, and for both of its ends the number of the point and, at most, the
// point are written. With tables of all points, six random accesses are made for each
// end.
func Distinct(edges int, tables bool) Work {
	n := float64(edges)
	w := Work{Part: "distinct", Bytes: 24 * n, Footprint: 24 * n}
	if tables {
		w.Cached = 2 * 6 * sector * n
	}
	return w
}

// What a warp of 32 heads with one positive pair executes: of a batch, of each two
// negatives that are drawn, and of each negative pair. One block is table_batches_d2; in
// a cluster, table_cluster_d2, a second warp clears and fetches meanwhile.
const (
	blockBatch      = 440
	blockNegative   = 61
	clusterBatch    = 980
	clusterNegative = 75
	drawTwo         = 44
)

// clusterBlocks is the number of a cluster's blocks, each on a multiprocessor.
const clusterBlocks = 8

// SmallBatches is an epoch of a table in two dimensions in batches, each head with m
// negatives, of which one block or one cluster takes one after the other. The position
// of each end is read, and both words of its derivative are read and written in shared
// memory.
func SmallBatches(edges, m int, cluster bool) Work {
	e := float64(edges)
	draws := drawTwo * math.Ceil(float64(m)/2)
	w := Work{Part: "batches", Shared: e * float64((m+2)*2*8), Special: e * float64(2+3*m)}
	if cluster {
		w.Instructions, w.Multiprocessors = e/32*(clusterBatch+draws+clusterNegative*float64(m)), clusterBlocks
	} else {
		w.Instructions, w.Multiprocessors = e/32*(blockBatch+draws+blockNegative*float64(m)), 1
	}
	return w
}

// LargeBatches is the same in large batches of a table of n points, which all
// multiprocessors take together. An edge is read (8 bytes); a negative's end is looked
// up at random, and its position. Each coordinate's derivative is added to the gradient
// at random, for each end of an edge once and for each negative. Each batch reads and
// zeroes the gradient and moves the table.
func LargeBatches(edges, n, b, m int) Work {
	e := float64(edges)
	batches := math.Ceil(e / float64(b))
	w := Pairs(edges*(m+1), 2)
	w.Part = "batches"
	w.Cached = e*(8+sector*float64(2+2*2+m*(2+2))) + batches*float64(n)*2*(8+8+4+4)
	return w
}

// Layers is an epoch of a network of dense layers of these widths, in batches with so
// many distinct points in all. Products of each layer, of its gradient, and, but for the
// first, of its input's. The inputs are read twice; each hidden unit's output, and its
// gradient, is written and read twice.
func Layers(points float64, widths ...int) Work {
	w := Work{Part: "network", Footprint: math.Inf(1)}
	for i := 1; i < len(widths); i++ {
		products := 3
		if i == 1 {
			products = 2
		}
		w.TF32 += points * float64(products*widths[i-1]*widths[i])
	}
	w.Bytes = points * 4 * 2 * float64(widths[0])
	for _, hidden := range widths[1 : len(widths)-1] {
		w.Bytes += points * 4 * 6 * float64(hidden)
	}
	return w
}

// DistinctPoints returns how many of n points are expected among the ends of b random
// edges.
func DistinctPoints(n, b int) float64 {
	return float64(n) * -math.Expm1(2*float64(b)*math.Log1p(-1/float64(n)))
}

// What a warp executes for so many columns of neighbors_select, if none is a candidate.
const (
	selectColumns = 512
	selectWarp    = 85
)

// Distances is the search for the neighbours of n points among themselves in d
// dimensions: products, in TF32 or in float32, of which each pair's is written and read
// once within the cache. It is that of points whose candidates are all of use.
func Distances(n, d int, tf32 bool) []Work {
	pairs := float64(n) * float64(n)
	products := Work{Part: "products"}
	if tf32 {
		products.TF32 = pairs * float64(d)
	} else {
		products.FMA = pairs * float64(d)
	}
	return []Work{products, {Part: "ranking", Cached: 8 * pairs, Instructions: pairs / selectColumns * selectWarp}}
}

// Subspace is the search for eigenvectors of a symmetric n×n matrix of float64, with so many
// products with a subspace of so many vectors: each reads the matrix.
func Subspace(n, vectors, products int) Work {
	matrix := float64(products) * float64(n) * float64(n)
	return Work{Part: "products", FMA64: matrix * float64(vectors), Bytes: 8 * matrix, Footprint: 8 * float64(n) * float64(n)}
}

// Placing is that of so many new points beside a table in two dimensions, each of which
// takes steps along one edge with m negatives: their positions are looked up at random.
func Placing(points, steps, m int) Work {
	pairs := points * steps * (m + 1)
	w := Pairs(pairs, 2)
	w.Cached = sector * float64(pairs)
	return w
}

// Convolutions is a convolution of images with so many elements in all by kernels of k×k
// pixels, with as many channels out as in, and both of its gradients, in TF32 or in
// bfloat16: each reads two arrays or writes one.
func Convolutions(elements, channels, k int, halves bool) Work {
	n := float64(elements)
	return products(3*n*float64(k*k*channels), 6*n, 4*n, halves)
}

// products are so many multiply-adds of tensor cores, with elements that are moved and in
// memory, of two bytes each in bfloat16 and else of four.
func products(count, moved, held float64, halves bool) Work {
	if halves {
		return Work{BF16: count, Bytes: 2 * moved, Footprint: 2 * held}
	}
	return Work{TF32: count, Bytes: 4 * moved, Footprint: 4 * held}
}

// BatchNorms is a batch normalisation of images with so many elements in all, and its
// gradient: forwards they are read twice and written; backwards they and the gradient
// are read twice, and the images' gradient is written.
func BatchNorms(elements int) Work {
	n := float64(elements)
	return Work{Bytes: 4 * 8 * n, Footprint: 4 * 4 * n}
}

// ResNet18 is a step of SimCLR's network on so many views of size×size pixels, without the
// head: its convolutions stage by stage with their gradients, and what lies between them.
// width is the number of channels of the first stage. Each convolution, and each of its two
// gradients, reads two arrays or writes one of what follows:
//
// A normalisation reads its images twice and writes them; backwards it reads them and
// the gradient twice, and writes a gradient. At the end of a block the other branch is
// read with it; backwards the sum's ReLU reads its result and the gradient, and writes
// that of both branches, and the gradients of both are added up, which reads two arrays
// and writes one. In float32, what is normalised within a block is computed again for the
// backward pass: read and written once more. In bfloat16 (halves) it is kept.
func ResNet18(views, size, width int, halves bool) []Work {
	pixels := float64(views) * float64(size) * float64(size)
	images := func(channels int) float64 { return pixels * float64(channels) }
	// The first convolution has no gradient of its images.
	first := products(2*9*3*images(width), 2*images(3)+2*images(width), math.Inf(1), halves)
	first.Part = "conv1"
	works, between := []Work{first}, 8*images(width)
	again := images(width) // what is computed again
	in := width
	for stage := range 4 {
		out := width << stage
		before := images(in) // the stage's images
		if stage > 0 {
			pixels /= 4
		}
		after := images(out)
		// The first convolution has the stage's stride, three follow, and a shortcut of
		// single pixels where the number of channels changes.
		count, moved, norms := 3*9*after*float64(in+3*out), 3*(before+after)+3*6*after, 4.
		if stage > 0 {
			count += 3 * after * float64(in)
			moved += 3 * (before + after)
			norms++
		}
		w := products(count, moved, math.Inf(1), halves)
		w.Part = fmt.Sprintf("stage%d", stage+1)
		works = append(works, w)
		between += 8*norms*after + 2*(1+3)*after + 3*(before+after)
		again += 2 * after
		in = out
	}
	if !halves {
		between += 2 * again
	}
	between += 2 * images(in) // the means over pixels, and their gradient
	norms := products(0, between, math.Inf(1), halves)
	norms.Part = "between"
	return append(works, norms)
}

// Views are views of images of so many bytes: a view of floats is written, and at most
// all of its image read.
func Views(views, bytes int) Work {
	n := float64(views) * float64(bytes)
	return Work{Bytes: (4 + 1) * n, Footprint: (4 + 1) * n}
}
