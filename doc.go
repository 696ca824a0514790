// Package cne computes low-dimensional embeddings that preserve nearest neighbours, using
// the contrastive losses of the paper "From t-SNE to UMAP with contrastive learning"
// (Damrich, Böhm, Hamprecht, Kobak, ICLR 2023).
//
//	points, err := data.FromRows(rows)                        // or FromMat, or file.Read
//	e, err := cne.Embed(ctx, points, cne.PresetAuto.Apply(cne.Options{}, points.N, nil))
//	e.Positions                                               // a *data.Matrix, one row per point
//
// [PresetAuto] is what the program "cne train" does by default; the zero value of [Options]
// is the paper's Neg-t-SNE. Each point's position is learnt directly (a non-parametric
// embedding), unless Hidden is set. Then a neural network is trained:
//
//	e, err := cne.Embed(ctx, points, cne.Options{Hidden: model.DefaultHidden})
//
// Both place new points of the same kind, and both can be saved. A network that has learnt
// a map without one places them nearly as well as the map:
//
//	err = e.LearnNetwork(ctx, nil)
//	positions, err := e.Project(ctx, more)
//	err = e.Save("model.safetensors")
//	e, err = cne.Load("model.safetensors")
//
// [Options] also take a graph or starting positions, callbacks that report progress
// (Hooks, OnBatch), and checkpoints from which an interrupted run continues. [Spectrum]
// makes several embeddings between t-SNE and UMAP that share an early phase. Package
// train/quality measures how good an embedding is. [Embedding.WritePicture] draws it, and
// [Embedding.WritePage] makes a web page to explore it.
//
// The steps of Embed can also be called one by one: [Prepare] scales the points and finds
// their neighbours, [Neighborhood.Fit] trains, and [Embedding.ProjectRows] places points
// that do not fit into memory. The program is built on these.
//
// This package builds on the packages data (points), data/neighbors (graphs), model
// (positions and networks as Gorgonia graphs) and train (the loop, optimisers,
// checkpoints). Package simclr learns from images.
//
// This package reads no configuration, prints nothing, and writes only the files that it
// is asked for. Results are identical regardless of GOMAXPROCS.
package cne
