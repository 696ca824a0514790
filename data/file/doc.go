// Package file reads and writes files of points.
//
// Open recognizes the format of each file and gives Rows, a block at a time; Read makes a
// data.Dataset of them, ReadRows one of some of the rows, and Count and Size tell how many
// there are. A format is one file here, and a line in the table of formats. WriteNPY,
// WriteCSV and WriteParquet write points, NPYWriter and CSVWriter those that come in blocks.
// Builtin gives the data that travel inside the program.
//
// Errors name the file, and the line of a text, and are of package data's kinds.
package file
