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

// known holds the kernels that Find finds.
var known struct {
	sync.Mutex
	texts  map[string]string // PTX by file; nil until the first of them is wanted
	places map[string]place  // by kernel
}

// lock locks known, once the embedded files are in it.
func lock() (unlock func()) {
	known.Lock()
	if known.texts != nil {
		return known.Unlock
	}
	known.texts, known.places = map[string]string{}, map[string]place{}
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded files are there
	}
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		add(e.Name(), string(text))
	}
	return known.Unlock
}

func add(file, text string) {
	known.texts[file] = text
	for _, part := range strings.Split(text, ".entry ")[1:] {
		name, rest, _ := strings.Cut(part, "(")
		params, _, _ := strings.Cut(rest, ")")
		known.places[strings.TrimSpace(name)] = place{file, strings.Count(params, ".param ")}
	}
}

// Add adds the kernels of another file, with names that no other kernel has. Tests add
// the kernels of kerneltest.
func Add(file, text string) {
	defer lock()()
	add(file, text)
}

// Find returns the file that defines a kernel, and how many parameters the kernel
// has.
func Find(name string) (file string, params int, ok bool) {
	defer lock()()
	p, ok := known.places[name]
	return p.file, p.params, ok
}

// PTX returns the text of a file that Find named.
func PTX(file string) string {
	defer lock()()
	return known.texts[file]
}

// Names returns the names of all kernels, in order.
func Names() []string {
	defer lock()()
	return slices.Sorted(maps.Keys(known.places))
}
