package memory

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

func files(text map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, content := range text {
		root[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return root
}

const (
	v2Mount = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
	v1Mount = "34 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	meminfo = "MemTotal: 24000 kB\nMemFree:  1000 kB\nMemAvailable:   16000 kB\nSwapTotal: 5000 kB\nSwapFree: 4000 kB\n"
	status  = "Name:\tcne\nVmSize:\t  1000 kB\nRssAnon:\t  300 kB\n"
)

// The tightest limit counts, wherever it stands.
func TestTightest(t *testing.T) {
	for name, tc := range map[string]struct {
		files        map[string]string
		addressSpace uint64 // 0: none
		goLimit      int64  // 0: none
		bytes        int64
		source       string
	}{
		"the machine":     {map[string]string{"proc/meminfo": meminfo}, 0, 0, 20000 << 10, "the machine's free memory"},
		"an old kernel":   {map[string]string{"proc/meminfo": "MemTotal: 5 kB\n"}, 0, 0, -1, ""},
		"nothing is told": {nil, 0, 0, -1, ""},
		"version 2": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/user.slice/job\n", "proc/self/mountinfo": v2Mount,
			"sys/fs/cgroup/user.slice/job/memory.max": "10485760\n", "sys/fs/cgroup/user.slice/job/memory.current": "6291456\n",
			"sys/fs/cgroup/user.slice/job/memory.stat": "anon 5\ninactive_file 1048576\nactive_file 1048576\n",
		}, 0, 0, 6 << 20, "the control group's limit of 10 MB (/sys/fs/cgroup/user.slice/job/memory.max)"},
		"version 2, a group around it": {map[string]string{
			"proc/self/cgroup": "0::/a/b/c\n", "proc/self/mountinfo": v2Mount,
			"sys/fs/cgroup/a/b/c/memory.max": "max\n", "sys/fs/cgroup/a/b/c/memory.current": "1\n",
			"sys/fs/cgroup/a/memory.max": "3000000\n", "sys/fs/cgroup/a/memory.current": "1000000\n",
			"sys/fs/cgroup/a/b/memory.max": "9000000\n", "sys/fs/cgroup/a/b/memory.current": "1000000\n",
		}, 0, 0, 2000000, "the control group's limit of 3 MB (/sys/fs/cgroup/a/memory.max)"},
		"version 2, mounted in a container": {map[string]string{
			"proc/self/cgroup": "0::/docker/x\n", "proc/self/mountinfo": "9 8 0:1 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"sys/fs/cgroup/memory.max": "5000000\n", "sys/fs/cgroup/memory.current": "4000000\n",
		}, 0, 0, 1000000, "the control group's limit of 5 MB (/sys/fs/cgroup/memory.max)"},
		"version 2, of another name space": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": "9 8 0:1 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"sys/fs/cgroup/memory.max": "5000000\n", "sys/fs/cgroup/memory.current": "7000000\n",
		}, 0, 0, 0, "the control group's limit of 5 MB (/sys/fs/cgroup/memory.max)"},
		"version 1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:cpu,cpuacct:/x\n4:memory:/job/of mine\n0::/\n", "proc/self/mountinfo": v2Mount[:0] + v1Mount,
			"sys/fs/cgroup/memory/job/of mine/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/job/of mine/memory.usage_in_bytes": "5\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "8000000\n", "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "5000000\n",
			"sys/fs/cgroup/memory/job/memory.stat": "total_inactive_file 1000000\ninactive_file 9\ntotal_active_file 500000\n",
		}, 0, 0, 4500000, "the control group's limit of 8 MB (/sys/fs/cgroup/memory/job/memory.limit_in_bytes)"},
		"the address space":     {map[string]string{"proc/meminfo": meminfo, "proc/self/status": status}, 1000<<10 + heapBlocks + 5, 0, 5, "on the address space (ulimit -v)"},
		"no address space left": {map[string]string{"proc/meminfo": meminfo, "proc/self/status": status}, 1, 0, 0, "on the address space (ulimit -v)"},
		"GOMEMLIMIT":            {map[string]string{"proc/meminfo": meminfo, "proc/self/status": status}, 0, 1000 << 10, 700 << 10, "GOMEMLIMIT"},
		"damaged files": {map[string]string{
			"proc/meminfo": "MemAvailable: many kB\n", "proc/self/cgroup": "a\n::\n0::/\n", "proc/self/mountinfo": "\n - cgroup2 x y\n1 2 3 / /m rw - cgroup2 a b\n",
			"m/memory.max": "lots", "m/memory.current": "-",
		}, 0, 0, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := system{root: files(tc.files), addressSpace: tc.addressSpace, hasAddressSpace: tc.addressSpace > 0, goLimit: math.MaxInt64}
			if tc.goLimit > 0 {
				s.goLimit = tc.goLimit
			}
			l, ok := s.tightest()
			if ok != (tc.bytes >= 0) || ok && (l.Bytes != tc.bytes || !strings.Contains(l.Source, tc.source)) {
				t.Errorf("%d by %q, %v; want %d by %q", l.Bytes, l.Source, ok, tc.bytes, tc.source)
			}
		})
	}
}

