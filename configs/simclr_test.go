package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cne/data/images"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

func mustLoadSimCLR(t testing.TB, text string, settings ...Setting) *SimCLR {
	t.Helper()
	return loaded(loadTextAs(t, Pretrain, text, settings...))(t)
}

func TestSimCLRKeysAgree(t *testing.T) {
	inFile, bare := commentedKeys(t, simclrDefaults)
	if want := names(Pretrain.keys); !slices.Equal(inFile, want) || len(bare) > 0 {
		t.Errorf("simclr-default.yaml has the keys\n%q, SimCLR\n%q; without a comment are %q", inFile, want, bare)
	}
}

// The defaults are the paper's run.
func TestSimCLRDefaults(t *testing.T) {
	c, origins, err := Pretrain.Load(&Sources{})
	must(t, err)
	for _, k := range names(Pretrain.keys) {
		if origins[k] != defaultOrigin {
			t.Errorf("the origin of %s is %q", k, origins[k])
		}
	}
	got, want := c.Pretraining(), simclr.PaperPretraining()
	want.Network.Width, want.Network.Hidden, want.Network.Out = 64, 1024, 128
	want.Stages = []simclr.Stage{}
	want.Loss.Clamp, want.LRZ = 1e-10, new(0.001) // of no consequence with cosine, and without log Z
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if c.SimCLR.PretrainOn != "auto" || c.Evaluate.Split != "" || c.Evaluate.TestOf(60000) != 10000 || !slices.Equal(c.Evaluate.Seeds, []uint64{0, 1, 2}) || c.Evaluate.K != 15 {
		t.Errorf("%+v", c)
	}
}

func TestSimCLRDefaultsByOthers(t *testing.T) {
	c := mustLoadSimCLR(t, "network: {width: 8}\ntrain: {batch_size: 128}\nsimclr: {pretrain_on: train}")
	if c.Pretrain.Network.Hidden != 128 || c.Pretrain.Network.Out != 16 || c.Pretrain.LR != 0.015 || c.Evaluate.Split != "official" {
		t.Errorf("%+v", c)
	}
	if lr := mustLoadSimCLR(t, "train: {batch_size: 1024, optimizer: muon}").Pretrain.LR; lr != 0.03 { // relative, so of no batch
		t.Errorf("with muon the learning rate is %g", lr)
	}
	c = mustLoadSimCLR(t, "network: {width: 8, hidden: 5, out: 6}\ntrain: {lr: 0.25}\nsimclr: {pretrain_on: train}\nevaluate: {split: stratified}")
	if c.Pretrain.Network.Hidden != 5 || c.Pretrain.Network.Out != 6 || c.Pretrain.LR != 0.25 || c.Evaluate.Split != "stratified" {
		t.Errorf("%+v", c)
	}
}

// With a published split, a network learns from its training images and is evaluated with
// its test images. The paper's protocol has to be asked for.
func TestPublishedSplit(t *testing.T) {
	published := &images.Set{Name: "some", N: 3, Train: []bool{true, true, false}}
	onlyTrain := &images.Set{Name: "some", N: 3, Train: []bool{true, true, true}}
	without := &images.Set{Name: "some", N: 3}
	for _, tc := range []struct {
		text      string
		set       *images.Set
		on, split string
		rows      int
	}{
		{"{}", published, "train", "official", 2},
		{"{}", onlyTrain, "all", "stratified", 3},
		{"{}", without, "all", "stratified", 3},
		{"simclr: {pretrain_on: all}", published, "all", "stratified", 3},
		{"simclr: {pretrain_on: train}", published, "train", "official", 2},
		{"evaluate: {split: random}", published, "train", "random", 2},
		{"evaluate: {split: official}\nsimclr: {pretrain_on: all}", published, "all", "official", 3},
	} {
		c := mustLoadSimCLR(t, tc.text)
		tc.set.H, tc.set.W = 4, 4
		rows, err := c.SimCLR.Rows(tc.set)
		if on, split := c.SimCLR.On(tc.set), c.Evaluation(tc.set).Split; err != nil || on != tc.on || split != tc.split || len(rows) != tc.rows {
			t.Errorf("%q: learns from %s (%d, %v), evaluated with %s; want %+v", tc.text, on, len(rows), err, split, tc)
		}
	}
}

