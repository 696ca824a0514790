#!/usr/bin/env bash
# Gorgonia's tensor v0.9.24: a big-endian .npy file is read as other numbers, without an error.
#
# One would guess: ReadNpy heeds the byte order that the header of a NumPy array names ('>f4'), or
# refuses it, as it refuses arrays in Fortran order.
# What happens: only the letters behind the sign are looked at, and the values are decoded as
# little-endian: 1, 2 and 3 become 4.6e-41, 9e-44 and 2.3e-41. Instruments, FITS and Java programs
# write such arrays, and numpy.save keeps their order.
# Source: gorgonia.org/tensor v0.9.24, dense_io.go (Dense.ReadNpy).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"

	"gorgonia.org/tensor"
)

// file returns 1, 2 and 3 as a .npy file of version 1.0.
func file(order binary.AppendByteOrder, sign string) []byte {
	header := fmt.Sprintf("{'descr': '%sf4', 'fortran_order': False, 'shape': (3,), }", sign)
	header += strings.Repeat(" ", 127-10-len(header)) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	out = append(out, header...)
	for _, bits := range []uint32{0x3f800000, 0x40000000, 0x40400000} {
		out = order.AppendUint32(out, bits)
	}
	return out
}

func read(content []byte) ([]float32, error) {
	a := tensor.New(tensor.Of(tensor.Float32))
	if err := a.ReadNpy(bytes.NewReader(content)); err != nil {
		return nil, err
	}
	return a.Data().([]float32), nil
}

func main() {
	little, err := read(file(binary.LittleEndian, "<"))
	fmt.Println("little-endian:", little, err)
	big, bigErr := read(file(binary.BigEndian, ">"))
	fmt.Println("big-endian:   ", big, bigErr)
	if err != nil || bigErr != nil || !slices.Equal(little, []float32{1, 2, 3}) || slices.Equal(big, little) {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=gorgonia.org/tensor@v0.9.24 -require=go4.org/unsafe/assume-no-moving-gc@v0.0.0-20231121144256-b99613f794b6
go mod tidy >/dev/null 2>&1
echo "gorgonia.org/tensor $(go list -m -f '{{.Version}}' gorgonia.org/tensor), $(go version)"
go run .
