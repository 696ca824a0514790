package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cne/configs"
	"cne/data/images"
	"cne/internal/app/rundir"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
)

// writeImages makes a folder of colour images of size×size pixels in three
// classes: train of each to train on and test of each to test on. Each class has
// a colour of its own.
func writeImages(t *testing.T, folder string, size, train, test int) {
	t.Helper()
	stream := rng.New(1, rng.Sample)
	for i, part := range []string{"train", "test"} {
		count := [2]int{train, test}[i]
		for class, name := range []string{"blue", "green", "red"} {
			for i := range count {
				im := image.NewRGBA(image.Rect(0, 0, size, size))
				for p := range size * size {
					c := [3]uint8{40, 40, 40}
					c[2-class] = 200
					for k := range c {
						c[k] += uint8(stream.IntN(40))
					}
					im.SetRGBA(p%size, p/size, color.RGBA{c[0], c[1], c[2], 255})
				}
				writePNG(t, filepath.Join(folder, part, name, fmt.Sprintf("%d.png", i)), im)
			}
		}
	}
}

func writePNG(t *testing.T, path string, im image.Image) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	var b bytes.Buffer
	must(t, png.Encode(&b, im))
	writeTestFile(t, path, b.String())
}

// tiny are the flags of a quick pretraining on all images of 8×8 pixels in the
// folder images.
func tiny(more ...string) []string {
	return append([]string{"simclr", "pretrain", "--set", "data.path=images", "--set", "views.size=8", "--set", "network.width=4",
		"--set", "train.batch_size=8", "--set", "train.warm_up=1", "--set", "monitor.every=2", "--set", "simclr.pretrain_on=all",
		"--set", "evaluate.k=3", "--set", "evaluate.test=9", "--epochs", "4", "-o", "run"}, more...)
}

// folderOfImages makes a new folder the current one, with 36 images in the folder images.
func folderOfImages(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
}

// networkIn loads the network of a run.
func networkIn(t *testing.T, folder string) *model.Saved {
	t.Helper()
	saved, err := model.Load(folder + "/" + rundir.ModelFile)
	must(t, err)
	return saved
}

// sameWeights compares the networks of two runs.
func sameWeights(t *testing.T, a, b string) {
	t.Helper()
	x, y := networkIn(t, a).ResNet.Tensors(), networkIn(t, b).ResNet.Tensors()
	for name := range x {
		if !slices.Equal(op.Data[float32](x[name]), op.Data[float32](y[name])) {
			t.Errorf("%s of %s and %s differ", name, a, b)
		}
	}
}

func imageRecords(t *testing.T) (records []simclr.Record) {
	t.Helper()
	for line := range strings.Lines(readText(t, "run/metrics.jsonl")) {
		var r simclr.Record
		must(t, json.Unmarshal([]byte(line), &r))
		records = append(records, r)
	}
	return records
}

