// Package train fits models to a graph of nearest neighbours.
//
// Fit runs phases of epochs, calls hooks after every epoch, and saves checkpoints. The
// batches are trained on the CPU or on a device (Options.Device). Each epoch shuffles the
// edges. For each batch, negatives are drawn, the model computes loss and gradients, and
// an Optimizer (SGD or Adam) takes a step. A Phase has the settings that may change over
// a run: learning rate, the constant of the loss, and the number of negatives.
// Normalization gives a loss's constant for a position on the spectrum from t-SNE to
// UMAP.
//
// Random numbers come from counter-based streams, one for each epoch and batch. One seed
// therefore gives the same bits regardless of GOMAXPROCS, and a run resumed from a
// Checkpoint ends with the same bits as a run that never stopped. A Projector places new
// points in a non-parametric embedding (model.Embedding). Package train/quality measures
// the quality of an embedding. Other packages read data, build the graph and write
// results.
package train
