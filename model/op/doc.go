// Package op holds the differentiable operations of cne's models. Gather and ScatterAdd
// work on rows of a matrix. Linear is a layer of a network with its activation; LinearRows
// and LinearOfSparse take some rows of a matrix as its input. Conv2d, BatchNorm,
// BatchNormAddReLU and GlobalAvgPool are the layers of a convolutional network, for images
// [n, h, w, c]; ChannelsLast converts images [n, c, h, w]. Normalize scales rows to unit
// length. Contrastive has the four losses, with listed negatives or dense blocks of
// negatives.
//
// Each operation is a gorgonia.Op and SDOp: it runs under Gorgonia's own machines, and
// gorgonia.Grad differentiates through it. Each is also a Kernel: it writes its result
// into memory that the caller provides, and package vm runs it without allocating. A graph
// may also hold Gorgonia's own operations.
//
// The portable form of a kernel is generic over float32 and float64; for float32 there
// are also vector forms (package internal/simd) where they pay off, with the same tests.
// Package model makes the models' graphs, package vm decides the order and memory of
// kernels, and package train makes batches.
package op
