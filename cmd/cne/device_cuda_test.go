//go:build cu

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cne/internal/device/fakecuda"
)

// smallRun are arguments for a run on few points that takes a moment on a device.
func smallRun(t *testing.T, more ...string) []string {
	t.Helper()
	var points, labels strings.Builder
	for i := range 90 {
		for j := range 6 {
			if j > 0 {
				points.WriteByte(',')
			}
			// Three groups of points.
			points.WriteString([]string{"0", "1", "2", "3"}[(i*(j+3)+i/7)%4])
			if j == i%3 {
				points.WriteString("5")
			}
		}
		points.WriteByte('\n')
		labels.WriteString([]string{"a", "b", "c"}[i%3] + "\n")
	}
	writeTestFile(t, "points.csv", points.String())
	writeTestFile(t, "labels.txt", labels.String())
	return append([]string{"train", "--set", "data.path=points.csv", "--set", "data.labels=labels.txt", "--set", "graph.k=5", "--set", "quality.k=5",
		"--set", "train.batch_size=200", "--set", "checkpoint.epochs=1", "--device", "cuda", "-o", "run"}, more...)
}

// deviceOf returns the device that a run's metrics name.
func deviceOf(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "metrics.json"))
	must(t, err)
	var m struct{ Device string }
	must(t, json.Unmarshal(text, &m))
	return m.Device
}

// The program's commands compute on a device all that they compute on the CPU.
func TestCommandsOnDevice(t *testing.T) {
	fakecuda.Open(t)
	t.Chdir(t.TempDir())
	_, stderr := mustRun(t, smallRun(t, "--epochs", "3", "--set", "output.metrics_every=2", "--set", "data.holdout=0.1")...)
	if !strings.Contains(stderr, "computing on cuda:0, ") || !strings.Contains(stderr, ", as asked for") {
		t.Errorf("stderr %s", stderr)
	}
	if got := deviceOf(t, "run"); !strings.HasPrefix(got, "cuda:0, ") {
		t.Errorf("trained on %q", got)
	}
	mustRun(t, "evaluate", "run", "--set", "device=cuda")
	mustRun(t, smallRun(t, "--epochs", "2", "--set", "model.kind=mlp", "--set", "model.hidden=[8]", "-o", "network")...)
	mustRun(t, "project", "--model", "network", "points.csv", "-o", "there.npy", "--device", "cuda")
	mustRun(t, "project", "--model", "network", "points.csv", "-o", "here.npy", "--device", "cpu")
	there, errThere := os.ReadFile("there.npy")
	here, errHere := os.ReadFile("here.npy")
	if errThere != nil || errHere != nil || len(there) != len(here) {
		t.Errorf("%d and %d bytes of positions (%v, %v)", len(there), len(here), errThere, errHere)
	}
	spectrum := smallRun(t, "--epochs", "4", "-o", "axis")
	spectrum[0] = "spectrum"
	mustRun(t, append(spectrum, "--s", "0,1")...)

	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tiny("--device", "cuda", "-o", "images-run")...)
	if got := deviceOf(t, "images-run"); !strings.HasPrefix(got, "cuda:0, ") {
		t.Errorf("pretrained on %q", got)
	}
	mustRun(t, "simclr", "evaluate", "images-run", "-o", "evaluation.json")
	mustRun(t, "simclr", "features", "images-run", "images", "-o", "features.npy")
	if bytes, count := fakecuda.Usage(); bytes > 64<<20 {
		t.Errorf("%d bytes in %d pieces are left on the device", bytes, count)
	}
}

// A run whose device has too little memory says so in a sentence. The last checkpoint is
// complete, and the run continues from it on the CPU.
func TestRunGoesOnElsewhereThanOnDevice(t *testing.T) {
	fakecuda.Open(t)
	t.Chdir(t.TempDir())
	mustRun(t, smallRun(t, "--epochs", "2", "--set", "train.anneal=none")...)
	before := readText(t, "run/checkpoint.safetensors")
	t.Run("fails", func(t *testing.T) {
		used, _ := fakecuda.Usage()
		fakecuda.Memory(t, used+32<<20+2048) // cuBLAS has 32 MiB
		code, _, stderr := runCne(t.Context(), "train", "--resume", "run", "--epochs", "4")
		for _, part := range []string{"cuda:0 has too little memory: ", " were needed, and ", "; take smaller batches, or another device"} {
			if code != 1 || !strings.Contains(stderr, part) {
				t.Errorf("exit code %d, and stderr lacks %q: %s", code, part, stderr)
			}
		}
	})
	if readText(t, "run/checkpoint.safetensors") != before {
		t.Error("the checkpoint has changed")
	}
	mustRun(t, "train", "--resume", "run", "--epochs", "4", "--device", "cpu")
	if got := deviceOf(t, "run"); got != "cpu" {
		t.Errorf("trained on %q", got)
	}
}
