package main

import (
	"fmt"
	"strings"
)

// yamlTrials are about files of configuration.
func yamlTrials() []trial {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	var all []trial
	for _, f := range []bad{
		{"tabs", []byte("train:\n\tepochs: 3\n"), "c.yaml:2"},
		{"unclosed-list", []byte("model:\n  hidden: [1, 2\n"), "c.yaml:[123].*']'"},
		{"unclosed-quote", []byte("plot:\n  title: \"abc\n"), "c.yaml:2"},
		{"same-key-twice", []byte("seed: 1\nseed: 2\n"), "seed.*(twice|already)"},
		{"same-section-twice", []byte("train:\n  lr: 1\ntrain:\n  epochs: 3\n"), "train.*(twice|already)"},
		{"same-key-dotted-and-nested", []byte("train.epochs: 3\ntrain:\n  epochs: 4\n"), "train.epochs"},
		{"unknown-key", []byte("train:\n  epoch: 3\n"), "train.epoch.*train.epochs"},
		{"unknown-section", []byte("training:\n  epochs: 3\n"), "training"},
		{"wrong-case", []byte("Train:\n  Epochs: 3\n"), "(?i)train"},
		{"key-of-control-characters", []byte("\"tr\\e[2Jain\\n\": 3\n"), "unknown|no key|not a key"},
		{"long-key", []byte(strings.Repeat("k", 900) + ": 3\n"), "unknown|no key|not a key"},
		{"word-for-number", []byte("train:\n  epochs: many\n"), "train.epochs.*many"},
		{"list-for-number", []byte("train:\n  epochs: [3]\n"), "train.epochs"},
		{"mapping-for-number", []byte("train:\n  epochs: {a: 3}\n"), "train.epochs"},
		{"date-for-number", []byte("train:\n  epochs: 2020-01-01\n"), "train.epochs"},
		{"fraction-for-whole", []byte("train:\n  epochs: 3.5\n"), "train.epochs"},
		{"nan", []byte("train:\n  lr: .nan\n"), "train.lr"},
		{"infinite", []byte("train:\n  lr: .inf\n"), "train.lr"},
		{"beyond-int64", []byte("train:\n  epochs: 99999999999999999999\n"), "train.epochs"},
		{"yes-for-true", []byte("output:\n  plot: maybe\n"), "output.plot"},
		{"number-for-switch", []byte("output:\n  plot: 1\n"), "output.plot"},
		{"null-for-number", []byte("train:\n  batch_size: null\n"), "train.batch_size"},
		{"list-as-document", []byte("- seed\n- 3\n"), "mapping|list|key"},
		{"word-as-document", []byte("hello\n"), "mapping|key|word|text"},
		{"number-as-section", []byte("train: 3\n"), "train"},
		{"list-as-section", []byte("train: [epochs, 3]\n"), "train"},
		{"two-documents", []byte("seed: 1\n---\nseed: 2\n"), "document"},
		{"unknown-anchor", []byte("seed: *nothing\n"), "anchor|alias|nothing"},
		{"alias-to-itself", []byte("train: &t\n  phases: [*t]\n"), "anchor|alias|train|itself"},
		{"billion-laughs", []byte(laughs.String()), "alias|excessive|anchor|not a key"},
		{"binary-tag", []byte("plot:\n  title: !!binary gIGC\n"), "plot.title|UTF|binary|tag"},
		{"unknown-tag", []byte("seed: !seed 3\n"), "tag|seed"},
		{"python-object", []byte("seed: !!python/object/apply:os.system ['true']\n"), "tag|seed"},
		{"not-utf8", []byte("plot:\n  title: \xff\xfe\n"), "UTF-8|line|yaml|invalid"},
		{"nul", []byte("seed: 1\x00\n"), "control|line|yaml|invalid"},
		{"utf-16", []byte("\xff\xfes\x00e\x00e\x00d\x00:\x00 \x00x\x00\n\x00"), "seed|UTF"},
		{"deep", []byte(strings.Repeat("[", 20000) + strings.Repeat("]", 20000)), "deep|depth|nest|mapping|list"},
		{"long-line", []byte("seed: " + strings.Repeat("9", 100000) + "\n"), "seed"},
		{"json-of-another-program", []byte(`{"n_neighbors": 15, "min_dist": 0.1}`), "n_neighbors|min_dist"},
		{"phase-without-epochs", []byte("train:\n  phases: [{lr: 1}]\n"), "train.phases.*epochs"},
		{"phase-with-unknown-key", []byte("train:\n  phases: [{epochs: 1, momentum: 1}]\n"), "train.phases.*momentum"},
		{"phase-starts-z-of-neg", []byte("train:\n  phases: [{epochs: 1, log_z: 0}]\n"), "train.phases.*log_z"},
		{"phase-is-a-number", []byte("train:\n  phases: [3]\n"), "train.phases"},
		{"phases-overflowing", []byte("train:\n  phases: [{epochs: 9223372036854775807}, {epochs: 9223372036854775807}]\n"), "train.phases|epochs"},
		{"merge-key", []byte("train:\n  phases:\n    - &p {epochs: 3, lr: 0.5}\n    - {<<: *p, epochs: 4}\n"), "<<"},
		{"number-as-path", []byte("data:\n  path: 2024\n"), "quote it"},
		{"simclr-file-for-train", []byte("views:\n  size: 32\n"), "views"},
		{"directory-for-file", nil, "directory|folder"},
	} {
		all = append(all, trial{"yaml/" + f.name, func(w *world) {
			if f.content == nil {
				w.must(w.mkdir("c.yaml"))
			} else {
				w.write("c.yaml", f.content)
			}
			w.write("x.npy", blobs(60, 4).npy())
			checked := w.refused("cne config --check --config c.yaml", f.message)
			run := w.refused("cne train -q --set data.path=x.npy -o run --config c.yaml", f.message)
			if !strings.Contains(run.last(), "c.yaml") {
				w.fail("the message does not name the file: %s", run.last())
			}
			if withoutHelp(checked.last()) != withoutHelp(run.last()) {
				w.fail("config --check says %q, but train says %q", checked.last(), run.last())
			}
		}})
	}
	good := []struct{ name, content, want string }{
		{"empty", "", "seed: 0"},
		{"comments", "# nothing\n\n# at all\n", "seed: 0"},
		{"byte-order-mark", "\ufeffseed: 7\n", "seed: 7"},
		{"windows", "seed: 7\r\ntrain:\r\n  epochs: 3\r\n", "epochs: 3"},
		{"anchors", "train:\n  epochs: &n 9\nseed: *n\n", "seed: 9"},
		{"alias-of-a-mapping", "train:\n  phases:\n    - &p {epochs: 3, lr: 0.5}\n    - *p\n", "lr: 0.5"},
		{"flow", "{seed: 7, train: {epochs: 3}}", "epochs: 3"},
		{"empty-sections", "train:\nmodel: {}\nseed: 7\n", "seed: 7"},
		{"document-marks", "---\nseed: 7\n...\n", "seed: 7"},
		{"quoted-keys", "\"train\":\n  'epochs': 3\n", "epochs: 3"},
		{"number-as-path", "data:\n  path: \"2024\"\n", "2024"},
		{"octal-in-words", "seed: 0o17\n", "seed: 15"},
	}
	for _, g := range good {
		all = append(all, trial{"yaml/good/" + g.name, func(w *world) {
			w.text("c.yaml", g.content)
			res := w.ok("cne config --config c.yaml")
			if !strings.Contains(res.stdout, g.want) {
				w.fail("the configuration has no %q", g.want)
			}
			// What is printed is itself a configuration, and the same one.
			w.text("printed.yaml", res.stdout)
			if again := w.ok("cne config --config printed.yaml"); again.stdout != res.stdout {
				w.fail("the printed configuration, read again, is another one")
			}
		}})
	}
	return all
}

