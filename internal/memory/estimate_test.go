package memory

import (
	"math"
	"testing"
)

// points is a default run on n points.
func points(n int) *Points {
	return &Points{N: n, Width: 50, ValueBytes: 4, Neighbors: 15, Dim: 2, NumberBytes: 4, Batch: 1024, Spearman: 1000}
}

// pretraining is a run with the paper's network.
func pretraining() *Images {
	return &Images{N: 60000, Bytes: 3072, Batch: 256, Size: 32, Width: 64, Hidden: 1024, Out: 128, Whole: 32}
}

// A run takes more if anything of it grows, and names what takes most.
func TestMoreTakesMore(t *testing.T) {
	network := func(p *Points) { p.Hidden, p.Moments, p.Batch = []int{100, 100}, 2, 400000 }
	for name, tc := range map[string]struct{ base, more func(p *Points) }{
		"points":       {nil, func(p *Points) { p.N++ }},
		"held out":     {nil, func(p *Points) { p.Held = 1000 }},
		"width":        {nil, func(p *Points) { p.Width++ }},
		"sparse":       {func(p *Points) { p.Nonzeros, p.Components = 5e8, 20 }, func(p *Points) { p.Nonzeros++ }},
		"sparse rows":  {func(p *Points) { p.Nonzeros = 5e8 }, func(p *Points) { p.Nonzeros++ }},
		"made dense":   {func(p *Points) { p.Nonzeros, p.Width = 1e8, 5000 }, func(p *Points) { p.Dense = true }},
		"columns":      {nil, func(p *Points) { p.Columns++ }},
		"components":   {func(p *Points) { p.Components = 20 }, func(p *Points) { p.Components++ }},
		"neighbours":   {nil, func(p *Points) { p.Neighbors++ }},
		"dimensions":   {func(p *Points) { p.Dim = 100 }, func(p *Points) { p.Dim++ }},
		"layers":       {network, func(p *Points) { p.Hidden = []int{100, 100, 100} }},
		"wide layers":  {network, func(p *Points) { p.Hidden = []int{100, 101} }},
		"float64":      {network, func(p *Points) { p.NumberBytes = 8 }},
		"optimiser":    {func(p *Points) { network(p); p.Hidden = []int{9000, 9000} }, func(p *Points) { p.Moments++ }},
		"batch":        {network, func(p *Points) { p.Batch++ }},
		"negatives":    {func(p *Points) { p.Batch, p.Listed = 400000, 300 }, func(p *Points) { p.Listed++ }},
		"embeddings":   {nil, func(p *Points) { p.Embeddings = 2 }},
		"of all pairs": {func(p *Points) { p.AllPairs, p.Neighbors, p.Spearman = true, 50, 0 }, func(p *Points) { p.Embeddings = 2 }},
		"pairs":        {func(p *Points) { p.Spearman = 15000 }, func(p *Points) { p.Spearman++ }},
		"all pairs":    {func(p *Points) { p.Approximate = true }, func(p *Points) { p.Approximate = false }},
		"on a device":  {func(p *Points) { network(p); p.Device = true }, func(p *Points) { p.Device = false }},
		"lists":        {func(p *Points) { p.Neighbors, p.Spearman, p.Device = 1, 0, true }, func(p *Points) { p.Approximate = true }},
		"in files":     {func(p *Points) { p.ValueBytes, p.Components, p.Width = 0, 50, 5000 }, func(p *Points) { p.ValueBytes = 1 }},
		"as bytes":     {func(p *Points) { p.ValueBytes, p.Components, p.Width = 1, 50, 5000 }, func(p *Points) { p.ValueBytes = 4 }},
		"dense":        {func(p *Points) { p.Nonzeros, p.Components, p.Width = 1e8, 20, 5000 }, func(p *Points) { p.Components = 0 }},
		"for networks": {func(p *Points) { network(p); p.Components = 20 }, func(p *Points) { p.KeepsInput = true }},
	} {
		p := points(1e6)
		if tc.base != nil {
			tc.base(p)
		}
		less := p.Estimate()
		tc.more(p)
		if more := p.Estimate(); less.Live < 1e6 || more.Live <= less.Live || more.Peak <= less.Peak {
			t.Errorf("%s: %d bytes, and with more %d", name, less.Live, more.Live)
		}
	}
	for name, more := range map[string]func(r *Images){
		"images":      func(r *Images) { r.N++ },
		"their size":  func(r *Images) { r.Bytes++ },
		"batch":       func(r *Images) { r.Batch++ },
		"views":       func(r *Images) { r.Size++ },
		"negatives":   func(r *Images) { r.Listed++ },
		"width":       func(r *Images) { r.Width++ },
		"hidden":      func(r *Images) { r.Hidden++ },
		"out":         func(r *Images) { r.Out++ },
		"monitor":     func(r *Images) { r.Monitored++ },
		"large":       func(r *Images) { r.Placed, r.Whole = 1, 4096 },
		"represented": func(r *Images) { r.Represented = 1e8 },
		"placed":      func(r *Images) { r.Placed = 1e8 },
		"evaluated":   func(r *Images) { r.Evaluated = 1e8 },
		"pixels":      func(r *Images) { r.Evaluated, r.Pixels = 1e6, 3072 },
	} {
		r := pretraining()
		less := r.Estimate()
		if more(r); r.Estimate().Live <= less.Live {
			t.Errorf("%s: %d bytes, and with more %d", name, less.Live, r.Estimate().Live)
		}
	}
}

