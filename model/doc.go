// Package model builds the models of cne as Gorgonia graphs. A graph has the function from
// points to an embedding, the contrastive loss on a batch, and its gradients by Gorgonia's
// differentiation.
//
// A step on a Batch returns the loss. The Parameters then hold the gradients, and an
// optimiser of package train applies them. An Embedding learns positions without a
// network. A Parametric model learns a network (MLP) that can project any point. Both can
// be saved, with all that is needed to use them, and loaded. A ResNet maps images to
// representations, and a Convolutional model trains one. UseDevice moves a network to an
// accelerator, and OnDevice compiles a model for training there.
//
// Package train has batches, optimisers, schedules and checkpoints.
package model
