package memory

import (
	"cmp"
	"fmt"
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
	meminfo = "MemTotal: 24000 kB\nMemFree:  1000 kB\nMemAvailable:   16000 kB\nSwapTotal: 5000 kB\nSwapFree: 4000 kB\n"
	status  = "Name:\tcne\nVmSize:\t  1000 kB\nVmData:\t  200 kB\nRssAnon:\t  300 kB\n"
)

// limits is /proc/self/limits with two of its lines.
func limits(data, addressSpace any) string {
	return fmt.Sprintf("Limit                     Soft Limit           Hard Limit           Units     \n"+
		"Max data size             %-20v unlimited            bytes     \nMax address space         %-20v unlimited            bytes     \n", data, addressSpace)
}

// The tightest limit counts, wherever it stands.
func TestTightest(t *testing.T) {
	for name, tc := range map[string]struct {
		files   map[string]string
		goLimit int64 // 0: none
		bytes   int64 // −1: no limit
		source  string
	}{
		"the machine":     {map[string]string{"proc/meminfo": meminfo}, 0, 20000 << 10, "the machine's free memory"},
		"an old kernel":   {map[string]string{"proc/meminfo": "MemTotal: 5 kB\n"}, 0, -1, ""},
		"nothing is told": {nil, 0, -1, ""},
		"version 2": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/user.slice/job\n",
			"sys/fs/cgroup/user.slice/job/memory.max": "10485760\n", "sys/fs/cgroup/user.slice/job/memory.current": "6291456\n",
			"sys/fs/cgroup/user.slice/job/memory.stat": "anon 5\ninactive_file 1048576\nactive_file 1048576\n",
		}, 0, 6 << 20, "the control group's limit of 10 MB (/sys/fs/cgroup/user.slice/job/memory.max)"},
		"version 2, a group around it": {map[string]string{
			"proc/self/cgroup":               "0::/a/b/c\n",
			"sys/fs/cgroup/a/b/c/memory.max": "max\n", "sys/fs/cgroup/a/b/c/memory.current": "1\n",
			"sys/fs/cgroup/a/memory.max": "3000000\n", "sys/fs/cgroup/a/memory.current": "1000000\n",
			"sys/fs/cgroup/a/b/memory.max": "9000000\n", "sys/fs/cgroup/a/b/memory.current": "1000000\n",
		}, 0, 2000000, "the control group's limit of 3 MB (/sys/fs/cgroup/a/memory.max)"},
		"version 2, mounted in a container": {map[string]string{
			"proc/self/cgroup":         "0::/docker/x\n",
			"sys/fs/cgroup/memory.max": "5000000\n", "sys/fs/cgroup/memory.current": "4000000\n",
		}, 0, 1000000, "the control group's limit of 5 MB (/sys/fs/cgroup/memory.max)"},
		"version 2, of another name space": {map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "5000000\n", "sys/fs/cgroup/memory.current": "7000000\n",
		}, 0, 0, "the control group's limit of 5 MB (/sys/fs/cgroup/memory.max)"},
		"version 1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:cpu,cpuacct:/x\n4:memory:/job/of mine\n0::/\n",
			"sys/fs/cgroup/memory/job/of mine/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/job/of mine/memory.usage_in_bytes": "5\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "8000000\n", "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "5000000\n",
			"sys/fs/cgroup/memory/job/memory.stat": "total_inactive_file 1000000\ninactive_file 9\ntotal_active_file 500000\n",
		}, 0, 4500000, "the control group's limit of 8 MB (/sys/fs/cgroup/memory/job/memory.limit_in_bytes)"},
		"the address space":     {map[string]string{"proc/meminfo": meminfo, "proc/self/status": status, "proc/self/limits": limits("unlimited", 128<<20+1000<<10+5)}, 0, 5, "the limit of 135 MB on the address space (ulimit -v)"},
		"no address space left": {map[string]string{"proc/meminfo": meminfo, "proc/self/status": status, "proc/self/limits": limits("unlimited", 1)}, 0, 0, "on the address space (ulimit -v)"},
		"memory to write to":    {map[string]string{"proc/self/status": status, "proc/self/limits": limits(128<<20+400<<10, 128<<20+2000<<10)}, 0, 200 << 10, "on memory to write to (ulimit -d)"},
		"no limit of a process": {map[string]string{"proc/meminfo": meminfo, "proc/self/limits": limits("unlimited", "unlimited")}, 0, 20000 << 10, "the machine's free memory"},
		"GOMEMLIMIT":            {map[string]string{"proc/meminfo": meminfo, "proc/self/status": status}, 1000 << 10, 700 << 10, "GOMEMLIMIT"},
		"damaged files": {map[string]string{
			"proc/meminfo": "MemAvailable: many kB\n", "proc/self/cgroup": "a\n::\n0::/\n",
			"sys/fs/cgroup/memory.max": "lots", "sys/fs/cgroup/memory.current": "-",
		}, 0, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, ok := tightestOf(files(tc.files), cmp.Or(tc.goLimit, math.MaxInt64))
			if ok != (tc.bytes >= 0) || ok && (l.Bytes != tc.bytes || !strings.Contains(l.Source, tc.source)) {
				t.Errorf("%d by %q, %v; want %d by %q", l.Bytes, l.Source, ok, tc.bytes, tc.source)
			}
		})
	}
}
