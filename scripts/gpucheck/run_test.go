package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runFolder makes a folder with run and an archive of programs, of which gpucheck
// prints what it is given.
func runFolder(t *testing.T) (folder string) {
	t.Helper()
	script, err := os.ReadFile("run.bash")
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	t.Chdir(t.TempDir())
	put(t, filepath.Join(folder, "run"), string(script))
	put(t, "programs/gpucheck", "#!/bin/sh\necho \"args $*\"\necho \"path $LD_LIBRARY_PATH\"\necho \"before $GPUCHECK_LD_LIBRARY_PATH\"\necho \"cache $CUDA_CACHE_PATH\"\n")
	archive(t, folder)
	return folder
}

// archive packs the programs of the current folder.
func archive(t *testing.T, folder string) {
	t.Helper()
	if out, err := exec.Command("tar", "-cJf", filepath.Join(folder, "programs.tar.xz"), "programs").CombinedOutput(); err != nil {
		t.Skipf("no tar with xz: %s", out)
	}
}

// runs starts run and returns what it prints, by the first word of the line.
func runs(t *testing.T, folder string, env ...string) (lines map[string]string, stderr string, err error) {
	t.Helper()
	cmd := exec.Command("bash", filepath.Join(folder, "run"), "ops", "-o", "out")
	cmd.Env = append(append(os.Environ(), "PYTHON=nothing", "LD_LIBRARY_PATH=/before", "CONDA_PREFIX=", "CUDA_CACHE_PATH="), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	lines = map[string]string{}
	for line := range strings.Lines(string(out)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines[word] = rest
	}
	return lines, errs.String(), err
}

// Libraries are found where Python's packages of either CUDA put them, each in the
// folder that has it first.
func TestLibrariesAreFound(t *testing.T) {
	for name, c := range map[string]struct{ files, want []string }{
		"CUDA 12": {
			[]string{"cublas/lib/libcublas.so.12", "cublas/lib/libcublasLt.so.12", "cudnn/lib/libcudnn.so.9", "cuda_nvrtc/lib/libnvrtc.so.12", "cufft/lib/libcufft.so.11"},
			[]string{"cublas/lib", "cudnn/lib", "cuda_nvrtc/lib"},
		},
		"CUDA 13": {
			[]string{"cu13/lib/libcublas.so.13", "cu13/lib/libcublasLt.so.13", "cu13/lib/libnvrtc.so.13", "cudnn/lib/libcudnn.so.9"},
			[]string{"cu13/lib", "cudnn/lib"},
		},
		"without cuDNN": {[]string{"cu13/lib/libcublas.so.13", "cu13/lib/libnvrtc.so.13"}, []string{"cu13/lib"}},
		"nothing":       {[]string{"cu13/lib/libcudart.so.13"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			folder := runFolder(t)
			site := filepath.Join(t.TempDir(), "site-packages")
			for _, f := range c.files {
				put(t, filepath.Join(site, "nvidia", f), "")
			}
			python := filepath.Join(t.TempDir(), "python")
			put(t, python, "#!/bin/sh\necho /nowhere\necho "+site+"\n")
			lines, stderr, err := runs(t, folder, "PYTHON="+python)
			if err != nil || stderr != "" {
				t.Fatalf("%v: %s", err, stderr)
			}
			want := ""
			for _, w := range c.want {
				want += filepath.Join(site, "nvidia", w) + ":"
			}
			// A toolkit of this machine's own comes after Python's.
			if got := lines["path"]; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "/before") || len(c.want) > 0 && strings.Count(got, site) != len(c.want) {
				t.Errorf("LD_LIBRARY_PATH is %s, want %s…:/before", got, want)
			}
			if lines["before"] != "/before" {
				t.Errorf("the path before is %s", lines["before"])
			}
			if got, want := lines["args"], "-in "+folder+" ops -o out"; got != want {
				t.Errorf("gpucheck was given %s, want %s", got, want)
			}
		})
	}
}

func TestCacheIsWhereItCanBeWritten(t *testing.T) {
	folder := runFolder(t)
	own := filepath.Join(t.TempDir(), "own")
	file, temporary := filepath.Join(t.TempDir(), "file"), t.TempDir()
	put(t, file, "no folder")
	if lines, stderr, err := runs(t, folder, "CUDA_CACHE_PATH="+own); err != nil || stderr != "" || lines["cache"] != own {
		t.Errorf("%v, %s, %s", err, stderr, lines["cache"])
	}
	beside := filepath.Join(folder, "cuda-cache")
	for _, set := range []string{"", filepath.Join(file, "below")} {
		if lines, stderr, err := runs(t, folder, "CUDA_CACHE_PATH="+set); err != nil || stderr != "" || lines["cache"] != beside {
			t.Errorf("%q: %v, %s, %s", set, err, stderr, lines["cache"])
		}
	}
	if err := os.RemoveAll(beside); err != nil {
		t.Fatal(err)
	}
	put(t, beside, "no folder")
	if lines, stderr, err := runs(t, folder, "TMPDIR="+temporary); err != nil || stderr != "" || filepath.Dir(lines["cache"]) != temporary {
		t.Errorf("%v, %s, %s", err, stderr, lines["cache"])
	}
	lines, stderr, err := runs(t, folder, "TMPDIR="+file)
	if err != nil || lines["cache"] != "" || !strings.Contains(stderr, "each process compiles the kernels again that it uses; how long that takes has not been measured") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%v, %s, %s", err, stderr, lines["cache"])
	}
}

// Half a folder is told apart from a whole one, and a new archive from an old one.
func TestProgramsAreUnpacked(t *testing.T) {
	folder := runFolder(t)
	if _, stderr, err := runs(t, folder); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	put(t, "programs/gpucheck", "#!/bin/sh\necho args are new\n")
	archive(t, folder)
	if lines, stderr, err := runs(t, folder); err != nil || lines["args"] != "are new" {
		t.Errorf("%v, %s, %v", err, stderr, lines)
	}
	whole, err := os.ReadFile(filepath.Join(folder, "programs.tar.xz"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(name, want string) {
		t.Helper()
		_, stderr, err := runs(t, folder)
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %v, %q, want %q", name, err, stderr, want)
		}
	}
	const again = "make it again with scripts/gpu-check --parts programs"
	put(t, filepath.Join(folder, "programs.tar.xz"), string(whole[:len(whole)/2]))
	refused("truncated", "programs.tar.xz is unpacked neither by tar with xz nor by nothing: it is damaged, or neither is here; "+again)
	for _, name := range []string{"programs.tar.xz", "programs", "programs.part"} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	refused("without programs", "the part programs is missing (there is no programs.tar.xz beside run); "+again)
	if err := os.RemoveAll("programs"); err != nil {
		t.Fatal(err)
	}
	put(t, "programs/cne", "alone")
	archive(t, folder)
	refused("without gpucheck", "there is no programs/gpucheck beside run; "+again)
}
