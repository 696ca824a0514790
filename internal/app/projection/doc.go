// Package projection is what cne project does: it loads a model, reads points from files
// in blocks, has the model place them, and writes their positions.
//
// What places points is the embedding of package cne, and what reads files is package
// data; here are the ways between them and the files of positions.
package projection
