package file_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cne/data"
	"cne/data/file"
	"cne/data/pca"
	"cne/internal/rng"
)

// An arrayFile is a file of n×d random values.
func arrayFile(t testing.TB, folder, dtype string, n, d int) string {
	t.Helper()
	s := rng.New(uint64(n), rng.Init)
	var order binary.ByteOrder = binary.LittleEndian
	var values any
	switch dtype {
	case "|u1", "idx":
		x := make([]byte, n*d)
		for i := range x {
			switch i % d % 5 {
			case 0:
				x[i] = byte(1 + s.IntN(255)) // so that no point is zero
			case 2: // the column is constant
			default:
				x[i] = byte(s.IntN(256) * s.IntN(2))
			}
		}
		values = x
	case "<f4":
		x := make([]float32, n*d)
		for i := range x {
			x[i] = float32(s.Normal()) + float32(i%d)
		}
		values = x
	case "<f8": // with columns that want an offset
		x := make([]float64, n*d)
		for i := range x {
			x[i] = s.Normal() + float64(i%d%2)*1e9
		}
		values = x
	case "<i8":
		x := make([]int64, n*d)
		for i := range x {
			x[i] = 1<<52 + int64(s.IntN(1000))
		}
		values = x
	}
	if dtype == "idx" {
		return put(t, folder, "a.idx", idx(8, []uint32{uint32(n), 2, uint32(d / 2)}, values.([]byte)...))
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }\n", dtype, n, d)
	return put(t, folder, dtype[1:]+".npy", npy(header, body(order, values)...))
}

// stay makes Open leave points of more than three values where they are.
var stay = file.Options{StreamFrom: 1, StreamAbove: 3}

// openBoth opens files in memory and where they are.
func openBoth(t testing.TB, paths []string, storage data.Storage) (whole, stored *data.Dataset) {
	t.Helper()
	whole = need(file.Read(t.Context(), paths, file.Options{}))(t)
	stored = need(file.Read(t.Context(), paths, stay))(t)
	if stored.Points != nil || stored.Stored == nil || stored.Size(0).Storage != storage {
		t.Fatalf("%v: the points are not left where they are: %+v", paths, stored.Size(0))
	}
	return whole, stored
}

// sameSource compares the points of a source, in blocks of several sizes, with a matrix,
// bit for bit.
func sameSource(t *testing.T, got data.Source, want *data.Matrix) {
	t.Helper()
	for _, rows := range []int{0, 1, 7, want.N, want.N + 1} {
		m := got.Block(want.N)
		next := 0
		err := got.Each(t.Context(), rows, func(lo int, block *data.Matrix) error {
			if lo != next || rows > 0 && block.N != min(rows, want.N-lo) || !reflect.DeepEqual(block.Offset, want.Offset) {
				t.Fatalf("blocks of %d: rows %d to %d come after row %d, with the offset %v", rows, lo, lo+block.N, next, block.Offset)
			}
			copy(m.X[lo*m.D:], block.X)
			next += block.N
			return nil
		})
		if err != nil || next != want.N {
			t.Fatalf("blocks of %d: %d rows of %d, %v", rows, next, want.N, err)
		}
		sameMatrix(t, m, want)
	}
}

// Points that stay in their files become, by all that is done to points, the same bits
// as those that are read into memory.
func TestStoredPoints(t *testing.T) {
	dir := t.TempDir()
	const n, d = 640, 14
	bytes := arrayFile(t, dir, "|u1", n, d)
	content := need(os.ReadFile(bytes))(t)
	packed := put(t, dir, "packed.npy.gz", gz(content))
	for name, tc := range map[string]struct {
		paths   []string
		storage data.Storage
	}{
		"bytes":               {[]string{bytes}, data.InFiles},
		"packed bytes":        {[]string{packed}, data.AsBytes},
		"several":             {[]string{bytes, packed, arrayFile(t, dir, "idx", 30, d)}, data.AsBytes},
		"float32":             {[]string{arrayFile(t, dir, "<f4", n, d)}, data.InFiles},
		"float64 with offset": {[]string{arrayFile(t, dir, "<f8", n, d)}, data.InFiles},
		"int64 with offset":   {[]string{arrayFile(t, dir, "<i8", n, d)}, data.InFiles},
		"bytes and float32":   {[]string{bytes, arrayFile(t, dir, "<f4", n, d)}, data.InFiles},
	} {
		t.Run(name, func(t *testing.T) {
			for _, scaling := range []data.Scaling{data.ScaleNone, data.ScaleUnit, data.ScaleStandard, data.ScaleAuto} {
				for _, metric := range []data.Metric{data.Euclidean, data.Correlation} {
					whole, stored := openBoth(t, tc.paths, tc.storage)
					if whole.Bytes != stored.Bytes {
						t.Errorf("Bytes is %v, want %v", stored.Bytes, whole.Bytes)
					}
					sameSource(t, stored.Source(), whole.Points)
					samePreprocessing(t, stored, whole, scaling, metric)

					whole, stored = openBoth(t, tc.paths, tc.storage)
					wholePart, wholeHeld, wantRows, err := whole.Split(0.2, 1)
					must(t, err)
					part, held, rows, err := stored.Split(0.2, 1)
					if err != nil || !reflect.DeepEqual(rows, wantRows) {
						t.Fatal(rows, err)
					}
					sameSource(t, held.Source(), wholeHeld.Points)
					samePreprocessing(t, part, wholePart, scaling, metric)
				}
			}
		})
	}
}

