//go:build cu

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"cne/internal/app/rundir"
	"cne/internal/device/fakecuda"
)

// onDevice are the commands that train, on a device, with a checkpoint after each
// epoch where a command has them.
func onDevice(t *testing.T) map[string][]string {
	t.Helper()
	writePoints(t, "points.csv", 60, 4)
	writeImages(t, "images", 8, 8, 4)
	every := []string{"--quiet", "--set", "device.name=cuda", "--set", "device.precision=float32", "--set", "checkpoint.minutes=1e-9"}
	return map[string][]string{
		"table":    append(short("--set", "graph.cache=false"), every...),
		"mlp":      append(short("--set", "graph.cache=false", "--set", "model.kind=mlp", "--set", "model.hidden=[9]", "--set", "train.optimizer=adam", "--set", "train.lr=0.01"), every...),
		"pretrain": append(tiny("--set", "monitor.every=0"), every...),
		"spectrum": append([]string{"spectrum", "--s", "0,1", "--set", "data.path=points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5",
			"--set", "train.batch_size=64", "--epochs", "8", "-o", "run"}, every...),
	}
}

// filesIn is listFiles of a folder that a run which cannot begin has taken away again.
func filesIn(t *testing.T, folder string) []string {
	t.Helper()
	if _, err := os.Stat(folder); os.IsNotExist(err) {
		return nil
	}
	return listFiles(t, folder)
}

// A device that fails anywhere in a run ends it with one sentence. With a checkpoint the
// run can then continue to the same end; without one its folder is empty.
func TestDeviceIsLostInARun(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU cannot be made to fail")
	}
	t.Chdir(t.TempDir())
	const parts = 3
	for name, args := range onDevice(t) {
		t.Run(name, func(t *testing.T) {
			whole := append(slices.Clone(args), "-o", name+"/whole")
			before := fakecuda.Launches()
			mustRun(t, whole...)
			launches := fakecuda.Launches() - before
			for part := range parts {
				folder, after := fmt.Sprintf("%s/%d", name, part), (part+1)*launches/(parts+1)
				fakecuda.Fail(t, after, fakecuda.LaunchFailed)
				code, _, stderr := runCne(t.Context(), append(slices.Clone(args), "-o", folder)...)
				fakecuda.Fail(t, -1, 0)
				if code != exitFailure || strings.Count(withoutFew(stderr), "\n") != 1 || !strings.Contains(stderr, "cuda:0: ") || !strings.Contains(stderr, "the device failed (CUDA's error LaunchFailed)") {
					t.Fatalf("exit code %d, stderr %q", code, stderr)
				}
				files := filesIn(t, folder)
				if !slices.Contains(files, "checkpoint.safetensors") {
					mustRun(t, append(slices.Clone(args), "-o", folder)...)
					continue
				}
				if !strings.Contains(stderr, "--resume "+folder+"\" continues") {
					t.Errorf("stderr does not say how to go on: %q", stderr)
				}
				resume := args[:1]
				if name == "pretrain" {
					resume = args[:2]
				}
				mustRun(t, append(slices.Clone(resume), "--quiet", "--resume", folder)...)
				for _, file := range map[string][]string{
					"table": {"embedding.npy", rundir.ModelFile}, "mlp": {"embedding.npy", rundir.ModelFile},
					"pretrain": {rundir.ModelFile}, "spectrum": {"s=0/embedding.npy", "s=1/embedding.npy"},
				}[name] {
					if readText(t, folder+"/"+file) != readText(t, name+"/whole/"+file) {
						t.Errorf("after %d kernels: %s is not that of the run that was not stopped", after, file)
					}
				}
			}
		})
	}
}

// A device with too little memory ends a run with one sentence that says how much it
// needs and has.
func TestDeviceHasTooLittleMemoryForARun(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's memory cannot be changed")
	}
	t.Chdir(t.TempDir())
	for name, args := range onDevice(t) {
		t.Run(name, func(t *testing.T) {
			failures := 0
			for more := int64(-1); ; more += 2<<10 + more/2 {
				folder := name + "/run"
				fakecuda.Memory(t, 32<<20+more) // cuBLAS has 32 MiB
				// The folder may hold an embedding for whose figures there was too little.
				code, _, stderr := runCne(t.Context(), append(slices.Clone(args), "-o", folder, "--force")...)
				if code == 0 {
					break
				}
				failures++
				if code != exitFailure || strings.Count(withoutFew(stderr), "\n") != 1 || !strings.Contains(stderr, "cuda:0 has too little memory: ") && !strings.Contains(stderr, "its memory is full; see with nvidia-smi") {
					t.Fatalf("with %d bytes: exit code %d, stderr %q", more, code, stderr)
				}
				if strings.Contains(stderr, "is full") || strings.Contains(stderr, " is in ") {
					continue // before there is a folder, or after training
				}
				if files := filesIn(t, folder); slices.Contains(files, rundir.ModelFile) {
					t.Errorf("with %d bytes: %q leaves %v", more, stderr, files)
				}
			}
			if failures < 3 {
				t.Errorf("the memory was at an end only %d times", failures)
			}
		})
	}
}

// In bf16 a pretraining is computed on the GPU, if there is one, by products of bfloat16;
// a run that was begun in it is not resumed in another precision.
func TestPretrainingInBF16OnDevice(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	args := append(tiny("--set", "monitor.every=0"), "--set", "checkpoint.minutes=1e-9")
	code, _, stderr := runCne(t.Context(), append(slices.Clone(args), "--set", "device.precision=bf16", "-o", "run")...)
	if code != 0 || !strings.Contains(stderr, "computing on cuda:0") {
		t.Fatalf("code %d: %s", code, stderr)
	}
	resume := []string{"simclr", "pretrain", "--resume", "run", "--epochs", "9"}
	code, _, stderr = runCne(t.Context(), append(slices.Clone(resume), "--set", "device.precision=tf32")...)
	if code == 0 || !strings.Contains(stderr, "device.precision bf16, not tf32") {
		t.Errorf("resumed in tf32: code %d: %s", code, stderr)
	}
	mustRun(t, append(resume, "--quiet")...)
}

// withoutFew returns messages without the warning about few images.
func withoutFew(stderr string) string {
	before, after, found := strings.Cut(stderr, "warning: a network learns little from so few images")
	if !found {
		return stderr
	}
	_, after, _ = strings.Cut(after, "\n")
	return before + after
}