// A default warm-up lasts at most a quarter of the training; one that is given is kept.
func TestWarmUpOfShortTraining(t *testing.T) {
	for text, want := range map[string]int{"{}": 5, "train: {epochs: 20}": 5, "train: {epochs: 19}": 4, "train: {epochs: 1}": 0, "train: {epochs: 9, warm_up: 5}": 5} {
		if c := mustLoadSimCLR(t, text); c.Pretrain.WarmUp != want {
			t.Errorf("%s: warm-up of %d epochs, want %d", text, c.Pretrain.WarmUp, want)
		}
	}
}

func TestSimCLRPretrainingOptions(t *testing.T) {
	p := mustLoadSimCLR(t, `
views: {size: 24, min_scale: 0.1, max_scale: 0.9, flip: 0, jitter: 1, brightness: 0.1, contrast: 0.2, saturation: 0.3, hue: 0.05, grey: 0.4}
loss: {name: neg, metric: euclidean, s: 0.5, negatives: full, sampling: runs, scale: 3}
train: {epochs: 7, batch_size: 12, lr: 2, momentum: 0, weight_decay: 0.1, anneal: none, warm_up: 2, clip: 0}
seed: 9`).Pretraining()
	a := simclr.Augmentation{Size: 24, MinScale: 0.1, MaxScale: 0.9, MinRatio: 3. / 4, MaxRatio: 4. / 3, Jitter: 1, Brightness: 0.1, Contrast: 0.2,
		Saturation: 0.3, Hue: 0.05, Gray: 0.4, Mean: simclr.Paper().Mean, Std: simclr.Paper().Std}
	if p.Augmentation != a {
		t.Errorf("augmentation %+v, want %+v", p.Augmentation, a)
	}
	if p.Epochs != 7 || p.BatchSize != 12 || p.LR != 2 || p.Momentum != 0 || p.WeightDecay != 0.1 || p.Schedule != train.Constant ||
		p.WarmUp != 2 || p.Clip != 0 || p.Negatives != train.Full || p.Sampling != train.SampleSharedRuns || !p.Loss.Mean || p.Loss.Scale != 3 || p.Seed != 9 ||
		*p.Spectrum.S != 0.5 {
		t.Errorf("%+v", p)
	}
}

func TestSimCLRFiles(t *testing.T) {
	paths, err := filepath.Glob("*sim*-*.yaml")
	if err != nil || len(paths) != 5 {
		t.Fatalf("found %q, error %v", paths, err)
	}
	dirs := map[string]string{}
	for _, path := range paths {
		c := loaded(Pretrain.Load(&Sources{File: path}))(t)
		text := need(os.ReadFile(path))(t)
		if _, bare := commentedKeys(t, string(text)); len(bare) > 0 {
			t.Errorf("%s: keys without a comment: %q", path, bare)
		}
		if other, twice := dirs[c.Output.Dir]; twice {
			t.Errorf("%s and %s have the same output.dir", path, other)
		}
		dirs[c.Output.Dir] = path
		if path == "tsimcne-cifar10.yaml" {
			want := mustLoadSimCLR(t, "simclr: {method: tsimcne}").Pretraining()
			got := c.Pretraining()
			got.Stages[2].Out = 2    // which the file leaves out, since it is inherited
			want.WarmUp = got.WarmUp // each stage of the file has its own
			if !reflect.DeepEqual(got, want) {
				t.Errorf("not what the method stands for: %+v, want %+v", got, want)
			}
		}
		if filepath.Base(path) == "simclr-cifar10.yaml" {
			want := mustLoadSimCLR(t, "").Pretraining()
			if got := c.Pretraining(); !reflect.DeepEqual(got, want) {
				t.Errorf("not the paper's Settings: %+v", got)
			}
		}
	}
}

