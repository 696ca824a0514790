// Package memory knows how much memory a process may still take, and adds up how much
// something will: see Available and Ledger.
package memory

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// A Limit is how many more bytes this process may take, and what says so, in words for
// people.
type Limit struct {
	Bytes  int64
	Source string
}

// Available returns the tightest of the limits that the system sets: those of the
// control groups (version 2 and 1, with all groups around them), the address space
// (ulimit -v) and what of it may be written to (ulimit -d), the memory that is free, swap
// included, and GOMEMLIMIT. ok is false where the system tells of none.
func Available() (tightest Limit, ok bool) {
	s := system{root: os.DirFS("/"), goLimit: goLimitAtStart}
	s.addressSpace, s.hasAddressSpace = addressSpaceLimit()
	s.data, s.hasData = dataLimit()
	return s.tightest()
}

// goLimitAtStart is GOMEMLIMIT: Bound changes what the runtime has.
var goLimitAtStart = debug.SetMemoryLimit(-1)

// Bound has the garbage collector keep what nobody uses any more from taking the process
// beyond what is Available, unless GOMEMLIMIT says how much it may have.
func Bound() {
	available, ok := Available()
	if !ok || goLimitAtStart < math.MaxInt64 {
		return
	}
	s := system{root: os.DirFS("/")}
	debug.SetMemoryLimit(s.fields("proc/self/status")["RssAnon"] + available.Bytes/10*9)
}

// Large is how many bytes must be live for Thrift to be worth while.
const Large = 512 << 20

// thriftPercent is what garbage may take, in per cent of what is live, once Thrift is
// called.
const thriftPercent = 20

// Thrift has the garbage collector run before garbage takes as much again as what is
// live, unless GOGC says when it shall run. Where much of what is live are large arrays of
// numbers, in which it has nothing to look for, that costs no time to speak of.
func Thrift() {
	if _, given := os.LookupEnv("GOGC"); !given {
		debug.SetGCPercent(thriftPercent)
	}
}

// A system is where the limits stand.
type system struct {
	root            fs.FS // has proc and sys
	addressSpace    uint64
	hasAddressSpace bool
	data            uint64
	hasData         bool
	goLimit         int64 // math.MaxInt64: none
}

// heapBlocks is address space that the heap reserves beyond what it uses: it grows by 64
// MiB.
const heapBlocks = 128 << 20

func (s *system) tightest() (tightest Limit, ok bool) {
	space := func() (Limit, bool) {
		l, ok := s.ofProcess()
		l.Bytes = max(0, l.Bytes-heapBlocks)
		return l, ok
	}
	for _, limit := range []func() (Limit, bool){s.ofGroups, space, s.ofMachine, s.ofGo} {
		if l, known := limit(); known && (!ok || l.Bytes < tightest.Bytes) {
			tightest, ok = l, true
		}
	}
	tightest.Bytes = max(0, tightest.Bytes)
	return tightest, ok
}

// read returns the text of a file, "" if there is none.
func (s *system) read(name string) string {
	text, err := fs.ReadFile(s.root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// number returns the number that a file holds; ok is false for "max" and other words.
func (s *system) number(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(s.read(name), 10, 64)
	return n, err == nil
}

// fields returns the numbers of a file of lines such as "MemFree:  123 kB", by the first
// word without its colon; kB are turned into bytes.
func (s *system) fields(name string) map[string]int64 {
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

// A hierarchy is a tree of control groups of one version.
type hierarchy struct {
	mount string // below the root
	group string // of this process, from the mount on
	// The files of a group: its limit, what it uses, and the fields of memory.stat for
	// what the kernel takes back first, when memory becomes scarce.
	limit, usage string
	reclaimable  [2]string
}

// ofGroups returns the tightest limit of the control groups.
func (s *system) ofGroups() (tightest Limit, ok bool) {
	for _, h := range s.hierarchies() {
		for group := h.group; ; group = path.Dir(group) {
			folder := path.Join(h.mount, group)
			limit, limited := s.number(path.Join(folder, h.limit))
			usage, known := s.number(path.Join(folder, h.usage))
			// Version 1 writes a number near 2⁶³ for no limit.
			if limited && known && limit < math.MaxInt64/2 {
				stat := s.fields(path.Join(folder, "memory.stat"))
				left := limit - max(0, usage-stat[h.reclaimable[0]]-stat[h.reclaimable[1]])
				if !ok || left < tightest.Bytes {
					tightest, ok = Limit{left, fmt.Sprintf("the control group's limit of %s (/%s)", Format(limit), path.Join(folder, h.limit))}, true
				}
			}
			if group == "." || group == "/" || group == "" {
				break
			}
		}
	}
	return tightest, ok
}

// hierarchies finds those that limit memory.
func (s *system) hierarchies() (list []hierarchy) {
	groups := map[string]string{} // of this process, by controller; "" is version 2
	for line := range strings.Lines(s.read("proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			groups[controller] = parts[2]
		}
	}
	for line := range strings.Lines(s.read("proc/self/mountinfo")) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		words, kind := strings.Fields(before), strings.Fields(after)
		if len(words) < 5 || len(kind) < 3 {
			continue
		}
		h := hierarchy{mount: strings.TrimPrefix(unescape(words[4]), "/")}
		controller := ""
		switch {
		case kind[0] == "cgroup2":
			h.limit, h.usage, h.reclaimable = "memory.max", "memory.current", [2]string{"inactive_file", "active_file"}
		case kind[0] == "cgroup" && hasWord(kind[2], "memory"):
			controller = "memory"
			h.limit, h.usage, h.reclaimable = "memory.limit_in_bytes", "memory.usage_in_bytes", [2]string{"total_inactive_file", "total_active_file"}
		default:
			continue
		}
		group, ok := groups[controller]
		if !ok {
			continue
		}
		// In a container the mount may begin at a group further down.
		mounted := unescape(words[3])
		if rest, below := strings.CutPrefix(group, mounted); below && (rest == "" || rest[0] == '/' || strings.HasSuffix(mounted, "/")) {
			group = rest
		} else if mounted != "/" {
			group = ""
		}
		h.group = path.Clean("/" + group)[1:]
		list = append(list, h)
	}
	return list
}

// hasWord tells whether a list with commas has a word.
func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// unescape undoes the escapes of mountinfo.
func unescape(name string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(name)
}

// ofProcess returns the tighter of the limits on what the process may map.
func (s *system) ofProcess() (tighter Limit, ok bool) {
	used := s.fields("proc/self/status")
	for _, l := range []struct {
		bytes   uint64
		limited bool
		used    string // the field
		words   string
	}{
		{s.addressSpace, s.hasAddressSpace, "VmSize", "the address space (ulimit -v)"},
		{s.data, s.hasData, "VmData", "memory to write to (ulimit -d)"},
	} {
		if !l.limited {
			continue
		}
		limit := int64(min(l.bytes, math.MaxInt64))
		left := max(0, limit-used[l.used])
		if !ok || left < tighter.Bytes {
			tighter, ok = Limit{left, fmt.Sprintf("the limit of %s on %s", Format(limit), l.words)}, true
		}
	}
	return tighter, ok
}

func (s *system) ofMachine() (Limit, bool) {
	info := s.fields("proc/meminfo")
	free, ok := info["MemAvailable"]
	return Limit{free + info["SwapFree"], "the machine's free memory"}, ok
}

func (s *system) ofGo() (Limit, bool) {
	used := s.fields("proc/self/status")["RssAnon"]
	return Limit{s.goLimit - used, "GOMEMLIMIT"}, s.goLimit < math.MaxInt64
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
