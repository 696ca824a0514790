package configs

import (
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"cne/internal/text"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
)

// A NetworkStage is one entry of stages as it stands in the file: what is nil is
// inherited, Out from the stage before, the others from the section train.
type NetworkStage struct {
	Epochs int      `key:"epochs" in:"[1,inf)"`
	LR     *float64 `key:"lr" in:"(0,inf)"`
	WarmUp *int     `key:"warm_up" in:"[0,inf)"`
	Out    *int     `key:"out" in:"[1,65536]"`
	Freeze []string `key:"freeze" as:"modules"` // of parts; empty: nothing
}

// backbone is the word for all parts of the network before its head.
const backbone = "backbone"

// parts are the words for what can be frozen.
var parts = append([]string{backbone}, model.Modules...)

// frozen returns the modules that a list of parts stands for.
func frozen(list []string) []string {
	var modules []string
	for _, part := range list {
		if part == backbone {
			modules = append(modules, model.Modules[:slices.Index(model.Modules, "fc1")]...)
		} else {
			modules = append(modules, part)
		}
	}
	return modules
}

// modules allows a list of parts of the network, or one of them.
func modules() rule {
	allowed := text.Enumerate(parts) + ", or a list of them"
	r := textList(func(n *yaml.Node) (string, bool) {
		return n.Value, isScalar(n, "!!str") && slices.Contains(parts, n.Value)
	}, allowed)
	r.words = parts
	return r
}

// networkStages allows a list of mappings with the keys of a NetworkStage.
func networkStages() rule {
	return entries("stage", "[{epochs: 100}, {epochs: 10, out: 2, freeze: [backbone, fc1]}]", func(s *NetworkStage) *problem {
		all := frozen(s.Freeze)
		if !slices.ContainsFunc(model.Modules, func(module string) bool { return !slices.Contains(all, module) }) {
			return &problem{part: "freeze", text: "names the whole network, so that nothing is learnt; leave fc2 or another part out"}
		}
		return nil
	})
}

// tsimcne is the word of simclr.method for t-SimCNE, tsimcnePreset what it lays over the
// defaults, InfoNCE of all views of the batch with the Cauchy kernel, and tsimcneWarmUp
// what it lays over them besides where the stages are its own.
const (
	tsimcne       = "tsimcne"
	tsimcnePreset = "loss: {metric: euclidean, negatives: full, scale: 1.0}\n"
	tsimcneWarmUp = "train: {warm_up: 10}\n"
)

// tsimcneStages returns the stages of t-SimCNE as they would stand in a file.
func (c *SimCLR) tsimcneStages() []NetworkStage {
	epochs, pretrained := c.Train.Epochs, c.Model.From != nil
	if epochs == 0 {
		epochs = 1500
		if pretrained {
			epochs = 500
		}
	}
	var list []NetworkStage
	for _, s := range simclr.TSimCNE(epochs, c.Train.LR, pretrained) {
		if s.WarmUp > 0 {
			s.WarmUp = min(c.Train.WarmUp, s.Epochs/10)
		}
		stage := NetworkStage{Epochs: s.Epochs, LR: &s.LR, WarmUp: &s.WarmUp}
		if s.Out != 0 {
			stage.Out = &s.Out
		}
		if len(s.Freeze) > 0 {
			stage.Freeze = []string{backbone, "fc1"}
		}
		list = append(list, stage)
	}
	return list
}

// stages returns the options of the stages.
func (c *SimCLR) stages() []simclr.Stage {
	var list []simclr.Stage
	for _, s := range c.Stages {
		stage := simclr.Stage{Epochs: s.Epochs, WarmUp: c.Train.WarmUp, LR: c.Train.LR, Freeze: frozen(s.Freeze)}
		if s.WarmUp != nil {
			stage.WarmUp = *s.WarmUp
		}
		if s.LR != nil {
			stage.LR = *s.LR
		}
		if s.Out != nil {
			stage.Out = *s.Out
		}
		list = append(list, stage)
	}
	return list
}

// Out returns the width of the network's output in the end.
func (c *SimCLR) Out() int {
	out := c.Network.Out
	for _, s := range c.stages() {
		if s.Out != 0 {
			out = s.Out
		}
	}
	return out
}

// Embeds tells whether the run ends with positions of the images that can be drawn: an
// output of up to three dimensions in which distances count.
func (c *SimCLR) Embeds() bool { return c.Loss.Metric == op.Euclidean && c.Out() <= 3 }

// stageEpochs adds up the epochs of the stages.
func (c *SimCLR) stageEpochs() int {
	n := 0
	for _, s := range c.Stages {
		n += s.Epochs
	}
	return n
}

// stageClashes lists what can clash in stages.
func (c *SimCLR) stageClashes() []clash {
	staged := len(c.Stages) > 0
	least := 3
	if c.Model.From != nil {
		least = 2
	}
	list := []clash{
		when(c.SimCLR.Method == tsimcne && c.Loss.Metric != op.Euclidean, "loss.metric", "simclr.method",
			"positions in the plane are compared by their distances, so set it to euclidean or simclr.method to simclr"),
		when(c.SimCLR.Method == tsimcne && c.Train.Epochs < least && c.Train.Epochs != c.stageEpochs(), "train.epochs", "simclr.method",
			fmt.Sprintf("its stages take at least %d epochs", least)),
		when(staged && c.Train.Epochs != c.stageEpochs(), "train.epochs", "stages",
			"the stages say how many epochs are run, so leave train.epochs out or set stages to []"),
		when(!staged && c.Train.WarmUp >= c.Train.Epochs, "train.warm_up", "train.epochs",
			"take fewer epochs to warm up than there are"),
	}
	for i, s := range c.stages() {
		list = append(list,
			clash{
				found: c.Stages[i].WarmUp == nil && s.WarmUp >= s.Epochs,
				key:   "stages", part: fmt.Sprintf("epochs of stage %d", i+1), value: s.Epochs, other: "train.warm_up",
				remedy: "take fewer epochs to warm up than there are, for example warm_up: 0 in the stage",
			},
			clash{
				found: c.Loss.Metric == op.Cosine && s.Out == 1,
				key:   "stages", part: fmt.Sprintf("out of stage %d", i+1), value: s.Out, other: "loss.metric",
				remedy: "in one dimension a cosine is 1 or -1, so take at least 2 dimensions or the metric euclidean",
			},
		)
	}
	return list
}

// entries allows a list of mappings with the keys of a T, called kind, such as the
// example; check, which may be nil, says what is wrong with one of them.
func entries[T any](kind, example string, check func(*T) *problem) rule {
	return rule{read: func(n *yaml.Node) (any, *problem) {
		if n.Kind != yaml.SequenceNode {
			return nil, wrong(n, "a list of "+kind+"s, such as "+example)
		}
		list := make([]T, len(n.Content))
		for i, item := range n.Content {
			p := readEntry(resolve(item), kind, &list[i])
			if p == nil && check != nil {
				p = check(&list[i])
			}
			if p != nil {
				of := fmt.Sprintf("%s %d", kind, i+1)
				if p.part != "" {
					of = p.part + " of " + of
				}
				p.part = of
				if p.at == nil {
					p.at = item
				}
				return nil, p
			}
		}
		return list, nil
	}}
}

// entryKeys returns the keys of an entry of a list. Null means nothing of its own, like
// a key that is left out.
func entryKeys[T any]() []key { return keysOf(reflect.TypeFor[T]()) }
