package cne

import (
	"cmp"
	"reflect"
	"slices"

	"cne/data/neighbors"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/option"
	"cne/model/op"
	"cne/train"
)

// A Preset is a named choice of options that depends on the number of points; Apply sets
// them.
type Preset int

const (
	// PresetAuto is the default of "cne train": InfoNC-t-SNE with all pairs as negatives and,
	// from 64 points on, UMAP's weights, at s = 1 first and then at s = 0, from InitDiffusion,
	// and for up to 5000 points with 20 neighbours and Density 2. Above 20 000 points it is
	// PresetMillion, but with exact neighbours up to 100 000 (neighbors.Auto). If train.All is
	// not possible, it is NC-t-SNE, with more negatives and fewer epochs for more points.
	// docs/results.md compares it with umap-learn and t-SNE.
	PresetAuto Preset = iota
	// PresetPaper is the paper's Neg-t-SNE, the zero Options.
	PresetPaper
	// PresetTSNE preserves neighbours best. It is InfoNC-t-SNE with all pairs as negatives,
	// with full batches if train.All is not possible, or with 60 to 200 negatives for a
	// network. Below 3000 points it is PresetAuto.
	PresetTSNE
	// PresetUMAP makes compact clusters. It uses UMAP's loss and weights. Below 64 points it
	// is PresetAuto.
	PresetUMAP
	// PresetMillion is for many points: PresetAuto from the multilevel initialisation
	// (InitMultilevel), with approximate neighbours (above 100 000 points, neighbors.Auto).
	// Below 20 000 points it is PresetAuto.
	PresetMillion
	// PresetFast is PresetAuto with a quarter of the epochs. Up to 5000 points it is PresetAuto.
	PresetFast
)

var presetNames = kind.Names[Preset]{
	Package: "cne", Type: "Preset", What: "preset", Err: ErrOption, Words: []string{"auto", "paper", "tsne", "umap", "million", "fast"},
}

func (p Preset) String() string { return presetNames.String(p) }

// MarshalText implements encoding.TextMarshaler.
func (p Preset) MarshalText() ([]byte, error) { return presetNames.Text(p) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Preset) UnmarshalText(text []byte) error { return presetNames.Parse(p, text) }

// Words returns the names of all presets.
func (Preset) Words() []string { return presetNames.Words }

// manyPoints is the number of points from which the multilevel start gives better maps than
// InitDiffusion, and needs fewer steps.
const manyPoints = 20000

// fewPoints is the number of points up to which runs are short in any case.
const fewPoints = 5000

// leastPoints is the number of points below which a graph has few edges.
const leastPoints = 64

// For returns the preset whose values p has for n points: PresetAuto for PresetUMAP below 64
// points, for PresetTSNE below 3000, for PresetFast up to 5000 and for PresetMillion below
// 20 000, otherwise p.
func (p Preset) For(n int) Preset {
	if p == PresetUMAP && n < leastPoints || p == PresetTSNE && n < 3000 || p == PresetFast && n <= fewPoints ||
		p == PresetMillion && n < manyPoints {
		return PresetAuto
	}
	return p
}

// Apply returns o with the preset's values for n points; n is at least 1. Options that are
// set keep their values. isSet reports whether the option with a key, such as "train.lr",
// is set. If isSet is nil, an option is set if it is not zero. If a Spectrum is set, but no
// loss, the loss is Neg-t-SNE. If Epochs is set, but no Phases, the preset's phases are
// scaled to this number of epochs. If LR is set, no phase of the preset has a larger rate.
func (p Preset) Apply(o Options, n int, isSet func(key string) bool) Options {
	if isSet == nil {
		isSet = o.isSet
	}
	p = p.For(n)
	chosen := o
	if !isSet("loss.negatives") {
		chosen.Negatives = 0
	}
	loss := op.InfoNC
	placed := func(p Phase) bool { return p.Spectrum.Given() }
	switch {
	case isSet("loss.name"):
		loss = o.Loss
	case o.Spectrum.Given(), isSet("loss.s"), slices.ContainsFunc(o.Phases, placed):
		loss = op.Neg
	case p == PresetUMAP:
		loss = op.UMAP
	case p != PresetTSNE && !chosen.takesAll():
		loss = op.NC
	}
	x := p.options(n, loss, &chosen)
	total := totalEpochs(x.Phases)
	x.EarlyExaggeration = p != PresetPaper && loss == op.Neg && o.Spectrum.S != nil && !isSet("train.phases")
	switch {
	case len(o.Phases) > 0:
		x.Epochs = 0
	case total > 0 && (isSet("train.phases") || o.EarlyExaggeration && isSet("train.early_exaggeration") ||
		o.Spectrum.S == nil && isSet("loss.s")):
		x.Phases, x.Epochs = nil, total
	case isSet("train.epochs") && o.Epochs > 0 && total > 0:
		x.Phases = scaledPhases(x.Phases, o.Epochs)
	}
	for i := 0; o.LR > 0 && isSet("train.lr") && i < len(x.Phases); i++ {
		x.Phases[i].LR = min(x.Phases[i].LR, o.LR)
	}
	if !isSet("model.init") {
		o.Init = x.Init
	}
	from, to := reflect.ValueOf(x), reflect.ValueOf(&o).Elem()
	for _, f := range option.Fields(to.Type()) {
		if v := from.FieldByIndex(f.Index); !v.IsZero() && !isSet(f.Key) {
			to.FieldByIndex(f.Index).Set(v)
		}
	}
	o.Gather = p != PresetPaper
	return o
}

// isSet reports whether the option with a key is not zero.
func (o *Options) isSet(key string) bool {
	if key == "model.init" {
		return o.Init != 0
	}
	for _, f := range option.Fields(reflect.TypeFor[Options]()) {
		if f.Key == key {
			return !reflect.ValueOf(*o).FieldByIndex(f.Index).IsZero()
		}
	}
	return false
}

