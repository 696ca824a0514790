//go:build cu

package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Libraries are found in Python's packages, after those of the dynamic linker, for each
// name in turn.
func TestLibrariesOfPythonForDevice(t *testing.T) {
	root := t.TempDir()
	in := func(path string) string { return filepath.Join(root, path) }
	write := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			if err := errors.Join(os.MkdirAll(filepath.Dir(in(path)), 0o777), os.WriteFile(in(path), nil, 0o777)); err != nil {
				t.Fatal(err)
			}
		}
	}
	const site, thirteen, twelve = "/lib/python3.12/site-packages/nvidia/", "libcublas.so.13", "libcublas.so.12"
	write("[venv]"+site+"cu13/lib/"+thirteen, "[venv]"+site+"cublas/lib/"+twelve, "[venv]"+site+"cu13/lib/libcublasLt.so.13", "conda/lib/"+twelve,
		"system/bin/python3.9", "system/lib/python3/dist-packages/nvidia/cublas/lib/"+twelve, "system/local/lib/python3.9/dist-packages/nvidia/cu13/lib/"+thirteen,
		"linked"+site+"cublas/lib/"+twelve, "linked/bin/other", "bin/other", "user"+site+"cublas/lib/"+twelve, "home/.local"+site+"cu13/lib/"+thirteen)
	for _, link := range [][2]string{{"../../system/bin/python3.9", "linked/bin/python3"}, {in("linked/bin/python3"), "bin/python3"}} {
		if err := os.Symlink(link[0], in(link[1])); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ venv, conda, path, user, home, want, prefixes string }{
		"nothing":             {want: "13 12"},
		"a home":              {home: "home", want: "13 home/.local" + site + "cu13/lib/13 12", prefixes: "home/.local"},
		"a virtual one":       {venv: "[venv]", want: "13 [venv]" + site + "cu13/lib/13 12 [venv]" + site + "cublas/lib/12", prefixes: "[venv]"},
		"conda":               {conda: "conda", want: "13 12 conda/lib/12", prefixes: "conda"},
		"a user's":            {user: "user", home: "home", want: "13 12 user" + site + "cublas/lib/12", prefixes: "user"},
		"links":               {path: "bin", want: "13 system/local/lib/python3.9/dist-packages/nvidia/cu13/lib/13 12 linked" + site + "cublas/lib/12 system/lib/python3/dist-packages/nvidia/cublas/lib/12", prefixes: ". linked system"},
		"some":                {venv: "[venv]", conda: "conda", path: "linked/bin", want: "13 [venv]" + site + "cu13/lib/13 system/local/lib/python3.9/dist-packages/nvidia/cu13/lib/13 12 [venv]" + site + "cublas/lib/12 conda/lib/12 linked" + site + "cublas/lib/12 system/lib/python3/dist-packages/nvidia/cublas/lib/12", prefixes: "[venv] conda linked system"},
		"one that is removed": {venv: "removed", want: "13 12", prefixes: "removed"},
		"no python3 there":    {path: "user", want: "13 12"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, path := range map[string]string{"VIRTUAL_ENV": c.venv, "CONDA_PREFIX": c.conda, "PATH": c.path, "PYTHONUSERBASE": c.user, "HOME": c.home} {
				if path != "" {
					path = in(path)
				}
				t.Setenv(variable, path)
			}
			var want []string
			for _, file := range strings.Fields(c.want) {
				folder, version := filepath.Split(file)
				if folder != "" {
					folder = in(folder) + "/"
				}
				want = append(want, folder+"libcublas.so."+version)
			}
			prefixes := pythons()
			if got := candidates([]string{thirteen, twelve}, prefixes); !slices.Equal(got, want) {
				t.Errorf("the libraries are %q, want %q", got, want)
			}
			want = nil
			for _, prefix := range strings.Fields(c.prefixes) {
				want = append(want, in(prefix))
			}
			if !slices.Equal(prefixes, want) {
				t.Errorf("the prefixes are %q, want %q", prefixes, want)
			}
		})
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
