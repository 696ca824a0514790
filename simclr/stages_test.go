package simclr_test

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/model"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

// backbone is all of a network but the last layer of its head.
var backbone = model.Modules[:7]

// staged is a small t-SimCNE: of three epochs, two and two, of two batches each.
func staged() simclr.Pretraining {
	p := small()
	p.Loss, p.Epochs = euclidean(op.InfoNC), 0
	p.Stages = []simclr.Stage{
		{Epochs: 3, WarmUp: new(1), LR: 0.02},
		{Epochs: 2, LR: 0.02, Out: 2, Freeze: backbone},
		{Epochs: 2, LR: 0.001},
	}
	return p
}

// values returns a copy of all that makes up a network.
func values(n *simclr.Network) map[string][]float32 {
	all := map[string][]float32{}
	for name, a := range n.Tensors() {
		all[name] = slices.Clone(op.Data[float32](a))
	}
	return all
}

// In the second stage everything but the new output keeps its bits, except for the
// running statistics; in the third, all moves.
func TestStages(t *testing.T) {
	images := patches(20, 8)
	p := staged()
	var widths []int
	var after []map[string][]float32
	var seen [][2]int
	p.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
		n := s.Model.(*simclr.Network)
		_, d := n.Points()
		widths, after = append(widths, d), append(after, values(n))
		seen = append(seen, [2]int{s.Epoch, s.Epochs})
		return nil
	})}
	n, r := pretrain(t, p, images, nil)
	if want := []int{8, 8, 8, 2, 2, 2, 2}; !slices.Equal(widths, want) {
		t.Errorf("outputs of %v, want %v", widths, want)
	}
	if want := [][2]int{{1, 7}, {2, 7}, {3, 7}, {4, 7}, {5, 7}, {6, 7}, {7, 7}}; !slices.Equal(seen, want) {
		t.Errorf("epochs %v, want %v", seen, want)
	}
	if r.Epochs != 7 || n.Options().Out != 2 {
		t.Errorf("%d epochs, an output of %d", r.Epochs, n.Options().Out)
	}
	for name, learnt := range after[2] {
		if model.Module(name) == "fc2" {
			if slices.Equal(after[3][name], after[4][name]) {
				t.Errorf("stage two leaves %s as it is", name)
			}
			continue
		}
		if running := strings.Contains(name, "running"); slices.Equal(after[4][name], learnt) == running {
			t.Errorf("stage two leaves %s as it is: %v", name, !running)
		}
		if slices.Equal(after[6][name], learnt) {
			t.Errorf("stage three leaves %s as it is", name)
		}
	}
}

// What is frozen does not change what the rest learns in a step: gradients are computed
// as ever.
func TestFrozenLeavesGradients(t *testing.T) {
	images := patches(8, 8)
	var outputs [][]float32
	for _, freeze := range [][]string{nil, backbone, {"conv1", "layer3"}} {
		p := staged()
		p.Stages = []simclr.Stage{{Epochs: 1, WarmUp: new(0), LR: 0.02, Freeze: freeze}}
		n, _ := pretrain(t, p, images, nil)
		outputs = append(outputs, values(n)["fc2.weight"])
	}
	for i, w := range outputs[1:] {
		if !slices.Equal(w, outputs[0]) {
			t.Errorf("freezing of kind %d changes the first step of the output", i+1)
		}
	}
}

