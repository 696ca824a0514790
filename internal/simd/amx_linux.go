//go:build amd64 && !noasm

package simd

import (
	"sync"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// AMX reports whether, with AVX512, the processor multiplies tiles of bfloat16, and Linux lets
// this process do so. The first call asks it.
var AMX = sync.OnceValue(func() bool {
	const requestPermission, tileData = 0x1023, 18 // of arch_prctl and XSAVE
	if !BFloat16() || !cpu.X86.HasAMXTile || !cpu.X86.HasAMXBF16 {
		return false
	}
	_, _, refused := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return refused == 0
})
