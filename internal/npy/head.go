package npy

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Head returns all that stands in a file, version 1.0, before the values of an array
// in C order: the magic number, the version, the length of the header and the header,
// filled up with spaces to a multiple of align bytes. NumPy wants one of 64, so that
// the values can be mapped into memory. No shape is that of a single value.
func Head(align int, descr string, shape ...int) []byte {
	var dims strings.Builder
	for i, n := range shape {
		if i > 0 {
			dims.WriteString(", ")
		}
		fmt.Fprint(&dims, n)
	}
	if len(shape) == 1 {
		dims.WriteString(",")
	}
	const fixed = len(Magic) + 4
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	size := fixed + len(text) + 1
	size += (align - size%align) % align
	head := append(make([]byte, 0, size), Magic...)
	head = append(head, 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(size-fixed))
	head = append(head, text...)
	for len(head) < size-1 {
		head = append(head, ' ')
	}
	return append(head, '\n')
}
