package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/train"
)

// Every few epochs, and after the last, partition function and divergence are
// those that metrics.json would have.
func TestMetricsEvery(t *testing.T) {
	for _, loss := range []string{"neg", "nc"} {
		t.Run(loss, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writePoints(t, "points.csv", 300, 6)
			// Lines come every third epoch, and where something was measured.
			if code, _, stderr := runCne(t.Context(), short("--set", "loss.name="+loss, "--set", "output.metrics_every=5", "--set", "train.log_every=3")...); code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			var epochs, measured []int
			var last train.Record
			for _, r := range readRecords(t, "run/metrics.jsonl") {
				epochs = append(epochs, r.Epoch)
				if r.PartitionFunction != nil && r.KL != nil {
					measured = append(measured, r.Epoch)
				}
				if (r.Z != nil) != (loss == "nc") {
					t.Errorf("epoch %d has the Z %v", r.Epoch, r.Z)
				}
				last = r
			}
			if want := []int{3, 5, 6, 8}; !slices.Equal(epochs, want) || !slices.Equal(measured, []int{5, 8}) {
				t.Fatalf("records of epochs %v, measured %v", epochs, measured)
			}
			m := readMetrics(t, "run/metrics.json")
			if *last.PartitionFunction != m["partition_function"] || *last.KL != m["kl"] {
				t.Errorf("the last record has %v and %v, metrics.json %v and %v", *last.PartitionFunction, *last.KL, m["partition_function"], m["kl"])
			}
			if loss == "nc" && math.Abs(*last.Z/m["z"].(float64)-1) > 1e-12 {
				t.Errorf("the last record has the Z %v, metrics.json %v", *last.Z, m["z"])
			}
		})
	}
}

// events returns the sum of a run's event files: tags and values by step. Of
// two files the second replaces the steps from which on it reports.
func events(t *testing.T, folder string) (files int, values map[int]map[string]float64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "events.out.tfevents.*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	values = map[int]map[string]float64{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 {
			n := int(binary.LittleEndian.Uint64(b))
			event := b[12+9 : 12+n] // without the time
			b = b[16+n:]
			step, used := binary.Uvarint(event[1:])
			rest := event[1+used:]
			if rest[0] == 7<<3|2 { // a session begins
				for s := range values {
					if s >= int(step) {
						delete(values, s)
					}
				}
			}
			if rest[0] != 5<<3|2 {
				continue
			}
			_, used = binary.Uvarint(rest[1:])
			values[int(step)] = map[string]float64{}
			for summary := rest[1+used:]; len(summary) > 0; {
				value := summary[2 : 2+int(summary[1])]
				summary = summary[2+len(value):]
				tag := value[2 : 2+int(value[1])]
				values[int(step)][string(tag)] = float64(math.Float32frombits(binary.LittleEndian.Uint32(value[len(tag)+3:])))
			}
		}
	}
	return len(paths), values
}

// The event files of a run say what metrics.jsonl says, also when it goes on.
func TestTensorBoard(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 300, 6)
	check := func(wantFiles int) {
		t.Helper()
		files, values := events(t, "run")
		if files != wantFiles {
			t.Errorf("%d event files, want %d", files, wantFiles)
		}
		lines, err := os.ReadFile("run/metrics.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		records := 0
		for line := range bytes.Lines(lines) {
			var r map[string]float64
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			records++
			epoch := int(r["epoch"])
			for _, notACurve := range []string{"epoch", "phase", "seconds"} {
				delete(r, notACurve)
			}
			if len(values[epoch]) != len(r) {
				t.Errorf("epoch %d has the curves %v, want those of %v", epoch, values[epoch], r)
			}
			for name, v := range r {
				if got := values[epoch][name]; got != float64(float32(v)) {
					t.Errorf("epoch %d: %s is %v, want %v", epoch, name, got, v)
				}
			}
		}
		if len(values) != records {
			t.Errorf("%d steps, want %d", len(values), records)
		}
	}
	args := short("--set", "loss.name=nc", "--set", "output.tensorboard=true", "--set", "output.metrics_every=3")
	if code, _, stderr := runCne(t.Context(), args...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	check(1)
	if code, _, stderr := runCne(t.Context(), "train", "--resume", "run", "--epochs", "12"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	check(2)
	// Another run in the folder begins with files of its own.
	if code, _, stderr := runCne(t.Context(), append(args, "--force")...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	check(1)
	if code, _, stderr := runCne(t.Context(), short("--force")...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if files, _ := events(t, "run"); files != 0 {
		t.Errorf("%d event files that were not asked for", files)
	}
}

// A run that goes on from a checkpoint before its end reports epochs again.
func TestTensorBoardForgets(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 300, 6)
	if code, _, stderr := runCne(t.Context(), short("--set", "output.tensorboard=true", "--set", "checkpoint.epochs=3")...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	// As if it had been killed after the epochs 7 and 8, whose checkpoint was
	// not written.
	if err := os.Rename("run/checkpoint.previous.safetensors", "run/checkpoint.safetensors"); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runCne(t.Context(), "train", "--resume", "run"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	files, values := events(t, "run")
	if files != 2 || len(values) != 8 {
		t.Errorf("%d files with %d steps, want 2 with 8", files, len(values))
	}
	second, err := filepath.Glob("run/events.out.tfevents.*")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(slices.Max(second))
	if err != nil {
		t.Fatal(err)
	}
	// Version, then the start of the session with the step 7.
	n := int(binary.LittleEndian.Uint64(b))
	if start := b[16+n+12+9:]; !bytes.HasPrefix(start, []byte("\x10\x07\x3a\x02\x08\x01")) {
		t.Errorf("the second file begins with %x", start[:6])
	}
}

func TestLoggersRefused(t *testing.T) {
	for flag, says := range map[string]string{
		"output.metrics_every=-1":  "output.metrics_every",
		"output.metrics_every=1.5": "output.metrics_every",
		"output.tensorboard=maybe": "output.tensorboard",
	} {
		code, _, stderr := runCne(t.Context(), "train", "--set", flag)
		if code != 2 && code != 1 || !strings.Contains(stderr, says) || strings.Count(strings.TrimSpace(stderr), "\n") > 2 {
			t.Errorf("%s: exit code %d: %s", flag, code, stderr)
		}
	}
}
