// Package model builds the models of cne as Gorgonia graphs: what maps points
// to an embedding, the contrastive loss on a batch, and its gradients by
// Gorgonia's differentiation.
//
// A model is run on a Batch and tells the loss; its Parameters then hold the
// gradients, which an optimiser of package train applies. An Embedding is a
// table of positions; a Parametric model learns a network (MLP), which then
// projects any point. Either is saved with what is needed to use it, and loaded
// again; a Frozen table places new points. A ResNet maps images to
// representations, and a Convolutional model learns one. Where batches come
// from, how steps are chosen and when to stop is package train's, and so are
// checkpoints.
package model
