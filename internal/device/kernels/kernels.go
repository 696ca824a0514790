// Package kernels holds the kernels that accelerators run: their sources in C, one file
// a subject, and what clang makes of them for NVIDIA's GPUs (PTX for compute capability
// 8.0, or 9.0 where blocks run in clusters, which the driver compiles for the GPU at
// hand). kernel.h says how kernels are written. The .ptx files are made by go generate;
// .ci/run checks that they are what the sources give.
//
// The launches of kernels, and their numbers of threads, are next to the operations: in
// package model/op, train and others.
package kernels

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:generate ./build

//go:embed *.ptx
var files embed.FS

// A place is where a kernel is defined, and how many parameters it has.
type place struct {
	file   string
	params int
}

// An index has the kernels of files.
type index struct {
	texts  map[string]string // PTX by file
	places map[string]place  // by kernel
}

// known returns the kernels that Find finds: the embedded ones, once the first of them is
// wanted.
var known = sync.OnceValue(func() *index {
	x := &index{map[string]string{}, map[string]place{}}
	names, _ := fs.Glob(files, "*.ptx") // a valid pattern
	for _, name := range names {
		text, _ := files.ReadFile(name) // embedded files are there
		x.add(name, string(text))
	}
	return x
})

func (x *index) add(file, text string) {
	x.texts[file] = text
	for _, part := range strings.Split(text, ".entry ")[1:] {
		name, rest, _ := strings.Cut(part, "(")
		params, _, _ := strings.Cut(rest, ")")
		x.places[strings.TrimSpace(name)] = place{file, strings.Count(params, ".param ")}
	}
}

// Add adds the kernels of another file, with names that no other kernel has. Tests add
// the kernels of kerneltest, before they use any.
func Add(file, text string) { known().add(file, text) }

// Find returns the file that defines a kernel, and how many parameters the kernel
// has.
func Find(name string) (file string, params int, ok bool) {
	p, ok := known().places[name]
	return p.file, p.params, ok
}

// PTX returns the text of a file that Find named.
func PTX(file string) string { return known().texts[file] }

// Names returns the names of all kernels, in order.
func Names() []string { return slices.Sorted(maps.Keys(known().places)) }
