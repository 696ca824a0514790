// Package memory estimates the memory of a run, and finds out how much this process may
// still use: see Points, Images and Available.
package memory

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// A Limit is the number of further bytes that this process may use, and the source of
// this number in words.
type Limit struct {
	Bytes  int64
	Source string
}

// goLimit is GOMEMLIMIT at the start; Economize changes the runtime's limit.
var goLimit = debug.SetMemoryLimit(-1)

// Available returns the tightest of the system's limits: of the control groups (version 2
// and 1, with all groups around them), of the process (ulimit -v and -d), the machine's
// free memory with its swap, and GOMEMLIMIT. On Windows it knows the free memory, on
// macOS the size of the machine's memory. ok is false if the system reports no limit.
func Available() (tightest Limit, ok bool) {
	return tightestOf(os.DirFS("/"), goLimit, machineLimits()...)
}

// LimitGarbage limits garbage for a run that holds at least held bytes. Unless GOMEMLIMIT is
// set, the limit leaves a tenth of Available. Unless GOGC is set, a large run collects
// garbage at 20 % of the live heap: pointer-free arrays are cheap to collect.
func LimitGarbage(held int64) {
	if available, ok := Available(); ok && goLimit == math.MaxInt64 {
		debug.SetMemoryLimit(fields(os.DirFS("/"), "proc/self/status")["RssAnon"] + available.Bytes/10*9)
	}
	if _, given := os.LookupEnv("GOGC"); !given && held > 400<<20 {
		debug.SetGCPercent(20)
	}
}

// FreeGarbage returns the memory of a run's previous step to the system if there are many
// edges, or neighbours. The next step's arrays do not fit into the gaps, and garbage is
// otherwise collected late.
func FreeGarbage(edges int) {
	if edges >= 1<<22 {
		debug.FreeOSMemory()
	}
}

// tightestOf is Available by the files in proc and sys below root, and further limits.
func tightestOf(root fs.FS, goLimit int64, limits ...Limit) (Limit, bool) {
	const heapBlocks = 128 << 20 // address space that the heap reserves beyond what it uses
	limits = append(limits, cgroupLimits(root)...)
	if l, ok := least(processLimits(root)); ok {
		limits = append(limits, Limit{l.Bytes - heapBlocks, l.Source})
	}
	if info := fields(root, "proc/meminfo"); info["MemAvailable"] > 0 {
		limits = append(limits, Limit{info["MemAvailable"] + info["SwapFree"], "the machine's free memory"})
	}
	if goLimit < math.MaxInt64 {
		limits = append(limits, Limit{goLimit - fields(root, "proc/self/status")["RssAnon"], "GOMEMLIMIT"})
	}
	return least(limits)
}

func least(limits []Limit) (l Limit, ok bool) {
	if len(limits) == 0 {
		return Limit{}, false
	}
	l = slices.MinFunc(limits, func(a, b Limit) int { return cmp.Compare(a.Bytes, b.Bytes) })
	l.Bytes = max(0, l.Bytes)
	return l, true
}

// cgroupLimits returns the limits of the control groups. Caches of files do not count as used:
// the kernel takes them back first.
func cgroupLimits(root fs.FS) (limits []Limit) {
	for _, line := range lines(root, "proc/self/cgroup") {
		parts := strings.SplitN(line, ":", 3) // number, controllers, group
		mount, limitFile, usageFile := "sys/fs/cgroup", "memory.max", "memory.current"
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), "memory") { // version 1
			mount, limitFile, usageFile = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
		} else if len(parts) < 3 || parts[1] != "" {
			continue
		}
		// The group and all around it. A container sees its own group as the root of the mount.
		for folder := path.Join(mount, path.Clean("/"+parts[2])); strings.HasPrefix(folder, mount); folder = path.Dir(folder) {
			limit, limited := fields(root, path.Join(folder, limitFile))[""]
			usage, known := fields(root, path.Join(folder, usageFile))[""]
			if limited && known && limit < math.MaxInt64/2 { // version 1 writes nearly 2⁶³ for no limit
				stat := fields(root, path.Join(folder, "memory.stat"))
				cached := cmp.Or(stat["total_inactive_file"], stat["inactive_file"]) + cmp.Or(stat["total_active_file"], stat["active_file"])
				limits = append(limits, Limit{limit - max(0, usage-cached),
					fmt.Sprintf("the control group's limit of %s (/%s/%s)", Bytes(limit), folder, limitFile)})
			}
		}
	}
	return limits
}

// processLimits returns the limits on the process's mapped memory.
func processLimits(root fs.FS) (limits []Limit) {
	used := fields(root, "proc/self/status")
	for _, line := range lines(root, "proc/self/limits") {
		for _, l := range [][3]string{{"Max address space", "VmSize", "the address space (ulimit -v)"},
			{"Max data size", "VmData", "memory to write to (ulimit -d)"}} {
			values, ok := strings.CutPrefix(line, l[0])
			soft, _, _ := strings.Cut(strings.TrimSpace(values), " ")
			if limit, err := strconv.ParseInt(soft, 10, 64); ok && err == nil {
				limits = append(limits, Limit{limit - used[l[1]], fmt.Sprintf("the limit of %s on %s", Bytes(limit), l[2])})
			}
		}
	}
	return limits
}

// lines returns the lines of a file; none if it cannot be read.
func lines(root fs.FS, name string) []string {
	text, _ := fs.ReadFile(root, name)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// fields returns the numbers of a file of lines such as "MemFree:  123 kB" by their names,
// in bytes; a file that holds only a number has it by the name "".
func fields(root fs.FS, name string) map[string]int64 {
	found := map[string]int64{}
	for _, line := range lines(root, name) {
		words := strings.Fields(line)
		if len(words) == 1 {
			words = []string{"", words[0]}
		}
		if len(words) > 1 {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				if words[len(words)-1] == "kB" {
					n *= 1024
				}
				found[strings.TrimSuffix(words[0], ":")] = n
			}
		}
	}
	return found
}

// Bytes writes a number of bytes for people: 12 kB, 123 MB, 4.5 GB.
func Bytes(n int64) string {
	switch b := float64(n); {
	case b >= 9.995e14:
		return fmt.Sprintf("%.3g PB", b/1e15)
	case b >= 9.995e11:
		return fmt.Sprintf("%.3g TB", b/1e12)
	case b >= 9.995e8:
		return fmt.Sprintf("%.3g GB", b/1e9)
	case b >= 9.995e5:
		return fmt.Sprintf("%.0f MB", b/1e6)
	}
	return fmt.Sprintf("%.0f kB", float64(n)/1e3)
}