// settingTrials are about --set, the environment and other flags.
func settingTrials() []trial {
	lines := []struct {
		name, line string
		code       int
		message    string
	}{
		{"no-equals", "cne config --set train.epochs", 2, "key=value"},
		{"no-key", "cne config --set =3", 2, "key"},
		{"nothing", "cne config --set ''", 2, "key=value"},
		{"only-dots", "cne config --set ...=3", 2, "key"},
		{"blank-in-key", "cne config --set 'train epochs=3'", 2, "train"},
		{"two-equals", "cne config --set train.epochs==3", 2, "train.epochs"},
		{"section", "cne config --set train=3", 2, "train"},
		{"below-a-key", "cne config --set train.epochs.more=3", 2, "train.epochs"},
		{"unclosed", "cne config --set 'model.hidden=[1,2'", 2, "model.hidden"},
		{"empty-number", "cne config --set train.batch_size=", 2, "train.batch_size"},
		{"word", "cne config --set train.batch_size=big", 2, "train.batch_size.*big"},
		{"comma-decimal", "cne config --set train.lr=0,5", 2, "train.lr"},
		{"newline", "cne config --set $'train.lr=1\\nseed: 3'", 2, "train.lr"},
		{"escape", "cne config --set $'train.\\e[31mlr=1'", 2, "train"},
		{"long-value", "cne config --set train.lr=$(printf '%100000s' x | tr ' ' 9)", 2, "train.lr"},
		{"long-key", "cne config --set $(printf '%100000s' x | tr ' ' k)=3", 2, "key|unknown"},
		{"alias", "cne config --set 'seed=*a'", 2, "seed"},
		{"comment", "cne config --set 'seed=#3'", 2, "seed"},
		{"hidden-mapping", "cne config --set 'model.hidden={a: 1}'", 2, "model.hidden"},
		{"hidden-zero", "cne config --set 'model.hidden=[0]'", 2, "model.hidden"},
		{"hidden-nested", "cne config --set 'model.hidden=[[1]]'", 2, "model.hidden"},
		{"wrong-word", "cne config --set loss.name=tsne", 2, "loss.name.*(neg|infonce)"},
		{"key-of-simclr", "cne config --set views.size=3", 2, "views"},
		{"key-of-train", "cne simclr config --set model.kind=mlp", 2, "model"},
		{"environment-unknown", "CNE_TRAIN_EPOCH=3 cne config", 1, "CNE_TRAIN_EPOCH"},
		{"environment-wrong", "CNE_TRAIN_EPOCHS=x cne config", 1, "CNE_TRAIN_EPOCHS"},
		{"environment-control", "CNE_TRAIN_EPOCHS=$'\\e[2J\\n' cne config", 1, "CNE_TRAIN_EPOCHS"},
		{"environment-section", "CNE_TRAIN=3 cne config", 1, "CNE_TRAIN"},
		{"environment-long", "CNE_PLOT_WIDTH_CM=$(printf '%50000s' x) cne config", 1, "CNE_PLOT_WIDTH_CM"},
		{"epochs-word", "cne train --epochs ten", 2, "epochs"},
		{"epochs-empty", "cne train --epochs ''", 2, "epochs"},
		{"seed-negative", "cne train --seed -5", 2, "seed"},
		{"seed-huge", "cne train --seed 99999999999999999999999", 2, "seed"},
		{"device-unknown", "cne train --device tpu --output run", 2, "device|tpu"},
		{"log-format-unknown", "cne train --log-format xml", 2, "log-format"},
		{"output-empty", "cne train --output ''", 2, "output"},
		{"resume-empty", "cne train --resume ''", 2, "resume"},
		{"config-empty", "cne train --config ''", 2, "config"},
		{"config-missing", "cne train --config nothing.yaml -o run", 1, "nothing.yaml"},
		{"config-is-points", "head -c 4000 /dev/zero > run.yaml; cne train --config run.yaml -o run2; s=$?; rm run.yaml; exit $s", 1, "run.yaml"},
	}
	var all []trial
	for _, l := range lines {
		all = append(all, trial{"setting/" + l.name, func(w *world) {
			w.ends(l.line, l.code, l.message, effects{refused: true})
		}})
	}
	return append(all,
		trial{"setting/later-wins", func(w *world) {
			w.text("c.yaml", "seed: 1\ntrain: {epochs: 2}\n")
			res := w.ok("CNE_SEED=2 CNE_TRAIN_EPOCHS=5 cne config -c c.yaml --seed 3 --set seed=4 --set seed=5")
			if !strings.Contains(res.stdout, "\nseed: 5\n") || !strings.Contains(res.stdout, "\n  epochs: 5\n") {
				w.fail("seed is not that of the last flag, or epochs not that of the environment")
			}
		}},
		trial{"setting/empty-environment", func(w *world) {
			// An empty variable is either as if it were not there, or refused; never 0.
			res := w.run("CNE_TRAIN_BATCH_SIZE= cne config", effects{refused: true})
			if res.code == 0 && !strings.Contains(res.stdout, "\n  batch_size: 1024\n") {
				w.fail("an empty variable has changed train.batch_size")
			}
		}},
		trial{"setting/title-of-anything", func(w *world) {
			res := w.ok(`cne config --set plot.title="a: b # c 'd' \"e\" [f] {g} %h"`)
			w.text("printed.yaml", res.stdout)
			if again := w.ok("cne config -c printed.yaml"); again.stdout != res.stdout {
				w.fail("the printed configuration, read again, is another one")
			}
		}},
		trial{"setting/paths-of-anything", func(w *world) {
			for _, name := range []string{"a b", "c'd", `e"f`, "[g]", "{h}", "#i", "- j", "*k", "%l", "ü", "--m", "n: o", "null", "007", "~"} {
				w.write(name+".npy", blobs(60, 4).npy())
				w.text("c.yaml", "data:\n  path: "+fmt.Sprintf("%q", name+".npy")+"\n")
				w.ok("cne train " + small + " --force -c c.yaml -o run && cne evaluate -q run > out.txt")
			}
		}},
	)
}

