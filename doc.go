// Package cne embeds points in few dimensions so that neighbours stay
// neighbours, with the contrastive losses of the paper "From t-SNE to UMAP with
// contrastive learning" (Damrich, Böhm, Hamprecht, Kobak, ICLR 2023).
//
//	points, err := data.FromRows(rows)                        // or FromMat, or file.Read
//	e, err := cne.Embed(ctx, points, cne.Options{})           // a table of positions
//	e.Positions                                               // a *data.Matrix, one row per point
//
// The zero value of [Options] is what the program "cne train" does by default.
// With hidden layers, a network learns to embed instead of a table:
//
//	e, err := cne.Embed(ctx, points, cne.Options{Hidden: model.DefaultHidden})
//
// Both place further points of the same kind, and both can be kept:
//
//	positions, err := e.Project(ctx, more)
//	err = e.Save("model.safetensors")
//	e, err = cne.Load("model.safetensors")
//
// [Options] also take a graph or a start of one's own, callbacks that hear how the
// run goes (Hooks, OnBatch), and checkpoints, from which an interrupted run goes on.
// [Spectrum] makes several embeddings between t-SNE and UMAP from one early phase
// that they share. How good an embedding is, with labels and for held-out points
// (data.Dataset.Split), package train/quality tells.
//
// The steps of Embed can be taken one by one, to look at what lies between them or
// to put something of one's own there: [Prepare] scales the points and finds their
// neighbours, [Neighborhood.Fit] trains, and [Embedding.ProjectRows] places points that do
// not fit into memory, or all of which a sample was trained on. The program is built on
// these. Underneath are the packages data (points),
// data/neighbors (graphs), model (tables and networks as Gorgonia graphs) and train
// (the loop, optimisers, checkpoints); simclr learns from images. This package
// reads no configuration, prints nothing, and writes no file that it is not asked
// for.
package cne