// A run leaves what it promises, which is measured and used afterwards without a change.
func TestSimCLRRun(t *testing.T) {
	folderOfImages(t)
	stdout, stderr := mustRun(t, tiny()...)
	want := []string{"checkpoint.safetensors", "config.yaml", "evaluation.json", "metrics.json", "metrics.jsonl", "model.safetensors"}
	if got := listFiles(t, "run"); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for _, part := range []string{filepath.FromSlash("run/model.safetensors"), "36 (all), 14 negatives each", "kNN accuracy", "linear accuracy", " ± "} {
		if !strings.Contains(stdout, part) {
			t.Errorf("stdout lacks %q:\n%s", part, stdout)
		}
	}
	if !strings.Contains(stderr, "accuracy ") || !strings.Contains(stderr, "images/s") {
		t.Errorf("the progress tells neither accuracy nor speed:\n%s", stderr)
	}
	m := readMetrics(t, "run/metrics.json")
	for _, key := range []string{"knn", "linear", "monitor", "loss", "images", "pretrain_on", "negatives", "epochs", "seconds", "peak_rss_bytes", "seed", "version"} {
		if _, ok := m[key]; !ok {
			t.Errorf("metrics.json has no %s", key)
		}
	}
	if m["log_z"] != nil {
		t.Errorf("metrics.json has what is not learnt: %v", m)
	}
	records := imageRecords(t)
	for _, r := range records {
		if (r.Accuracy != nil) != (r.Epoch%2 == 0) || r.Loss == 0 || r.ImagesPerSecond <= 0 {
			t.Errorf("record %+v", r)
		}
	}
	// The classes have colours of their own; whether they are told apart after
	// so few steps does not matter here, but chance is 1/3.
	e := readMetrics(t, "run/evaluation.json")
	if len(records) != 4 || e["features"] != "representation" || e["width"] != 32.0 || e["pretrain_on"] != "all" || e["train"] != 27.0 || e["test"] != 9.0 || len(e["splits"].([]any)) != 3 {
		t.Errorf("%d records, evaluation.json: %v", len(records), e)
	}
	if m["knn_whitened"] != nil || e["whitened"] != false {
		t.Errorf("metrics.json has an accuracy after whitening of 27 images of 32 values: %v", m)
	}
	if linear := e["linear"].(map[string]any)["mean"].(float64); linear < 0.5 {
		t.Errorf("linear accuracy %g", linear)
	}
	saved := networkIn(t, "run")
	if saved.ResNet == nil || saved.ResNet.Width() != 32 || saved.Images == nil || saved.Images.Size != 8 || saved.Training.Negatives != 14 ||
		!strings.Contains(saved.Config, "batch_size: 8") || saved.Version != configs.Version() {
		t.Errorf("model.safetensors: %+v", saved)
	}
	mustRun(t, append(tiny(), "--force", "--set", "network.width=2")...) // 16 values, fewer than images
	if m, e := readMetrics(t, "run/metrics.json"), readMetrics(t, "run/evaluation.json"); e["whitened"] != true || !reflect.DeepEqual(m["knn_whitened"], e["knn_whitened"]) {
		t.Errorf("after whitening: %v in metrics.json, %v in evaluation.json", m["knn_whitened"], e)
	}
	mustRun(t, append(tiny(), "--force")...)
	// The configuration in the folder gives the run again.
	mustRun(t, "simclr", "pretrain", "--config", "run/config.yaml", "-o", "again")
	sameFile(t, "again/"+rundir.ModelFile, "run/"+rundir.ModelFile)
	sameFile(t, "again/"+rundir.EvaluationFile, "run/"+rundir.EvaluationFile)

	// Evaluation
	must(t, os.Remove("run/"+rundir.EvaluationFile))
	stdout, _ = mustRun(t, "simclr", "evaluate", "run")
	sameFile(t, "again/"+rundir.EvaluationFile, "run/"+rundir.EvaluationFile)
	if !strings.Contains(stdout, "27 training and 9 test images, stratified, seeds: 3") || !strings.Contains(stdout, "pretrained on    all") {
		t.Error(stdout)
	}
	stdout, _ = mustRun(t, "simclr", "evaluate", "run", "--set", "evaluate.split=official", "-o", "official.json")
	if e := readMetrics(t, "official.json"); e["official_split"] != true || e["train"] != 24.0 || e["test"] != 12.0 || strings.Contains(stdout, "±") {
		t.Errorf("%v\n%s", e, stdout)
	}
	stdout, _ = mustRun(t, "simclr", "evaluate", "run", "--set", "evaluate.split=random", "-o", "random.json")
	if e := readMetrics(t, "random.json"); e["random_split"] != true || e["official_split"] != false || !strings.Contains(stdout, "27 training and 9 test images, random, seeds: 3") {
		t.Errorf("%v\n%s", e, stdout)
	}
	mustRun(t, "simclr", "evaluate", "run", "--pixels")
	if e := readMetrics(t, "run/"+rundir.PixelsFile); e["features"] != "pixels" || e["width"] != 192.0 || e["knn"].(map[string]any)["mean"] != 1.0 {
		t.Errorf("%v", e)
	}
	// Only the network's file, and images of another size.
	writeImages(t, "large", 12, 5, 3)
	stdout, _ = mustRun(t, append(set("data.path=large", "evaluate.test=6", "evaluate.split=stratified", "evaluate.k=3"), "simclr", "evaluate", "run/model.safetensors")...)
	if !strings.Contains(stdout, "18 training and 6 test images") || strings.Contains(stdout, "pretrained on") {
		t.Error(stdout)
	}
	sameFile(t, "again/"+rundir.ModelFile, "run/"+rundir.ModelFile)
	sameFile(t, "again/"+rundir.EvaluationFile, "run/"+rundir.EvaluationFile)

	// Representations
	if stdout, _ := mustRun(t, "simclr", "features", "run", "images", "-o", "images.npy"); stdout != "images.npy\n" {
		t.Errorf("stdout %q", stdout)
	}
	images, err := images.Open(t.Context(), []string{"images"}, images.Options{})
	must(t, err)
	plain := simclr.Paper()
	plain.Size = 8
	features, err := simclr.Features(t.Context(), saved.ResNet, &plain, images, nil, nil)
	must(t, err)
	if got := readPositions(t, "images.npy"); got.N != 36 || got.D != 32 || !slices.Equal(got.X, features.X) {
		t.Error("the file does not hold the representations of the images")
	}
	mustRun(t, "simclr", "features", "run", "images", "--whiten", "-o", "white.npy")
	white, err := simclr.Whiten(t.Context(), features, nil)
	must(t, err)
	if got := readPositions(t, "white.npy"); got.N != 36 || got.D != 32 || !slices.Equal(got.X, white.X) {
		t.Errorf("--whiten: %d×%d, or other values than Whiten's", got.N, got.D)
	}
	mustFail(t, 1, "--whiten: large: got 24 images, want more than the 32 values of a representation",
		"simclr", "features", "run", "large", "--set", "data.size=10", "--whiten", "-o", "white.npy")
	var table strings.Builder
	must(t, (&EvaluationMetrics{Result: simclr.Result{K: 15, IsWhitened: true, Whitened: simclr.Score{Mean: 0.75}, Splits: make([]simclr.SplitResult, 1)}}).print(&table))
	if !strings.Contains(table.String(), "after whitening  0.7500 (k = 15)\n") {
		t.Errorf("table:\n%s", &table)
	}
	mustRun(t, "simclr", "features", "run", "large", "--set", "data.size=10", "-o", "large.npy")

	// Labels do not change what a network learns.
	var labels strings.Builder
	for i := range 36 {
		fmt.Fprintln(&labels, i*i%2)
	}
	writeTestFile(t, "labels.txt", labels.String())
	mustRun(t, tiny("--set", "data.labels=labels.txt", "-o", "other")...)
	sameWeights(t, "run", "other")
	if readText(t, "run/"+rundir.EvaluationFile) == readText(t, "other/"+rundir.EvaluationFile) {
		t.Error("the evaluation does not depend on the labels")
	}

	// The size of whole images does not change training, and can also be chosen
	// afterwards.
	mustRun(t, tiny("--set", "views.whole_size=12", "-o", "whole")...)
	sameWeights(t, "run", "whole")
	if size := networkIn(t, "whole").Images.Size; size != 12 {
		t.Errorf("the network's images have %d pixels a side", size)
	}
	mustRun(t, "simclr", "features", "whole", "images", "-o", "whole.npy")
	for network, flags := range map[string][]string{"run": set("views.whole_size=12"), "run/model.safetensors": set("views.whole_size=12"), "whole/model.safetensors": nil} {
		mustRun(t, append([]string{"simclr", "features", network, "images", "-o", "other.npy"}, flags...)...)
		sameFile(t, "other.npy", "whole.npy")
	}
	if readText(t, "images.npy") == readText(t, "whole.npy") {
		t.Error("features do not depend on the size")
	}
	stdout, _ = mustRun(t, "simclr", "evaluate", "run", "--set", "views.whole_size=12")
	if m := readMetrics(t, "run/evaluation.json"); m["whole_size"] != 12.0 || !strings.Contains(stdout, "of images at 12×12 pixels") {
		t.Errorf("the figures do not say at what size: %v\n%s", m, stdout)
	}

	// A finished run is resumed with its images at another place, for more epochs, and
	// measured otherwise.
	results := imageResults(t)
	mustRun(t, "simclr", "pretrain", "--quiet", "--resume", "run")
	delete(results, rundir.EvaluationFile)
	got := imageResults(t)
	delete(got, rundir.EvaluationFile)
	sameResults(t, got, results)
	must(t, os.Rename("images", "moved"))
	_, stderr = mustRun(t, append([]string{"simclr", "pretrain", "--resume", "run", "--epochs", "5"}, set("data.path=moved", "evaluate.split=official", "monitor.every=1")...)...)
	if !strings.Contains(stderr, "the learning rate is nearly 0 by now") {
		t.Errorf("the end of the cosine is not named:\n%s", stderr)
	}
}