// The new output starts from the seed, uniformly in ±1/√(width of its input), and not as
// the one before it did.
func TestReplacedOutput(t *testing.T) {
	images := patches(8, 8)
	begin := func(seed uint64, from *model.ResNet[float32]) map[string][]float32 {
		p := staged()
		p.Seed, p.From = seed, from
		if from != nil {
			p.Stages = p.Stages[1:]
		}
		for i := range p.Stages {
			p.Stages[i].Epochs, p.Stages[i].WarmUp, p.Stages[i].LR = 1, new(0), 1e-30
		}
		n, _ := pretrain(t, p, images, nil)
		return values(n)
	}
	first, again, other := begin(7, nil), begin(7, nil), begin(8, nil)
	if !reflect.DeepEqual(first, again) || slices.Equal(first["fc2.weight"], other["fc2.weight"]) {
		t.Error("the seed does not decide the new output")
	}
	net, err := model.NewResNet[float32](model.ResNetOptions{Width: 2, Hidden: 16, Out: 8}, 7)
	must(t, err)
	old := op.Data[float32](net.Tensors()["fc2.weight"])
	if len(first["fc2.weight"]) != 2*16 || slices.Equal(first["fc2.weight"], old[:2*16]) {
		t.Errorf("the new output has %d weights, or the old one's", len(first["fc2.weight"]))
	}
	for _, w := range slices.Concat(first["fc2.weight"], first["fc2.bias"]) {
		if w < -0.25 || w > 0.25 {
			t.Errorf("a weight of %g", w)
		}
	}
	from := begin(9, net)
	if !slices.Equal(from["conv1.weight"], op.Data[float32](net.Tensors()["conv1.weight"])) || len(from["fc2.weight"]) != 2*16 {
		t.Error("the network to begin with is not begun with")
	}
	if got := op.Data[float32](net.Tensors()["bn1.running_mean"]); slices.ContainsFunc(got, func(v float32) bool { return v != 0 }) {
		t.Error("the network to begin with was changed itself")
	}
}

// A stage has views of its own size; a stage without one has the augmentation's.
func TestStagesWithSizes(t *testing.T) {
	images := patches(20, 8)
	run := func(size, ofStage int) []float64 {
		p := small()
		p.Augmentation.Size, p.Epochs, p.Stages = size, 0, []simclr.Stage{{Epochs: 2, Size: ofStage}}
		n, r := pretrain(t, p, images, nil)
		return state(n, r)
	}
	want := run(4, 0)
	if !slices.Equal(run(8, 4), want) {
		t.Error("a stage with views of 4 pixels is not one of such views")
	}
	if slices.Equal(run(8, 0), want) {
		t.Error("views of 8 pixels are as those of 4")
	}
}

// A run resumed from any of its checkpoints, within a stage or between stages, ends with
// the bits of the uninterrupted run.
func TestStagesResume(t *testing.T) {
	images := patches(20, 8)
	for name, change := range map[string]func(p *simclr.Pretraining){
		"infonce":         func(*simclr.Pretraining) {},
		"nc":              func(p *simclr.Pretraining) { p.Loss, p.LRZ = euclidean(op.NC), new(0.01) },
		"views that grow": func(p *simclr.Pretraining) { p.Stages[0].Size, p.Stages[1].Size = 4, 6 },
	} {
		t.Run(name, func(t *testing.T) {
			p := staged()
			change(&p)
			saved, _, _ := resumesAnywhere(t, p, images)
			var at [][3]int
			for _, c := range saved {
				at = append(at, [3]int{c.Progress.Follows, c.Progress.Epochs, c.Progress.Batches})
			}
			if len(at) != 7*2+3 || at[6] != [3]int{0, 3, 0} || at[7] != [3]int{3, 3, 0} {
				t.Fatalf("checkpoints %v", at)
			}
			p.Resume = saved[len(saved)-1]
			p.Resume.Progress.Follows = 1
			if _, _, err := p.Run(t.Context(), images, nil); !errors.Is(err, train.ErrCheckpoint) {
				t.Errorf("from a checkpoint of other stages: %v", err)
			}
		})
	}
}

// A staged run has the same bits on any number of cores, and learns with every loss.
func TestStagesOfAllLosses(t *testing.T) {
	images := patches(20, 8)
	for _, loss := range []op.Loss{op.InfoNC, op.Neg, op.NC, op.UMAP} {
		for _, m := range []int{1, 5, train.Full} {
			p := staged()
			p.Loss, p.Negatives = euclidean(loss), m
			n, r := pretrain(t, p, images, nil)
			want := state(n, r)
			if m != 5 {
				continue
			}
			func() {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
				if n, r := pretrain(t, p, images, nil); !slices.Equal(state(n, r), want) {
					t.Errorf("%v: another network on three cores", loss)
				}
			}()
		}
	}
}

