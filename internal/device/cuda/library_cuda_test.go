//go:build cu

package cuda

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The library for the driver's own version comes first, then those that every driver
// takes.
func TestLibrariesForDevice(t *testing.T) {
	const v11, v12, v13, any = "libcublas.so.11", "libcublas.so.12", "libcublas.so.13", "libcublas.so"
	for driver, want := range map[int][]string{
		11080: {v11, v12, v13, any},
		12020: {v12, v11, v13, any},
		13000: {v13, v12, v11, any},
		14010: {v13, v12, v11, any},
	} {
		if got := blasNames(driver); !slices.Equal(got, want) {
			t.Errorf("with a driver for %d: %q, want %q", driver, got, want)
		}
	}
}

func TestCacheOfDevice(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	protected := filepath.Join(home, "protected")
	if err := os.Mkdir(protected, 0o500); err != nil {
		t.Fatal(err)
	}
	const again = "so the driver compiles the kernels again at each start, which takes perhaps a second or more; let "
	for name, c := range map[string]struct{ home, path, disable, want string }{
		"home":               {home: home},
		"no such home yet":   {home: filepath.Join(home, "new", "one")},
		"no home":            {want: "there is no home folder, " + again + "CUDA_CACHE_PATH name a folder"},
		"home is a file":     {home: file, want: "nothing can be written to " + file + "/.nv/ComputeCache, " + again + "CUDA_CACHE_PATH name a folder that can be written"},
		"path instead":       {home: file, path: filepath.Join(home, "cache")},
		"path is a file":     {home: home, path: file, want: "nothing can be written to " + file + ", which CUDA_CACHE_PATH names, " + again + "it name a folder that can be written"},
		"path below a file":  {home: home, path: file + "/cache", want: "nothing can be written to " + file + "/cache, which CUDA_CACHE_PATH names, " + again + "it name a folder that can be written"},
		"no cache is wanted": {home: file, disable: "1"},
		"a cache is wanted":  {home: home, disable: "0"},
		"path is protected":  {home: home, path: protected, want: "nothing can be written to " + protected + ", which CUDA_CACHE_PATH names, " + again + "it name a folder that can be written"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.path == protected && os.Geteuid() == 0 {
				t.Skip("root may write everywhere")
			}
			t.Setenv("HOME", c.home)
			t.Setenv("CUDA_CACHE_PATH", c.path)
			t.Setenv("CUDA_CACHE_DISABLE", c.disable)
			if got := checkCache(); got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
