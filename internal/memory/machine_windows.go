package memory

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel32             = windows.NewLazySystemDLL("kernel32.dll")
	globalMemoryStatusEx = kernel32.NewProc("GlobalMemoryStatusEx")
	processMemoryInfo    = kernel32.NewProc("K32GetProcessMemoryInfo")
)

// machineLimits returns the machine's free memory.
func machineLimits() []Limit {
	var status struct { // MEMORYSTATUSEX
		size, load                                                                 uint32
		physical, freePhysical, pageFile, freePageFile, virtual, freeVirtual, more uint64
	}
	status.size = uint32(unsafe.Sizeof(status))
	if ok, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return nil
	}
	return []Limit{{int64(status.freePageFile), "the machine's free memory"}} // it counts the memory, too
}

// PeakRSS returns the largest resident memory of the process so far, in bytes.
func PeakRSS() int64 {
	var counters struct { // PROCESS_MEMORY_COUNTERS
		size, faults uint32
		peak         uintptr
		_            [7]uintptr
	}
	counters.size = uint32(unsafe.Sizeof(counters))
	processMemoryInfo.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&counters)), uintptr(counters.size))
	return int64(counters.peak)
}