// The paper's program: 1000, 50 and 450 epochs, warm-up of 10, 0 and 10.
func TestTSimCNE(t *testing.T) {
	lr := 0.12
	want := []simclr.Stage{
		{Epochs: 1000, WarmUp: new(10), LR: lr},
		{Epochs: 50, WarmUp: new(0), LR: lr, Out: 2, Freeze: []string{"backbone", "fc1"}},
		{Epochs: 450, WarmUp: new(10), LR: 0.00012, Out: 2},
	}
	if got := simclr.TSimCNE(1500, lr, false); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := simclr.TSimCNE(500, lr, true); !reflect.DeepEqual(got, want[1:]) {
		t.Errorf("of a pretrained network, got %+v", got)
	}
	for _, pretrained := range []bool{false, true} {
		for epochs := 3; epochs < 200; epochs++ {
			sum := 0
			for _, s := range simclr.TSimCNE(epochs, 1, pretrained) {
				sum += s.Epochs
				if s.Epochs < 1 || *s.WarmUp >= s.Epochs {
					t.Errorf("of %d epochs: %+v", epochs, s)
				}
			}
			if sum != epochs {
				t.Errorf("got %d epochs, want %d", sum, epochs)
			}
		}
	}
}

func TestStagesRefused(t *testing.T) {
	net, err := model.NewResNet[float32](model.ResNetOptions{Width: 3, Hidden: 16, Out: 8}, 7)
	must(t, err)
	for name, tc := range map[string]struct {
		change func(p *simclr.Pretraining)
		want   string
	}{
		"all frozen":      {func(p *simclr.Pretraining) { p.Stages[1].Freeze = model.Modules }, "stages: freeze of stage 2: got the whole network, want fc2"},
		"unknown part":    {func(p *simclr.Pretraining) { p.Stages[2].Freeze = []string{"fc3"} }, `stages: freeze of stage 3: got "fc3", want backbone, conv1`},
		"no epochs":       {func(p *simclr.Pretraining) { p.Stages[2].Epochs = 0 }, "stages: epochs of stage 3: got 0, want"},
		"warm-up":         {func(p *simclr.Pretraining) { p.Stages[1].WarmUp = new(2) }, "stages: warm_up of stage 2: got 2 with epochs 2, want fewer"},
		"epochs":          {func(p *simclr.Pretraining) { p.Epochs = 3 }, "train.epochs: got 3 with stages of 7 epochs, want null"},
		"size":            {func(p *simclr.Pretraining) { p.Stages[0].Size = 5000 }, "stages: size of stage 1: got 5000, want a whole number from 1 to 4096"},
		"learning rate":   {func(p *simclr.Pretraining) { p.Stages[0].LR = -1 }, "stages: lr of stage 1: got -1, want"},
		"too many epochs": {func(p *simclr.Pretraining) { p.Stages[0].Epochs = 1<<31 - 2 }, "stages: epochs of stage 2: got 2, want at most"},
		"a line of cosines": {func(p *simclr.Pretraining) {
			p.Loss = cosine(op.InfoNC)
			p.Stages[1].Out = 1
		}, "stages: out of stage 2: got 1 with loss.metric cosine, want 2 or more"},
		"another width to begin with": {func(p *simclr.Pretraining) { p.From = net }, "network to begin with: got Network.Width 3, want 2"},
		"a wide output":               {func(p *simclr.Pretraining) { p.Stages[0].Out = 1 << 20 }, "stages: out of stage 1: got 1048576, want a whole number from 1 to 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			p := staged()
			tc.change(&p)
			n, _, err := p.Run(t.Context(), patches(16, 8), nil)
			if n != nil || !errors.Is(err, simclr.ErrOption) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
