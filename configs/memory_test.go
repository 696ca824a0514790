package configs

import (
	"strings"
	"testing"

	"cne/data"
	"cne/internal/memory"
)

// liveOf returns the live memory of a run on data of a size, by the defaults with
// changes.
func liveOf(t *testing.T, size data.Size, change func(c *Config)) int64 {
	t.Helper()
	c := loaded(Train.Load(&Sources{}))(t)
	c.Quality = Quality{}
	c.Quality.SpearmanSample = new(0)
	change(c)
	return c.memory(size, nil, 1).Live
}

// The estimate follows the keys about the points and the model.
func TestMemoryFollowsTheConfiguration(t *testing.T) {
	const n = 1_000_000
	size := data.SizeOf(n, 1000)
	size.Storage = data.InFiles
	none := func(*Config) {}
	plain := liveOf(t, size, none)
	names := "id"
	for what, tc := range map[string]struct {
		change func(c *Config)
		least  int64
	}{
		"names":       {func(c *Config) { c.Data.Names = names }, 36 * n},
		"a column":    {func(c *Config) { c.Output.HTMLColumns = []string{"age"} }, 36 * n},
		"labels":      {func(c *Config) { c.Output.AutoLabels = true }, 70 * n},
		"a network":   {func(c *Config) { c.Model.Kind = "mlp" }, 4 * 1000 * n},
		"all columns": {func(c *Config) { c.Embed.Components = new(0) }, 4 * 1000 * n},
		"recall":      {func(c *Config) { c.Quality.Recall, c.Quality.K = true, 60 }, 4 * 45 * n},
		"float64":     {func(c *Config) { c.Model.Kind, c.Embed.Float64 = "mlp", true }, 11 * 1000 * n},
	} {
		if more := liveOf(t, size, tc.change) - plain; more < tc.least {
			t.Errorf("%s: %d bytes more, want at least %d", what, more, tc.least)
		}
	}
	size.Storage = data.AsBytes
	if bytes := liveOf(t, size, none); bytes < 1000*n || bytes > 2*1000*n {
		t.Errorf("as bytes: %d", bytes)
	}
	some := liveOf(t, size, func(c *Config) { c.Data.Sample = Sample{Number: n / 10} })
	if less := liveOf(t, data.SizeOf(n/10, 1000), none); some > less {
		t.Errorf("trained on a tenth: %d bytes, want at most the %d of so many points in memory", some, less)
	}
}

// What does not fit is refused with the need, the limit, and what helps: the key of what
// takes most, fewer rows, or both.
func TestCheckMemory(t *testing.T) {
	t.Setenv("GOGC", "100") // left as it is
	available, ok := memory.Available()
	if !ok {
		t.Skip("the system tells of no limit")
	}
	c := loaded(Pretrain.Load(&Sources{}))(t)
	table, _, err := Train.Load(&Sources{})
	must(t, err)
	const many = 1e12
	unknown := data.Size{Low: many, High: 2 * many, Likely: many, Width: 30}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"points":          {Train.CheckMemory(table, data.SizeOf(many, 30), nil, nil), ", with 1000000000000 rows of data), but " + available.Source},
		"bounds":          {Train.CheckMemory(table, unknown, nil, nil), "lower graph.k (the order of the edges: "},
		"origin":          {Train.CheckMemory(table, unknown, nil, Origins{"graph.k": "run.yaml:3"}), "run.yaml:3: the run takes"},
		"many images":     {Pretrain.CheckMemory(c, data.SizeOf(many, 3072), nil, nil), "give at most some "},
		"representations": {CheckImages(memory.Images{Whole: 32, Width: 64, Represented: many}), "; give fewer data, or give more memory"},
		"positions":       {CheckImages(memory.Images{Whole: 32, Width: 64, Out: 128, Placed: many}), "; give fewer data, or give more memory"},
		"pixels":          {CheckImages(memory.Images{Evaluated: many, Pixels: 3072}), "; give fewer data, or give more memory"},
		"large images":    {CheckImages(memory.Images{Whole: 1 << 15, Width: 64, Represented: 1000}), "lower views.whole_size (the network at work: "},
		"large pixels":    {CheckImages(memory.Images{Evaluated: 10, Pixels: many}), "; give fewer data, or give more memory"},
	} {
		if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) || strings.Contains(tc.err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, tc.err, tc.want)
		}
	}
	for name, err := range map[string]error{
		"points": Train.CheckMemory(table, data.SizeOf(100, 30), nil, nil),
		"images": CheckImages(memory.Images{Whole: 32, Width: 4, Represented: 8}),
	} {
		if err != nil {
			t.Errorf("few %s: %v", name, err)
		}
	}
}

// As many rows as are said to fit do, and not many more.
func TestFewerRowsFit(t *testing.T) {
	available, ok := memory.Available()
	if !ok {
		t.Skip("the system tells of no limit")
	}
	rows := func(n int) memory.Estimate { return memory.Estimate{Live: int64(n) * (available.Bytes / 12100)} }
	if err := checkMemory(rows, 1e6, true, nil); err == nil || !strings.Contains(err.Error(), "; give at most some 11000 rows of data, or give more memory") {
		t.Error(err)
	}
	if err := checkMemory(rows, 1e6, false, nil); err == nil || !strings.HasSuffix(err.Error(), "; give fewer data, or give more memory") {
		t.Error(err)
	}
}

// A report names the largest part of the memory, if it is a large one.
func TestReport(t *testing.T) {
	for name, tc := range map[string]struct {
		settings []Setting
		want     string
	}{
		"many points": {nil, "; the largest part, "},
		"few points":  {[]Setting{{Key: "data.sample", Value: "30"}, {Key: "quality.spearman_sample", Value: "0"}}, "memory: about"},
	} {
		c, origins, err := Train.Load(&Sources{Settings: tc.settings})
		if err != nil {
			t.Fatal(err)
		}
		report, err := Train.Report(t.Context(), c, origins)
		if err != nil || !strings.Contains(report, tc.want) || strings.Contains(report, "largest") != (name == "many points") {
			t.Errorf("%s: %q, %v", name, report, err)
		}
	}
}