// samePreprocessing compares what preprocessing makes of stored points with what it makes
// of the same in memory.
func samePreprocessing(t *testing.T, stored, whole *data.Dataset, scaling data.Scaling, metric data.Metric) {
	t.Helper()
	want := need(whole.Scale(t.Context(), scaling))(t)
	got, err := stored.Scale(t.Context(), scaling)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: the scaler is %+v (%v), want %+v", scaling, got, err, want)
	}
	must(t, whole.Normalize(t.Context(), metric, want))
	must(t, stored.Normalize(t.Context(), metric, got))
	sameSource(t, stored.Source(), whole.Points)
	wantPCA := need(pca.Fit(t.Context(), whole.Points, 3))(t)
	gotPCA, err := pca.Fit(t.Context(), stored.Source(), 3)
	if err != nil || !reflect.DeepEqual(gotPCA, wantPCA) {
		t.Fatalf("%s, %s: the components differ, %v", scaling, metric, err)
	}
	wantPoints := need(wantPCA.Transform(t.Context(), whole.Points))(t)
	sameMatrix(t, need(gotPCA.Transform(t.Context(), stored.Source()))(t), wantPoints)
}

// Points that cannot stay are read into memory.
func TestNotStored(t *testing.T) {
	dir := t.TempDir()
	floats := arrayFile(t, dir, "<f4", 40, 6)
	content := need(os.ReadFile(floats))(t)
	for name, tc := range map[string]struct {
		path  string
		above int
	}{
		"nothing wanted": {floats, 0},
		"narrow":         {floats, 6},
		"packed floats":  {put(t, dir, "p.npy.gz", gz(content)), 3},
		"a table":        {put(t, dir, "a.csv", []byte(strings.Repeat("1,2,3,4\n", 9))), 3},
		"few points":     {arrayFile(t, t.TempDir(), "<f4", 5, 6), 3},
	} {
		ds, err := file.Read(t.Context(), []string{tc.path}, file.Options{StreamFrom: 1, StreamAbove: tc.above})
		if err != nil || ds.Points == nil || ds.Stored != nil {
			t.Errorf("%s: %+v, %v", name, ds, err)
		}
	}
	bad := body(binary.LittleEndian, []float32{1, 2, 3, 4, 5, float32(math.Inf(1)), 7, 8})
	path := put(t, dir, "bad.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }\n", bad...))
	if _, err := file.Read(t.Context(), []string{path}, file.Options{StreamFrom: 1, StreamAbove: 1}); !errors.Is(err, data.ErrNotFinite) || !strings.Contains(err.Error(), "bad.npy: row 3: column 2") {
		t.Errorf("a value that is not finite: %v", err)
	}
}

// Labels that belong to stored points are read.
func TestStoredLabels(t *testing.T) {
	dir := t.TempDir()
	points := arrayFile(t, dir, "|u1", 20, 6)
	labels := put(t, dir, "labels.txt", []byte(strings.Repeat("a\nb\n", 10)))
	ds, err := file.Read(t.Context(), []string{points}, file.Options{StreamFrom: 1, StreamAbove: 3, Labels: []string{labels}})
	if err != nil || ds.Stored == nil || len(ds.Labels.Class) != 20 || ds.Name != "u1" {
		t.Errorf("%+v, %v", ds, err)
	}
	folder := t.TempDir()
	for name, n := range map[string]int{"train": 12, "t10k": 8} {
		x := make([]byte, n*4)
		put(t, folder, name+"-images-idx3-ubyte", idx(8, []uint32{uint32(n), 2, 2}, x...))
		put(t, folder, name+"-labels-idx1-ubyte.gz", gz(idx(8, []uint32{uint32(n)}, x[:n]...)))
	}
	if ds, err = file.Read(t.Context(), []string{folder}, stay); err != nil || ds.Stored == nil || len(ds.Labels.Class) != 20 {
		t.Errorf("%+v, %v", ds, err)
	}
}

