package simd

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// A Set is an instruction set with vector kernels. AVX512 follows AVX2; NEON is for arm64
// only.
type Set int

// The sets. Portable stands for plain Go.
const (
	Portable Set = iota
	AVX2         // with FMA
	AVX512       // F, BW, DQ and VL
	NEON         // of arm64
)

func (s Set) String() string { return [...]string{"portable", "avx2", "avx512", "neon"}[s] }

// Best returns the widest set that the processor has: Portable on other
// architectures than amd64 and arm64, and with the build tag noasm.
func Best() Set {
	switch {
	case !assembly:
	case runtime.GOARCH == "arm64":
		return NEON
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL:
		return AVX512
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return AVX2
	}
	return Portable
}

// Sets returns the sets that the processor has.
func Sets() []Set {
	switch best := Best(); best {
	case AVX512:
		return []Set{Portable, AVX2, AVX512}
	case Portable:
		return []Set{Portable}
	default:
		return []Set{Portable, best}
	}
}

// BFloat16 reports whether, with AVX512, the processor multiplies pairs of bfloat16.
func BFloat16() bool { return Best() == AVX512 && cpu.X86.HasAVX512BF16 }

// ScatterWords writes each word to the next place of its choice: order[next[c]] = words[i]
// for c = choice[i], and next[c] grows by one. order must have room there for all words of
// a choice. ScatterWords is fast where the choices take turns: it prefetches the cache lines
// that it writes to soon.
func ScatterWords[T ~uint64](order, words []T, choice []uint8, next *[256]int) {
	if len(choice) == 0 {
		return
	}
	if assembly {
		scatterWords(uint64s(order), uint64s(words[:len(choice)]), choice, next[:])
		return
	}
	for i, c := range choice {
		order[next[c]] = words[i]
		next[c]++
	}
}

// HoldsWord reports whether e|set is word for an element e of list. Another goroutine may
// write to the list meanwhile. Without AVX HoldsWord is always false.
func HoldsWord(list []uint64, word, set uint64) bool {
	// In Go, reading what another goroutine may write would be a race.
	return vectors() && runtime.GOARCH == "amd64" && holdsWord(list, word, set)
}

func uint64s[T ~uint64](x []T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
