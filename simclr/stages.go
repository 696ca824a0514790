package simclr

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"cne/internal/option"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// A Stage is a part of a Pretraining with a schedule, an output and an optimiser of its
// own, which remembers nothing of the stage before. t-SimCNE (Böhm, Berens and Kobak,
// 2023) has three: the network learns as in SimCLR, with an output of many dimensions;
// the output becomes two-dimensional and is trained first; then all is learnt once more.
type Stage struct {
	// Epochs is the number of epochs, at least 1. WarmUp and LR are those of Pretraining,
	// unless they are given.
	Epochs int     `key:"epochs" in:"[1,inf)"`
	LR     float64 `key:"lr,null" in:"(0,inf)"`
	WarmUp *int    `key:"warm_up" in:"[0,inf)"`
	// Out is the width of the network's output; 0 means that of the stage before, and in
	// the first one that of From, or of Network. An output of another width than before is
	// a new last layer of the head, drawn by Seed.
	Out int `key:"out,null" in:"[1,65536]"`
	// Freeze lists the parts of the network, of model.Modules, that are not learnt;
	// "backbone" is all but the head. Their parameters keep their bits. Normalisations among
	// them still use the statistics of the batch, and keep running ones, as PyTorch's do in
	// training when their parameters have requires_grad=False.
	Freeze []string `key:"freeze" words:"backbone conv1 bn1 layer1 layer2 layer3 layer4 fc1 fc2"`
}

// TSimCNE returns the stages of t-SimCNE for so many epochs in all, at least 3, of which
// the paper's program takes 1500: 1000 with the output that the network has, 50 in which
// a new output of two dimensions is trained first, and 450 with all, at a thousandth of the
// step size. The first and the last warm up for up to 10 epochs, or a tenth of theirs if
// these are fewer. For a network that was pretrained before, the first is left out, and
// epochs, then at least 2, are those of the others.
func TSimCNE(epochs int, lr float64, pretrained bool) []Stage {
	share := func(part, of int) int { return max(1, int(math.Round(float64(epochs)*float64(part)/float64(of)))) }
	stages := []Stage{
		{Epochs: min(share(1000, 1500), max(1, epochs-2)), LR: lr},
		{Epochs: share(50, 1500), LR: lr, Out: 2, Freeze: []string{"backbone", "fc1"}},
		{LR: thousandth(lr), Out: 2},
	}
	if pretrained {
		stages = stages[1:]
		stages[0].Epochs = share(50, 500)
	}
	left := epochs
	last := len(stages) - 1
	for _, s := range stages[:last] {
		left -= s.Epochs
	}
	stages[last].Epochs = max(1, left)
	for i := range stages {
		warmUp := 0
		if len(stages[i].Freeze) == 0 {
			warmUp = min(10, stages[i].Epochs/10)
		}
		stages[i].WarmUp = &warmUp
	}
	return stages
}

// thousandth returns x/1000 as one would write it, where the quotient is off by a bit.
func thousandth(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x/1000, 'g', 12, 64), 64)
	if err != nil {
		return x / 1000
	}
	return y
}

// stages returns the stages, at least one, with their widths filled in.
func (p *Pretraining) stages() []Stage {
	stages := slices.Clone(p.Stages)
	if len(stages) == 0 {
		stages = []Stage{{Epochs: p.Epochs}}
	}
	out := p.Network.Out
	if out == 0 {
		out = 2 * cmp.Or(p.Network.Width, 64)
		if p.From != nil {
			out = p.From.Options().Out
		}
	}
	for i := range stages {
		s := &stages[i]
		out = cmp.Or(s.Out, out)
		s.Out, s.LR, s.WarmUp = out, cmp.Or(s.LR, p.LR), cmp.Or(s.WarmUp, &p.WarmUp)
	}
	return stages
}

// stageOf returns the number of the stage in which an epoch is, both counted from 0.
func stageOf(stages []Stage, epoch int) int {
	for i, s := range stages {
		if epoch < s.Epochs {
			return i
		}
		epoch -= s.Epochs
	}
	return len(stages) - 1
}

// TotalEpochs adds up the epochs of stages.
func TotalEpochs(stages []Stage) int { return start(stages, len(stages)) }

// start returns the number of epochs before a stage.
func start(stages []Stage, stage int) int {
	epochs := 0
	for _, s := range stages[:stage] {
		epochs += s.Epochs
	}
	return epochs
}

// checkStages says what is wrong with the stages for so many images.
func (p *Pretraining) checkStages(images int) *option.Error {
	var fault *option.Error
	stages := p.stages()
	for i, s := range stages {
		options := p.options(s)
		options.Follows.Epochs = start(stages, i)
		key := "out"
		if len(p.Stages) == 0 {
			key = "network.out"
		}
		frozen := s.frozen()
		switch {
		case errors.As(options.Check(p.Loss, 2*images, images), &fault):
		case errors.As(p.Loss.CheckWidth(key, s.Out), &fault):
		case frozen != nil && !slices.ContainsFunc(model.Modules, func(module string) bool { return !frozen(module) }):
			fault = &option.Error{Key: "freeze", Got: "the whole network", Want: "fc2 or another part to be learnt"}
		}
		if fault == nil {
			continue
		}
		if fault.List, fault.Item = "", ""; len(p.Stages) > 0 {
			fault.List, fault.Item = "stages", fmt.Sprintf("stage %d", i+1)
		}
		return fault
	}
	return nil
}

// frozen returns what tells a stage's frozen parameters by their names, nil if there are
// none.
func (s *Stage) frozen() func(name string) bool {
	if len(s.Freeze) == 0 {
		return nil
	}
	head := slices.Index(model.Modules, "fc1")
	return func(name string) bool {
		module := model.Module(name)
		i := slices.Index(model.Modules, module)
		return slices.Contains(s.Freeze, module) || slices.Contains(s.Freeze, "backbone") && 0 <= i && i < head
	}
}

// KeepsZ reports whether NC-t-SNE's log Z is kept.
func (p *Pretraining) KeepsZ() bool {
	return p.FixZ || p.LRZ != nil && *p.LRZ == 0 && p.Loss.Loss.Info().Constant == op.LearntZ
}

// options returns those of train.Fit for a stage, without the source of the views.
func (p *Pretraining) options(s Stage) train.Options {
	return train.Options{
		Phases: []train.Phase{{
			Epochs: s.Epochs, LR: s.LR, Schedule: p.Schedule, WarmUp: *s.WarmUp, Spectrum: p.Spectrum, Negatives: p.Negatives,
		}},
		BatchSize: p.batchSize(), DropLast: true, Seed: p.Seed, Sampling: p.Sampling,
		Optimizer: &train.SGD{Momentum: p.Momentum, WeightDecay: p.WeightDecay, NoDecay: p.noDecay},
		Clip:      p.Clip, LogZ: p.LogZ, FixZ: p.KeepsZ(), LRZ: *cmp.Or(p.LRZ, new(0.001)), Device: p.Device,
		Hooks: p.Hooks, OnBatch: p.OnBatch, Checkpoints: p.Checkpoints,
	}
}
