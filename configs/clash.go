package configs

import (
	"fmt"

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

// check refuses values that are right by themselves and wrong together. Faults
// are of the type *Error.
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
	return nil
}

// value returns the value of a key by its name; nil stands for null.
func (s *Schema[C]) value(c *C, name string) any {
	k, _ := find(s.keys, name) // clashes name keys that exist
	return value(c, k)
}

// clashes lists what can clash in a loss by itself.
func (loss *Loss) clashes() []clash {
	return []clash{
		{
			found: loss.S != nil && !loss.HasSpectrum(),
			key:   "loss.s", other: "loss.name",
			remedy: "only neg and infonce have a spectrum, so set loss.s to null or choose one of them",
		},
		{
			found: loss.ZBar != nil && loss.Name != op.Neg,
			key:   "loss.z_bar", other: "loss.name",
			remedy: "only neg has a fixed normalisation constant, so set loss.z_bar to null or choose neg",
		},
		{
			found: loss.S != nil && loss.ZBar != nil,
			key:   "loss.z_bar", other: "loss.s",
			remedy: "they exclude each other, so set one of them to null",
		},
		{
			found: loss.Metric == op.Cosine && loss.Name == op.UMAP,
			key:   "loss.metric", other: "loss.name",
			remedy: "umap needs the metric euclidean",
		},
		{
			found: !loss.PositiveInDenominator && loss.Name != op.InfoNC,
			key:   "loss.positive_in_denominator", other: "loss.name",
			remedy: "only infonce has such a denominator, so set it to true or choose infonce",
		},
		{
			found: !loss.LearnZ && loss.Name != op.NC,
			key:   "loss.learn_z", other: "loss.name",
			remedy: "only nc learns a normalisation constant, so set it to true or choose nc",
		},
		{
			found: loss.LogZ != 0 && loss.Name != op.NC,
			key:   "loss.log_z", other: "loss.name",
			remedy: "only nc learns a normalisation constant, so set it to 0 or choose nc",
		},
	}
}

// clashes lists what can clash.
func (c *Config) clashes() []clash {
	loss, train := &c.Loss, &c.Train
	phased := len(train.Phases) > 0

	list := append(loss.clashes(), []clash{
		{
			found: c.Model.DType == "float64" && c.Device.Name != "auto" && c.Device.Name != "cpu",
			key:   "model.dtype", other: "device.name",
			remedy: "a GPU computes in float32, so take that or the device cpu",
		},
		{
			found: loss.Metric == op.Cosine && c.Model.Dim == 1,
			key:   "model.dim", other: "loss.metric",
			remedy: "in one dimension a cosine is 1 or -1, so take at least 2 dimensions or the metric euclidean",
		},
		{
			found: train.EarlyExaggeration != "none" && !loss.HasSpectrum(),
			key:   "train.early_exaggeration", other: "loss.name",
			remedy: "only neg and infonce have a spectrum, so set it to none or choose one of them",
		},
		{
			found: train.EarlyExaggeration != "none" && phased,
			key:   "train.early_exaggeration", other: "train.phases",
			remedy: "write the exaggeration as a phase, or set train.phases to []",
		},
		{
			found: train.EarlyExaggeration != "none" && loss.S == nil,
			key:   "train.early_exaggeration", other: "loss.s",
			remedy: "set loss.s, for example to 0",
		},
		{
			found: train.Momentum != 0 && train.Optimizer != "sgd",
			key:   "train.momentum", other: "train.optimizer",
			remedy: "only sgd has a momentum, so set it to 0 or train.optimizer to sgd",
		},
		{
			found: !phased && train.WarmUp >= train.Epochs,
			key:   "train.warm_up", other: "train.epochs",
			remedy: "take fewer epochs to warm up than there are",
		},
		{
			found: c.Model.Input == "pca" && c.Graph.PCA == 0,
			key:   "model.input", other: "graph.pca",
			remedy: "set graph.pca to the number of principal components",
		},
		{
			found: c.Model.Input == "pca" && c.Model.Kind == "table",
			key:   "model.input", other: "model.kind",
			remedy: "only an mlp has an input, so leave it at points or choose mlp",
		},
		{
			found: c.Model.KeepData && c.Model.Kind != "table",
			key:   "model.keep_data", other: "model.kind",
			remedy: "only a table needs the training points to place new ones, so set it to false",
		},
		{
			found: len(c.Data.HoldoutLabels) > 0 && (c.Data.Holdout == nil || len(c.Data.Holdout.Paths) == 0),
			key:   "data.holdout_labels", other: "data.holdout",
			remedy: "give the paths of the held-out points there, or set data.holdout_labels to []",
		},
		{
			found: c.Data.Holdout != nil && c.Graph.File != nil,
			key:   "data.holdout", other: "graph.file",
			remedy: "the graph of the points that are left is not known, so set one of them to null",
		},
		{
			found: phased && train.Epochs != TotalEpochs(train.Phases),
			key:   "train.epochs", other: "train.phases",
			remedy: "the phases say how many epochs are run, so leave train.epochs out or set train.phases to []",
		},
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
				found: p.S != nil && !loss.HasSpectrum(),
				key:   "train.phases", part: fmt.Sprintf("s of phase %d", i+1), value: p.S, other: "loss.name",
				remedy: "only neg and infonce have a spectrum, so leave it out or choose one of them",
			},
			clash{
				found: p.ZBar != nil && loss.Name != op.Neg,
				key:   "train.phases", part: fmt.Sprintf("z_bar of phase %d", i+1), value: p.ZBar, other: "loss.name",
				remedy: "only neg has a fixed normalisation constant, so leave it out or choose neg",
			},
		)
	}
	return list
}