// A file that is another than before, by its size, its time, its values or its header,
// gives one sentence.
func TestStoredFileChanges(t *testing.T) {
	for name, change := range map[string]func(path string, content []byte) error{
		"truncated": func(path string, content []byte) error { return os.Truncate(path, int64(len(content)-100)) },
		"longer":    func(path string, content []byte) error { return os.WriteFile(path, append(content, 1), 0o666) },
		"gone":      func(path string, _ []byte) error { return os.Remove(path) },
		"touched":   func(path string, _ []byte) error { return os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)) },
		"another file": func(path string, content []byte) error {
			if err := os.WriteFile(path+".new", content, 0o666); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"one value, at the same time": func(path string, content []byte) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			content[len(content)-3] ^= 1
			return errors.Join(os.WriteFile(path, content, 0o666), os.Chtimes(path, time.Time{}, info.ModTime()))
		},
		"another shape, at the same time": func(path string, content []byte) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			content = []byte(strings.Replace(string(content), "(640, 14)", "(320, 28)", 1))
			return errors.Join(os.WriteFile(path, content, 0o666), os.Chtimes(path, time.Time{}, info.ModTime()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := arrayFile(t, t.TempDir(), "<f4", 640, 14)
			_, stored := openBoth(t, []string{path}, data.InFiles)
			must(t, change(path, need(os.ReadFile(path))(t)))
			_, err := pca.Fit(t.Context(), stored.Source(), 3)
			if !errors.Is(err, data.ErrChanged) || !strings.HasPrefix(err.Error(), path+": the file has changed") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("truncated in the middle of a pass", func(t *testing.T) {
		path := arrayFile(t, t.TempDir(), "<f4", 1<<17, 14) // more than what is read at a time
		_, stored := openBoth(t, []string{path}, data.InFiles)
		err := stored.Source().Each(t.Context(), 100, func(lo int, _ *data.Matrix) error {
			if lo == 0 {
				return os.Truncate(path, 1<<22)
			}
			return nil
		})
		if !errors.Is(err, data.ErrChanged) {
			t.Errorf("the error is %v", err)
		}
	})
}

// A context that ends stops a pass.
func TestStoredInterrupted(t *testing.T) {
	_, stored := openBoth(t, []string{arrayFile(t, t.TempDir(), "|u1", 640, 14)}, data.InFiles)
	for name, source := range map[string]data.Source{"file": stored.Source(), "matrix": data.NewMatrix(640, 14)} {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		err := source.Each(ctx, 100, func(int, *data.Matrix) error {
			calls++
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) || calls != 1 {
			t.Errorf("%s: %v after %d blocks", name, err, calls)
		}
	}
	// So it does to what goes over all points by itself, which then leaves them.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, kind := range []data.Scaling{data.ScaleUnit, data.ScaleStandard} {
		stored.Bytes = false // bytes need no pass for their maximum
		if _, err := stored.Scale(ctx, kind); err != context.Canceled {
			t.Errorf("scaling %s: %v", kind, err)
		}
	}
	if err := stored.Normalize(ctx, data.Cosine, nil); err != context.Canceled {
		t.Errorf("normalizing: %v", err)
	}
	whole, err := data.Collect(t.Context(), stored.Source())
	if err != nil || slices.Max(whole.X) <= 1 {
		t.Errorf("the points are others (%v)", err)
	}
}

// What a pass takes does not depend on the number of points.
func TestStoredMemory(t *testing.T) {
	const d = 64
	path := arrayFile(t, t.TempDir(), "|u1", 1<<18, d) // 16 MiB, 64 as float32
	ds := need(file.Read(t.Context(), []string{path}, stay))(t)
	need(ds.Scale(t.Context(), data.ScaleUnit))(t)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	need(pca.Fit(t.Context(), ds.Source(), 3))(t)
	runtime.ReadMemStats(&after)
	// Four passes with 4 MiB of bytes and of float32 each, and one chunk of float64.
	if got := after.TotalAlloc - before.TotalAlloc; got > 48<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
}

func TestAllEqual(t *testing.T) {
	m := data.NewMatrix(5000, 3)
	if equal, err := data.AllEqual(t.Context(), m); !equal || err != nil {
		t.Error(equal, err)
	}
	m.X[len(m.X)-1] = 1
	if equal, err := data.AllEqual(t.Context(), m); equal || err != nil {
		t.Error(equal, err)
	}
}