// options returns the values of the preset for n points, this loss, and the kind of model
// in o. p is p.For(n).
func (p Preset) options(n int, loss op.Loss, o *Options) Options {
	network := o.network()
	x := Options{Neighbors: max(1, min(DefaultNeighbors, n/4))}
	if network {
		// About 5000 steps, of 20 edges per point with 15 neighbours, or the paper's epochs.
		x.Epochs = max(DefaultNetworkEpochs, 5000/max(1, n*20/DefaultBatchSize))
	}
	if p == PresetPaper {
		if !o.GraphMetric.Direct() { // which compares no components
			x.Components = new(DefaultComponents)
		}
		return x
	}
	x.Loss, x.SampleEdges, x.Components = loss, true, new(AutoComponents)
	if o.LR == 0 && len(o.Phases) == 0 {
		x.Retries = DefaultRetries
	}
	if loss == op.NC {
		x.LRZ = new(0.01)
		if n < leastPoints { // too few pairs to learn Z from; t-SNE's is near 2n
			x.FixZ, x.LogZ = true, elementary.Log(2/float64(max(2, n)-1))
		}
	}
	if !network {
		x.Init = InitDiffusion // clusters break apart less often than from principal components
	}
	many := max(DefaultNegatives, min(200, n/50))
	thousands := max(1, float64(n)/1000)
	switch {
	case network:
		if loss == op.NC || loss == op.InfoNC {
			x.Negatives = many
		}
	case loss == op.Neg || loss == op.UMAP:
		if x.Epochs = 500; n > 10000 {
			x.Epochs = 200
		}
		if loss == op.UMAP {
			x.InitStd = 5 // its repulsion scatters points that are close
		}
	case loss == op.InfoNC && p == PresetTSNE:
		x.Negatives, x.LR = train.Full, 16
		x.Phases = []Phase{{Epochs: 20, LR: 1, Negatives: DefaultNegatives}, {Epochs: 100}}
		if o.takesAll() {
			// Steps are stable while the rate times the mean similarity of neighbours is at
			// most about 1; above, the points spread until it is. At the optimum neighbours
			// have similarities of about 0.6 for 3000 points and 0.3 for 70 000. A rate of two
			// to four times the bound rearranges neighbours before it falls. One of seven tears
			// equal points and small groups apart, and one of fourteen melts the map.
			x.Negatives, x.LR = train.All, min(12, thousands)
			x.Phases[1].Epochs = 180
		}
	case loss == op.InfoNC && o.takesAll():
		// At s = 1 clusters find their places before they spread. More neighbours keep curved
		// surfaces of few points in one piece. Density keeps more neighbours and distances of
		// few points; of many it costs accuracy.
		x.Negatives, x.LR, x.InitStd = train.All, max(1, min(12, thousands/2)), wideStd(n)
		x.Phases = []Phase{{Epochs: 100, LR: cmp.Or(o.LR, min(12, thousands)), Spectrum: train.FromS(1)}, {Epochs: 200}}
		switch {
		case n <= fewPoints:
			x.Neighbors, x.Density = max(1, min(20, n/4)), 2
			x.SampleEdges = n >= leastPoints // edges of equal weight keep the order of small groups
		case n > manyPoints:
			// With more than 50 000 points each has fewer steps, so that a run of 250 000 takes no
			// longer.
			x.Init, x.InitStd = InitMultilevel, finerStd
			x.Phases = []Phase{{Epochs: 44, LR: 3, Spectrum: train.FromS(1), Schedule: new(train.Constant)},
				{Epochs: min(200, max(40, 10_000_000/n))}}
		}
	default:
		x.Negatives, x.LR = many, min(4, thousands)
		x.InitStd = wideStd(n)
		x.Phases = []Phase{{Epochs: 20, LR: 1, Negatives: DefaultNegatives}, {Epochs: max(15, int(750*elementary.Pow(thousands, -0.8)))}}
	}
	if p == PresetMillion && !network {
		x.Init, x.InitStd = InitMultilevel, finerStd
		if n <= 100000 { // above, as the device and the sizes ask for
			x.Search = neighbors.Approximate
		}
	}
	if p == PresetFast {
		x.Epochs = (x.Epochs + 3) / 4
		x.Phases = scaledPhases(x.Phases, (totalEpochs(x.Phases)+3)/4)
	}
	return x
}

// takesAll reports whether the run can use train.All.
func (o *Options) takesAll() bool {
	return !o.network() && cmp.Or(o.Dim, DefaultDim) == 2 && !o.Float64 && o.Metric == op.Euclidean && !o.adam() &&
		o.Momentum == 0 && o.WeightDecay == 0 && (o.Negatives == 0 || o.Negatives == train.All)
}

// wideStd returns the standard deviation of positions at the start. Wide starts keep their
// arrangement, but cost accuracy with many points.
func wideStd(n int) float64 { return max(1, min(3, 5000/float64(n))) }

// scaledPhases returns phases with the given total number of epochs, in the same
// proportions. Each phase gets at least one epoch. If there are fewer epochs than phases,
// only the last phases remain.
func scaledPhases(phases []Phase, epochs int) []Phase {
	if len(phases) == 0 {
		return nil
	}
	before, scaled := totalEpochs(phases), append([]Phase{}, phases[max(0, len(phases)-epochs):]...)
	rest := epochs
	for i := range scaled[1:] {
		scaled[i].Epochs = max(1, min(scaled[i].Epochs*epochs/before, rest-(len(scaled)-1-i)))
		rest -= scaled[i].Epochs
	}
	scaled[len(scaled)-1].Epochs = rest
	return scaled
}