func TestSimCLRYAMLRoundTrip(t *testing.T) {
	for name, text := range map[string]string{
		"defaults": "",
		"lists":    "evaluate: {seeds: [3, 010, 1e3]}",
		"a seed":   "evaluate: {seeds: 4, split: official}",
		"loss":     "loss: {name: nc, negatives: full, log_z: -3.25}\ntrain: {lr_z: 0}",
		"stages":   "stages: [{epochs: 9}, {epochs: 3, lr: 1e-3, warm_up: 0, out: 2, freeze: [backbone, fc1]}]\nmodel: {from: x}\ndata: {skip_broken: true}",
		"t-SimCNE": "simclr: {method: tsimcne}\ntrain: {epochs: 30, batch_size: 512}",
		"folder":   "data: {path: [a, b.npz], labels: l.txt, size: 48}\nmonitor: {every: 0}\nlog: {format: json}",
	} {
		t.Run(name, func(t *testing.T) {
			c := mustLoadSimCLR(t, text)
			if again := mustLoadSimCLR(t, writeYAMLAs(t, Pretrain, c)); !reflect.DeepEqual(c, again) {
				t.Errorf("got\n%+v, want\n%+v", again, c)
			}
		})
	}
}

func TestSimCLRDefaultFolder(t *testing.T) {
	for path, want := range map[string]string{
		"data/cifar-10-binary.tar.gz": "runs/simclr-cifar-10-binary",
		"photos/":                     "runs/simclr-photos",
		"x.npz":                       "runs/simclr-x",
	} {
		if c := mustLoadSimCLR(t, "", Setting{"--set", "data.path", path}); c.Output.Dir != want {
			t.Errorf("%s: folder %s, want %s", path, c.Output.Dir, want)
		}
	}
}

// t-SimCNE is the paper's program unless something else is asked for.
func TestTSimCNEPreset(t *testing.T) {
	all := mustLoadSimCLR(t, "simclr: {method: tsimcne}").Pretraining()
	if want := simclr.TSimCNE(1500, 0.12, false); !reflect.DeepEqual(all.Stages, want) {
		t.Errorf("stages %+v, want %+v", all.Stages, want)
	}
	if l := all.Loss; l.Loss != op.InfoNC || l.Metric != op.Euclidean || l.Scale != 1 || !l.Mean || all.Negatives != train.Full {
		t.Errorf("loss %+v with %d negatives", l, all.Negatives)
	}
	short := simclr.TSimCNE(1500, 0.12, false)
	short[0].WarmUp, short[2].WarmUp = new(3), new(3)
	for text, want := range map[string][]simclr.Stage{
		"simclr: {method: tsimcne}\ntrain: {warm_up: 3}":                   short,
		"simclr: {method: tsimcne}\ntrain: {epochs: 30, batch_size: 512}":  simclr.TSimCNE(30, 0.06, false),
		"simclr: {method: tsimcne}\nmodel: {from: x}":                      simclr.TSimCNE(500, 0.12, true),
		"simclr: {method: tsimcne}\nstages: [{epochs: 9, out: 3}]":         {{Epochs: 9, Out: 3, WarmUp: new(2)}},
		"stages: [{epochs: 9, freeze: backbone}, {epochs: 7, warm_up: 0}]": {{Epochs: 9, WarmUp: new(2), Freeze: []string{"backbone"}}, {Epochs: 7, WarmUp: new(0)}},
		"simclr: {method: tsimcne}\nloss: {negatives: 5, name: umap}\n":    simclr.TSimCNE(1500, 0.12, false),
	} {
		c := mustLoadSimCLR(t, text)
		if got := c.Pretraining().Stages; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: stages %+v, want %+v", text, got, want)
		}
		if c.Pretrain.Epochs != simclr.TotalEpochs(c.Pretrain.Stages) {
			t.Errorf("%q: %d epochs in all", text, c.Pretrain.Epochs)
		}
	}
	c := mustLoadSimCLR(t, "simclr: {method: tsimcne}\nloss: {negatives: 5, scale: 2}")
	if c.Pretrain.Negatives != 5 || c.Pretrain.Loss.Scale != 2 || !c.Embeds() || c.Out() != 2 {
		t.Errorf("what is given does not count: %+v", c.Pretrain.Loss)
	}
	if mustLoadSimCLR(t, "").Embeds() || mustLoadSimCLR(t, "stages: [{epochs: 9, out: 2}]").Embeds() {
		t.Error("runs of cosines embed")
	}
}

