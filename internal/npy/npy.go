// Package npy understands the headers of NumPy's npy files.
package npy

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Magic begins npy files.
const Magic = "\x93NUMPY"

// A Header describes an array.
type Header struct {
	// Descr is the type as NumPy writes it, such as <f4; for a structured array it is a list
	// in brackets.
	Descr   string
	Fortran bool // the array is stored column by column
	Shape   []int
}

// entry matches a key of a header, and its value.
var entry = regexp.MustCompile(`(?s)^\s*['"](descr|fortran_order|shape)['"]\s*:\s*('[^']*'|"[^"]*"|\[.*\]|True|False|\([^()]*\))\s*,?`)

// ParseHeader reads the Python dictionary in a header, for example
// {'descr': '<f4', 'fortran_order': False, 'shape': (70000, 784), }. An error says
// what is wrong with it, as a clause.
func ParseHeader(text string) (h Header, err error) {
	const space = " \t\r\n"
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, space), "{")
	if !ok {
		return h, fmt.Errorf("got %.20q, want a dictionary", text)
	}
	seen := make(map[string]bool)
	for len(seen) < 3 {
		m := entry.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		key, value := m[1], m[2]
		if seen[key] {
			return h, fmt.Errorf("got %q twice, want it once", key)
		}
		seen[key], rest = true, rest[len(m[0]):]
		switch first := value[0]; {
		case key == "descr" && (first == '\'' || first == '"'):
			h.Descr = value[1 : len(value)-1]
		case key == "descr" && first == '[':
			h.Descr = value
		case key == "fortran_order" && (first == 'T' || first == 'F'):
			h.Fortran = first == 'T'
		case key == "shape" && first == '(':
			sizes := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(value[1:len(value)-1], space), ","), space)
			for size := range strings.SplitSeq(sizes, ",") {
				// Python 2 marked long integers.
				n, err := strconv.Atoi(strings.TrimSuffix(strings.Trim(size, space), "L"))
				if sizes == "" {
					break
				}
				if err != nil || n < 0 {
					return h, fmt.Errorf("shape: got %q, want a size", size)
				}
				h.Shape = append(h.Shape, n)
			}
		default:
			return h, fmt.Errorf("%s: got %s, want another type", key, value)
		}
	}
	if strings.Trim(rest, space+"\x00") != "}" {
		return h, fmt.Errorf("got %.20q, want a key with its value or the end", rest)
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, fmt.Errorf("%s: got none, want one", key)
		}
	}
	return h, nil
}

// Head returns the start of a file, version 1.0, before the values of an array in C
// order: the magic number, the version, the length of the header and the header, padded
// with spaces to a multiple of align bytes. NumPy uses 64, so the values can be mapped
// into memory. Without a shape the array is a single value.
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
