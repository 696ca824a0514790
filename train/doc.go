// Package train fits models to a graph of nearest neighbours.
//
// Fit is a loop and little else: it takes batches from a feed that prepares
// them on another core (with what Options.Prepare adds), draws their negatives,
// has the model compute loss and gradients, lets a Method (SGD or Adam) take a
// step, and calls hooks after every epoch. What changes over a run — step size,
// the constant of the loss, the number of negatives — is a list of Phases; where
// on the spectrum from t-SNE to UMAP a loss stands is Normalization's to say.
//
// Everything random is drawn from counter-based streams per epoch and batch
// (internal/rng), so that one seed gives the same bits on any number of cores,
// and a run that goes on from a Checkpoint ends with the bits of one that never
// stopped. A Projector places new points in an embedding that was learnt as a
// table. Reading data, building the graph and writing results are not done
// here.
package train