// Of two limits on what the process may map, the one counts of which less is left.
func TestLimitsOfTheProcess(t *testing.T) {
	s := system{root: files(map[string]string{"proc/self/status": "VmSize: 1000 kB\nVmData: 300 kB\n"}), goLimit: math.MaxInt64}
	if l, ok := s.ofProcess(); ok {
		t.Errorf("there is a limit: %+v", l)
	}
	s.data, s.hasData = 500<<10, true
	if l, ok := s.ofProcess(); !ok || l.Bytes != 200<<10 || !strings.Contains(l.Source, "memory to write to (ulimit -d)") {
		t.Errorf("%+v, %v", l, ok)
	}
	s.addressSpace, s.hasAddressSpace = 1300<<10, true
	if l, ok := s.ofProcess(); !ok || l.Bytes != 200<<10 {
		t.Errorf("%+v, %v", l, ok)
	}
	s.addressSpace = 1100 << 10
	if l, ok := s.ofProcess(); !ok || l.Bytes != 100<<10 || !strings.Contains(l.Source, "(ulimit -v)") {
		t.Errorf("%+v, %v", l, ok)
	}
}

func TestFormat(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 MB", 1e6: "1 MB", 999e6: "999 MB", 1e9: "1 GB", 4.5e9: "4.5 GB", 87.3e9: "87.3 GB", 6.67e12: "6.67 TB", math.MaxInt64: "9.22e+03 PB"} {
		if got := Format(bytes); got != want {
			t.Errorf("Format(%d) = %s, want %s", bytes, got, want)
		}
	}
}

// A ledger remembers the most that was held, and what garbage was beside it.
func TestLedger(t *testing.T) {
	const mb = 1 << 20
	l := new(Ledger)
	l.Step("reading")
	points := l.Hold("points", "", 100*mb)
	l.Step("working")
	l.Hold("weights", "Hidden", 30*mb)
	l.Pass("weights", "Hidden", 60*mb)
	l.Free(points)
	l.Hold("positions", "Dim", 5*mb)
	e := l.Estimate()
	if e.Live != 190*mb || e.During != "working" {
		t.Errorf("%d bytes are held while %s", e.Live, e.During)
	}
	if len(e.Parts) != 2 || e.Parts[0] != (Part{"points", "", 100 * mb}) || e.Parts[1] != (Part{"weights", "Hidden", 90 * mb}) {
		t.Errorf("the parts are %v", e.Parts)
	}
	if largest := e.Largest(); largest == nil || *largest != (Part{"weights", "Hidden", 90 * mb}) {
		t.Errorf("the largest is %v", largest)
	}
	// Garbage stays until the heap has doubled: 100 MB were live when it was last
	// collected, so that all of it is there at the end.
	if want := clamp(small + overhead*195*mb); e.Peak != want {
		t.Errorf("the peak is %d, want %d", e.Peak, want)
	}
	// It does not grow without bound.
	l.Garbage(1e15)
	if e := l.Estimate(); e.Peak > 300*mb {
		t.Errorf("with garbage the peak is %d", e.Peak)
	}
	// What no computer holds does not overflow.
	l.Hold("everything", "", 1e30)
	if e := l.Estimate(); e.Live < 1e18 || e.Peak < e.Live {
		t.Errorf("%d, %d", e.Live, e.Peak)
	}
	if e := (&Estimate{Live: 100, Parts: []Part{{"points", "", 99}, {"dust", "Dim", 1}}}); e.Largest() != nil {
		t.Error("an option that changes nothing is named")
	}
}
