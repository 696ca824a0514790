// Package model builds the models of cne as Gorgonia graphs: what maps points
// to an embedding, the contrastive loss on a batch, and its gradients by
// Gorgonia's differentiation.
//
// A model is run on a Batch and tells the loss; its Parameters then hold the
// gradients, which an optimiser of package train applies. Where batches come
// from, how steps are chosen and when to stop is package train's; files are
// nobody's here.
package model
