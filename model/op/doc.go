// Package op holds the differentiable operations from which the models of cne
// are made: Gather and ScatterAdd (rows of a table), Normalize (rows to unit
// length) and Contrastive (the four losses). Each is a gorgonia.Op and SDOp:
// it runs under Gorgonia's own machines, and gorgonia.Grad differentiates
// through it. Each is also a Kernel, which writes its result into memory that
// the caller provides, and which package vm runs without allocating.
//
// The portable form of a kernel is generic over float32 and float64; float32
// has vector forms (package internal/simd) where they pay, behind the same
// tests. What does not live here: which graph a model is (package model), in
// what order and memory the kernels run (package vm), and where batches come
// from (package train).
package op
