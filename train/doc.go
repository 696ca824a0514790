// Package train fits models to a graph of nearest neighbours.
//
// Fit runs phases of epochs, calls hooks after every epoch, and saves checkpoints.
// An engine inside trains on the batches, on the CPU or on a device (Options.Device):
// it shuffles the edges, draws the negatives of each batch, has the model compute loss
// and gradients, and lets an Optimizer (SGD or Adam) take a step. What changes over a run
// — learning rate, the constant of the loss, the number of negatives — is a list of
// Phases. Normalization gives a loss's constant for a place on the spectrum from
// t-SNE to UMAP.
//
// Everything random is drawn from counter-based streams per epoch and batch, so
// that one seed gives the same bits on any number of cores, and a run resumed from
// a Checkpoint ends with the bits of one that never stopped. A Projector places new
// points in an embedding that was learnt as a table. Package train/quality measures
// what an embedding is worth. Reading data, building the graph and writing results
// are other packages' work.
package train
