package cne

import (
	"math"
	"runtime"

	"cne/data"
	"cne/internal/memory"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// A Memory is an estimate of what a run takes: how much at least, how much where nothing
// limits it, and the parts of it with the fields of Options that decide their sizes.
type Memory = memory.Estimate

// A MemoryLimit is how many more bytes this process may take, and what says so.
type MemoryLimit = memory.Limit

// AvailableMemory returns the tightest limit that the system sets to this process's
// memory; ok is false where it tells of none.
func AvailableMemory() (limit MemoryLimit, ok bool) { return memory.Available() }

// A Workload is what Options.Memory has to know of a run besides its options.
type Workload struct {
	// Points is n, and Width their width.
	Points, Width int
	// Storage is where the points are: data.Open's, or, as the zero value, in memory.
	Storage data.Storage
	// Nonzeros is the number of values that sparse points hold, the held-out ones
	// included; 0 for dense points.
	Nonzeros int
	// Joined tells that sparse points come from several files, which are put together.
	Joined bool
	// Names tells that the points have names, and Columns is the number of columns of them
	// that are shown besides.
	Names   bool
	Columns int
	// Edges is the number of directed edges; 0 means that of a common kNN graph.
	Edges int
	// Reading is what it takes to read the points, beside the points themselves, in
	// bytes.
	Reading int64
	// Held is the number of points that are kept from training, and projected.
	Held int
	// Quality says what is measured of the embedding; nil means nothing.
	Quality *quality.Options
	// Cached tells that neighbours and components are kept in a file.
	Cached bool
	// Checkpoints tells that the state of the run is saved.
	Checkpoints bool
	// Embeddings is the number of embeddings that are trained at a time, as for a
	// spectrum; 0 means 1.
	Embeddings int
	// Thrifty tells that garbage is collected more often than by default (GOGC) in large
	// runs, and that the distances of neighbours are let go of once there is a graph, as the
	// program does.
	Thrifty bool
}

// commonEdges is the number of directed edges of a symmetric kNN graph for each of the
// n·k neighbours: 1 if all are mutual, 2 if none is; MNIST has 1.43.
const commonEdges = 1.45

// Memory estimates what a run takes on the CPU, the points included: its largest arrays
// in the order in which they come and go. It allocates nothing, and reads nothing. On an
// accelerator, the training itself takes nothing of it but the points.
func (o *Options) Memory(w Workload) (Memory, error) {
	e, err := o.memory(w, false)
	if e.Live > memory.Large && w.Thrifty {
		return o.memory(w, true)
	}
	return e, err
}

func (o *Options) memory(w Workload, thrifty bool) (Memory, error) {
	r := &accounts{Ledger: memory.Ledger{Thrifty: thrifty}, Options: o, w: w, n: float64(w.Points), d: float64(w.Width), dim: float64(orElse(o.Dim, DefaultDim))}
	r.k = float64(orElse(o.Neighbors, DefaultNeighbors))
	r.edges = float64(w.Edges)
	if w.Edges == 0 {
		r.edges = commonEdges * r.n * r.k
	}
	r.read()
	r.annotate()
	r.reduce()
	r.search()
	err := r.train()
	r.measure()
	r.draw()
	return r.Estimate(), err
}

// accounts is the ledger of a run.
type accounts struct {
	memory.Ledger
	*Options
	w                   Workload
	n, d, k, dim, edges float64
	components          float64 // 0: the points themselves

	input, points, nearest, graph, held, positions, parameters *memory.Part
}

// Sizes of numbers in bytes.
const (
	size32 = 4
	size64 = 8
)

func (r *accounts) cores() float64 { return float64(runtime.GOMAXPROCS(0)) }

// read is data.Open, and what is held out of it (data.Dataset.Split).
func (r *accounts) read() {
	r.Step("the points are read")
	buffers := r.Hold("buffers for reading", "", float64(r.w.Reading))
	if r.storage() != data.InMemory {
		r.input = r.Hold("buffers for the blocks of points", "", storedBytes+size32*min(r.n*r.d, storedValues))
		if r.storage() == data.AsBytes {
			r.Free(r.input)
			r.input = r.Hold("points, as bytes", "Points", (r.n+float64(r.w.Held))*r.d)
		}
		r.Free(buffers)
		return
	}
	perPoint := size32 * r.d
	if r.w.Nonzeros > 0 {
		perPoint = size64 + (size32+size32)*float64(r.w.Nonzeros)/(r.n+float64(r.w.Held))
	}
	r.input = r.Hold("points", "Points", r.n*perPoint)
	r.Free(buffers)
	if r.w.Joined { // columns and values, one after the other
		r.Pass("points of several files, put together", "Points", size32*float64(r.w.Nonzeros))
		r.Pass("points of several files, put together", "Points", size32*float64(r.w.Nonzeros))
	}
	if r.w.Nonzeros > 0 && r.Reduces(r.w.Points, r.w.Width) == 0 { // Options.Densify
		sparse := r.input
		perPoint = size32 * r.d
		r.input = r.Hold("points", "Components", r.n*perPoint)
		r.Free(sparse)
		r.w.Nonzeros = 0
	}
	if r.w.Held > 0 {
		r.held = r.Hold("held-out points", "Points", float64(r.w.Held)*perPoint)
		// Those of both parts are copied from all.
		all := r.Hold("copies of the points", "Points", r.n*perPoint)
		r.Free(all)
	}
}

// annotate is what a run knows of the points besides: the names stay as texts, and of a
// column the classes or values do.
func (r *accounts) annotate() {
	const text = 16 + 24 // bytes of a string of common length
	all := r.n + float64(r.w.Held)
	if r.w.Names {
		r.Hold("names of the points", "", text*all)
	}
	for range r.w.Columns {
		r.Pass("columns of the points", "", text*all)
		r.Hold("columns of the points", "", size64*all)
	}
}

// storedBytes and storedValues are what data's stored source has of a file at a time.
const storedBytes, storedValues = 1 << 22, 1 << 20

// storage returns where the points are from which components are computed.
func (r *accounts) storage() data.Storage {
	if r.Reduces(r.w.Points, r.w.Width) == 0 || !r.releasesInput() {
		return data.InMemory
	}
	return r.w.Storage
}

// reduce is Neighborhood.reduce: data.FitPCA and PCA.Transform.
func (r *accounts) reduce() {
	r.components = float64(r.Reduces(r.w.Points, r.w.Width))
	r.points = r.input
	if r.components == 0 {
		return
	}
	r.Step("principal components are computed")
	if r.w.Nonzeros > 0 {
		r.reduceSparse()
		return
	}
	// The covariance of the columns, or the products of fewer points, of which two
	// matrices for the tridiagonal form.
	order := min(r.n, r.d)
	chunk := r.Hold("rows in float64", "", size64*min(r.n*r.d, 1<<20))
	products := r.Hold("the covariance matrix", "Components", size64*order*order)
	r.Free(chunk)
	eigen := r.Hold("its eigenvectors", "Components", 2*size64*order*order)
	r.Hold("principal axes", "Components", size64*r.components*r.d)
	r.Free(products, eigen)
	r.points = r.Hold("principal components", "Components", size32*r.n*r.components)
	if r.w.Held > 0 && r.storage() != data.InMemory {
		r.held = r.Hold("components of held-out points", "Components", size32*float64(r.w.Held)*r.components)
	}
	r.Pass("rows in float64", "", size64*(min(r.n*(r.d+r.components), 1<<20)+r.d*r.components))
	if r.releasesInput() {
		r.Free(r.input)
	}
}

// reduceSparse is reduce of sparse points: data.FitSparsePCA.
func (r *accounts) reduceSparse() {
	const oversampling, lanes = 14, 16
	directions := min(r.n, r.d, r.components+oversampling)
	basis := r.Hold("directions for principal components", "Components", 2*size64*r.d*directions)
	strips := r.Hold("directions for principal components", "Components", 2*size64*r.d*lanes*min(r.cores(), math.Ceil(directions/lanes)))
	r.Free(strips)
	axes := r.Hold("principal axes", "Components", size64*r.components*r.d)
	r.Free(basis)
	r.points = r.Hold("principal components", "Components", size32*r.n*r.components)
	r.Pass("principal axes", "Components", float64(axes.Bytes))
	if r.releasesInput() {
		r.Free(r.input)
	}
}

// width returns that of the points between which distances are taken.
func (r *accounts) width() float64 {
	if r.components > 0 {
		return r.components
	}
	return r.d
}

// search is neighbors.KNN, neighbors.FromNeighbors and what is kept of them.
func (r *accounts) search() {
	most := 0.
	if q := r.w.Quality; q != nil && q.Skip&quality.MetricRecall == 0 {
		most = float64(orElse(q.K, quality.DefaultK))
	}
	k := most
	if r.Graph == nil {
		k = max(k, r.k)
	}
	r.Step("the nearest neighbours are searched")
	switch {
	case k == 0:
	case r.Search.Approximates(int(r.n), int(r.width()), int(k)):
		r.nearest = r.approximated(r.n, r.width(), k, "Neighbors")
	default:
		r.nearest = r.neighbors(r.n, r.width(), k, "Neighbors")
	}
	if r.Graph == nil {
		r.Step("the graph is built")
		var first *memory.Part
		if k > r.k {
			first = r.Hold("the graph's neighbours", "Neighbors", (size32+size64)*r.n*r.k)
		}
		reverse := r.Hold("reverse neighbours", "Neighbors", size32*r.n*r.k+2*size64*r.n)
		r.graph = r.Hold("the graph", "Neighbors", size32*r.edges)
		r.Hold("the graph", "Neighbors", size64*r.n)
		r.Free(reverse)
		if r.SampleEdges {
			r.Hold("weights of the edges", "Neighbors", size32*r.edges)
		}
		r.Free(first)
	}
	if r.w.Cached {
		r.Pass("a copy for the cache", "Neighbors", (size32+size64)*r.n*k+size32*r.n*r.components)
	}
	if r.nearest != nil && r.w.Thrifty { // the distances
		r.Shrink(r.nearest, size32*r.n*k)
	}
}

// freed is freeMemory.
func (r *accounts) freed() {
	if r.edges >= manyEdges {
		r.Collect()
	}
}

// neighbors is neighbors.KNN of n points: what it leaves.
func (r *accounts) neighbors(n, width, k float64, option string) *memory.Part {
	return r.searched(n, n, width, k, option)
}

// approximated is neighbors.KNN by the approximate search, and the estimate of its recall:
// what it leaves.
func (r *accounts) approximated(n, width, k float64, option string) *memory.Part {
	const (
		spare       = 5        // entries of a list beyond k
		shown       = 40       // entries of a list that become acquaintances at most
		larger      = 17. / 16 // as much memory rows get as they take at first
		approximate = "the approximate search"
	)
	room := min(k+spare, n-1)
	points := r.Hold(approximate, "Points", n*(size32*width+size32))
	lists := r.Hold(approximate, option, size64*n*room)
	r.Pass(approximate, "Points", 3*size32*n) // trees
	rows := r.Hold(approximate, option, size32*n*max(room, larger*min(room, shown)))
	r.Pass(approximate, option, n*(size32+(size64+size32+2)/2)) // where they are, for half of the points
	r.Free(lists)
	r.Collect()
	found := r.Hold("nearest neighbours", option, (size32+size64)*n*k)
	r.Free(points, rows)                                              // in which the numbers of the listed points are now
	r.Pass("blocks of points", "Points", n*(size32*(2+width)+size64)) // neighbors.EstimateRecall
	return found
}

// searched is neighbors.Search of n points for the nearest of some queries.
func (r *accounts) searched(queries, n, width, k float64, option string) *memory.Part {
	const (
		treeMaxD  = 8   // wider points are compared block by block
		blockSize = 256 // points
		slack     = 16
	)
	found := r.Hold("nearest neighbours", option, (size32+size64)*queries*k)
	if width <= treeMaxD || n/4-slack < k {
		nodes := 2 * n / (8 + width) // leaves hold half of their most points at least
		tree := r.Hold("a tree of the points", "", n*(size32*width+size32)+nodes*(16+2*size32*width)*1.25)
		r.Pass("sorting them", "", size64*n)
		r.Free(tree)
		return found
	}
	keep := k + slack
	blocks := r.Hold("blocks of points", "Points", size32*math.Ceil(n/blockSize)*blockSize*(2+width)+size64*n)
	lists := r.Hold("candidates for neighbours", option, queries*(size64*(keep+min(keep, 128))+2*size32))
	r.Pass("products of blocks", "", r.cores()*size32*blockSize*(2+width+blockSize))
	// Rows whose neighbours the candidates do not prove are searched in a tree, too.
	r.Pass("a tree of the points", "", n*(size32*width+size32+size64))
	r.Free(blocks, lists)
	return found
}

// train is Neighborhood.NewModel and train.Fit. The embeddings of a coarse start are over
// before, and have a sixth of the edges: they take less than what follows them.
func (r *accounts) train() error {
	r.Step("the model is trained")
	onHost := r.Device.OnHost()
	number := float64(size32)
	if r.Float64 {
		number = size64
	}
	r.freed()
	heads := r.Hold("the list of edges", "Neighbors", size32*r.edges)
	edges := r.Hold("the list of edges", "Neighbors", size64*r.edges)
	r.Free(heads)
	var needs model.Memory
	var err error
	size := r.batch()
	if r.Float64 {
		needs, err = modelMemory[float64](r.Options, r.w, size, r.seen())
	} else {
		needs, err = modelMemory[float32](r.Options, r.w, size, r.seen())
	}
	if err != nil {
		return err
	}
	what, option := "the table with its copies", "Dim"
	if r.network() {
		what, option = "the network's weights with their gradients and copies", "Hidden"
		if r.Float64 {
			r.Hold("the points in float64", "Points", size64*r.n*float64(r.seen()))
		}
	}
	var temporary []*memory.Part
	weights := number * float64(needs.Parameters)
	for range max(1, r.w.Embeddings) {
		r.parameters = r.Hold(what, option, weights)
		if !onHost {
			break
		}
		if r.SampleEdges {
			temporary = append(temporary, r.Hold("edges drawn by weight", "Neighbors", size64*r.edges))
		}
		temporary = append(temporary, r.Hold("the order of the edges", "Neighbors", (size64+1)*r.edges),
			r.Hold("batches ahead", "BatchSize", r.blocks(size.Edges)+size32*r.n),
			r.Hold("negatives", "Negatives", r.negatives(size)),
			r.Hold("a batch", r.batchOption(), float64(needs.Batch)),
			r.Hold("the pairs of a batch", r.batchOption(), float64(needs.Scratch)),
			r.Hold(what, option, weights*r.moments()))
	}
	if onHost {
		// The arrays of a batch grow each time that one has more distinct points.
		if size.Distinct < r.w.Points {
			r.Garbage(3 * float64(needs.Batch))
		}
		r.Garbage(r.sparse())
	}
	if r.w.Checkpoints {
		r.Pass(what, option, weights*(1+r.moments()))
	}
	r.Free(append(temporary, edges)...)
	r.freed()
	r.positions = r.Hold("the positions", "Dim", size32*r.n*r.dim)
	if r.network() && onHost {
		r.Pass("points on their way through the network", option, r.forward(number))
		if r.w.Nonzeros > 0 && !r.OnComponents {
			const denseValues, fewest = 1 << 22, 64
			r.Pass("points that are dense at a time", "Points", size32*min(r.n*r.d, max(denseValues, fewest*r.d)))
		}
	}
	r.Pass(what, option, weights)
	return nil
}

// forward is model's projection of the points, so many at a time: between two layers, and
// the widest of them.
func (r *accounts) forward(number float64) float64 {
	const rowsPerBlock = 4096
	widest, second := 0, 0
	for _, h := range r.Hidden {
		if h > widest {
			widest, second = h, widest
		} else {
			second = max(second, h)
		}
	}
	return number * min(r.n, rowsPerBlock) * (float64(widest+second) + r.dim)
}

// sparse is what blas.Sparse takes for points that are mostly zeros, if they are: their
// other values, the weights of the first layer and copies of their gradient.
func (r *accounts) sparse() float64 {
	const share, most, elements, copies = 0.3, 1 << 16, 1 << 24, 8
	if !r.network() || r.Float64 || r.seen() > most {
		return 0
	}
	first := r.dim
	if len(r.Hidden) > 0 {
		first = float64(r.Hidden[0])
	}
	weights := first * float64(r.seen())
	values := share * (size32 + 2) * r.n * float64(r.seen())
	if r.w.Nonzeros > 0 && !r.OnComponents { // which have their values already
		values = 2 * float64(r.w.Nonzeros)
	}
	return values + size32*weights*(1+max(2, min(copies, elements/weights)))
}

// batchOption names what decides the size of a batch's arrays: of wide networks the
// widths.
func (r *accounts) batchOption() string {
	for _, h := range r.Hidden {
		if h >= 4096 {
			return "Hidden"
		}
	}
	return "BatchSize"
}

// seen returns the width of the points that a network sees.
func (r *accounts) seen() int {
	if r.OnComponents {
		return int(r.width())
	}
	return r.w.Width
}

// batch returns the size of a batch of the phase with most negatives.
func (r *accounts) batch() model.BatchSize {
	b := max(1, min(orElse(r.BatchSize, DefaultBatchSize), int(min(r.edges, math.MaxInt32))))
	all := 2*b - 2
	m := 0
	for _, p := range r.phases() {
		if p.Negatives == train.Full {
			m = all
		}
		m = max(m, min(p.Negatives, all))
	}
	shared := m == all || r.Sampling == train.SampleSharedRuns || r.Sampling == train.SampleAuto && m >= 32
	// Of n points, 2b ends meet so many on average.
	distinct := int(math.Ceil(r.n * -math.Expm1(-2*float64(b)/r.n)))
	return model.BatchSize{Edges: b, Distinct: max(1, distinct), Negatives: m, Shared: shared}
}

// negatives is train's sampler: row numbers of the negatives that heads draw on their
// own.
func (r *accounts) negatives(size model.BatchSize) float64 {
	if size.Shared {
		return size32 * float64(size.Edges) / 16
	}
	return size32 * float64(size.Negatives) * float64(size.Edges)
}

// blocks is train's prefetcher: the ends of a batch's edges, and its points, in blocks of
// batches.
func (r *accounts) blocks(batch int) float64 {
	const blockEdges, blocksAhead = 32768, 8
	ahead := max(1, min(blocksAhead, blocksAhead*blockEdges/batch))
	perBlock := float64(max(1, blockEdges/batch)) * float64(batch)
	return float64(ahead+2) * 4 * size32 * min(perBlock, r.edges)
}

// moments returns how many arrays of the parameters' shape an optimiser has.
func (r *accounts) moments() float64 {
	switch {
	case r.adam() && r.network():
		return 2
	case r.adam():
		return 3 // and the gradient of the whole table
	case r.Momentum != 0 || r.WeightDecay != 0:
		if r.network() {
			return 1
		}
		return 2
	}
	return 0
}

// modelMemory returns what the model needs; seen is the width of what a network sees.
func modelMemory[T op.Float](o *Options, w Workload, size model.BatchSize, seen int) (model.Memory, error) {
	dim := orElse(o.Dim, DefaultDim)
	if !o.network() {
		return model.EmbeddingMemory[T](w.Points, dim, size, o.Objective())
	}
	widths := append(append([]int{seen}, o.Hidden...), dim)
	return model.ParametricMemory[T](w.Points, widths, size, o.Objective())
}

// measure is quality.Measure.
func (r *accounts) measure() {
	q := r.w.Quality
	if q == nil {
		return
	}
	r.Step("the quality is measured")
	wanted := func(m quality.Metric) bool { return q.Skip&m == 0 }
	sampled := float64(q.Sampled(int(r.n)))
	if sampled > 0 {
		r.Pass("drawing a sample", "", size64*r.n)
	}
	if wanted(quality.MetricRecall) {
		k := float64(orElse(q.K, quality.DefaultK))
		if sampled > 0 {
			r.Free(r.searched(sampled, r.n, r.dim, k, "Quality.K"))
		} else {
			found := r.neighbors(r.n, r.dim, k, "Quality.K")
			r.Pass("owners of neighbours", "", r.cores()*size32*r.n)
			r.Free(found)
		}
	}
	if wanted(quality.MetricSpearman) {
		// Keys, places and ranks of all pairs.
		sample := min(r.n, float64(orElse(q.Sample, quality.DefaultSample)))
		pairs := sample * (sample - 1) / 2
		distances := r.Hold("distances for the rank correlation", "Quality.Sample", (size64+2*size32)*pairs+size32*sample*(r.width()+r.dim))
		// Sorting, for both sides, leaves the bounds of the buckets of each of the first.
		const buckets = 1 << 11
		digits := math.Exp2(math.Floor(math.Log2(max(8, pairs/buckets))) - 2)
		r.Garbage(2 * 2 * size64 * buckets * min(buckets, digits))
		r.Free(distances)
	}
	if wanted(quality.MetricPartition) || wanted(quality.MetricKL) {
		r.Pass("coordinates of the positions", "Dim", size32*r.n*r.dim)
	}
	if wanted(quality.MetricKL) && sampled == 0 {
		r.Pass("the list of edges", "Neighbors", 2*size32*r.edges)
	}
	if wanted(quality.MetricAccuracy) {
		picked := r.Hold("the positions", "Dim", size32*r.n*r.dim)
		if sampled > 0 {
			r.Free(r.searched(min(sampled, r.n/7), 6*r.n/7, r.dim, quality.AccuracyK, "Dim"), picked)
		} else {
			r.Free(r.neighbors(6*r.n/7, r.dim, quality.AccuracyK, "Dim"), picked)
		}
	}
}

// draw is what internal/figures needs for a picture: places, order and colours of the
// points, and the picture itself, of about 9×9 inches at 200 dots to the inch.
func (r *accounts) draw() {
	r.Step("the picture is drawn")
	places := r.Hold("places of the points", "", (2*size64+2*size32)*2*r.n)
	r.Pass("the picture", "", 3*size32*1000*1000)
	// Text for the table, and shapes for the picture.
	const perPoint = 600
	r.Garbage(perPoint * r.n)
	r.Free(places)
}
