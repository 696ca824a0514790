package configs

import (
	"fmt"

	"cne/data/neighbors"
	"cne/internal/text"
	"cne/model/op"
)

// A clash is a value that another value of the configuration forbids.
type clash struct {
	found  bool
	key    string // the offending key
	part   string // of the key's value, such as "s of phase 2"; "" for the whole
	value  any    // of the part
	other  string // the key that forbids it
	remedy string
}

// when is a clash of whole values.
func when(found bool, key, other, remedy string) clash {
	return clash{found: found, key: key, other: other, remedy: remedy}
}

// check refuses values that are right by themselves and wrong together, or for data of
// any size. Faults are of the type *Error.
func (s *Schema[C]) check(c *C, origins Origins) error {
	for _, x := range s.clashes(c) {
		if !x.found {
			continue
		}
		name, v := x.key+": "+x.part, x.value
		if x.part == "" {
			name, v = x.key, s.value(c, x.key)
		}
		source, other := origins[x.key], origins[x.other]
		text, otherText := inline(v), inline(s.value(c, x.other))
		switch {
		case source == other:
		case origins.IsDefault(x.key): // the fault shows where something was set
			text += " (" + source + ")"
			source = other
		default:
			otherText += " (" + other + ")"
		}
		return &Error{source, name, fmt.Sprintf("is %s, but %s is %s; %s", text, x.other, otherText, x.remedy)}
	}
	return s.CheckSize(c, AnySize, origins)
}

// value returns the value of a key by its name; nil stands for null.
func (s *Schema[C]) value(c *C, name string) any {
	k, _ := find(s.keys, name) // clashes name keys that exist
	return value(c, k)
}

// lossesWith returns the words of the losses of which something holds, joined.
func lossesWith(holds func(op.LossInfo) bool) string {
	var words []string
	for _, l := range op.Losses() {
		if info := l.Info(); holds(info) {
			words = append(words, info.Word)
		}
	}
	return text.Join(words, "and")
}

// LossesWithSpectrum returns the words of the losses that have a place s on the spectrum.
func LossesWithSpectrum() string { return lossesWith(op.LossInfo.HasSpectrum) }

// LossesWith returns the words of the losses that have a constant.
func LossesWith(c op.Constant) string {
	return lossesWith(func(l op.LossInfo) bool { return l.Constant == c })
}

// clashes lists what can clash in a loss by itself.
func (loss *Loss) clashes() []clash {
	info := loss.Name.Info()
	return []clash{
		when(loss.S != nil && !info.HasSpectrum(), "loss.s", "loss.name",
			"only "+LossesWithSpectrum()+" have a spectrum, so set loss.s to null or choose one of them"),
		when(loss.ZBar != nil && info.Constant != op.FixedZ, "loss.z_bar", "loss.name",
			"only "+LossesWith(op.FixedZ)+" has a fixed normalisation constant, so set loss.z_bar to null or choose "+LossesWith(op.FixedZ)),
		when(loss.S != nil && loss.ZBar != nil, "loss.z_bar", "loss.s",
			"they exclude each other, so set one of them to null"),
		when(loss.Metric == op.Cosine && info.EuclideanOnly, "loss.metric", "loss.name",
			info.Word+" needs the metric euclidean"),
		when(!loss.PositiveInDenominator && !info.PerHead, "loss.positive_in_denominator", "loss.name",
			"only "+LossesWith(op.Divisor)+" has such a denominator, so set it to true or choose "+LossesWith(op.Divisor)),
		when(!loss.LearnZ && info.Constant != op.LearntZ, "loss.learn_z", "loss.name",
			"only "+LossesWith(op.LearntZ)+" learns a normalisation constant, so set it to true or choose "+LossesWith(op.LearntZ)),
		when(loss.LogZ != 0 && info.Constant != op.LearntZ, "loss.log_z", "loss.name",
			"only "+LossesWith(op.LearntZ)+" learns a normalisation constant, so set it to 0 or choose "+LossesWith(op.LearntZ)),
	}
}

