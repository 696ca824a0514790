package configs

import (
	"testing"
)

// badFiles are configuration files with the sentence that each must give.
var badFiles = []struct{ text, want string }{
	// Unknown, misplaced and repeated keys.
	{"sed: 1", `run.yaml:1: sed is not a key; did you mean seed?`},
	{"Seed: 1", `run.yaml:1: Seed is not a key; did you mean seed?`},
	{"trian: {epochs: 1}", `run.yaml:1: trian is not a key; did you mean train?`},
	{"train:\n  lr: 1\n  batchsize: 2", `run.yaml:3: train.batchsize is not a key; did you mean train.batch_size?`},
	{"batch_size: 2", `run.yaml:1: batch_size is not a key; did you mean train.batch_size?`},
	{"loss: {epochs: 2}", `run.yaml:1: loss.epochs is not a key; did you mean train.epochs (Passes over all edges) or checkpoint.epochs (Save the state of the run every this many epochs)?`},
	{"data: {metric: cosine}", `run.yaml:1: data.metric is not a key; did you mean graph.metric (Distance between points) or loss.metric (Similarity of two positions of the embedding)?`},
	{"graph: {metric: manhattan}", `run.yaml:1: graph.metric is "manhattan", but must be euclidean, cosine or correlation`},
	{"train.epochs: 2", `run.yaml:1: train.epochs is a key of the section train; write "train: {epochs: …}"`},
	{`"a\nb": 1`, `run.yaml:1: "a\nb" is not a key; "cne config" lists all keys`},
	{"colour: red", `run.yaml:1: colour is not a key; "cne config" lists all keys`},
	{"train: {<<: {lr: 1}}", `run.yaml:1: train.<< is not a key; "cne config" lists all keys`},
	{"seed: 1\n\nseed: 2", `run.yaml:3: seed is given twice, first in line 1; keep one of them`},
	{"train:\n  lr: 1\n  lr: 1", `run.yaml:3: train.lr is given twice, first in line 2; keep one of them`},
	{"train: {lr: 1}\ngraph: {}\ntrain: {epochs: 1}", `run.yaml:3: train is given twice, first in line 1; keep one of them`},

	// Files of the wrong form.
	{"train: 5", `run.yaml:1: train is 5, but must be a section with keys such as train.epochs`},
	{"train: [5]", `run.yaml:1: train is a list, but must be a section with keys such as train.epochs`},
	{"- 1\n- 2", `run.yaml:1: the file must hold keys and values, such as seed: 1, but holds a list`},
	{"hello", `run.yaml:1: the file must hold keys and values, such as seed: 1, but holds "hello"`},
	{"seed: 1\n---\nseed: 2", `run.yaml: the file holds more than one YAML document; keep one, without a line ---`},
	{"train:\n\tlr: 1", `run.yaml:2: this is not valid YAML: found character that cannot start any token`},
	{"seed: [1", `run.yaml:1: this is not valid YAML: did not find expected ',' or ']'`},
	{"seed: *x", `run.yaml: this is not valid YAML: unknown anchor 'x' referenced`},

	// Values of the wrong type or out of range.
	{"device: gpu", `run.yaml:1: device.name is "gpu", but must be auto, cpu, cuda, or cuda:1 for the second GPU`},
	{"device: {name: 'cuda:-1'}", `run.yaml:1: device.name is "cuda:-1", but must be auto, cpu, cuda, or cuda:1 for the second GPU`},
	{"device: 0", `run.yaml:1: device.name is 0, but must be auto, cpu, cuda, or cuda:1 for the second GPU`},
	{"device: [cpu]", `run.yaml:1: device is a list, but must be a section with keys such as device.name`},
	{"model: {dtype: float64}\ndevice: cuda", `run.yaml:1: model.dtype is float64, but device.name is cuda (run.yaml:2); a GPU computes in float32, so take that or the device cpu`},
	{"device: {precision: bf16}", `run.yaml:1: device.precision is bf16, but model.kind is table (default); it is for the convolutions of cne simclr, so take tf32, or float32`},
	{"seed: -1", `run.yaml:1: seed is -1, but must be a whole number of at least 0`},
	{"seed: 99999999999999999999", `run.yaml:1: seed is 99999999999999999999, but must be at most 9223372036854775807`},
	{"seed: 9223372036854775808", `run.yaml:1: seed is 9223372036854775808, but must be at most 9223372036854775807`},
	{"seed: -1e300", `run.yaml:1: seed is -1e300, but must be a whole number of at least 0`},
	{"seed:", `run.yaml:1: seed is null, but must be a whole number of at least 0`},
	{"train:\n  epochs: 1.5", `run.yaml:2: train.epochs is 1.5, but must be a whole number of at least 1, or null`},
	{"train: {epochs: 0}", `run.yaml:1: train.epochs is 0, but must be a whole number of at least 1, or null`},
	{"train: {epochs: true}", `run.yaml:1: train.epochs is true, but must be a whole number of at least 1, or null`},
	{"train: {epochs: many}", `run.yaml:1: train.epochs is "many", but must be a whole number of at least 1, or null`},
	{`train: {epochs: "5"}`, `run.yaml:1: train.epochs is "5", but must be a whole number of at least 1, or null`},
	{"train: {epochs: [5]}", `run.yaml:1: train.epochs is a list, but must be a whole number of at least 1, or null`},
	{"train: {epochs: 1e12}", `run.yaml:1: train.epochs is 1e12, but must be at most 2147483647, or null`},
	{"train: {batch_size: 1}", `run.yaml:1: train.batch_size is 1, but must be a whole number of at least 2`},
	{"train: {lr: 0}", `run.yaml:1: train.lr is 0, but must be a number above 0, or null`},
	{"train: {lr: .nan}", `run.yaml:1: train.lr is .nan, but must be a number above 0, or null`},
	{"train: {lr: .inf}", `run.yaml:1: train.lr is .inf, but must be a number above 0, or null`},
	{"train: {lr: {a: 1}}", `run.yaml:1: train.lr is a mapping, but must be a number above 0, or null`},
	{"train: {lr_z: -1}", `run.yaml:1: train.lr_z is -1, but must be a number of at least 0`},
	{"loss: {clamp: 1}", `run.yaml:1: loss.clamp is 1, but must be a number of at least 0 and below 1`},
	{"plot: {width_cm: 1e9}", `run.yaml:1: plot.width_cm is 1e9, but must be 0 or a number from 2 to 100`},
	{"output: {csv: 1}", `run.yaml:1: output.csv is 1, but must be true or false`},
	{"output: {csv: yes}", `run.yaml:1: output.csv is "yes", but must be true or false`},
	{"output: {dir: 2024}", `run.yaml:1: output.dir is 2024, but must be text that is not empty; quote it: "2024"`},
	{"output: {dir: ''}", `run.yaml:1: output.dir is "", but must be text that is not empty`},
	{"plot: {title: 7}", `run.yaml:1: plot.title is 7, but must be text; quote it: "7"`},
	{"plot: {title: null}", `run.yaml:1: plot.title is null, but must be text`},
	{"data: {path: []}", `run.yaml:1: data.path is an empty list, but must be a path or a list of at least one path`},
	{"data:\n  path:\n    - a\n    - 5", `run.yaml:4: data.path: item 2 is 5, but must be a path or a list of paths; quote it: "5"`},
	{"data: {label_column: 0}", `run.yaml:1: data.label_column is 0, but must be the name of a column, or its number (1 is the first, -1 the last), or null`},
	{"data: {drop: [id, true]}", `run.yaml:1: data.drop: item 2 is true, but must be the name or number of a column, or a list of them; quote it: "true"`},
	{"data: {header: true}", `run.yaml:1: data.header is true, but must be auto, yes or no`},
	{"loss: {s: fast}", `run.yaml:1: loss.s is "fast", but must be a number, or null`},
	{"loss: {negatives: 0}", `run.yaml:1: loss.negatives is 0, but must be a whole number from 1 to 2147483647, or full`},
	{"loss: {negatives: all}", `run.yaml:1: loss.negatives is "all", but must be a whole number from 1 to 2147483647, or full`},
	{"loss: {z_bar: 0}", `run.yaml:1: loss.z_bar is 0, but must be a number above 0, or uniform, or null`},
	{"loss: {name: umpa}", `run.yaml:1: loss.name is "umpa", but must be neg, nc, infonc or umap; did you mean umap?`},
	{"loss: {name: infonca}", `run.yaml:1: loss.name is "infonca", but must be neg, nc, infonc or umap; did you mean infonc?`},
	{"loss: {name: largevis}", `run.yaml:1: loss.name is "largevis", but must be neg, nc, infonc or umap`},
	{"loss: {metric: euclidian}", `run.yaml:1: loss.metric is "euclidian", but must be euclidean or cosine; did you mean euclidean?`},
	{"model: {kind: resnet18}", `run.yaml:1: model.kind is "resnet18", but must be table or mlp`},

	// Phases.
	{"model: {hidden: 0}", `run.yaml:1: model.hidden is 0, but must be a list of whole numbers from 1 to 65536, such as [100, 100]`},
	{"model:\n  hidden:\n    - 5\n    - x", `run.yaml:4: model.hidden: item 2 is "x", but must be a list of whole numbers from 1 to 65536, such as [100, 100]`},
	{"data: {genes: 0}", `run.yaml:1: data.genes is 0, but must be a whole number of at least 1`},
	{"data: {imbalance: exponential}", `run.yaml:1: data.imbalance is "exponential", but must be linear, or null`},
	{"graph: {weighted_sampling: umap}", `run.yaml:1: graph.weighted_sampling is "umap", but must be true or false`},
	{"graph: {cache: 1}", `run.yaml:1: graph.cache is 1, but must be true, false or a folder; quote it: "1"`},
	{"graph: {cache: yes}", `run.yaml:1: graph.cache is "yes", but must be true, false or a folder; a folder of that name is ./yes`},
	{"graph: {cache: [a]}", `run.yaml:1: graph.cache is a list, but must be true, false or a folder`},
	{"data: {holdout: 1}", `run.yaml:1: data.holdout is 1, but must be a share between 0 and 1, a path or a list of paths, or null`},
	{"data: {holdout: [0.5]}", `run.yaml:1: data.holdout: item 1 is 0.5, but must be a path or a list of paths; quote it: "0.5"`},
	{"data: {holdout: []}", `run.yaml:1: data.holdout is an empty list, but must be a path or a list of at least one path, or null`},
	{"data: {sample: 1.5}", `run.yaml:1: data.sample is 1.5, but must be a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows, or null`},
	{"data: {sample: 0}", `run.yaml:1: data.sample is 0, but must be a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows, or null`},
	{"data: {sample: -5}", `run.yaml:1: data.sample is -5, but must be a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows, or null`},
	{"data: {sample: [1, 2]}", `run.yaml:1: data.sample is a list, but must be a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows, or null`},
	{"train: {phases: 5}", `run.yaml:1: train.phases is 5, but must be a list of phases, such as [{epochs: 250, z_bar: uniform}, {epochs: 500, s: 0}]`},
	{"train: {phases: {epochs: 5}}", `run.yaml:1: train.phases is a mapping, but must be a list of phases, such as [{epochs: 250, z_bar: uniform}, {epochs: 500, s: 0}]`},
	{"train: {phases: [5]}", `run.yaml:1: train.phases: phase 1 is 5, but must be a mapping with the keys epochs, lr, s, z_bar, negatives, anneal, warm_up or log_z`},
	{"train:\n  phases:\n    - {epochs: 5}\n    - {lr: 1}", `run.yaml:4: train.phases: phase 2 lacks its number of epochs`},
	{"train:\n  phases:\n    - epochs: 5\n      lrate: 2", `run.yaml:4: train.phases: phase 1 has the unknown key "lrate"; a phase has epochs, lr, s, z_bar, negatives, anneal, warm_up or log_z`},
	{"train:\n  phases:\n    - epochs: 5\n      epochs: 2", `run.yaml:4: train.phases: epochs of phase 1 is given twice; keep one of them`},
	{"train:\n  phases:\n    - epochs: 5\n      lr: fast", `run.yaml:4: train.phases: lr of phase 1 is "fast", but must be a number above 0, or null`},
	{"loss: {name: nc}\ntrain: {phases: [{epochs: 1, log_z: 61}]}", `run.yaml:2: train.phases: log_z of phase 1 is 61, but must be a number from -60 to 60, or null`},
	{"train: {phases: [{epochs: 1, s: 0, z_bar: 1}]}", `run.yaml:1: train.phases: phase 1 gives both s and z_bar, which exclude each other; keep one of them`},

	// Values that do not go together.
	{"loss:\n  name: umap\n  s: 0.5", `run.yaml:3: loss.s is 0.5, but loss.name is umap (run.yaml:2); only neg and infonc have a spectrum, so set loss.s to null or choose one of them`},
	{"loss: {name: nc, s: 0}", `run.yaml:1: loss.s is 0.0, but loss.name is nc; only neg and infonc have a spectrum, so set loss.s to null or choose one of them`},
	{"loss: {name: infonc, z_bar: uniform}", `run.yaml:1: loss.z_bar is uniform, but loss.name is infonc; only neg has a fixed normalisation constant, so set loss.z_bar to null or choose neg`},
	{"loss: {s: 0, z_bar: 5}", `run.yaml:1: loss.z_bar is 5.0, but loss.s is 0.0; they exclude each other, so set one of them to null`},
	{"loss: {name: infonc, metric: cosine}\nmodel: {dim: 1}", `run.yaml:2: model.dim is 1, but loss.metric is cosine (run.yaml:1); in one dimension a cosine is 1 or -1, so take at least 2 dimensions or the metric euclidean`},
	{"loss: {name: umap, metric: cosine}", `run.yaml:1: loss.metric is cosine, but loss.name is umap; umap needs the metric euclidean`},
	{"loss: {positive_in_denominator: false}", `run.yaml:1: loss.positive_in_denominator is false, but loss.name is neg (default); only infonc has such a denominator, so set it to true or choose infonc`},
	{"loss: {learn_z: false}", `run.yaml:1: loss.learn_z is false, but loss.name is neg (default); only nc learns a normalisation constant, so set it to true or choose nc`},
	{"loss: {log_z: 1}", `run.yaml:1: loss.log_z is 1.0, but loss.name is neg (default); only nc learns a normalisation constant, so set it to 0 or choose nc`},
	{"train: {early_exaggeration: true}", `run.yaml:1: train.early_exaggeration is true, but loss.s is null (default); set loss.s, for example to 0`},
	{"loss: {name: nc}\ntrain: {early_exaggeration: true}", `run.yaml:2: train.early_exaggeration is true, but loss.name is nc (run.yaml:1); only neg and infonc have a spectrum, so set it to false or choose one of them`},
	{"loss: {s: 0}\ntrain: {early_exaggeration: true, phases: [{epochs: 1}]}", `run.yaml:2: train.early_exaggeration is true, but train.phases is [{epochs: 1}]; write the exaggeration as a phase, or set train.phases to []`},
	{"train: {momentum: 0.9, optimizer: adam}", `run.yaml:1: train.momentum is 0.9, but train.optimizer is adam; only sgd has a momentum, so set it to 0 or train.optimizer to sgd`},
	{"model: {kind: mlp}\ntrain: {momentum: 0.9}", `run.yaml:2: train.momentum is 0.9, but train.optimizer is adam (default); only sgd has a momentum, so set it to 0 or train.optimizer to sgd`},
	{"train: {epochs: 5, warm_up: 5}", `run.yaml:1: train.warm_up is 5, but train.epochs is 5; take fewer epochs to warm up than there are`},
	{"train: {warm_up: 2, phases: [{epochs: 5}, {epochs: 2}]}", `run.yaml:1: train.phases: epochs of phase 2 is 2, but train.warm_up is 2; take fewer epochs to warm up than there are, for example warm_up: 0 in the phase`},
	{"model: {kind: mlp, input: pca}\ngraph: {pca: 0}", `run.yaml:1: model.input is pca, but graph.pca is 0 (run.yaml:2); set graph.pca to the number of principal components`},
	{"model: {input: pca}", `run.yaml:1: model.input is pca, but model.kind is table (default); only an mlp has an input, so leave it at points or choose mlp`},
	{"data: {holdout_labels: l.txt}", `run.yaml:1: data.holdout_labels is [l.txt], but data.holdout is null (default); give the paths of the held-out points there, or set data.holdout_labels to []`},
	{"data: {holdout: 0.1}\ngraph: {file: g.npz}", `run.yaml:1: data.holdout is 0.1, but graph.file is g.npz (run.yaml:2); the graph of the points that are left is not known, so set one of them to null`},
	{"data: {sample: 100, holdout: 0.1}", `run.yaml:1: data.sample is 100, but data.holdout is 0.1; points that are not trained on are placed either way, so set one of them to null`},
	{"data: {sample: 0.5}\ngraph: {file: g.npz}", `run.yaml:1: data.sample is 0.5, but graph.file is g.npz (run.yaml:2); the graph is made of the points that are trained on, so set one of them to null`},
	{"data: {sample: rows.txt, imbalance: linear}", `run.yaml:1: data.sample is rows.txt, but data.imbalance is linear; name the rows that are left by a file in data.sample, or set one of them to null`},
	{"data: {sample: 100}\nmodel: {init: runs/a}", `run.yaml:1: data.sample is 100, but model.init is runs/a (run.yaml:2); the rows of an earlier embedding are not those that are trained on, so give data.names, by which the points are found, or set data.sample to null`},
	{"graph: {search: approximate, file: g.npz}", `run.yaml:1: graph.search is approximate, but graph.file is g.npz; a graph of one's own needs no search, so leave it at auto or set graph.file to null`},
	{"train: {epochs: 5, phases: [{epochs: 1}]}", `run.yaml:1: train.epochs is 5, but train.phases is [{epochs: 1}]; the phases say how many epochs are run, so leave train.epochs out or set train.phases to []`},
	{"loss: {name: umap}\ntrain: {phases: [{epochs: 1}, {epochs: 1, s: 1}]}", `run.yaml:2: train.phases: s of phase 2 is 1.0, but loss.name is umap (run.yaml:1); only neg and infonc have a spectrum, so leave it out or choose one of them`},
	{"loss: {name: infonc}\ntrain: {phases: [{epochs: 1, z_bar: 1}]}", `run.yaml:2: train.phases: z_bar of phase 1 is 1.0, but loss.name is infonc (run.yaml:1); only neg has a fixed normalisation constant, so leave it out or choose neg`},
	{"train: {phases: [{epochs: 1}, {epochs: 1, log_z: 0}]}", `run.yaml:1: train.phases: log_z of phase 2 is 0.0, but loss.name is neg (default); only nc learns a normalisation constant, so leave it out or choose nc`},
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
	{"train.epochs", "many", `--set train.epochs: train.epochs is "many", but must be a whole number of at least 1, or null`},
	{"train.epochs", "", `--set train.epochs: train.epochs is "", but must be a whole number of at least 1, or null`},
	{"train.phases", " ", `--set train.phases: train.phases is " ", but must be a list of phases, such as [{epochs: 250, z_bar: uniform}, {epochs: 500, s: 0}]`},
	{"data.imbalance", "linaer", `--set data.imbalance: data.imbalance is "linaer", but must be linear, or null; did you mean linear?`},
	{"data.label_column", "", `--set data.label_column: data.label_column is "", but must be the name of a column, or its number (1 is the first, -1 the last), or null`},
	{"graph.file", "", `--set graph.file: graph.file is "", but must be text that is not empty, or null`},
	{"train.batch_size", "", `--set train.batch_size: train.batch_size is "", but must be a whole number of at least 2`},
	{"train.batch_size", "null", `--set train.batch_size: train.batch_size is null, but must be a whole number of at least 2`},
	{"plot.title", "\xcd", `--set plot.title: plot.title is "\xcd", which is not text in UTF-8, the only encoding that a configuration can hold`},
	{"train.epochs", "[", `--set train.epochs: train.epochs is "[", which is not valid YAML`},
	{"train.epoch", "5", `--set train.epoch: train.epoch is not a key; did you mean train.epochs?`},
	{"train", "{epochs: 5}", `--set train: train is a section; set one of its keys, such as train.epochs`},
	{"data.path", "", `--set data.path: data.path is an empty list, but must be a path or a list of at least one path`},
	{"data.path", "[a, [b]]", `--set data.path: data.path: item 2 is a list, but must be a path or a list of paths`},
	{"loss.metric", "cosin", `--set loss.metric: loss.metric is "cosin", but must be euclidean or cosine; did you mean cosine?`},
	{"train.phases", "[{epochs: 0}]", `--set train.phases: train.phases: epochs of phase 1 is 0, but must be a whole number of at least 1`},
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
		{"CNE_TRAIN_EPOCH=5", `CNE_TRAIN_EPOCH: no key has this variable; did you mean CNE_TRAIN_EPOCHS?`},
		{"CNE_EPOCHS=5", `CNE_EPOCHS: no key has this variable; unset it, or see "cne config" for the keys`},
		{"CNE_TRAIN_EPOCHS=x", `CNE_TRAIN_EPOCHS: train.epochs is "x", but must be a whole number of at least 1, or null`},
		{"CNE_LOSS_S=0", `CNE_LOSS_S: loss.s is 0.0, but loss.name is umap (run.yaml:1); only neg and infonc have a spectrum, so set loss.s to null or choose one of them`},
	} {
		t.Chdir(t.TempDir())
		writeTestFile(t, "run.yaml", "loss: {name: umap}")
		_, _, err := Train.Load(Sources{File: "run.yaml", Environ: []string{tc.variable}})
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s:\n got %v\nwant %s", tc.variable, err, tc.want)
		}
	}
}
