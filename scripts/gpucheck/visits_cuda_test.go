//go:build cu

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallData fills a folder with data as scripts/gpu-check takes them: a few digits that
// are noise, and a few images of three classes.
func smallData(t *testing.T, folder string) {
	t.Helper()
	idx := func(name string, magic uint32, sizes ...uint32) {
		var file bytes.Buffer
		z := gzip.NewWriter(&file)
		count := uint32(1)
		for _, v := range append([]uint32{magic}, sizes...) {
			if err := binary.Write(z, binary.BigEndian, v); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range sizes {
			count *= n
		}
		for i := range count {
			if _, err := z.Write([]byte{byte(i * 7 % 10)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(folder, "mnist", name), file.String())
	}
	idx("train-images-idx3-ubyte.gz", 0x803, 40, 28, 28)
	idx("train-labels-idx1-ubyte.gz", 0x801, 40)

	images := t.TempDir()
	for class := range 3 {
		for n := range 9 {
			m := image.NewRGBA(image.Rect(0, 0, 8, 8))
			for i := range 64 {
				m.Set(i%8, i/8, color.RGBA{uint8(80 * class), uint8(i * (n + 1)), uint8(25 * n), 255})
			}
			var file bytes.Buffer
			if err := jpeg.Encode(&file, m, nil); err != nil {
				t.Fatal(err)
			}
			part := "train"
			if n >= 6 {
				part = "test"
			}
			put(t, filepath.Join(images, "cifar10", part, fmt.Sprintf("class%d", class), fmt.Sprintf("%d.jpg", n)), file.String())
		}
	}
	must(t, exec.Command("tar", "-C", images, "-cJf", filepath.Join(folder, "cifar10-jpeg.tar.xz"), "cifar10"))
}

// must runs a command and returns what it prints.
func must(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// bring copies the archive that a visit has left, unpacks it, and returns the names of
// its files.
func bring(t *testing.T, machine, to string) (names string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(machine, "out.tar"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(to, "out.tar"), string(text))
	must(t, exec.Command("tar", "-C", to, "-xf", filepath.Join(to, "out.tar")))
	return must(t, exec.Command("tar", "-tf", filepath.Join(to, "out.tar")))
}

// Two visits to a machine with a device, of which nothing is kept but the files that
// come back: the second goes on where the first was interrupted, and ends with the bits
// of a run that was not.
func TestTwoVisitsOnDevice(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the programs")
	}
	if os.Getenv("CNE_LIBCUDA") == "" {
		t.Skip("on a GPU, the visits themselves show it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	data, made, back := t.TempDir(), filepath.Join(t.TempDir(), "made"), t.TempDir()
	smallData(t, data)
	gpuCheck := func(args ...string) {
		t.Helper()
		must(t, exec.Command(filepath.Join(root, "scripts/gpu-check"), append(args, "-o", made, "--data", data)...))
	}
	gpuCheck("--packages", "internal/device/kernels", "--preset", "0")

	// visit returns a command on a machine to which the folder is copied.
	visit := func(machine string, steps ...string) *exec.Cmd {
		t.Helper()
		if err := os.CopyFS(machine, os.DirFS(made)); err != nil {
			t.Fatal(err)
		}
		args := append(steps, "-o", filepath.Join(machine, "out"), "-width", "4", "-epochs", "25", "-part-mib", "0.25")
		for _, s := range []string{"views.size=8", "train.batch_size=8", "train.warm_up=1", "loss.negatives=4", "evaluate.test=9", "evaluate.k=3", "evaluate.seeds=[0]"} {
			args = append(args, "-set", s)
		}
		return exec.Command(filepath.Join(machine, "run"), args...)
	}
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	// losses leaves out of the records what depends on the time.
	losses := func(folder string) (all []string) {
		t.Helper()
		for line := range strings.Lines(read(filepath.Join(folder, "metrics.jsonl"))) {
			loss, _, _ := strings.Cut(line[strings.Index(line, `"loss"`):], ",")
			all = append(all, loss)
		}
		return all
	}

	first := filepath.Join(t.TempDir(), "first")
	cmd := visit(first, "ops", "simclr-run")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	records := filepath.Join(first, "runs/simclr-run/metrics.jsonl")
	for interrupted := false; !interrupted; {
		select {
		case err := <-ended:
			t.Fatalf("the first visit has ended before it was interrupted: %v\n%s", err, &said)
		case <-time.After(10 * time.Millisecond):
			if text, err := os.ReadFile(records); err == nil && bytes.Count(text, []byte("\n")) >= 2 {
				interrupted = true
			}
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("the first visit: %v\n%s", err, &said)
	}
	if names, want := bring(t, first, back), "out/report-ops.json\nout/report-simclr-run.json\nout/simclr-run.part-1-of-2\nout/simclr-run.part-2-of-2\n"; names != want {
		t.Fatalf("%s came back, want %s\n%s", names, want, &said)
	}
	if err := os.RemoveAll(first); err != nil {
		t.Fatal(err)
	}
	var ops, run report
	if err := readJSON(filepath.Join(back, "out/report-ops.json"), &ops); err != nil || !ops.well() || ops.Left != "" || len(ops.Tests) != 1 || len(ops.Tests[0].Passed) == 0 {
		t.Errorf("%v: %+v", err, ops)
	}
	if err := readJSON(filepath.Join(back, "out/report-simclr-run.json"), &run); err != nil || !run.well() || !strings.HasSuffix(run.Left, " to 25, and the accuracies") {
		t.Errorf("%v: %+v", err, run)
	}

	gpuCheck("--parts", "mnist,cifar10", "--with", filepath.Join(back, "out.tar"))
	second := filepath.Join(t.TempDir(), "second")
	if text := must(t, visit(second, "simclr-run")); !strings.Contains(text, "going on after epoch ") {
		t.Error(text)
	}
	run = report{} // what the file does not have stays as it was
	if names, want := bring(t, second, back), "out/report-ops.json\nout/report-simclr-run.json\n"; names != want {
		t.Errorf("%s came back, want %s", names, want)
	}
	if err := readJSON(filepath.Join(back, "out/report-simclr-run.json"), &run); err != nil || !run.well() || run.Left != "" || len(run.Runs) != 3 {
		t.Errorf("%v: %+v", err, run)
	}

	if err := os.RemoveAll(filepath.Join(made, "resume")); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, visit(whole, "simclr-run"))
	one, two := filepath.Join(whole, "runs/simclr-run"), filepath.Join(second, "runs/simclr-run")
	for _, name := range []string{"model.safetensors", "evaluation.json"} {
		if read(filepath.Join(one, name)) != read(filepath.Join(two, name)) {
			t.Errorf("%s of the run that was interrupted differs", name)
		}
	}
	if a, b := losses(one), losses(two); fmt.Sprint(a) != fmt.Sprint(b) || len(a) != 25 {
		t.Errorf("the losses were %v, and are %v of the run that was interrupted", a, b)
	}

	put(t, filepath.Join(back, "gpu.md"), read(filepath.Join(root, "docs/gpu.md")))
	must(t, exec.Command(filepath.Join(made, "run"), "-report", filepath.Join(back, "out"), "-into", filepath.Join(back, "gpu.md")))
	for _, want := range []string{"| ops |", "| internal/device/kernels |  |", "| kNN accuracy after 25 epochs, width 4 |"} {
		if text := read(filepath.Join(back, "gpu.md")); !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %q", text, want)
		}
	}
}
