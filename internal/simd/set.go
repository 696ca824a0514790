package simd

import "golang.org/x/sys/cpu"

// A Set is an instruction set for which packages with assembly may have vector forms; a
// wider one comes after a narrower one.
type Set int

// The sets. Portable stands for plain Go.
const (
	Portable Set = iota
	AVX2         // with FMA
	AVX512       // F, BW, DQ and VL
)

func (s Set) String() string { return [...]string{"portable", "avx2", "avx512"}[s] }

// Best returns the widest set that the processor has: Portable on other
// architectures than amd64 and with the build tag noasm.
func Best() Set {
	switch {
	case !assembly:
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL:
		return AVX512
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return AVX2
	}
	return Portable
}

// Available returns all sets up to the best, for tests to go through.
func Available() (sets []Set) {
	for s := Portable; s <= Best(); s++ {
		sets = append(sets, s)
	}
	return sets
}

// BFloat16 reports whether, with AVX512, the processor multiplies pairs of bfloat16.
func BFloat16() bool { return Best() == AVX512 && cpu.X86.HasAVX512BF16 }