// Only representations that are not too wide are whitened, and only at the end.
func TestWhitenedMemory(t *testing.T) {
	live := func(r Images) int64 { return r.Estimate().Live }
	const n = 1e6
	narrow, wide := live(Images{Evaluated: n, Pixels: MaxWhitened}), live(Images{Evaluated: n, Pixels: MaxWhitened + 1})
	if more := narrow - wide; more < 3.9*n*MaxWhitened {
		t.Errorf("%d bytes more for whitened pixels", more)
	}
	monitor := live(Images{Batch: 1, Width: 64, Monitored: n}) - live(Images{Batch: 1, Width: 64})
	end := live(Images{Width: 64, Evaluated: n})
	if math.Abs(float64(end-monitor)-4*n*512) > 1e8 {
		t.Errorf("%d bytes at the end, and %d for the monitor", end, monitor)
	}
}

// Estimates of some runs, and what takes most of them.
func TestEstimates(t *testing.T) {
	many := points(1e6)
	many.Spearman, many.Approximate = 0, true
	whole := *many
	whole.AllPairs, whole.Neighbors = true, 50
	several := Points{N: 60000, Width: 3, ValueBytes: 4, Dense: true, Neighbors: 100, Dim: 2, NumberBytes: 4, Batch: 1024,
		Approximate: true, KeepsInput: true, AllPairs: true, Embeddings: 4} // 388 MB when measured
	wide := pretraining()
	wide.Width, wide.Hidden, wide.Out = 1024, 16, 8
	deep := points(1000)
	deep.Hidden = []int{65536, 30000, 30000}
	for name, tc := range map[string]struct {
		e            Estimate
		live, peak   float64 // in MB
		during, most string
		key          string
	}{
		"a thousand points": {points(1000).Estimate(), 16, 73, "the quality is measured", "distances for the rank correlation", "quality.spearman_sample"},
		"ten thousand":      {points(10000).Estimate(), 21, 80, "the quality is measured", "distances for the rank correlation", "quality.spearman_sample"},
		"a million":         {many.Estimate(), 814, 1190, "the model is trained", "the order of the edges", "graph.k"},
		"all pairs of them": {whole.Estimate(), 1717, 2453, "the model is trained", "the order of the edges", "graph.k"},
		"four at once":      {several.Estimate(), 406, 618, "the model is trained", "the order of the edges", "graph.k"},
		"a deep network":    {deep.Estimate(), 35690, 50017, "the model is trained", "the network's weights with their gradients and copies", "model.hidden"},
		"images":            {pretraining().Estimate(), 2728, 3870, "the network is trained", "a batch", "train.batch_size"},
		"a wide network":    {wide.Estimate(), 131478, 184119, "the network is trained", "the network's weights with their gradients and copies", "network.width"},
		"nothing":           {new(Points).Estimate(), 0, 0, "", "", ""},
		"beyond numbers":    {points(math.MaxInt).Estimate(), math.MaxInt64 / 4e6, 1.4 * math.MaxInt64 / 4e6, "the points are read", "points", ""},
	} {
		near := func(bytes int64, want float64) bool { return math.Abs(float64(bytes)-1e6*want) <= 1e6+1e4*want }
		var most Part
		if len(tc.e.Parts) > 0 {
			most = tc.e.Parts[0]
		}
		if !near(tc.e.Live, tc.live) || !near(tc.e.Peak, tc.peak) || tc.e.During != tc.during || most.What != tc.most || most.Key != tc.key {
			t.Errorf("%s: %d bytes live, %d at most, while %s, %q (%s)", name, tc.e.Live/1e6, tc.e.Peak/1e6, tc.e.During, most.What, most.Key)
		}
	}
}
