//go:build cu

package main

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cne/internal/device/fakecuda"
)

// A situation is the state of a machine and the messages that a run must give.
type situation struct {
	env map[string]string
	// libraries are files, by name, in a folder that the program searches: the stand-in,
	// or another key of libraryOf.
	libraries map[string]string
	images    bool // the run is on images, and has convolutions
	// auto and cuda are lines of the log with the device of that name. cuda is the
	// error that ends the run if it begins with "cne: ", and both if it is empty.
	auto, cuda string
	// never is in no line.
	never string
	// absent is how the names of libraries begin which this machine must not have.
	absent string
}

// Sources of libraries that are not what their names promise.
const (
	// blasThatFails has a status in the place of %STATUS%.
	blasThatFails = `int cublasCreate_v2(void **h) { *h = 0; return %STATUS%; }
int cublasDestroy_v2, cublasSetStream_v2, cublasSetMathMode, cublasSetWorkspace_v2, cublasSgemm_v2, cublasGemmEx, cublasGetVersion_v2;`
	nothing = `int nothing;`
	// cuDNN9 ends the process, as cuDNN does, where a part of it is missing.
	cuDNN9 = `#include <dlfcn.h>
#include <stdlib.h>
int cudnnCreate(void **h) {
  const char *parts[] = {"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9"};
  for (int i = 0; i < 3; i++) if (!dlopen(parts[i], RTLD_NOW)) abort();
  *h = 0;
  return 1001;
}
int cudnnDestroy, cudnnSetStream, cudnnGetVersion, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor,
  cudnnSetTensor4dDescriptor, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor, cudnnSetFilter4dDescriptor,
  cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor, cudnnSetConvolution2dDescriptor,
  cudnnSetConvolutionMathType, cudnnGetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionBackwardDataAlgorithm_v7,
  cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnConvolutionForward, cudnnConvolutionBackwardData,
  cudnnConvolutionBackwardFilter;`
	brokenDriver = `int cuInit(unsigned flags) { return flags; }
int cuDriverGetVersion(int *v) { return *v = 12000, 0; }
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuStreamBeginCapture_v2;`
)

