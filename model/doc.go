// Package model builds the models of cne as Gorgonia graphs: a map from points to an
// embedding, the contrastive loss on a batch, and its gradients by Gorgonia's
// differentiation.
//
// A step on a Batch returns the loss; the Parameters then hold the gradients, which an
// optimiser of package train applies. An Embedding is a table of positions; a Parametric
// model learns a network (MLP), which then projects any point. Either is saved with what
// is needed to use it, and loaded again. A ResNet maps images to representations, and a
// Convolutional model trains one. UseDevice moves a network to an accelerator, and OnDevice
// compiles a model for training there.
//
// Batches, optimisers, schedules and checkpoints are package train's.
package model
