// Package op holds the differentiable operations from which the models of cne are made:
// Gather and ScatterAdd (rows of a table), Linear (a layer of a network, with its
// activation; LinearRows and LinearOfSparse of some rows of a matrix), Conv2d, BatchNorm,
// BatchNormAddReLU and GlobalAvgPool (the layers of a convolutional network, for images
// [n, h, w, c], which ChannelsLast makes of images [n, c, h, w]), Normalize (rows to unit
// length), ScaleByTemperature (a learnt temperature) and Contrastive (the four losses,
// over negatives that are listed or over dense blocks of them).
//
// Each is a gorgonia.Op and SDOp: it runs under Gorgonia's own machines, and
// gorgonia.Grad differentiates through it. Each is also a Kernel, which writes
// its result into memory that the caller provides, and which package vm runs
// without allocating.
//
// A graph may also hold Gorgonia's own operations; Accelerate makes their matrix
// products as fast as this package's.
//
// The portable form of a kernel is generic over float32 and float64; float32 has vector
// forms (package internal/simd) where they pay off, with the same tests. Package model
// makes the models' graphs, package vm decides the order and memory of kernels, and
// package train makes batches.
package op
