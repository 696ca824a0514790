//go:build cu

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/internal/app/rundir"
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
		"--set", "train.batch_size=200", "--set", "checkpoint.minutes=1e-9", "--device", "cuda", "-o", "run"}, more...)
}

// checkDevices checks what computed which phase according to a run's metrics, such as
// "graph:gpu optimize:cpu", and returns the device's notes.
func checkDevices(t *testing.T, folder, want string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "metrics.json"))
	must(t, err)
	var m rundir.Computing
	must(t, json.Unmarshal(text, &m))
	var got []string
	for _, phase := range slices.Sorted(maps.Keys(m.Devices)) {
		device := m.Devices[phase]
		if strings.HasPrefix(device, "cuda:0, ") {
			device = "gpu"
		}
		got = append(got, phase+":"+device)
	}
	if got := strings.Join(got, " "); got != want {
		t.Errorf("%s: the phases were computed by %s, want %s", folder, got, want)
	}
	return m.Notes
}

// metrics.json, the log and the summary say what a run computed on the device, and what on
// the CPU.
func TestRunSaysWhatIsComputedOnDevice(t *testing.T) {
	fakecuda.Open(t)
	t.Chdir(t.TempDir())
	all := []string{"--epochs", "2", "--set", "loss.name=infonc", "--set", "loss.negatives=all", "--set", "graph.pca=3"}
	mustRun(t, smallRun(t, all...)...)
	checkDevices(t, "run", "graph:gpu optimize:gpu quality:gpu start:cpu")
	// Components and neighbours come from the cache, then nothing is trained.
	mustRun(t, smallRun(t, append(all, "--force", "--set", "seed=2")...)...)
	checkDevices(t, "run", "optimize:gpu quality:gpu start:cpu")
	mustRun(t, smallRun(t, append(all, "--set", "seed=2", "--html")...)...)
	checkDevices(t, "run", "optimize:gpu quality:gpu start:cpu")
	mustRun(t, smallRun(t, append(all, "--force", "--set", "graph.search=approximate", "--set", "graph.cache=false")...)...)
	checkDevices(t, "run", "graph:cpu optimize:gpu quality:gpu start:cpu")
	stdout, stderr := mustRun(t, smallRun(t, append(all, "--force", "--set", "graph.pca=0", "--set", "graph.metric=manhattan")...)...)
	const note = "distances of the metric manhattan are computed on the CPU"
	if notes := checkDevices(t, "run", "graph:cpu optimize:gpu quality:gpu start:cpu"); !slices.Contains(notes, note) {
		t.Errorf("the notes %q lack %q", notes, note)
	}
	if !strings.Contains(stderr, note) || !strings.Contains(stdout, note) || !strings.Contains(stdout, "cpu: graph") {
		t.Errorf("stdout %s\nstderr %s", stdout, stderr)
	}
	mustRun(t, smallRun(t, append(all, "--force", "--device", "cpu", "--set", "graph.cache=false")...)...)
	if notes := checkDevices(t, "run", "graph:cpu optimize:cpu quality:cpu start:cpu"); notes != nil {
		t.Errorf("the CPU has the notes %q", notes)
	}
}

// The program's commands compute on a device all that they compute on the CPU.
func TestCommandsOnDevice(t *testing.T) {
	fakecuda.Open(t)
	t.Chdir(t.TempDir())
	_, stderr := mustRun(t, smallRun(t, "--epochs", "3", "--set", "output.metrics_every=2", "--set", "data.holdout=0.1")...)
	if !strings.Contains(stderr, "computing on cuda:0, ") || !strings.Contains(stderr, ", as asked for") {
		t.Errorf("stderr %s", stderr)
	}
	checkDevices(t, "run", "graph:cpu optimize:gpu quality:gpu start:cpu")
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
	checkDevices(t, "axis/s=1", "graph:gpu optimize:gpu quality:gpu start:cpu")

	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tiny("--device", "cuda", "-o", "images-run")...)
	checkDevices(t, "images-run", "evaluate:gpu optimize:gpu")
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
	checkDevices(t, "run", "optimize:cpu quality:cpu start:cpu")
}
