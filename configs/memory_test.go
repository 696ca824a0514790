package configs

import (
	"strings"
	"testing"

	"cne/data"
	"cne/internal/memory"
	"cne/simclr"
)

// The number of rows that is said to fit is nearly the largest that does, wherever the
// points are.
func TestFitting(t *testing.T) {
	c, _, err := Train.Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	c.Quality.Spearman = 100
	for _, storage := range []data.Storage{data.InMemory, data.AsBytes, data.InFiles} {
		live := func(n int) int64 {
			size := data.SizeOf(n, 784)
			size.Storage = storage
			e, err := Train.Memory(c, size, MemoryOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return e.Live
		}
		size := data.SizeOf(3_000_000, 784)
		size.Storage = storage
		const room = 400e6
		n := Train.fitting(c, size, MemoryOptions{}, room)
		if live(n) > room || live(n+n/8) <= room {
			t.Errorf("storage %d: %d rows take %d bytes, and %d take %d", storage, n, live(n), n+n/8, live(n+n/8))
		}
		if n := Train.fitting(c, size, MemoryOptions{}, 1e6); n != 0 {
			t.Errorf("%d rows fit into nothing", n)
		}
	}
	sparse := data.SizeOf(3_000_000, 20_000)
	sparse.Nonzeros = 100 * sparse.Low
	n := Train.fitting(c, sparse, MemoryOptions{}, 1e9)
	for rows, fits := range map[int]bool{n: true, n + n/8: false} {
		size := data.SizeOf(rows, sparse.Width)
		size.Nonzeros = 100 * rows
		if e, err := Train.Memory(c, size, MemoryOptions{}); err != nil || (e.Live <= 1e9) != fits {
			t.Errorf("of sparse points %d rows would fit, and %d take %d bytes (%v)", n, rows, e.Live, err)
		}
	}
	if n := Train.fitting(c, data.Size{Low: 5e6, High: 9e6, Width: 784}, MemoryOptions{}, 4e8); n != 0 {
		t.Errorf("of an unknown number, %d rows would fit", n)
	}
}

// What is known of the points besides their values, and putting sparse points of several
// files together, takes memory, too.
func TestMemoryBesideThePoints(t *testing.T) {
	const n = 1_000_000
	take := func(change func(c *Config, size *data.Size)) int64 {
		c, _, err := Train.Load(Sources{})
		if err != nil {
			t.Fatal(err)
		}
		c.Quality = Quality{}
		size := data.SizeOf(n, 1000)
		size.Nonzeros = 200 * n
		change(c, &size)
		e, err := Train.Memory(c, size, MemoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return e.Live
	}
	names := "id"
	plain := take(func(*Config, *data.Size) {})
	for what, tc := range map[string]struct {
		change func(c *Config, size *data.Size)
		least  int64
	}{
		"names":         {func(c *Config, _ *data.Size) { c.Data.Names = &names }, 36 * n},
		"a column":      {func(c *Config, _ *data.Size) { c.Output.HTMLColor = []string{"age"} }, 8 * n},
		"several files": {func(_ *Config, size *data.Size) { size.Joined = true }, 1},
	} {
		if more := take(tc.change) - plain; more < tc.least {
			t.Errorf("%s: %d bytes more, want at least %d", what, more, tc.least)
		}
	}
}

// Bytes take a quarter of what float32 takes, and files nothing to speak of, where the
// components alone are needed; networks need the points themselves.
func TestMemoryOfStoredPoints(t *testing.T) {
	c, _, err := Train.Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	c.Quality.Spearman = 100
	take := func(storage data.Storage) float64 {
		size := data.SizeOf(100_000, 784)
		size.Storage = storage
		e, err := Train.Memory(c, size, MemoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return float64(e.Live) / (100_000 * 784)
	}
	whole, bytes, files := take(data.InMemory), take(data.AsBytes), take(data.InFiles)
	if whole < 4 || bytes < 1 || bytes > 2.5 || files > bytes {
		t.Errorf("for each value, %.2f, %.2f and %.2f bytes", whole, bytes, files)
	}
	c.Model.Kind = "mlp"
	if a, b := take(data.InMemory), take(data.InFiles); a != b {
		t.Errorf("for each value of a network's points, %.2f and %.2f bytes", a, b)
	}
}

// What is too much for a finished network is the number of images, or their size, but
// nothing of the network, which is as it is.
func TestCheckFinished(t *testing.T) {
	c, _, err := Pretrain.Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	const many = 1e12
	for name, tc := range map[string]struct {
		finished Finished
		want     string
	}{
		"representations": {Finished{WholeSize: 32, Use: simclr.Workload{Represented: many}}, "give fewer images (representations: "},
		"classifiers":     {Finished{WholeSize: 32, Use: simclr.Workload{Evaluated: many}}, "give fewer images ("},
		"pixels":          {Finished{WholeSize: 32, Use: simclr.Workload{Evaluated: many, Pixels: 3072}}, "give fewer images (their directions: "},
		"positions":       {Finished{WholeSize: 32, Use: simclr.Workload{Placed: many}}, "give fewer images (positions: "},
		"large images":    {Finished{WholeSize: 1 << 15, Use: simclr.Workload{Represented: 1000}}, "lower views.whole_size (the network at work: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.CheckFinished(nil, &tc.finished)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "network.") {
				t.Errorf("%v, want %q", err, tc.want)
			}
			few := tc.finished
			few.WholeSize, few.Use = 32, simclr.Workload{Represented: min(8, few.Use.Represented), Evaluated: min(8, few.Use.Evaluated), Placed: min(8, few.Use.Placed), Pixels: few.Use.Pixels}
			if err := c.CheckFinished(nil, &few); err != nil {
				t.Errorf("of eight images: %v", err)
			}
		})
	}
}

// Fewer images are asked for only where those would do.
func TestRemedyOfFinished(t *testing.T) {
	most := &memory.Part{What: "their covariance", Bytes: 2e8}
	for _, tc := range []struct {
		use  simclr.Workload
		fits bool
		want string
	}{
		{simclr.Workload{Evaluated: 9, Pixels: 12}, true, "give fewer images (their covariance: 200 MB), or more memory"},
		{simclr.Workload{Evaluated: 9, Pixels: 12}, false, "make the images smaller by data.size (their covariance: 200 MB), or give more memory"},
		{simclr.Workload{Evaluated: 9}, false, "give more memory (their covariance: 200 MB)"},
	} {
		f := &Finished{Use: tc.use}
		if got := f.remedy(most, tc.fits); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc, got, tc.want)
		}
	}
	one := (&Finished{WholeSize: 3, Use: simclr.Workload{Evaluated: 9, Pixels: 12}}).ofOne()
	if *one != (Finished{WholeSize: 3, Use: simclr.Workload{Evaluated: 1, Pixels: 12}}) {
		t.Errorf("of one image %+v", one)
	}
}