// badSimCLRFiles are configuration files with the sentence that each must give.
var badSimCLRFiles = []struct{ text, want string }{
	{"graph: {k: 15}", `run.yaml:1: graph: a key of "cne train", not of "cne simclr pretrain"`},
	{"loss: {metrik: cosine}", `run.yaml:1: loss.metrik: unknown key; did you mean loss.metric?`},
	{"colour: red", `run.yaml:1: colour: unknown key; "cne simclr config" lists all keys`},
	{"train: {optimizer: adam}", `run.yaml:1: train.optimizer: got "adam", want sgd or muon`},
	{"data: {path: []}", `run.yaml:1: data.path: got an empty list, want a path or a list of at least one path`},
	{"data: {size: 5000}", `run.yaml:1: data.size: got 5000, want 0 or a whole number from 1 to 4096`},
	{"simclr: {pretrain_on: test}", `run.yaml:1: simclr.pretrain_on: got "test", want auto, all or train`},
	{"views: {size: 0}", `run.yaml:1: views.size: got 0, want a whole number from 1 to 4096`},
	{"views: {size: 5000}", `run.yaml:1: views.size: got 5000, want a whole number from 1 to 4096`},
	{"views: {min_scale: 0}", `run.yaml:1: views.min_scale: got 0, want a number above 0 and at most 1`},
	{"views: {flip: 1.5}", `run.yaml:1: views.flip: got 1.5, want a number from 0 to 1`},
	{"views: {hue: 0.6}", `run.yaml:1: views.hue: got 0.6, want a number from 0 to 0.5`},
	{"network: {width: 0}", `run.yaml:1: network.width: got 0, want a whole number from 1 to 4096`},
	{"network: {out: 0}", `run.yaml:1: network.out: got 0, want a whole number from 1 to 65536, or null`},
	{"loss: {negatives: 0}", `run.yaml:1: loss.negatives: got 0, want a whole number of at least 1, or full`},
	{"loss: {temperature: -1}", `run.yaml:1: loss.temperature: got -1, want a number from 0.01 to 1e6`},
	{"train: {epochs: 0}", `run.yaml:1: train.epochs: got 0, want a whole number of at least 1, or null`},
	{"simclr: {method: umap}", `run.yaml:1: simclr.method: got "umap", want simclr or tsimcne`},
	{"data: {skip_broken: maybe}", `run.yaml:1: data.skip_broken: got "maybe", want true or false`},
	{"model: {from: ''}", `run.yaml:1: model.from: got "", want text that is not empty, or null`},
	{"stages: 3", `run.yaml:1: stages: got 3, want a list of stages, such as [{epochs: 5}]`},
	{"stages: [5]", `run.yaml:1: stages: stage 1: got 5, want a mapping with the keys epochs, lr, warm_up, out, size or freeze`},
	{"stages: [{out: 2}]", `run.yaml:1: stages: epochs of stage 1: got 0, want 1 or more`},
	{"stages: [{epochs: 8}, {epochs: 8, rate: 2}]", `run.yaml:1: stages: stage 2: got the unknown key "rate", want epochs, lr, warm_up, out, size or freeze`},
	{"stages: [{epochs: 0}]", `run.yaml:1: stages: epochs of stage 1: got 0, want a whole number of at least 1`},
	{"stages: [{epochs: 2, warm_up: 2}]", `run.yaml:1: stages: warm_up of stage 1: got 2 with epochs 2, want fewer`},
	{"stages: [{epochs: 2, lr: 0}]", `run.yaml:1: stages: lr of stage 1: got 0, want a number above 0, or null`},
	{"stages: [{epochs: 2, out: 0}]", `run.yaml:1: stages: out of stage 1: got 0, want a whole number from 1 to 65536, or null`},
	{"stages: [{epochs: 2, freeze: [fc3]}]", `run.yaml:1: stages: item 1 of freeze of stage 1: got "fc3", want backbone, conv1, bn1, layer1, layer2, layer3, layer4, fc1 or fc2, or a list of them`},
	{"stages:\n  - epochs: 9\n  - epochs: 9\n    freeze: [backbone, fc1, fc2]", `run.yaml:1: stages: freeze of stage 2: got the whole network, want fc2 or another part to be learnt`},
	{"train: {warm_up: 5}\nstages: [{epochs: 5}]", `run.yaml:2: stages: warm_up of stage 1: got 5 with epochs 5, want fewer`},
	{"stages: [{epochs: 9}, {epochs: 9, out: 1}]", `run.yaml:1: stages: out of stage 2: got 1 with loss.metric cosine (default), want 2 or more`},
	{"stages: [{epochs: 9}]\ntrain: {epochs: 10}", `run.yaml:2: train.epochs: got 10 with stages of 9 epochs (run.yaml:1), want null`},
	{"simclr: {method: tsimcne}\nloss: {metric: cosine}", `run.yaml:2: loss.metric: got cosine with simclr.method tsimcne (run.yaml:1), want euclidean`},
	{"simclr: {method: tsimcne}\ntrain: {epochs: 2}", `run.yaml:2: train.epochs: got 2 with simclr.method tsimcne (run.yaml:1), want at least 3, one for each stage`},
	{"train: {batch_size: 1}", `run.yaml:1: train.batch_size: got 1, want a whole number of at least 2`},
	{"train: {lr: fast}", `run.yaml:1: train.lr: got "fast", want a number above 0, or null`},
	{"monitor: {every: -1}", `run.yaml:1: monitor.every: got -1, want a whole number of at least 0`},
	{"evaluate: {seeds: []}", `run.yaml:1: evaluate.seeds: got an empty list, want a whole number of at least 0 or a list of them, such as [0, 1, 2]`},
	{"evaluate: {seeds: [0, -1]}", `run.yaml:1: evaluate.seeds: item 2: got -1, want a whole number of at least 0 or a list of them, such as [0, 1, 2]`},
	{"evaluate: {seeds: [1, 2, 1]}", `run.yaml:1: evaluate.seeds: item 3: got 1 twice, want each seed once`},
	{"evaluate: {split: even}", `run.yaml:1: evaluate.split: got "even", want official, stratified or random, or null`},

	{"loss: {name: umap}", `run.yaml:1: loss.metric: got cosine (default) with loss.name umap, want euclidean`},
	{"loss: {z_bar: 5}", `run.yaml:1: loss.z_bar: got 5 with loss.name infonc (default), want the loss neg`},
	{"device: {precision: fp8}", `run.yaml:1: device.precision: got "fp8", want float32, tf32 or bf16`},
	{"network: {out: 1}", `run.yaml:1: network.out: got 1 with loss.metric cosine (default), want 2 or more`},
	{"views: {min_scale: 0.5, max_scale: 0.4}", `run.yaml:1: views.min_scale: got 0.5 with views.max_scale 0.4, want a number above 0 that is not larger`},
	{"train: {epochs: 5, warm_up: 5}", `run.yaml:1: train.warm_up: got 5 with train.epochs 5, want fewer`},
}