// rangeTrials are about keys at and beyond the ends of their ranges: what the check of a
// configuration accepts has to run, and what a run refuses, the check has to refuse.
func rangeTrials() []trial {
	settings := []string{
		"graph.k=0", "graph.k=-1", "graph.k=59", "graph.k=9223372036854775807", "graph.pca=-1", "graph.pca=1", "graph.pca=1000000",
		"data.holdout=0", "data.holdout=1", "data.holdout=0.999", "data.holdout=0.001", "data.holdout=1e-300", "data.holdout=-0.5", "data.genes=0",
		"model.dim=0", "model.dim=1", "model.dim=200", "model.dtype=float16", "model.init_std=0", "model.init_std=1e-30", "model.init_std=1e15", "model.init_std=-1",
		"model.hidden=[]", "model.hidden=[1]", "model.hidden=[65537]",
		"loss.temperature=0", "loss.temperature=1e-300", "loss.temperature=1e300", "loss.negatives=0", "loss.negatives=1", "loss.negatives=full", "loss.negatives=2147483648",
		"loss.s=1e300", "loss.s=-50", "loss.s=3", "loss.z_bar=0", "loss.z_bar=1e-300", "loss.z_bar=1e300", "loss.scale=0", "loss.scale=1e-45", "loss.scale=1e38", "loss.clamp=1", "loss.clamp=0", "loss.clamp=0.999999", "loss.clamp=-0.1",
		"train.batch_size=1", "train.batch_size=2", "train.batch_size=9223372036854775807", "train.lr=0", "train.lr=1e-45", "train.lr=1e30", "train.momentum=1", "train.momentum=0.999999999999", "train.weight_decay=1e30", "train.weight_decay=-1",
		"train.clip=0", "train.clip=1e-40", "train.clip=1e300", "train.clip=-1", "train.warm_up=4", "train.warm_up=3", "train.log_every=0", "train.log_every=9223372036854775807", "train.lr_z=1e30",
		"checkpoint.minutes=-1", "checkpoint.minutes=1e300", "checkpoint.minutes=1e-300", "checkpoint.epochs=-1", "checkpoint.epochs=1",
		"quality.k=0", "quality.k=59", "quality.k=60", "quality.spearman=1", "quality.spearman=3", "quality.spearman=20001", "output.snapshots=-1", "output.snapshots=9223372036854775807", "output.metrics_every=1",
		"plot.point_size=-1", "plot.point_size=101", "plot.point_size=1e-300", "plot.width_cm=1e-9", "plot.width_cm=100", "plot.height_cm=0.3",
		"seed=-1", "seed=9223372036854775807", "seed=18446744073709551615", "seed=18446744073709551616",
	}
	var all []trial
	for _, s := range settings {
		key, _, _ := strings.Cut(s, "=")
		all = append(all, trial{"range/" + s, func(w *world) {
			w.write("x.npy", blobs(60, 4).npy())
			line := "-q --epochs 4 --set data.path=x.npy --set quality.kl=true --set " + s
			if strings.HasPrefix(key, "loss.log_z") || key == "train.lr_z" {
				line += " --set loss.name=nc"
			}
			if key == "loss.temperature" {
				line += " --set loss.metric=cosine"
			}
			if strings.HasPrefix(s, "model.hidden") {
				line += " --set model.kind=mlp"
			}
			if key == "loss.s" && s != "loss.s=3" {
				line += " --set loss.name=infonce"
			}
			check := w.run("cne config --check "+line, effects{refused: true})
			// Nothing but what depends on the points is left for the run to refuse.
			run := w.run("cne train "+line+" -o run", effects{refused: check.code != 0})
			switch {
			case check.code != 0 && run.code == 0:
				w.fail("config --check refuses what train takes: %s", check.last())
			case check.code != 0:
				if !strings.Contains(check.last(), key) || withoutHelp(check.last()) != withoutHelp(run.last()) {
					w.fail("the check says %q, the run %q", check.last(), run.last())
				}
			case run.code != 0:
				if !strings.Contains(run.last(), key) && !strings.Contains(run.last(), "diverged") {
					w.fail("the run is refused without the key's name: %s", run.last())
				}
			default:
				width := 2
				if key == "model.dim" {
					fmt.Sscanf(s, "model.dim=%d", &width)
				}
				if key != "data.holdout" {
					w.finite("run/embedding.npy", 60, width)
				}
				w.have("run/metrics.json", "run/model.safetensors", "run/embedding.png")
				w.ok("cne train -q --resume run && cne evaluate -q run > out.txt")
			}
		}})
	}
	return all
}