func TestSimCLRPretrainOptions(t *testing.T) {
	folderOfImages(t)
	for name, tc := range map[string]struct{ settings, key string }{
		"neg":                  {"loss.name=neg loss.z_bar=10", ""},
		"nc":                   {"loss.name=nc", "log_z"},
		"umap":                 {"loss.name=umap loss.metric=euclidean", ""},
		"two negatives":        {"loss.negatives=2", ""},
		"full":                 {"loss.negatives=full", ""},
		"training images":      {"simclr.pretrain_on=train", "knn"},
		"smaller views":        {"views.size=5", ""},
		"larger views":         {"views.size=11", ""},
		"images scaled":        {"data.size=6", ""},
		"several paths":        {"data.path=[images,images]", ""},
		"official split":       {"evaluate.split=official", ""},
		"a random split":       {"evaluate.split=random", ""},
		"a leaking split":      {"simclr.pretrain_on=train evaluate.split=stratified", ""},
		"a leaking random one": {"simclr.pretrain_on=train evaluate.split=random", ""},
		"the monitor alone":    {"evaluate.at_end=false", "monitor"},
		"neither classifier":   {"evaluate.at_end=false monitor.every=0", ""},
		"widths of its own":    {"network.hidden=7 network.out=3", ""},
		"without momentum":     {"train.momentum=0 train.lr=1e-4", ""},
	} {
		stdout, stderr := mustRun(t, tiny(append(set(strings.Fields(tc.settings)...), "--epochs", "2", "--force")...)...)
		if want := "(kNN accuracy of 9 images among 27, k = 3)"; strings.Contains(stdout, "monitor") != strings.Contains(stdout, want) {
			t.Errorf("%s: stdout lacks %q:\n%s", name, want, stdout)
		}
		m := readMetrics(t, "run/metrics.json")
		if tc.key != "" && m[tc.key] == nil {
			t.Errorf("%s: metrics.json has no %s", name, tc.key)
		}
		if l := m["loss"].(float64); math.IsNaN(l) || l == 0 {
			t.Errorf("%s: loss %g", name, l)
		}
		if leaks := strings.Contains(stderr, "some test images of a drawn split are among the training images that the network was pretrained on"); leaks != strings.HasPrefix(name, "a leaking") {
			t.Errorf("%s: stderr %q", name, stderr)
		}
	}
}