func TestBadSimCLRFiles(t *testing.T) {
	for _, tc := range badSimCLRFiles {
		_, _, err := loadTextAs(t, Pretrain, tc.text)
		if err == nil {
			t.Errorf("%q: accepted", tc.text)
			continue
		}
		checkSentence(t, err)
		if err.Error() != tc.want {
			t.Errorf("%q:\n got %s\nwant %s", tc.text, err, tc.want)
		}
	}
}

// The variable of a key that another command has is not a mistake.
func TestVariablesOfOtherCommands(t *testing.T) {
	c, _, err := Pretrain.Load(&Sources{Environ: []string{"CNE_GRAPH_K=3", "CNE_TRAIN_EPOCHS=30"}})
	if err != nil || c.Pretrain.Epochs != 30 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, _, err := Train.Load(&Sources{Environ: []string{"CNE_VIEWS_SIZE=many"}}); err != nil {
		t.Error(err)
	}
	const want = `CNE_VIEWS_SIZ: unknown variable; did you mean CNE_VIEWS_SIZE?`
	if _, _, err := Pretrain.Load(&Sources{Environ: []string{"CNE_VIEWS_SIZ=3"}}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzSimCLRFile(f *testing.F) {
	for _, tc := range badSimCLRFiles {
		f.Add(tc.text)
	}
	f.Add(strings.ReplaceAll(simclrDefaults, "null", "3"))
	f.Fuzz(func(t *testing.T, text string) {
		c, _, err := loadTextAs(t, Pretrain, text)
		if err != nil {
			checkSentence(t, err)
			return
		}
		if again := mustLoadSimCLR(t, writeYAMLAs(t, Pretrain, c)); !reflect.DeepEqual(c, again) {
			t.Errorf("got\n%+v, want\n%+v", again, c)
		}
	})
}
