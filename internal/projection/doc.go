// Package projection is what cne project does: it loads a model, reads points from files
// in blocks, has the model place them, and writes their positions, all of them or one
// part of several, and puts parts together.
//
// What places points is the embedding of package cne, and what reads files, whole or in
// parts, is package data; here are the ways between them and the files of positions. A
// part is a file beside the positions that it becomes a part of (see Name), which says of
// what model, input and options it is, so that parts that do not belong together are not
// put together.
package projection