// usageTrials are about wrong command lines, and the wrong kind of file everywhere.
func usageTrials() []trial {
	lines := []struct {
		name, line string
		code       int
		message    string
	}{
		{"no-such-command", "cne fit", 2, "fit"},
		{"no-such-subcommand", "cne simclr train", 2, "train"},
		{"no-such-flag", "cne train --learning-rate 3", 2, "learning-rate"},
		{"no-such-letter", "cne train -z", 2, "z"},
		{"value-missing", "cne train --output", 2, "output"},
		{"command-of-control-characters", "cne $'\\e[2J\\n'", 2, "unknown|no command|not a command"},
		{"command-of-100000-letters", "cne $(printf '%100000s' x | tr ' ' y)", 2, "unknown|no command|not a command"},
		{"many-arguments", "cne project --model run $(seq 1 10000) -o out.npy", 1, "run"},
		{"project-without-model", "cne project x.npy -o out.npy", 2, "model"},
		{"project-without-input", "cne project --model run", 2, "argument|INPUT|file"},
		{"project-wrong-ending", "cne project --model run x.npy -o out.txt", 2, "out.txt"},
		{"project-part-out-of-range", "cne project --model run x.npy -o out.npy --shard 4/4", 2, "0 to 3"},
		{"project-part-of-none", "cne project --model run x.npy -o out.npy --shard 0/0", 2, "parts"},
		{"project-part-drawn", "cne project --model run x.npy -o out.npy --shard 0/2 --plot out.png", 2, "--plot.*--merge"},
		{"project-no-parts", "cne project --merge -o out.npy", 1, "no parts of out.npy"},
		{"project-plot-wrong-ending", "cne project --model run x.npy -o out.npy --plot out.gif", 2, "out.gif"},
		{"evaluate-nothing", "cne evaluate", 2, "argument"},
		{"evaluate-missing", "cne evaluate nothing.npy --data x.npy", 1, "nothing.npy"},
		{"evaluate-wrong-ending", "cne evaluate x.npy --data x.npy -o out.csv", 2, "out.csv"},
		{"evaluate-m-0", "cne evaluate x.npy --data x.npy --m 0", 2, "--m"},
		{"evaluate-s-nan", "cne evaluate x.npy --data x.npy --s nan", 2, "--s"},
		{"evaluate-s-and-zbar", "cne evaluate x.npy --data x.npy --s 0 --zbar 1", 2, "--s and --zbar"},
		{"evaluate-zbar-negative", "cne evaluate x.npy --data x.npy --zbar -1", 2, "--zbar"},
		{"spectrum-two-axes", "cne spectrum --s 0 --zbar 1 -o run", 2, "--s and --zbar|--zbar and --s"},
		{"spectrum-s-empty", "cne spectrum --s '' -o run", 2, "--s"},
		{"spectrum-s-twice", "cne spectrum --s 0,0 -o run", 2, "twice"},
		{"spectrum-s-nan", "cne spectrum --s nan,1 -o run", 2, "--s"},
		{"spectrum-s-commas", "cne spectrum --s 0,,1 -o run", 2, "--s"},
		{"spectrum-s-minus-zero", "cne spectrum --s 0,-0 -o run", 2, "twice|--s"},
		{"spectrum-m-0", "cne spectrum --m 0,5 -o run", 2, "--m"},
		{"spectrum-zbar-of-umap", "cne spectrum --zbar 1,2 --set loss.name=umap -o run", 2, "zbar|loss.name"},
		{"plot-nothing", "cne plot", 2, "argument"},
		{"plot-missing", "cne plot nothing.npy", 1, "nothing.npy"},
		{"plot-wrong-ending", "cne plot x.npy -o out.bmp", 2, "out.bmp"},
		{"plot-width-nan", "cne plot x.npy -o out.png --width nan", 2, "width"},
		{"plot-width-1000", "cne plot x.npy -o out.png --width 1000", 2, "width"},
		{"plot-point-size-negative", "cne plot x.npy -o out.png --point-size -1", 2, "point-size"},
		{"plot-fps-0", "cne plot --animate run --fps 0", 2, "fps"},
		{"plot-metrics-of-points", "cne plot --metrics x.npy -o out.png", 1, "x.npy"},
		{"plot-images-without-page", "cne plot x.npy -o out.png --images x.npy", 2, "images"},
		{"views-0", "cne simclr views --views 0", 2, "views"},
		{"views-zoom-huge", "cne simclr views --set data.path=i.npy --set views.size=8 --zoom 1000000000 -o out.png", 1, "zoom|large|pixels"},
		{"features-one-argument", "cne simclr features run", 2, "argument"},
		{"image-project-no-model", "cne simclr project x.npy", 2, "--model"},
		{"image-project-wrong-ending", "cne simclr project --model run x.npy -o out.txt", 2, "out.txt"},
		{"stages-freeze-all", "cne simclr config --set stages=[{epochs:9,freeze:[backbone,fc1,fc2]}]", 2, "freeze"},
		{"stages-no-list", "cne simclr config --set stages=9", 2, "stages"},
		{"features-wrong-ending", "cne simclr features run x.npy -o out.csv", 2, "out.csv"},
		{"simclr-evaluate-nothing", "cne simclr evaluate", 2, "argument"},
		{"simclr-evaluate-missing", "cne simclr evaluate nothing", 1, "nothing"},
		{"simclr-resume-nothing", "cne simclr pretrain --resume nothing", 1, "nothing"},
		{"train-resume-nothing", "cne train --resume nothing", 1, "nothing"},
		{"train-resume-points", "cne train --resume x.npy", 1, "x.npy"},
		{"train-resume-and-force", "cne train --resume x --force", 2, "--resume.*--force|--force.*--resume"},
		{"spectrum-resume-nothing", "cne spectrum --resume nothing", 1, "nothing"},
		{"completion-of-no-shell", "cne completion tcsh", 2, "tcsh"},
	}
	var all []trial
	for _, l := range lines {
		all = append(all, trial{"usage/" + l.name, func(w *world) {
			images, _ := pictures(12, 8)
			w.write("x.npy", blobs(60, 4).npy())
			w.write("i.npy", images)
			w.ends(l.line, l.code, l.message, effects{refused: true})
		}})
	}
	// A file of every kind in every place for a file.
	places := []struct{ name, line, right string }{
		{"data.path", "cne train " + small + " --set data.path=%s -o run", "npy"},
		{"data.labels", "cne train " + small + " --set data.path=x.npy --set data.labels=%s -o run", ""},
		{"data.holdout", "cne train " + small + " --set data.path=x.npy --set data.holdout=%s -o run", "npy"},
		{"graph.file", "cne train " + small + " --set data.path=x.npy --set graph.file=%s -o run", ""},
		{"config", "cne train " + small + " --set data.path=x.npy --config %s -o run", "yaml"},
		{"project-model", "cne project -q --model %s x.npy -o out.npy", "safetensors"},
		{"evaluate", "cne evaluate -q --data x.npy %s", "npy"},
		{"evaluate-against", "cne evaluate -q x.npy --against %s", "npy"},
		{"evaluate-graph", "cne evaluate -q x.npy --graph %s", ""},
		{"plot", "cne plot -q %s -o out.png", "npy"},
		{"plot-images", "cne plot -q x.npy -o out.html --images %s", "npy"},
		{"simclr-features", "cne simclr features -q %s i.npy -o out.npy", ""},
		{"simclr-images", "cne simclr views -q --set data.path=%s -o out.png", ""},
	}
	kinds := map[string][]byte{
		"npy": blobs(60, 4).npy(), "yaml": []byte("seed: 3\n"), "safetensors": safetensors(network()...), "png": picture(8, 8, 1),
		"mtx": soundCounts(30, 40), "noise": noise(4096), "elf": []byte("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 4000)), "pdf": []byte("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"),
	}
	for _, p := range places {
		for _, kind := range []string{"npy", "yaml", "safetensors", "png", "mtx", "noise", "elf", "pdf"} {
			if kind == p.right || kind == "mtx" && p.name == "data.path" { // counts are points
				continue
			}
			all = append(all, trial{"kind/" + p.name + "/" + kind, func(w *world) {
				images, _ := pictures(12, 8)
				w.write("x.npy", blobs(60, 4).npy())
				w.write("i.npy", images)
				w.write("f."+kind, kinds[kind])
				w.refused(fmt.Sprintf(p.line, "f."+kind), "f."+kind)
			}})
		}
	}
	return all
}

// noise returns bytes without meaning, the same each time.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(12345)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// withoutHelp returns a message without the flag that it is about, and without the
// command whose help it names.
func withoutHelp(message string) string {
	message, _, _ = strings.Cut(message, "; see \"cne ")
	if rest, ok := strings.CutPrefix(message, "cne: --set "); ok {
		_, message, _ = strings.Cut(rest, ": ")
		return "cne: " + message
	}
	return message
}
