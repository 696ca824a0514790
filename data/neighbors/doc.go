// Package neighbors finds the k nearest neighbours of points and makes the
// sKNN graph of them, whose edges a contrastive embedding attracts.
//
// KNN finds the neighbours of points among themselves, Search those of query
// points among base points, such as held-out points among the ones that a model
// was trained on; an Index keeps the base for many searches. Ranks tells how
// many points are nearer to a point than others are. They are exact: the result
// is the one of a scan over all pairs, ties broken by the smaller index, whatever
// GOMAXPROCS is and whether the CPU or a device computes it (Options). They heed
// their context between blocks of points.
//
// Among more than 100 000 points of more than 8 values KNN, Search and Index are
// approximate unless Options.Search says Exact: they find more than 95 % of the
// neighbours of most data, in a time that grows little faster than the number of
// points. Of points with little structure, such as hundreds of independent values, or
// clusters of fewer points than there are neighbours to find, they find fewer. The
// result is then decided by Options.Seed, and is also the same whatever GOMAXPROCS
// is; EstimateRecall tells how good it is.
//
// FromNeighbors makes the symmetric graph of neighbours, a Graph in compressed
// sparse rows, and FuzzyGraph the same with UMAP's weights; ReadFile and
// Graph.WriteNPZ exchange graphs with scipy's sparse.load_npz and
// sparse.save_npz, so that a graph can also come from elsewhere.
//
// Not here: reading points from files and reducing their dimension (package
// data), what is drawn from a graph's edges during training (package train), and
// how well an embedding keeps neighbours.
//
// How a search goes is told in search.go, where its candidates come from, and why they can be
// trusted, in blocks.go and device.go. The approximate search of points among themselves is in descent.go, that of other
// points in search_graph.go, and the trees with which both begin in forest.go.
package neighbors
