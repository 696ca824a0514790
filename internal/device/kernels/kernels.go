// Package kernels holds the kernels that accelerators run: their sources in C, one
// file for each subject, and what clang makes of them for NVIDIA's GPUs (PTX for
// compute capability 8.0, which the driver compiles for the GPU at hand). kernel.h
// says how they are written. The .ptx files are made by go generate, and belong to
// the sources: .ci/run checks that.
//
// What does not live here: what launches the kernels, and with how many threads;
// that stands beside the operation in package model/op, or in package train.
package kernels

import (
	"embed"
	"strings"
	"sync"
)

//go:generate ./build

//go:embed *.ptx
var files embed.FS

// A place is where a kernel is defined.
type place struct {
	file   string
	params int
}

// places finds the kernels of all files.
var places = sync.OnceValue(func() map[string]place {
	all := map[string]place{}
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded files are there
	}
	for _, e := range entries {
		for _, part := range strings.Split(PTX(e.Name()), ".entry ")[1:] {
			name, rest, _ := strings.Cut(part, "(")
			params, _, _ := strings.Cut(rest, ")")
			all[strings.TrimSpace(name)] = place{e.Name(), strings.Count(params, ".param ")}
		}
	}
	return all
})

// Find returns the file that defines a kernel, and how many parameters the kernel
// has.
func Find(name string) (file string, params int, ok bool) {
	p, ok := places()[name]
	return p.file, p.params, ok
}

// PTX returns what is in a file that Find named.
func PTX(file string) string {
	text, err := files.ReadFile(file)
	if err != nil {
		panic(err) // Find names files that are there
	}
	return string(text)
}

// Names returns the names of all kernels, in no order.
func Names() []string {
	var names []string
	for name := range places() {
		names = append(names, name)
	}
	return names
}
