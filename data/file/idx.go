package file

import (
	"encoding/binary"

	"cne/data"
	"cne/internal/kind"
)

// idxTypes are the types of values by their numbers in IDX. In all of them the most
// significant byte comes first.
var idxTypes = map[byte]scalarType{
	0x08: {'u', 1, true},
	0x09: {'i', 1, true},
	0x0b: {'i', 2, true},
	0x0c: {'i', 4, true},
	0x0d: {'f', 4, true},
	0x0e: {'f', 8, true},
}

// idxHeader reads the header of the IDX format (MNIST), of any element type.
var idxHeader = arrayFormat(readIDXHeader)

// readIDXHeader reads the head of an IDX file: two zero bytes, the type of the
// values, the number of dimensions, and four bytes for each of these.
func readIDXHeader(s *Input) array {
	var magic [4]byte
	n, err := s.full(magic[:])
	kind.Need(err != errShort, data.ErrFormat, "IDX header: got %d bytes, want 4 or more", n)
	kind.Check(err)
	e, ok := idxTypes[magic[2]]
	kind.Need(magic[0] == 0 && magic[1] == 0 && ok, data.ErrFormat,
		"IDX magic number: got % x, want 00 00, then 08, 09, 0b, 0c, 0d or 0e", magic)
	sizes, shape := make([]byte, 4*int(magic[3])), make([]int, magic[3])
	_, err = s.full(sizes)
	kind.Need(err != errShort, data.ErrFormat, "IDX header: got an early end, want the sizes of %d dimensions", len(shape))
	kind.Check(err)
	for i := range shape {
		shape[i] = int(binary.BigEndian.Uint32(sizes[4*i:]))
	}
	return newArray(e, shape)
}
