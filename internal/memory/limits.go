// Package memory estimates what memory a run takes, and knows how much this process may
// still have: see Points, Images and Available.
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

// A Limit is how many more bytes this process may take, and what says so, in words for
// people.
type Limit struct {
	Bytes  int64
	Source string
}

// Available returns the tightest of the system's limits: of the control groups (version 2
// and 1, with all groups around them, where they are usually mounted), of the process
// (ulimit -v and -d), the machine's free memory with its swap, and GOMEMLIMIT. ok is
// false where the system tells of none, as those other than Linux do.
func Available() (tightest Limit, ok bool) { return system{os.DirFS("/"), goLimit}.tightest() }

// goLimit is GOMEMLIMIT: Economize changes what the runtime has.
var goLimit = debug.SetMemoryLimit(-1)

// Economize keeps garbage from taking the memory that a run needs, which holds so many
// bytes at least. The garbage collector leaves a tenth of what is Available, unless
// GOMEMLIMIT is set. A large run has garbage collected once it takes a fifth of what is
// held, not as much again, unless GOGC is set: most of a large run are arrays of numbers,
// where the collector has nothing to look for.
func Economize(held int64) {
	if available, ok := Available(); ok && goLimit == math.MaxInt64 {
		used := system{root: os.DirFS("/")}.fields("proc/self/status")["RssAnon"]
		debug.SetMemoryLimit(used + available.Bytes/10*9)
	}
	if _, given := os.LookupEnv("GOGC"); !given && held > 512<<20 {
		debug.SetGCPercent(20)
	}
}

// A system is where limits stand.
type system struct {
	root    fs.FS // has proc and sys
	goLimit int64 // math.MaxInt64: none
}

// heapBlocks is address space that the heap reserves beyond what it uses: it grows by
// 64 MiB.
const heapBlocks = 128 << 20

func (s system) tightest() (Limit, bool) {
	limits := s.ofGroups()
	for _, l := range s.ofProcess() {
		limits = append(limits, Limit{l.Bytes - heapBlocks, l.Source})
	}
	info := s.fields("proc/meminfo")
	if free, ok := info["MemAvailable"]; ok {
		limits = append(limits, Limit{free + info["SwapFree"], "the machine's free memory"})
	}
	if s.goLimit < math.MaxInt64 {
		limits = append(limits, Limit{s.goLimit - s.fields("proc/self/status")["RssAnon"], "GOMEMLIMIT"})
	}
	return tightestOf(limits)
}

func tightestOf(limits []Limit) (l Limit, ok bool) {
	if len(limits) == 0 {
		return Limit{}, false
	}
	l = slices.MinFunc(limits, func(a, b Limit) int { return cmp.Compare(a.Bytes, b.Bytes) })
	l.Bytes = max(0, l.Bytes)
	return l, true
}

// ofGroups returns the limits of the control groups. Caches of files do not count as used:
// the kernel takes them back first.
func (s system) ofGroups() (limits []Limit) {
	for line := range strings.Lines(s.read("proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, limitFile, usageFile := "sys/fs/cgroup", "memory.max", "memory.current"
		if parts[1] != "" { // version 1
			if !slices.Contains(strings.Split(parts[1], ","), "memory") {
				continue
			}
			mount, limitFile, usageFile = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
		}
		// A container sees its own group as the root of the mount.
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			folder := path.Join(mount, group)
			limit, limited := s.number(path.Join(folder, limitFile))
			usage, known := s.number(path.Join(folder, usageFile))
			if limited && known && limit < math.MaxInt64/2 { // version 1 writes nearly 2⁶³ for no limit
				stat := s.fields(path.Join(folder, "memory.stat"))
				cached := cmp.Or(stat["total_inactive_file"], stat["inactive_file"]) + cmp.Or(stat["total_active_file"], stat["active_file"])
				limits = append(limits, Limit{limit - max(0, usage-cached), fmt.Sprintf("the control group's limit of %s (/%s)", Format(limit), path.Join(folder, limitFile))})
			}
			if group == "/" {
				break
			}
		}
	}
	return limits
}

// ofProcess returns the limits on what the process may map.
func (s system) ofProcess() (limits []Limit) {
	used := s.fields("proc/self/status")
	for line := range strings.Lines(s.read("proc/self/limits")) {
		for _, l := range [][3]string{{"Max address space", "VmSize", "the address space (ulimit -v)"}, {"Max data size", "VmData", "memory to write to (ulimit -d)"}} {
			values, ok := strings.CutPrefix(line, l[0])
			limit, err := strconv.ParseInt(strings.SplitN(strings.TrimSpace(values), " ", 2)[0], 10, 64)
			if ok && err == nil {
				limits = append(limits, Limit{limit - used[l[1]], fmt.Sprintf("the limit of %s on %s", Format(limit), l[2])})
			}
		}
	}
	return limits
}

// read returns the text of a file, "" if there is none.
func (s system) read(name string) string {
	text, err := fs.ReadFile(s.root, name)
	if err != nil {
		return ""
	}
	return string(text)
}

// number returns the number that a file holds; ok is false for "max" and other words.
func (s system) number(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s.read(name)), 10, 64)
	return n, err == nil
}

// fields returns the numbers of a file of lines such as "MemFree:  123 kB", by the first
// word without its colon; kB become bytes.
func (s system) fields(name string) map[string]int64 {
	found := map[string]int64{}
	for line := range strings.Lines(s.read(name)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		n, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			continue
		}
		if len(words) > 2 && words[2] == "kB" {
			n *= 1024
		}
		found[strings.TrimSuffix(words[0], ":")] = n
	}
	return found
}

// Format writes a number of bytes for people: 123 MB, 4.5 GB.
func Format(bytes int64) string {
	switch b := float64(bytes); {
	case b >= 9.995e14:
		return fmt.Sprintf("%.3g PB", b/1e15)
	case b >= 9.995e11:
		return fmt.Sprintf("%.3g TB", b/1e12)
	case b >= 9.995e8:
		return fmt.Sprintf("%.3g GB", b/1e9)
	default:
		return fmt.Sprintf("%.0f MB", b/1e6)
	}
}