// imageResults reads what must be the same bits whether a pretraining was
// stopped or not: all but times.
func imageResults(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{rundir.ModelFile, rundir.EvaluationFile, "config.yaml"} {
		files[name] = readText(t, "run/"+name)
	}
	for _, r := range imageRecords(t) {
		r.Seconds, r.ImagesPerSecond = 0, 0
		text, err := json.Marshal(r)
		must(t, err)
		files["records"] += string(text) + "\n"
	}
	m := readMetrics(t, "run/metrics.json")
	delete(m, "seconds")
	delete(m, "peak_rss_bytes")
	delete(m, "devices") // of the last process
	files["metrics"] = fmt.Sprint(m)
	return files
}

// A pretraining that is killed or interrupted at any time and resumed gives the files of
// an uninterrupted one, bit for bit.
func TestStoppedPretrainingIsResumed(t *testing.T) {
	folderOfImages(t)
	for moment, signal := range map[int]os.Signal{0: os.Kill, 1: os.Interrupt, 9: os.Kill} {
		args := tiny(append(set("checkpoint.minutes=1e-4", "loss.name=nc"), "--quiet", "--epochs", "16")...)
		if moment == 9 {
			args = append(args, set("train.optimizer=muon", "device.name=cpu")...)
		}
		must(t, os.RemoveAll("run"))
		mustRun(t, args...)
		want := imageResults(t)
		must(t, os.RemoveAll("run"))
		cmd, stderr := program(t, args...)
		waitForRecords(t, moment)
		must(t, cmd.Process.Signal(signal))
		if err := cmd.Wait(); err == nil {
			t.Logf("moment %d: the run was over before it was stopped", moment)
		} else if signal == os.Interrupt {
			for _, part := range []string{"cne: interrupted after epoch ", "the network so far is in " + filepath.Join("run", rundir.ModelFile), `"cne simclr pretrain --resume run" continues`} {
				if !strings.Contains(stderr.String(), part) {
					t.Errorf("%q lacks %q", stderr, part)
				}
			}
			if _, stderr := mustRun(t, "simclr", "evaluate", "run", "--quiet"); stderr != "warning: the run has not ended; its network is the one at the interruption run=run\n" {
				t.Errorf("stderr %q", stderr)
			}
		}
		mustRun(t, "simclr", "pretrain", "--quiet", "--resume", "run")
		sameResults(t, imageResults(t), want)
	}
}

