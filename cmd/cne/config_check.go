package main

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A clash is a value that another value of the configuration forbids.
type clash struct {
	found  bool
	key    string // the offending key; a list of phases names the phase in part
	part   string
	value  any
	other  string // the key that forbids it
	remedy string
}

// check refuses values that are right by themselves and wrong together. Faults
// are of the type *configError.
func check(c any, origins Origins, clashes []clash) error {
	for _, x := range clashes {
		if !x.found {
			continue
		}
		k := x.key
		if x.part != "" {
			k += ": " + x.part
		}
		source, other := origins[x.key], origins[x.other]
		value, otherValue := inline(x.value), inline(lookup(c, x.other))
		switch {
		case source == other:
		case source == defaultOrigin: // the fault shows where something was set
			value += " (" + source + ")"
			source = other
		default:
			otherValue += " (" + other + ")"
		}
		return &configError{source, k, fmt.Sprintf("is %s, but %s is %s; %s", value, x.other, otherValue, x.remedy)}
	}
	return nil
}

// clashes lists what can clash in a loss by itself.
func (loss *Loss) clashes() []clash {
	return []clash{
		{
			found: loss.S != nil && !loss.hasSpectrum(),
			key:   "loss.s", value: loss.S, other: "loss.name",
			remedy: "only neg and infonce have a spectrum, so set loss.s to null or choose one of them",
		},
		{
			found: loss.ZBar != nil && loss.Name != "neg",
			key:   "loss.z_bar", value: loss.ZBar, other: "loss.name",
			remedy: "only neg has a fixed normalisation constant, so set loss.z_bar to null or choose neg",
		},
		{
			found: loss.S != nil && loss.ZBar != nil,
			key:   "loss.z_bar", value: loss.ZBar, other: "loss.s",
			remedy: "they exclude each other, so set one of them to null",
		},
		{
			found: loss.Metric == "cosine" && loss.Name == "umap",
			key:   "loss.metric", value: loss.Metric, other: "loss.name",
			remedy: "umap needs the metric euclidean",
		},
		{
			found: !loss.PositiveInDenominator && loss.Name != "infonce",
			key:   "loss.positive_in_denominator", value: loss.PositiveInDenominator, other: "loss.name",
			remedy: "only infonce has such a denominator, so set it to true or choose infonce",
		},
		{
			found: !loss.LearnZ && loss.Name != "nc",
			key:   "loss.learn_z", value: loss.LearnZ, other: "loss.name",
			remedy: "only nc learns a normalisation constant, so set it to true or choose nc",
		},
		{
			found: loss.LogZ != 0 && loss.Name != "nc",
			key:   "loss.log_z", value: loss.LogZ, other: "loss.name",
			remedy: "only nc learns a normalisation constant, so set it to 0 or choose nc",
		},
	}
}

// trainClashes lists what can clash in a configuration of cne train.
func trainClashes(c *Config) []clash {
	loss, train := &c.Loss, &c.Train
	phased := len(train.Phases) > 0

	list := append(loss.clashes(), []clash{
		{
			found: c.Model.DType == "float64" && c.Device.Name != "auto" && c.Device.Name != "cpu",
			key:   "model.dtype", value: c.Model.DType, other: "device.name",
			remedy: "a GPU computes in float32, so take that or the device cpu",
		},
		{
			found: loss.Metric == "cosine" && c.Model.Dim == 1,
			key:   "model.dim", value: c.Model.Dim, other: "loss.metric",
			remedy: "in one dimension a cosine is 1 or -1, so take at least 2 dimensions or the metric euclidean",
		},
		{
			found: train.EarlyExaggeration != "none" && !loss.hasSpectrum(),
			key:   "train.early_exaggeration", value: train.EarlyExaggeration, other: "loss.name",
			remedy: "only neg and infonce have a spectrum, so set it to none or choose one of them",
		},
		{
			found: train.EarlyExaggeration != "none" && phased,
			key:   "train.early_exaggeration", value: train.EarlyExaggeration, other: "train.phases",
			remedy: "write the exaggeration as a phase, or set train.phases to []",
		},
		{
			found: train.EarlyExaggeration != "none" && loss.S == nil,
			key:   "train.early_exaggeration", value: train.EarlyExaggeration, other: "loss.s",
			remedy: "set loss.s, for example to 0",
		},
		{
			found: train.Momentum != 0 && train.Optimizer != "sgd",
			key:   "train.momentum", value: train.Momentum, other: "train.optimizer",
			remedy: "only sgd has a momentum, so set it to 0 or train.optimizer to sgd",
		},
		{
			found: !phased && train.WarmUp >= train.Epochs,
			key:   "train.warm_up", value: train.WarmUp, other: "train.epochs",
			remedy: "take fewer epochs to warm up than there are",
		},
		{
			found: c.Model.Input == "pca" && c.Graph.PCA == 0,
			key:   "model.input", value: c.Model.Input, other: "graph.pca",
			remedy: "set graph.pca to the number of principal components",
		},
		{
			found: c.Model.Input == "pca" && c.Model.Kind == "table",
			key:   "model.input", value: c.Model.Input, other: "model.kind",
			remedy: "only an mlp has an input, so leave it at points or choose mlp",
		},
		{
			found: c.Model.KeepData && c.Model.Kind != "table",
			key:   "model.keep_data", value: c.Model.KeepData, other: "model.kind",
			remedy: "only a table needs the training points to place new ones, so set it to false",
		},
		{
			found: len(c.Data.HoldoutLabels) > 0 && (c.Data.Holdout == nil || len(c.Data.Holdout.Paths) == 0),
			key:   "data.holdout_labels", value: c.Data.HoldoutLabels, other: "data.holdout",
			remedy: "give the paths of the held-out points there, or set data.holdout_labels to []",
		},
		{
			found: c.Data.Holdout != nil && c.Graph.File != nil,
			key:   "data.holdout", value: c.Data.Holdout, other: "graph.file",
			remedy: "the graph of the points that are left is not known, so set one of them to null",
		},
		{
			found: phased && train.Epochs != totalEpochs(train.Phases),
			key:   "train.epochs", value: train.Epochs, other: "train.phases",
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
				found: p.S != nil && !loss.hasSpectrum(),
				key:   "train.phases", part: fmt.Sprintf("s of phase %d", i+1), value: p.S, other: "loss.name",
				remedy: "only neg and infonce have a spectrum, so leave it out or choose one of them",
			},
			clash{
				found: p.ZBar != nil && loss.Name != "neg",
				key:   "train.phases", part: fmt.Sprintf("z_bar of phase %d", i+1), value: p.ZBar, other: "loss.name",
				remedy: "only neg has a fixed normalisation constant, so leave it out or choose neg",
			},
		)
	}
	return list
}

// totalEpochs adds up the epochs of phases.
func totalEpochs(phases []Phase) int {
	n := 0
	for _, p := range phases {
		n += p.Epochs
	}
	return n
}

// lookup returns the value of a key, nil for null.
func lookup(c any, k string) any {
	for name, v := range fields(c) {
		if name == k {
			return v
		}
	}
	return nil
}

// inline writes a value as one line of YAML.
func inline(v any) string {
	n, err := valueNode(deref(v))
	if err != nil {
		return fmt.Sprint(v)
	}
	n.Style |= yaml.FlowStyle
	text, err := yaml.Marshal(n)
	if err != nil {
		return fmt.Sprint(v)
	}
	return shorten(strings.Join(slices.Collect(strings.FieldsSeq(string(text))), " "))
}
