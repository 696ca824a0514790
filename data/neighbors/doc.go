// Package neighbors finds the k nearest neighbours of points and makes their symmetric
// graph (sKNN). A contrastive embedding attracts the points joined by its edges. Points are
// compared as data.Matrix.Metric says, by default by Euclidean distances; the other metrics
// are in measure.go, and always on the CPU.
//
// KNN finds the neighbours of points among themselves. Search finds the neighbours of
// query points among base points, such as held-out points among training points. An Index
// keeps the base for many searches. Ranks counts how many points are nearer to a point
// than a given one. Exact results equal the results of a scan over all pairs, with ties
// broken by the smaller index, on the CPU and on a device (Options). Results have the same
// bits regardless of GOMAXPROCS. The functions check their context between blocks of
// points.
//
// Among more than 100 000 points of more than 8 values (some two million on a device) KNN,
// Search and Index are approximate unless Options.Search is Exact or KNN's k is large (see
// SearchMethod.Approximates). In most data KNN then finds more than 97 % of the
// neighbours, and Search and Index more than 95 %, in a time that grows little faster than
// the number of points. KNN finds fewer in data with little structure, such as tens of
// independent values, and Search and Index in data with hundreds: an Index tries how far it
// has to search. All find fewer in clusters with fewer points than wanted neighbours. The
// approximate result depends on Options.Seed. EstimateRecall estimates its recall.
//
// FromNeighbors makes the symmetric graph of neighbours, a Graph in compressed sparse
// rows. FuzzyGraph makes the same graph with UMAP's weights. ReadFile and Graph.WriteNPZ
// exchange graphs with scipy's sparse.load_npz and sparse.save_npz, so a graph can also
// come from other programs.
//
// Sparse points have the neighbours, distances and ranks of the same points as dense ones, bit
// for bit. They are always searched exactly, on the CPU (sparse.go).
//
// The exact search is in search.go; blocks.go and device.go find its candidates and check
// that they suffice. The approximate KNN is in descent.go, the approximate Search in
// search_graph.go, and the trees that both begin with are in forest.go.
package neighbors
