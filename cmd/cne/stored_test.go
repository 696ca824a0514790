package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cne/configs"
	"cne/data"
	"cne/internal/rundir"
)

// A run whose points stay in their file, or are kept as bytes, ends with the same bits as
// one that reads them into memory.
func TestStoredRun(t *testing.T) {
	t.Chdir(t.TempDir())
	const n, d = 300, 24
	writeRandom(t, "bytes.npy", "|u1", n, d)
	set, err := data.Open(t.Context(), []string{"bytes.npy"}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set.Points.X[0] = 255 // by which both are divided
	var floats bytes.Buffer
	if err := data.WriteNPY(&floats, set.Points); err != nil {
		t.Fatal(err)
	}
	content := readText(t, "bytes.npy")
	first := len(content) - n*d
	content = content[:first] + "\xff" + content[first+1:]
	for path, content := range map[string]string{"floats.npy.gz": floats.String(), "packed.npy.gz": content} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write([]byte(content)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, packed.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range map[string]string{"bytes.npy": content, "floats.npy": floats.String()} {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, settings := range map[string][]string{
		"table":   {"data.holdout=0.2"},
		"cosine":  {"graph.metric=cosine", "data.scale=standard", "model.keep_data=true"},
		"network": {"model.kind=mlp", "model.input=pca", "data.holdout=0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			var want map[string]string
			for _, input := range []string{"floats.npy.gz", "floats.npy", "bytes.npy", "packed.npy.gz"} {
				run := name + "-" + input
				args := []string{"train", input, "-o", run, "--quiet", "--epochs", "2", "--set", "graph.pca=5", "--set", "graph.k=5", "--set", "output.plot=false"}
				for _, s := range settings {
					args = append(args, "--set", s)
				}
				if code, _, stderr := runCne(t.Context(), args...); code != 0 {
					t.Fatal(stderr)
				}
				got := map[string]string{"points": rundir.ReadMetrics(run).PointsKey}
				for _, file := range []string{"embedding.npy", "holdout.npy", "training_points.safetensors"} {
					if _, err := os.Stat(filepath.Join(run, file)); err == nil {
						got[file] = readText(t, filepath.Join(run, file))
					}
				}
				if want == nil {
					want = got
				}
				for what := range want {
					if got[what] == "" || got[what] != want[what] {
						t.Errorf("%s: %s differs from that of points in memory", input, what)
					}
				}
			}
		})
	}
}

// A file that changes before its points have become components ends a run that has
// written nothing.
func TestStoredInputChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	writeRandom(t, "bytes.npy", "|u1", 300, 24)
	c, _, err := configs.Train.Load(configs.Sources{Settings: []configs.Setting{
		{Source: "test", Key: "data.path", Value: "bytes.npy"}, {Source: "test", Key: "graph.pca", Value: "5"}, {Source: "test", Key: "data.holdout", Value: "0.2"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	in, err := readInputs(t.Context(), c, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes("bytes.npy", time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	dir, err := rundir.Open("run", false)
	if err != nil {
		t.Fatal(err)
	}
	o := c.Options()
	if _, err = prepare(t.Context(), c, &o, dir, log, in); !errors.Is(err, data.ErrChanged) {
		t.Errorf("the error is %v", err)
	}
	files, err := os.ReadDir("run")
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(files) > 0 {
		t.Errorf("the run has left %v (%v)", files, err)
	}
}

// A file that has changed is no fault of a key.
func TestChangedFilesAreNoFaultOfKeys(t *testing.T) {
	for err, want := range map[error]string{data.ErrChanged: data.ErrChanged.Error(), data.ErrSparse: data.ErrSparse.Error() + " (data.scale)"} {
		if got := blame("data.scale", err); !errors.Is(got, err) || got.Error() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// writeRandom writes an array of random numbers: bytes (|u1), or float32 from 0 to 1 (<f4).
func writeRandom(t *testing.T, path, dtype string, shape ...int) {
	t.Helper()
	size, text := 1, ""
	for _, d := range shape {
		size *= d
		text += fmt.Sprint(d, ", ")
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, text)
	content := fmt.Appendf(nil, "\x93NUMPY\x01\x00%c%c%s\n", (len(head)+1)%256, (len(head)+1)/256, head)
	stream := rand.New(rand.NewPCG(1, 2))
	for range size {
		if dtype == "|u1" {
			content = append(content, byte(stream.Uint32()))
		} else {
			content = binary.LittleEndian.AppendUint32(content, math.Float32bits(stream.Float32()))
		}
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}