// Finished networks are evaluated alike whether they were trained in bf16 or not: in
// float32 on the CPU, and on a GPU in TF32 unless the run or the command line asks for
// float32.
func TestSimCLRUsesNetworksOfAnyPrecision(t *testing.T) {
	folderOfImages(t)
	mustRun(t, tiny(set("monitor.every=0", "device.precision=tf32")...)...)
	mustRun(t, "simclr", "features", "run", "images", "-o", "a.npy")
	config := readText(t, "run/config.yaml")
	for _, c := range []struct {
		precision string
		args      []string
		tf32      bool
	}{
		{"tf32", nil, true},
		{"bf16", nil, true},
		{"float32", nil, false},
		{"bf16", set("device.precision=float32"), false},
		{"float32", set("device.precision=tf32"), true},
	} {
		changed := strings.Replace(config, "precision: tf32", "precision: "+c.precision, 1)
		if !strings.Contains(changed, "precision: "+c.precision) {
			t.Fatalf("the configuration of the run has no precision: %s", config)
		}
		writeTestFile(t, "run/config.yaml", changed)
		mustRun(t, append([]string{"simclr", "features", "run", "images", "-o", "b.npy"}, c.args...)...)
		sameFile(t, "a.npy", "b.npy")
		cmd := simclrEvaluateCmd()
		must(t, cmd.ParseFlags(append(set("device.name=cpu"), c.args...)))
		cmd.SetContext(t.Context())
		cmd.SetErr(io.Discard)
		r := new(representation)
		must(t, r.open(cmd, "run", false))
		if r.device.TF32 != c.tf32 {
			t.Errorf("a run in %s, with %v: TF32 is %t", c.precision, c.args, r.device.TF32)
		}
	}
	if _, _, stderr := runCne(t.Context(), "simclr", "features", "run", "images", "--set", "device.name=cuda", "-o", "c.npy"); strings.Contains(stderr, "precision") {
		t.Errorf("a GPU is refused: %s", stderr)
	}
}

// The images of a run are known, and found from elsewhere.
func TestSimCLREvaluateKnowsTheImages(t *testing.T) {
	folderOfImages(t)
	work, err := os.Getwd()
	must(t, err)
	for part, want := range map[string]string{"all": "all", "train": "train", "auto": "train"} {
		mustRun(t, tiny("--set", "simclr.pretrain_on="+part, "--set", "data.size=6", "-o", part)...)
		stdout, _ := mustRun(t, "simclr", "evaluate", part)
		if m := readMetrics(t, part+"/metrics.json"); m["pretrain_on"] != want || !strings.Contains(stdout, "pretrained on    "+want) ||
			strings.Contains(stdout, "published split") != (want == "train") {
			t.Errorf("%s: metrics.json %v, stdout:\n%s", part, m, stdout)
		}
	}
	t.Chdir(t.TempDir())
	mustRun(t, "simclr", "evaluate", filepath.Join(work, "all"))
	t.Chdir(work)
	must(t, os.Rename("images/train/blue/0.png", "images/train/blue/9.png"))
	for _, part := range []string{"all", "train", "auto"} {
		mustFail(t, 1, "the images of data.path (images) are not those that the run in "+part+" was trained on", "simclr", "evaluate", part)
		mustRun(t, "simclr", "evaluate", part, "--set", "data.path=./images")
		mustRun(t, "simclr", "evaluate", part, "--set", "data.size=7")
	}
}
