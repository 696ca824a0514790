package configs

import (
	"testing"

	"cne/internal/text"
	"cne/model/op"
)

var losses = text.Enumerate(op.Neg.Words())

// badFiles are configuration files with the sentence that each must give.
var badFiles = []struct{ text, want string }{
	// Unknown, misplaced and repeated keys.
	{"sed: 1", `run.yaml:1: sed: unknown key; did you mean seed?`},
	{"Seed: 1", `run.yaml:1: Seed: unknown key; did you mean seed?`},
	{"trian: {epochs: 1}", `run.yaml:1: trian: unknown key; did you mean train?`},
	{"train:\n  lr: 1\n  batchsize: 2", `run.yaml:3: train.batchsize: unknown key; did you mean train.batch_size?`},
	{"batch_size: 2", `run.yaml:1: batch_size: unknown key; did you mean train.batch_size?`},
	{"loss: {epochs: 2}", `run.yaml:1: loss.epochs: unknown key; did you mean train.epochs (Passes over all edges)?`},
	{"data: {metric: cosine}", `run.yaml:1: data.metric: unknown key; did you mean graph.metric (Distance between points) or loss.metric (Similarity of two positions of the embedding)?`},
	{"graph: {metric: taxi}", `run.yaml:1: graph.metric: got "taxi", want euclidean, cosine, correlation, manhattan, hamming, jaccard, haversine or precomputed`},
	{"train.epochs: 2", `run.yaml:1: train.epochs: a key of the section train; write "train: {epochs: …}"`},
	{`"a\nb": 1`, `run.yaml:1: "a\nb": unknown key; "cne config" lists all keys`},
	{"colour: red", `run.yaml:1: colour: unknown key; "cne config" lists all keys`},
	{"train: {<<: {lr: 1}}", `run.yaml:1: train.<<: unknown key; "cne config" lists all keys`},
	{"seed: 1\n\nseed: 2", `run.yaml:3: seed: given twice, first in line 1`},
	{"train:\n  lr: 1\n  lr: 1", `run.yaml:3: train.lr: given twice, first in line 2`},
	{"train: {lr: 1}\ngraph: {}\ntrain: {epochs: 1}", `run.yaml:3: train: given twice, first in line 1`},

	// Files of the wrong form.
	{"train: 5", `run.yaml:1: train: got 5, want a section with keys such as train.epochs`},
	{"train: [5]", `run.yaml:1: train: got a list, want a section with keys such as train.epochs`},
	{"- 1\n- 2", `run.yaml:1: got a list, want keys and values, such as seed: 1`},
	{"hello", `run.yaml:1: got "hello", want keys and values, such as seed: 1`},
	{"seed: 1\n---\nseed: 2", `run.yaml: invalid YAML: got several documents, want one, without a line ---`},
	{"train:\n\tlr: 1", `run.yaml:2: invalid YAML: found character that cannot start any token`},
	{"seed: [1", `run.yaml:1: invalid YAML: did not find expected ',' or ']'`},
	{"seed: *x", `run.yaml: invalid YAML: unknown anchor 'x' referenced`},

	// Values of the wrong type or out of range.
	{"device: gpu", `run.yaml:1: device.name: got "gpu", want auto, cpu, cuda, or cuda:1 for the second GPU`},
	{"device: {name: 'cuda:-1'}", `run.yaml:1: device.name: got "cuda:-1", want auto, cpu, cuda, or cuda:1 for the second GPU`},
	{"device: 0", `run.yaml:1: device.name: got 0, want auto, cpu, cuda, or cuda:1 for the second GPU`},
	{"device: [cpu]", `run.yaml:1: device: got a list, want a section with keys such as device.name`},
	{"model: {dtype: float64}\ndevice: cuda", `run.yaml:1: model.dtype: got float64 with device.name cuda (run.yaml:2), want float32, or the device cpu`},
	{"device: {precision: bf16}", `run.yaml:1: device.precision: got bf16 with model.kind table (default), want tf32 or float32; bf16 is for cne simclr`},
	{"seed: 0x10", `run.yaml:1: seed: got 0x10, want a whole number of at least 0; write numbers in decimal digits`},
	{"model: {hidden: [5, 0b11]}", `run.yaml:1: model.hidden: item 2: got 0b11, want a list of whole numbers from 1 to 65536, such as [100, 100]; write numbers in decimal digits`},
	{"seed: -1", `run.yaml:1: seed: got -1, want a whole number of at least 0`},
	{"seed: 99999999999999999999", `run.yaml:1: seed: got 99999999999999999999, want at most 9223372036854775807`},
	{"seed: 9223372036854775808", `run.yaml:1: seed: got 9223372036854775808, want at most 9223372036854775807`},
	{"seed: -1e300", `run.yaml:1: seed: got -1e300, want a whole number of at least 0`},
	{"seed:", `run.yaml:1: seed: got null, want a whole number of at least 0`},
	{"train:\n  epochs: 1.5", `run.yaml:2: train.epochs: got 1.5, want a whole number of at least 1, or null`},
	{"train: {epochs: 0}", `run.yaml:1: train.epochs: got 0, want a whole number of at least 1, or null`},
	{"train: {epochs: true}", `run.yaml:1: train.epochs: got true, want a whole number of at least 1, or null`},
	{"train: {epochs: many}", `run.yaml:1: train.epochs: got "many", want a whole number of at least 1, or null`},
	{`train: {epochs: "5"}`, `run.yaml:1: train.epochs: got "5", want a whole number of at least 1, or null`},
	{"train: {epochs: [5]}", `run.yaml:1: train.epochs: got a list, want a whole number of at least 1, or null`},
	{"train: {epochs: 1e12}", `run.yaml:1: train.epochs: got 1e12, want at most 2147483647, or null`},
	{"train: {batch_size: 1}", `run.yaml:1: train.batch_size: got 1, want a whole number of at least 2`},
	{"train: {lr: 0}", `run.yaml:1: train.lr: got 0, want a number above 0, or null`},
	{"train: {lr: .nan}", `run.yaml:1: train.lr: got .nan, want a number above 0, or null`},
	{"train: {lr: .inf}", `run.yaml:1: train.lr: got .inf, want a number above 0, or null`},
	{"train: {lr: {a: 1}}", `run.yaml:1: train.lr: got a mapping, want a number above 0, or null`},
	{"train: {lr_z: -1}", `run.yaml:1: train.lr_z: got -1, want a number of at least 0`},
	{"loss: {clamp: 1}", `run.yaml:1: loss.clamp: got 1, want a number of at least 0 and below 1`},
	{"plot: {width_cm: 10}", `run.yaml:1: plot: unknown key; did you mean output.plot?`},
	{"output: {csv: 1}", `run.yaml:1: output.csv: got 1, want true or false`},
	{"output: {csv: yes}", `run.yaml:1: output.csv: got "yes", want true or false`},
	{"output: {dir: true}", `run.yaml:1: output.dir: got true, want text that is not empty; quote it: "true"`},
	{"output: {dir: ''}", `run.yaml:1: output.dir: got "", want text that is not empty`},
	{"output: {dir: null}", `run.yaml:1: output.dir: got null, want text that is not empty`},
	{"data: {path: []}", `run.yaml:1: data.path: got an empty list, want a path or a list of at least one path`},
	{"data:\n  path:\n    - a\n    - no\n    - false", `run.yaml:5: data.path: item 3: got false, want a path or a list of paths; quote it: "false"`},
	{"data: {label_column: []}", `run.yaml:1: data.label_column: got an empty list, want the name of a column, or its number (1 is the first, -1 the last), or null`},
	{"data: {na: [~, -1]}", `run.yaml:1: data.na: item 1: got null, want a word or a number, or a list of them`},
	{"data: {drop: [id, true]}", `run.yaml:1: data.drop: item 2: got true, want the name or number of a column, or a list of them; quote it: "true"`},
	{"data: {header: true}", `run.yaml:1: data.header: got true, want auto, yes or no`},
	{"loss: {s: fast}", `run.yaml:1: loss.s: got "fast", want a number, or null`},
	{"loss: {negatives: 0}", `run.yaml:1: loss.negatives: got 0, want a whole number of at least 1, or full, or all`},
	{"loss: {negatives: every}", `run.yaml:1: loss.negatives: got "every", want a whole number of at least 1, or full, or all`},
	{"loss: {negatives: all}", `run.yaml:1: loss.negatives: got all with loss.name neg (default), want full, or the loss infonc`},
	{"{loss: {name: infonc, negatives: all}, model: {dim: 3}}", `run.yaml:1: loss.negatives: got all, want full, or float32 positions without a network in two dimensions`},
	{"loss: {z_bar: 0}", `run.yaml:1: loss.z_bar: got 0, want a number above 0, or uniform, or null`},
	{"loss: {name: umpa}", `run.yaml:1: loss.name: got "umpa", want ` + losses + `; did you mean umap?`},
	{"loss: {name: infonca}", `run.yaml:1: loss.name: got "infonca", want ` + losses + `; did you mean infonc?`},
	{"loss: {name: largevis}", `run.yaml:1: loss.name: got "largevis", want ` + losses},
	{"loss: {metric: euclidian}", `run.yaml:1: loss.metric: got "euclidian", want euclidean or cosine; did you mean euclidean?`},
	{"model: {kind: resnet18}", `run.yaml:1: model.kind: got "resnet18", want table, network or mlp`},

	// Phases.
	{"model: {hidden: 0}", `run.yaml:1: model.hidden: got 0, want a list of whole numbers from 1 to 65536, such as [100, 100]`},
	{"model:\n  hidden:\n    - 5\n    - x", `run.yaml:4: model.hidden: item 2: got "x", want a list of whole numbers from 1 to 65536, such as [100, 100]`},
	{"data: {genes: 0}", `run.yaml:1: data.genes: got 0, want a whole number of at least 1`},
	{"data: {imbalance: exponential}", `run.yaml:1: data.imbalance: got "exponential", want linear, or null`},
	{"graph: {weighted_sampling: umap}", `run.yaml:1: graph.weighted_sampling: got "umap", want true or false`},
	{"graph: {cache: 1}", `run.yaml:1: graph.cache: got 1, want true, false or a folder; a folder of that name is ./1`},
	{"graph: {cache: yes}", `run.yaml:1: graph.cache: got "yes", want true, false or a folder; a folder of that name is ./yes`},
	{"graph: {cache: [a]}", `run.yaml:1: graph.cache: got a list, want true, false or a folder`},
	{"data: {holdout: 1}", `run.yaml:1: data.holdout: got 1, want a share between 0 and 1, a path or a list of paths, or null`},
	{"data: {holdout: []}", `run.yaml:1: data.holdout: got an empty list, want a path or a list of at least one path, or null`},
	{"data: {sample: 1.5}", `run.yaml:1: data.sample: got 1.5, want a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows, or null`},
	{"data: {sample: 0}", `run.yaml:1: data.sample: got 0, want a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows, or null`},
	{"data: {sample: -5}", `run.yaml:1: data.sample: got -5, want a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows, or null`},
	{"data: {sample: [1, 2]}", `run.yaml:1: data.sample: got a list, want a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows, or null`},
	{"train: {phases: 5}", `run.yaml:1: train.phases: got 5, want a list of phases, such as [{epochs: 5}]`},
	{"train: {phases: {epochs: 5}}", `run.yaml:1: train.phases: got a mapping, want a list of phases, such as [{epochs: 5}]`},
	{"train: {phases: [5]}", `run.yaml:1: train.phases: phase 1: got 5, want a mapping with the keys epochs, lr, s, z_bar, negatives, anneal, warm_up, log_z or pull`},
	{"train:\n  phases:\n    - {epochs: 5}\n    - {lr: 1}", `run.yaml:2: train.phases: epochs of phase 2: got 0, want 1 or more`},
	{"train:\n  phases:\n    - epochs: 5\n      lrate: 2", `run.yaml:4: train.phases: phase 1: got the unknown key "lrate", want epochs, lr, s, z_bar, negatives, anneal, warm_up, log_z or pull`},
	{"train:\n  phases:\n    - epochs: 5\n      epochs: 2", `run.yaml:4: train.phases: epochs of phase 1: given twice`},
	{"train:\n  phases:\n    - epochs: 5\n      lr: fast", `run.yaml:4: train.phases: lr of phase 1: got "fast", want a number above 0, or null`},
	{"loss: {name: nc}\ntrain: {phases: [{epochs: 1, log_z: 61}]}", `run.yaml:2: train.phases: log_z of phase 1: got 61, want a number from -60 to 60, or null`},
	{"train: {phases: [{epochs: 1, s: 0, z_bar: 1}]}", `run.yaml:1: train.phases: z_bar of phase 1: got 1 with s 0, want one of them`},

	// Values that do not go together.
	{"loss:\n  name: umap\n  s: 0.5", `run.yaml:3: loss.s: got 0.5 with loss.name umap (run.yaml:2), want a loss with a spectrum: neg and infonc`},
	{"loss: {name: nc, s: 0}", `run.yaml:1: loss.s: got 0 with loss.name nc, want a loss with a spectrum: neg and infonc`},
	{"loss: {name: infonc, z_bar: uniform}", `run.yaml:1: loss.z_bar: got uniform with loss.name infonc, want the loss neg`},
	{"loss: {s: 0, z_bar: 5}", `run.yaml:1: loss.z_bar: got 5 with loss.s 0, want one of them`},
	{"loss: {name: infonc, metric: cosine}\nmodel: {dim: 1}", `run.yaml:2: model.dim: got 1 with loss.metric cosine (run.yaml:1), want 2 or more`},
	{"loss: {name: umap, metric: cosine}", `run.yaml:1: loss.metric: got cosine with loss.name umap, want euclidean`},
	{"loss: {learn_z: false}", `run.yaml:1: loss.learn_z: got false with loss.name neg (default), want true`},
	{"loss: {log_z: 1}", `run.yaml:1: loss.log_z: got 1 with loss.name neg (default), want 0`},
	{"train: {early_exaggeration: true}", `run.yaml:1: train.early_exaggeration: got true with loss.s null (default), want a number there, such as 0`},
	{"loss: {name: nc}\ntrain: {early_exaggeration: true}", `run.yaml:2: train.early_exaggeration: got true with loss.name nc (run.yaml:1), want false`},
	{"loss: {s: 0}\ntrain: {early_exaggeration: true, phases: [{epochs: 1}]}", `run.yaml:2: train.early_exaggeration: got true with train.phases of 1 epochs, want false, or the exaggeration as a phase`},
	{"train: {momentum: 0.9, optimizer: adam}", `run.yaml:1: train.momentum: got 0.9 with train.optimizer adam, want 0`},
	{"model: {kind: mlp}\ntrain: {momentum: 0.9}", `run.yaml:2: train.momentum: got 0.9 with train.optimizer adam (default), want 0`},
	{"train: {epochs: 5, warm_up: 5}", `run.yaml:1: train.warm_up: got 5 with train.epochs 5, want fewer`},
	{"train: {warm_up: 2, phases: [{epochs: 5}, {epochs: 2}]}", `run.yaml:1: train.phases: warm_up of phase 2: got 2 with epochs 2, want fewer`},
	{"model: {kind: mlp, input: pca}\ngraph: {pca: 0}", `run.yaml:1: model.input: got pca with graph.pca 0 (run.yaml:2), want points, or a number of components`},
	{"model: {input: pca}", `run.yaml:1: model.input: got pca with model.kind table (default), want points`},
	{"data: {holdout_labels: l.txt}", `run.yaml:1: data.holdout_labels: got [l.txt] with data.holdout null (default), want [], or paths of held-out points there`},
	{"graph: {search: approximate, file: g.npz}", `run.yaml:1: graph.search: got approximate with graph.file g.npz, want auto`},
	{"train: {epochs: 1, phases: [{epochs: 1}, {epochs: 2}]}", `run.yaml:1: train.epochs: got 1 with train.phases of 3 epochs, want null, or more than all phases but the last have`},
	{"loss: {name: umap}\ntrain: {phases: [{epochs: 1}, {epochs: 1, s: 1}]}", `run.yaml:2: train.phases: s of phase 2: got 1 with loss.name umap (run.yaml:1), want a loss with a spectrum: neg and infonc`},
	{"loss: {name: infonc}\ntrain: {phases: [{epochs: 1, z_bar: 1}]}", `run.yaml:2: train.phases: z_bar of phase 1: got 1 with loss.name infonc (run.yaml:1), want the loss neg`},
	{"train: {phases: [{epochs: 1}, {epochs: 1, log_z: 0}]}", `run.yaml:1: train.phases: log_z of phase 2: got 0 with loss.name neg (default), want the loss nc`},
}

