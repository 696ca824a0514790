// Package neighbors finds the k nearest neighbours of points and makes the
// sKNN graph of them, whose edges a contrastive embedding attracts.
//
// KNN is exact: whichever way it takes, it returns the neighbours that a scan
// over all pairs would, ties broken by the smaller index. In few dimensions
// it searches a kd-tree (tree.go). In many it multiplies blocks of points in
// float32 (blocks.go), ranks the few candidates of each point in float64, and
// proves with a bound on the rounding errors that no other point can be
// nearer; the points for which the proof fails are searched in a tree.
//
// Index and Search do the same for query points among base points, such as
// held-out points among those that a model was trained on (search.go).
//
// KNNOn, NewIndexOn, SearchOn and RanksOn do the same on an accelerator, with the
// same result: it finds the candidates, the CPU ranks them (remote.go).
//
// Ranks tells how many points are nearer to a point than others are, also
// exactly and by products of blocks (rank.go).
//
// Graph is a graph in compressed sparse rows. FromNeighbors makes the
// symmetric graph of a KNN result; ReadNPZ and Graph.WriteNPZ exchange graphs
// with scipy's sparse.load_npz and sparse.save_npz, so that a graph can also
// come from elsewhere.
//
// Reading points from files and reducing their dimension are the business of
// package data; what is drawn from a graph's edges during training, of
// package train.
package neighbors