// clashes lists what can clash.
func (c *Config) clashes() []clash {
	loss, train := &c.Loss, &c.Train
	info := loss.Name.Info()
	phased := len(train.Phases) > 0

	list := append(loss.clashes(), []clash{
		when(c.Device.Precision == BF16, "device.precision", "model.kind",
			"it is for the convolutions of cne simclr, so take tf32, or float32"),
		when(c.Model.DType == "float64" && c.Device.Name != "auto" && c.Device.Name != "cpu", "model.dtype", "device.name",
			"a GPU computes in float32, so take that or the device cpu"),
		when(loss.Metric == op.Cosine && c.Model.Dim == 1, "model.dim", "loss.metric",
			"in one dimension a cosine is 1 or -1, so take at least 2 dimensions or the metric euclidean"),
		when(train.EarlyExaggeration && !info.HasSpectrum(), "train.early_exaggeration", "loss.name",
			"only "+LossesWithSpectrum()+" have a spectrum, so set it to false or choose one of them"),
		when(train.EarlyExaggeration && phased, "train.early_exaggeration", "train.phases",
			"write the exaggeration as a phase, or set train.phases to []"),
		when(train.EarlyExaggeration && loss.S == nil, "train.early_exaggeration", "loss.s",
			"set loss.s, for example to 0"),
		when(train.Momentum != 0 && train.Optimizer != "sgd", "train.momentum", "train.optimizer",
			"only sgd has a momentum, so set it to 0 or train.optimizer to sgd"),
		when(!phased && train.WarmUp >= train.Epochs, "train.warm_up", "train.epochs",
			"take fewer epochs to warm up than there are"),
		when(c.Model.Input == "pca" && c.Graph.PCA == 0, "model.input", "graph.pca",
			"set graph.pca to the number of principal components"),
		when(c.Model.Input == "pca" && c.Model.Kind == "table", "model.input", "model.kind",
			"only an mlp has an input, so leave it at points or choose mlp"),
		when(c.Model.Init != "pca" && c.Model.Init != "random" && c.Model.Kind != "table", "model.init", "model.kind",
			"only a table starts at positions, so leave it at pca or choose table"),
		when(c.Model.InitNames != nil && c.Model.InitPath() == "", "model.init_names", "model.init",
			"only an earlier embedding has rows with names, so set it to null or name one there"),
		when(c.Model.InitNames != nil && c.Data.Names == nil, "model.init_names", "data.names",
			"by which the points are found among them, so give their names there"),
		when(c.Model.KeepData && c.Model.Kind != "table", "model.keep_data", "model.kind",
			"only a table needs the training points to place new ones, so set it to false"),
		when(len(c.Data.HoldoutLabels) > 0 && (c.Data.Holdout == nil || len(c.Data.Holdout.Paths) == 0), "data.holdout_labels", "data.holdout",
			"give the paths of the held-out points there, or set data.holdout_labels to []"),
		when(c.Data.Holdout != nil && c.Graph.File != nil, "data.holdout", "graph.file",
			"the graph of the points that are left is not known, so set one of them to null"),
		when(c.Data.TrainOn != nil && c.Data.Holdout != nil, "data.sample", "data.holdout",
			"points that are not trained on are placed either way, so set one of them to null"),
		when(c.Data.TrainOn != nil && c.Graph.File != nil, "data.sample", "graph.file",
			"the graph is made of the points that are trained on, so set one of them to null"),
		when(c.Data.TrainOn != nil && c.Data.Imbalance != nil, "data.sample", "data.imbalance",
			"name the rows that are left by a file in data.sample, or set one of them to null"),
		when(c.Data.TrainOn != nil && c.Model.InitPath() != "" && c.Data.Names == nil, "data.sample", "model.init",
			"the rows of an earlier embedding are not those that are trained on, so give data.names, by which the points are found, or set data.sample to null"),
		when(c.Graph.Search == neighbors.Approximate && c.Graph.File != nil, "graph.search", "graph.file",
			"a graph of one's own needs no search, so leave it at auto or set graph.file to null"),
		when(phased && train.Epochs != TotalEpochs(train.Phases), "train.epochs", "train.phases",
			"the phases say how many epochs are run, so leave train.epochs out or set train.phases to []"),
	}...)
	stages := c.Stages()
	for i, p := range train.Phases {
		list = append(list,
			clash{
				found: p.WarmUp == nil && stages[i].WarmUp >= stages[i].Epochs,
				key:   "train.phases", part: fmt.Sprintf("epochs of phase %d", i+1), value: p.Epochs, other: "train.warm_up",
				remedy: "take fewer epochs to warm up than there are, for example warm_up: 0 in the phase",
			},
			clash{
				found: p.S != nil && !info.HasSpectrum(),
				key:   "train.phases", part: fmt.Sprintf("s of phase %d", i+1), value: p.S, other: "loss.name",
				remedy: "only " + LossesWithSpectrum() + " have a spectrum, so leave it out or choose one of them",
			},
			clash{
				found: p.ZBar != nil && info.Constant != op.FixedZ,
				key:   "train.phases", part: fmt.Sprintf("z_bar of phase %d", i+1), value: p.ZBar, other: "loss.name",
				remedy: "only " + LossesWith(op.FixedZ) + " has a fixed normalisation constant, so leave it out or choose " + LossesWith(op.FixedZ),
			},
			clash{
				found: p.LogZ != nil && info.Constant != op.LearntZ,
				key:   "train.phases", part: fmt.Sprintf("log_z of phase %d", i+1), value: p.LogZ, other: "loss.name",
				remedy: "only " + LossesWith(op.LearntZ) + " learns a normalisation constant, so leave it out or choose " + LossesWith(op.LearntZ),
			},
		)
	}
	return list
}