func TestBadFiles(t *testing.T) {
	for _, tc := range badFiles {
		_, _, err := loadText(t, tc.text)
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

// badSettings are values of --set with the sentence that each must give.
var badSettings = []struct{ key, value, want string }{
	{"train.epochs", "many", `--set train.epochs: train.epochs: got "many", want a whole number of at least 1, or null`},
	{"train.epochs", "", `--set train.epochs: train.epochs: got "", want a whole number of at least 1, or null`},
	{"train.phases", " ", `--set train.phases: train.phases: got " ", want a list of phases, such as [{epochs: 5}]`},
	{"data.imbalance", "linaer", `--set data.imbalance: data.imbalance: got "linaer", want linear, or null; did you mean linear?`},
	{"data.label_column", "", `--set data.label_column: data.label_column: got "", want the name of a column, or its number (1 is the first, -1 the last), or null`},
	{"graph.file", "", `--set graph.file: graph.file: got "", want text that is not empty, or null`},
	{"train.batch_size", "", `--set train.batch_size: train.batch_size: got "", want a whole number of at least 2`},
	{"train.batch_size", "null", `--set train.batch_size: train.batch_size: got null, want a whole number of at least 2`},
	{"output.dir", "\xcd", `--set output.dir: output.dir: got "\xcd", want text in UTF-8`},
	{"train.epochs", "[", `--set train.epochs: train.epochs: got "[", want valid YAML`},
	{"train.epoch", "5", `--set train.epoch: train.epoch: unknown key; did you mean train.epochs?`},
	{"train", "{epochs: 5}", `--set train: train: got a section, want one of its keys, such as train.epochs`},
	{"data.path", "", `--set data.path: data.path: got an empty list, want a path or a list of at least one path`},
	{"data.path", "[a, [b]]", `--set data.path: data.path: item 2: got a list, want a path or a list of paths`},
	{"loss.metric", "cosin", `--set loss.metric: loss.metric: got "cosin", want euclidean or cosine; did you mean cosine?`},
	{"train.phases", "[{epochs: 0}]", `--set train.phases: train.phases: epochs of phase 1: got 0, want a whole number of at least 1`},
}

func TestBadSettings(t *testing.T) {
	for _, tc := range badSettings {
		_, err := loadSetting(t, tc.key, tc.value)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s=%s:\n got %v\nwant %s", tc.key, tc.value, err, tc.want)
		}
	}
}

func TestBadVariables(t *testing.T) {
	for _, tc := range []struct{ variable, want string }{
		{"CNE_TRAIN_EPOCH=5", `CNE_TRAIN_EPOCH: unknown variable; did you mean CNE_TRAIN_EPOCHS?`},
		{"CNE_EPOCHS=5", `CNE_EPOCHS: unknown variable; "cne config" lists all keys`},
		{"CNE_TRAIN_EPOCHS=x", `CNE_TRAIN_EPOCHS: train.epochs: got "x", want a whole number of at least 1, or null`},
		{"CNE_LOSS_S=0", `CNE_LOSS_S: loss.s: got 0 with loss.name umap (run.yaml:1), want a loss with a spectrum: neg and infonc`},
	} {
		t.Chdir(t.TempDir())
		writeTestFile(t, "run.yaml", "loss: {name: umap}")
		_, _, err := Train.Load(&Sources{File: "run.yaml", Environ: []string{tc.variable}})
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s:\n got %v\nwant %s", tc.variable, err, tc.want)
		}
	}
}