// build compiles a library that calls itself name.
func build(t *testing.T, file, source, name string) {
	t.Helper()
	c := file + ".c"
	writeTestFile(t, c, source)
	if out, err := exec.Command(cmp.Or(os.Getenv("CC"), "cc"), "-shared", "-fPIC", "-Wl,-soname,"+name, "-o", file, c).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A run on a machine where something is missing or broken says in one sentence what,
// and what it does instead: the CPU's with device auto, an error's with device cuda.
func TestDeviceWhereSomethingIsMissing(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a machine with a GPU has what it has")
	}
	t.Chdir(t.TempDir())
	standIn := os.Getenv("CNE_LIBCUDA")
	libraries, err := filepath.Abs("libraries")
	must(t, err)
	sources := map[string]string{
		"status 1": strings.ReplaceAll(blasThatFails, "%STATUS%", "1"),
		"status 3": strings.ReplaceAll(blasThatFails, "%STATUS%", "3"),
		"nothing":  nothing,
		"driver":   brokenDriver,
		"cuDNN 9":  cuDNN9,
	}
	for name, source := range sources {
		file, err := filepath.Abs(strings.ReplaceAll(name, " ", "-") + ".so")
		must(t, err)
		soname := filepath.Base(file)
		if name == "cuDNN 9" {
			soname = "libcudnn.so.9"
		}
		build(t, file, source, soname)
		sources[name] = file
	}
	writeTestFile(t, "text.so", "no library")
	sources["text"], sources["stand-in"] = filepath.Join(filepath.Dir(libraries), "text.so"), standIn

	const (
		cpu     = "computing on the CPU: "
		refused = "cne: device cuda cannot be used: "
		instead = "; convolutions are products with patches of the images instead, which takes longer"
	)
	looked := ", neither where the dynamic linker looks nor in Python's packages in " + libraries
	// both are the lines of what makes the GPU useless.
	both := func(s situation, reason string) situation {
		s.auto, s.cuda = cpu+reason, refused+reason
		return s
	}
	lacks := func(library string, s situation) situation {
		s.absent = library
		return s
	}
	blas := func(driver string, files map[string]string) situation {
		return situation{env: map[string]string{"FAKECUDA_DRIVER_VERSION": driver, "CNE_LIBCUBLAS": ""}, libraries: files}
	}
	dnn := func(status string, files map[string]string) situation {
		return situation{env: map[string]string{"FAKECUDNN_STATUS": status, "CNE_LIBCUDNN": ""}, libraries: files, images: true}
	}
	with := func(s situation, line string) situation {
		s.auto, s.cuda = line, line
		return s
	}
	for name, s := range map[string]situation{
		"no driver": both(situation{env: map[string]string{"CNE_LIBCUDA": "/nowhere/libcuda.so.1"}},
			"there is no NVIDIA driver (/nowhere/libcuda.so.1: cannot open shared object file: No such file or directory); install it, or start the container with its GPUs"),
		"a driver too old": both(situation{env: map[string]string{"FAKECUDA_DRIVER_VERSION": "11070"}},
			"NVIDIA's driver is too old: it is for CUDA 11.7; take one for CUDA 11.8 or newer"),
		"a driver that lacks a function": both(situation{env: map[string]string{"CNE_LIBCUDA": sources["driver"]}},
			"NVIDIA's driver has no cuStreamEndCapture; take one for CUDA 11.8 or newer"),
		"a driver without GPUs": both(situation{env: map[string]string{"FAKECUDA_INIT_STATUS": "100"}},
			"NVIDIA's driver sees no GPU; see whether nvidia-smi lists one, and whether CUDA_VISIBLE_DEVICES hides it"),
		"a driver that counts no GPUs": both(situation{env: map[string]string{"FAKECUDA_DEVICES": "0"}},
			"NVIDIA's driver sees no GPU; see whether nvidia-smi lists one, and whether CUDA_VISIBLE_DEVICES hides it"),
		"a driver that does not start": both(situation{env: map[string]string{"FAKECUDA_INIT_STATUS": "999"}},
			"NVIDIA's driver does not start (error 999 of cuInit); see whether nvidia-smi works"),

		"no cuBLAS": both(lacks("libcublas", blas("13000", nil)),
			"the GPU cannot be opened: cuBLAS was not found (libcublas.so.13, libcublas.so.12, libcublas.so.11 or libcublas.so"+looked+"); install it for CUDA 13 (pip install nvidia-cublas), add its folder to LD_LIBRARY_PATH, or name the file in CNE_LIBCUBLAS"),
		"no cuBLAS that starts": both(blas("12020", map[string]string{"libcublas.so.12": "status 1", "libcublas.so.11": "nothing", "libcublas.so.13": "text", "libcublas.so": "status 1"}),
			"the GPU cannot be opened: no cuBLAS starts (libcublas.so.12: status 1 of cublasCreate; libcublas.so.11: it has no cublasCreate_v2; libcublas.so.13: "+libraries+"/libcublas.so.13: file too short; libcublas.so: status 1 of cublasCreate); install cuBLAS for CUDA 12, which the driver is made for, or name another in CNE_LIBCUBLAS"),
		"an older cuBLAS that starts": with(blas("12020", map[string]string{"libcublas.so.12": "status 1", "libcublas.so.11": "stand-in"}),
			"products of matrices are computed by libcublas.so.11, since cuBLAS does not start otherwise (libcublas.so.12: status 1 of cublasCreate)"),
		"a newer cuBLAS than the driver": {env: map[string]string{"FAKECUDA_DRIVER_VERSION": "12020", "CNE_LIBCUBLAS": ""},
			libraries: map[string]string{"libcublas.so.13": "status 1", "libcublas.so.12": "stand-in"}, never: "libcublas"},
		"a cuBLAS without memory": both(blas("13000", map[string]string{"libcublas.so.13": "status 3", "libcublas.so.12": "stand-in"}),
			"the GPU cannot be opened: its memory is full; see with nvidia-smi what uses it"),
		"a named cuBLAS that is not there": both(situation{env: map[string]string{"CNE_LIBCUBLAS": "/nowhere/libcublas.so"}},
			"the GPU cannot be opened: CNE_LIBCUBLAS names a cuBLAS that cannot be used (/nowhere/libcublas.so: not found); set it to the libcublas.so of CUDA 13 or older, or to nothing"),
		"a named cuBLAS that does not start": both(situation{env: map[string]string{"FAKECUDA_CUBLAS_STATUS": "1"}, libraries: map[string]string{"libcublas.so.13": "stand-in"}},
			"the GPU cannot be opened: CNE_LIBCUBLAS names a cuBLAS that cannot be used ("+standIn+": status 1 of cublasCreate); set it to the libcublas.so of CUDA 13 or older, or to nothing"),

		"no cuDNN": with(lacks("libcudnn", dnn("", nil)), "cuDNN was not found (libcudnn.so.9, libcudnn.so.8 or libcudnn.so"+looked+")"+instead+"; pip install nvidia-cudnn-cu13 brings it"),
		"no cuDNN that starts": with(dnn("1002", map[string]string{"libcudnn.so.9": "stand-in", "libcudnn.so.8": "nothing", "libcudnn.so": "text"}),
			"cuDNN does not start (libcudnn.so.9: status 1002 of cudnnCreate; libcudnn.so.8: it has no cudnnCreate; libcudnn.so: "+libraries+"/libcudnn.so: file too short)"+instead),
		"half a cuDNN 9": with(lacks("libcudnn", dnn("", map[string]string{"libcudnn.so.9": "cuDNN 9", "libcudnn_graph.so.9": "nothing", "libcudnn_ops.so.9": "nothing"})),
			"cuDNN does not start (libcudnn.so.9: its part libcudnn_cnn.so.9 cannot be opened (libcudnn_cnn.so.9: cannot open shared object file: No such file or directory))"+instead),
		"a cuDNN 9 with half a part": with(lacks("libcudnn", dnn("", map[string]string{"libcudnn.so.9": "cuDNN 9", "libcudnn_graph.so.9": "nothing", "libcudnn_ops.so.9": "text", "libcudnn_cnn.so.9": "nothing"})),
			"cuDNN does not start (libcudnn.so.9: its part libcudnn_ops.so.9 cannot be opened ("+libraries+"/libcudnn_ops.so.9: file too short))"+instead),
		"a whole cuDNN 9 that does not start": with(lacks("libcudnn", dnn("", map[string]string{"libcudnn.so.9": "cuDNN 9", "libcudnn_graph.so.9": "nothing", "libcudnn_ops.so.9": "nothing", "libcudnn_cnn.so.9": "nothing"})),
			"cuDNN does not start (libcudnn.so.9: status 1001 of cudnnCreate)"+instead),
		"an older cuDNN that starts": with(dnn("", map[string]string{"libcudnn.so.9": "nothing", "libcudnn.so.8": "stand-in"}),
			"convolutions are computed by cuDNN 9.5.1 of libcudnn.so.8, since cuDNN does not start otherwise (libcudnn.so.9: it has no cudnnCreate)"),
		"a cuDNN without memory": with(dnn("4004", map[string]string{"libcudnn.so.9": "stand-in"}), "cuDNN finds no memory on the GPU"+instead),
		"a cuDNN":                with(dnn("", map[string]string{"libcudnn.so.9": "stand-in"}), "convolutions are computed by cuDNN 9.5.1"),
		"no cuDNN is wanted": with(situation{env: map[string]string{"CNE_LIBCUDNN": "none"}, images: true},
			"convolutions are products with patches of the images, as CNE_LIBCUDNN=none asks for"),
		"a named cuDNN that is not there": with(situation{env: map[string]string{"CNE_LIBCUDNN": "/nowhere/libcudnn.so"}, images: true},
			"cne: cuda:0: CNE_LIBCUDNN names a cuDNN that cannot be used (/nowhere/libcudnn.so: not found); set it to the libcudnn.so of cuDNN 8 or 9, or to none to do without (after epoch 0 of 1)"),
		"a named cuDNN that a table does not need": {env: map[string]string{"CNE_LIBCUDNN": "/nowhere/libcudnn.so"}, never: "cuDNN"},

		"no folder for compiled kernels": with(situation{env: map[string]string{"CUDA_CACHE_PATH": sources["text"]}},
			"nothing can be written to "+sources["text"]+", which CUDA_CACHE_PATH names, so the driver compiles the kernels again at each start, which takes perhaps a second or more; let it name a folder that can be written"),
	} {
		t.Run(name, func(t *testing.T) {
			if s.absent != "" && installed(s.absent) {
				t.Skipf("this machine may have a %s", s.absent)
			}
			writePoints(t, "points.csv", 40, 3)
			writeImages(t, "images", 8, 8, 4)
			must(t, os.RemoveAll(libraries))
			must(t, os.Mkdir(libraries, 0o777))
			for name, what := range s.libraries {
				must(t, os.Symlink(sources[what], filepath.Join(libraries, name)))
			}
			for device, want := range map[string]string{"auto": s.auto, "cuda": s.cuda} {
				args := short("--epochs", "1", "--device", device, "--force")
				if s.images {
					args = tiny("--epochs", "1", "--set", "train.warm_up=0", "--set", "monitor.every=0", "--device", device, "--force")
				}
				failed, log := runWith(t, s.env, libraries, args...)
				if failed != strings.HasPrefix(want, "cne: ") {
					t.Fatalf("device %s: the run failed: %t\n%s", device, failed, log)
				}
				if want != "" && strings.Count("\n"+log, "\n"+want+"\n") != 1 || s.never != "" && strings.Contains(log, s.never) {
					t.Errorf("device %s: the log should have %q once:\n%s", device, want, log)
				}
				if failed && strings.Count(log, "cne: ") != 1 {
					t.Errorf("device %s: the error is more than a sentence:\n%s", device, log)
				}
			}
		})
	}
}

// installed reports whether the dynamic linker may find a library here.
func installed(name string) bool {
	known, err := exec.Command("ldconfig", "-p").Output()
	return err != nil || bytes.Contains(known, []byte(name+".so"))
}

// runWith runs the program in a process of its own, and returns whether it failed and
// what it wrote to stderr.
func runWith(t *testing.T, env map[string]string, libraries string, args ...string) (failed bool, stderr string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), mainVariable+"=1", "LD_LIBRARY_PATH="+libraries, "CUDA_CACHE_PATH="+libraries,
		"PATH=", "VIRTUAL_ENV=", "CONDA_PREFIX=", "PYTHONUSERBASE="+libraries) // so that this machine's Python does not count
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	err = cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return err != nil, log.String()
}
