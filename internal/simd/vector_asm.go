//go:build (amd64 || arm64) && !noasm

package simd

import "unsafe"

const assembly = true

// The assembly contains the layout of a ColumnRange: another layout does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(ColumnRange{})-32]
	_ = [1]struct{}{}[unsafe.Offsetof(ColumnRange{}.First)]
	_ = [1]struct{}{}[unsafe.Offsetof(ColumnRange{}.N)-8]
	_ = [1]struct{}{}[unsafe.Offsetof(ColumnRange{}.At)-16]
	_ = [1]struct{}{}[unsafe.Offsetof(ColumnRange{}.Masks)-24]
)

// It also contains the number of AVX512.
var _ = [1]struct{}{}[AVX512-2]
