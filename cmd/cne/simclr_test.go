package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cne/data"
	"cne/internal/rng"
	"cne/internal/rundir"
	"cne/internal/version"
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

// tiny are the flags of a quick pretraining on images of 8×8 pixels in the
// folder images.
func tiny(more ...string) []string {
	return append([]string{"simclr", "pretrain", "--set", "data.path=images", "--set", "views.size=8", "--set", "network.width=4",
		"--set", "train.batch_size=8", "--set", "train.warm_up=1", "--set", "monitor.every=2", "--set", "monitor.train=12", "--set", "monitor.test=9",
		"--set", "evaluate.k=3", "--set", "evaluate.test=9", "--epochs", "4", "-o", "run"}, more...)
}

func mustRun(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := runCne(t.Context(), args...)
	if code != 0 {
		t.Fatalf("cne %s: exit code %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout, stderr
}

func TestSimCLRPretrainWritesARun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
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
	for _, key := range []string{"temperature", "log_z"} {
		if _, ok := m[key]; ok {
			t.Errorf("metrics.json has %s, which is not learnt", key)
		}
	}
	records := imageRecords(t)
	if len(records) != 4 {
		t.Fatalf("%d records, want 4", len(records))
	}
	for _, r := range records {
		if (r.Accuracy != nil) != (r.Epoch%2 == 0) || r.Loss == 0 || r.ImagesPerSecond <= 0 {
			t.Errorf("record %+v", r)
		}
	}
	// The classes have colours of their own; whether they are told apart after
	// so few steps does not matter here, but chance is 1/3.
	e := readMetrics(t, "run/evaluation.json")
	if e["features"] != "representation" || e["width"] != 32.0 || e["pretrain_on"] != "all" || e["train"] != 27.0 || e["test"] != 9.0 || len(e["splits"].([]any)) != 3 {
		t.Errorf("evaluation.json: %v", e)
	}
	if linear := e["linear"].(map[string]any)["mean"].(float64); linear < 0.5 {
		t.Errorf("linear accuracy %g", linear)
	}

	saved, err := model.Load("run/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if saved.ResNet == nil || saved.ResNet.Width() != 32 || saved.Images == nil || saved.Images.Size != 8 || saved.Training.Negatives != 14 ||
		!strings.Contains(saved.Config, "batch_size: 8") || saved.Version != version.String() {
		t.Errorf("model.safetensors: %+v", saved)
	}
	// The configuration in the folder gives the run again.
	mustRun(t, "simclr", "pretrain", "--config", "run/config.yaml", "-o", "again")
	for _, name := range []string{rundir.ModelFile, rundir.EvaluationFile} {
		if readText(t, "again/"+name) != readText(t, "run/"+name) {
			t.Errorf("the run from its config.yaml gives another %s", name)
		}
	}
}

func imageRecords(t *testing.T) []simclr.Record {
	t.Helper()
	var records []simclr.Record
	for line := range strings.Lines(readText(t, "run/metrics.jsonl")) {
		var r simclr.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		records = append(records, r)
	}
	return records
}

func TestSimCLRPretrainOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		keys  []string // of metrics.json
	}{
		"neg":                   {[]string{"--set", "loss.name=neg", "--set", "loss.z_bar=10"}, nil},
		"nc":                    {[]string{"--set", "loss.name=nc"}, []string{"log_z"}},
		"umap":                  {[]string{"--set", "loss.name=umap", "--set", "loss.metric=euclidean"}, nil},
		"learnt temperature":    {[]string{"--set", "loss.learn_temperature=true"}, []string{"temperature"}},
		"two negatives":         {[]string{"--set", "loss.negatives=2"}, nil},
		"full":                  {[]string{"--set", "loss.negatives=full"}, nil},
		"training images":       {[]string{"--set", "simclr.pretrain_on=train"}, []string{"knn"}},
		"no decay of norms":     {[]string{"--set", "train.decay_norms=false"}, nil},
		"log every other":       {[]string{"--set", "train.log_every=3"}, nil},
		"smaller views":         {[]string{"--set", "views.size=5"}, nil},
		"larger views":          {[]string{"--set", "views.size=11"}, nil},
		"images scaled":         {[]string{"--set", "data.size=6"}, nil},
		"several paths":         {[]string{"--set", "data.path=[images, images]"}, nil},
		"official split":        {[]string{"--set", "evaluate.split=official"}, nil},
		"the monitor alone":     {[]string{"--set", "evaluate.at_end=false", "--set", "monitor.test=1000"}, []string{"monitor"}},
		"neither classifier":    {[]string{"--set", "evaluate.at_end=false", "--set", "monitor.every=0"}, nil},
		"widths of its own":     {[]string{"--set", "network.hidden=7", "--set", "network.out=3"}, nil},
		"sum, without momentum": {[]string{"--set", "loss.reduction=sum", "--set", "train.momentum=0", "--set", "train.lr=1e-4"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeImages(t, "images", 8, 8, 4)
			stdout, _ := mustRun(t, tiny(append(tc.flags, "--epochs", "2")...)...)
			if want := "(kNN accuracy of 9 images among 12, k = 3)"; strings.Contains(stdout, "monitor") != strings.Contains(stdout, want) {
				t.Errorf("stdout lacks %q:\n%s", want, stdout)
			}
			m := readMetrics(t, "run/metrics.json")
			for _, key := range tc.keys {
				if _, ok := m[key]; !ok {
					t.Errorf("metrics.json has no %s", key)
				}
			}
			if l := m["loss"].(float64); math.IsNaN(l) || l == 0 {
				t.Errorf("loss %g", l)
			}
		})
	}
}

// Labels have no part in what a network learns.
func TestSimCLRPretrainReadsNoLabels(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tiny()...)
	var labels strings.Builder
	for i := range 36 {
		fmt.Fprintln(&labels, i*i%2)
	}
	writeTestFile(t, "labels.txt", labels.String())
	mustRun(t, tiny("--set", "data.labels=labels.txt", "-o", "other")...)
	weights := func(folder string) map[string][]float32 {
		saved, err := model.Load(folder + "/" + rundir.ModelFile)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string][]float32{}
		for name, a := range saved.ResNet.Tensors() {
			all[name] = slices.Clone(op.Data[float32](a))
		}
		return all
	}
	run, other := weights("run"), weights("other")
	for name := range run {
		if !slices.Equal(run[name], other[name]) {
			t.Errorf("%s depends on the labels", name)
		}
	}
	if readText(t, "run/"+rundir.EvaluationFile) == readText(t, "other/"+rundir.EvaluationFile) {
		t.Error("the evaluation does not depend on the labels")
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
		if err != nil {
			t.Fatal(err)
		}
		files["records"] += string(text) + "\n"
	}
	m := readMetrics(t, "run/metrics.json")
	delete(m, "seconds")
	delete(m, "peak_rss_bytes")
	files["metrics"] = fmt.Sprint(m)
	return files
}

// A pretraining whose process is killed, whenever that is, and which is resumed
// gives the files of one that was not, bit for bit.
func TestKilledPretrainingIsResumed(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	args := tiny("--quiet", "--epochs", "16", "--set", "checkpoint.minutes=1e-4", "--set", "loss.name=nc", "--set", "loss.learn_temperature=true")
	mustRun(t, args...)
	want := imageResults(t)
	for _, moment := range []int{0, 1, 9} {
		must(t, os.RemoveAll("run"))
		cmd, _ := program(t, args...)
		waitForRecords(t, moment)
		must(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil {
			t.Logf("moment %d: the run was over before it was killed", moment)
		}
		mustRun(t, "simclr", "pretrain", "--quiet", "--resume", "run")
		sameResults(t, imageResults(t), want)
	}
}

func TestPretrainingIsInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // once training is under way
		for ctx.Err() == nil {
			if lines, err := os.ReadFile("run/metrics.jsonl"); err == nil && len(lines) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, _, stderr := runCne(ctx, tiny("--epochs", "100000", "--set", "monitor.every=0")...)
	if code != 1 || !strings.Contains(stderr, "cne: interrupted after epoch ") || !strings.Contains(stderr, "the network so far is in "+filepath.Join("run", rundir.ModelFile)) ||
		!strings.Contains(stderr, `"cne simclr pretrain --resume run" goes on`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, stderr := mustRun(t, "simclr", "evaluate", "run", "--quiet"); stderr != "warning: the run has not ended; its network is what was learnt when it was interrupted run=run\n" {
		t.Errorf("stderr %q", stderr)
	}
}

func TestSimCLRInterruptedEarly(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, stderr := runCne(ctx, tiny()...)
	if _, err := os.Stat("run"); code != 1 || !strings.HasSuffix(stderr, "\ncne: interrupted while the images were read; nothing was written\n") || err == nil {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestResumePretrainingWithOtherSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		want  string // of the one line on stderr; "" for success
	}{
		"nothing":          {nil, ""},
		"more epochs":      {[]string{"--epochs", "5"}, ""},
		"what is measured": {[]string{"--set", "evaluate.split=official", "--set", "monitor.every=1", "--set", "train.log_every=2"}, ""},
		"moved images":     {[]string{"--set", "data.path=moved"}, ""},
		"other images":     {[]string{"--set", "data.path=other"}, "cne: the images of data.path are not those that the run was begun with"},
		"fewer epochs":     {[]string{"--epochs", "3"}, "cne: the run in run was begun with train.epochs 4, not 3 (--epochs); leave that as it was, or start another run\n"},
		"other views":      {[]string{"--set", "views.hue=0.2"}, "cne: the run in run was begun with views.hue 0.1, not 0.2 (--set views.hue)"},
		"another protocol": {[]string{"--set", "simclr.pretrain_on=train"}, "cne: the run in run was begun with simclr.pretrain_on all, not train"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeImages(t, "images", 8, 8, 4)
			writeImages(t, "moved", 8, 8, 4)
			writeImages(t, "other", 8, 9, 4)
			mustRun(t, tiny()...)
			before, results := listFiles(t, "run"), imageResults(t)
			code, _, stderr := runCne(t.Context(), append([]string{"simclr", "pretrain", "--quiet", "--resume", "run"}, tc.flags...)...)
			if tc.want == "" && code != 0 || tc.want != "" && (code == 0 || !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1) {
				t.Errorf("exit code %d, stderr %q, want %q", code, stderr, tc.want)
			}
			if tc.want != "" && !slices.Equal(listFiles(t, "run"), before) {
				t.Error("the folder has changed")
			}
			if tc.flags == nil {
				sameResults(t, imageResults(t), results)
			}
		})
	}
}

// Runs of one command are not taken for those of another.
func TestRunsOfOtherCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	writePoints(t, "points.csv", 60, 5)
	mustRun(t, tiny("-o", "pictures")...)
	mustRun(t, short("-o", "points")...)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"train", "--resume", "pictures"}, `cne: the run in pictures is one of "cne simclr pretrain", which "cne train" cannot resume`},
		{[]string{"simclr", "pretrain", "--resume", "points"}, `cne: the run in points is one of "cne train", which "cne simclr pretrain" cannot resume`},
		{[]string{"simclr", "evaluate", "points"}, `cne: the run in points is one of "cne train"; give one of "cne simclr pretrain"`},
		{[]string{"simclr", "evaluate", "pictures/model.safetensors", "--pixels"}, "pictures/model.safetensors is a file, but the pixels are those of the images of a run; give a run folder"},
		{[]string{"simclr", "features", "points/model.safetensors", "images"}, `points/model.safetensors holds a model of points, not one of images`},
		{[]string{"project", "--model", "pictures", "points.csv", "-o", "p.npy"}, "images"},
	} {
		if code, _, stderr := runCne(t.Context(), tc.args...); code != 1 || !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %q, want %q", tc.args, code, stderr, tc.want)
		}
	}
}

// The size at which whole images are seen changes nothing of what is learnt, and can be
// chosen afterwards, too.
func TestSimCLRWholeSize(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tiny("--set", "monitor.every=0")...)
	mustRun(t, tiny("--set", "monitor.every=0", "--set", "views.whole_size=12", "-o", "large")...)
	small, err := model.Load("run/model.safetensors")
	must(t, err)
	large, err := model.Load("large/model.safetensors")
	must(t, err)
	for name, a := range small.ResNet.Tensors() {
		if !slices.Equal(op.Data[float32](a), op.Data[float32](large.ResNet.Tensors()[name])) {
			t.Fatalf("%s is learnt otherwise", name)
		}
	}
	if small.Images.Size != 8 || large.Images.Size != 12 {
		t.Errorf("the networks' images have %d and %d pixels a side", small.Images.Size, large.Images.Size)
	}
	mustRun(t, "simclr", "features", "run", "images", "--set", "views.whole_size=12", "-o", "a.npy")
	mustRun(t, "simclr", "features", "large", "images", "-o", "b.npy")
	mustRun(t, "simclr", "features", "run", "images", "-o", "c.npy")
	mustRun(t, "simclr", "features", "run/model.safetensors", "images", "--set", "views.whole_size=12", "-o", "d.npy")
	mustRun(t, "simclr", "features", "large/model.safetensors", "images", "-o", "e.npy")
	a, b := readText(t, "a.npy"), readText(t, "b.npy")
	if a != b || a == readText(t, "c.npy") || a != readText(t, "d.npy") || a != readText(t, "e.npy") {
		t.Error("features at a size that is chosen afterwards are not those of a run with it")
	}
	stdout, _ := mustRun(t, "simclr", "evaluate", "run", "--set", "views.whole_size=12")
	if m := readMetrics(t, "run/evaluation.json"); m["whole_size"] != 12.0 || !strings.Contains(stdout, "of images at 12×12 pixels") {
		t.Errorf("the figures do not say at what size: %v\n%s", m, stdout)
	}
}

// Finished networks are computed alike whether they were trained in bf16 or not: in float32
// on the CPU, and on a GPU in TF32 unless the run, or who calls, wants float32.
func TestSimCLRUsesNetworksOfAnyPrecision(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tiny("--set", "monitor.every=0", "--set", "device.precision=tf32")...)
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
		{"bf16", []string{"--set", "device.precision=float32"}, false},
		{"float32", []string{"--set", "device.precision=tf32"}, true},
	} {
		changed := strings.Replace(config, "precision: tf32", "precision: "+c.precision, 1)
		if !strings.Contains(changed, "precision: "+c.precision) {
			t.Fatalf("the configuration of the run has no precision: %s", config)
		}
		writeTestFile(t, "run/config.yaml", changed)
		mustRun(t, append([]string{"simclr", "features", "run", "images", "-o", "b.npy"}, c.args...)...)
		if readText(t, "a.npy") != readText(t, "b.npy") {
			t.Errorf("%s: the features are others", c.precision)
		}
		cmd := simclrEvaluateCmd()
		if err := cmd.ParseFlags(append([]string{"--set", "device.name=cpu"}, c.args...)); err != nil {
			t.Fatal(err)
		}
		cmd.SetContext(t.Context())
		cmd.SetErr(io.Discard)
		r, err := openRepresentation(cmd, "run", false)
		if err != nil {
			t.Fatal(err)
		}
		if r.device.TF32 != c.tf32 {
			t.Errorf("a run in %s, with %v: TF32 is %t", c.precision, c.args, r.device.TF32)
		}
	}
	if _, _, stderr := runCne(t.Context(), "simclr", "features", "run", "images", "--set", "device.name=cuda", "-o", "c.npy"); strings.Contains(stderr, "precision") {
		t.Errorf("a GPU is refused: %s", stderr)
	}
}

func TestSimCLREvaluate(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tiny()...)
	weights, atEnd := readText(t, "run/"+rundir.ModelFile), readText(t, "run/"+rundir.EvaluationFile)
	must(t, os.Remove("run/"+rundir.EvaluationFile))
	stdout, _ := mustRun(t, "simclr", "evaluate", "run")
	if readText(t, "run/"+rundir.EvaluationFile) != atEnd {
		t.Error("the evaluation differs from that at the end of the run")
	}
	if !strings.Contains(stdout, "27 training and 9 test images, stratified, seeds: 3") || !strings.Contains(stdout, "pretrained on    all") {
		t.Error(stdout)
	}
	stdout, _ = mustRun(t, "simclr", "evaluate", "run", "--set", "evaluate.split=official", "-o", "official.json")
	if e := readMetrics(t, "official.json"); e["official_split"] != true || e["train"] != 24.0 || e["test"] != 12.0 || strings.Contains(stdout, "±") {
		t.Errorf("%v\n%s", e, stdout)
	}
	_, stderr := mustRun(t, tiny("-o", "mixed", "--set", "simclr.pretrain_on=train", "--set", "evaluate.split=stratified")...)
	if !strings.Contains(stderr, "some test images of a stratified split are among the training images that the network was pretrained on") {
		t.Errorf("stderr %q", stderr)
	}
	mustRun(t, "simclr", "evaluate", "run", "--pixels")
	if e := readMetrics(t, "run/"+rundir.PixelsFile); e["features"] != "pixels" || e["width"] != 192.0 || e["knn"].(map[string]any)["mean"] != 1.0 {
		t.Errorf("%v", e)
	}
	// The file of the network alone, and images of another size.
	writeImages(t, "large", 12, 5, 3)
	stdout, _ = mustRun(t, "simclr", "evaluate", "run/model.safetensors", "--set", "data.path=large", "--set", "evaluate.test=6", "--set", "evaluate.k=3")
	if !strings.Contains(stdout, "18 training and 6 test images") || strings.Contains(stdout, "pretrained on") {
		t.Error(stdout)
	}
	if readText(t, "run/"+rundir.ModelFile) != weights || readText(t, "run/"+rundir.EvaluationFile) != atEnd {
		t.Error("an evaluation has changed the run")
	}
}

func TestSimCLRFeatures(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tiny()...)
	stdout, _ := mustRun(t, "simclr", "features", "run", "images", "-o", "images.npy")
	if stdout != "images.npy\n" {
		t.Errorf("stdout %q", stdout)
	}
	f, err := os.Open("images.npy")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := data.ReadNPY(f)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := model.Load("run/" + rundir.ModelFile)
	if err != nil {
		t.Fatal(err)
	}
	images, err := data.OpenImages(t.Context(), []string{"images"}, data.ImageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plain := simclr.Paper()
	plain.Size = 8
	want, err := simclr.Features(t.Context(), saved.ResNet, &plain, images, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Points.N != 36 || got.Points.D != 32 || !slices.Equal(got.Points.X, want.X) {
		t.Error("the file does not hold the representations of the images")
	}
	for _, tc := range [][]string{
		{"nowhere", "images.npy", "stat nowhere: no such file or directory); check the path (INPUT)"},
		{"images.npy", "images.npy", "images.npy would be replaced by the results (--output)"},
	} {
		code, _, stderr := runCne(t.Context(), "simclr", "features", "run", tc[0], "-o", tc[1])
		if code != 1 || !strings.Contains(stderr, tc[2]) {
			t.Errorf("%v: exit code %d, %q", tc, code, stderr)
		}
	}
	writeImages(t, "large", 16, 2, 1)
	mustRun(t, "simclr", "features", "run", "large", "--set", "data.size=10", "-o", "large.npy")
}

func TestSimCLRViews(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	stdout, _ := mustRun(t, "simclr", "views", "--set", "data.path=images", "--set", "views.size=8", "--images", "4", "--views", "3", "--zoom", "2", "-o", "grid.png")
	if stdout != "grid.png\n" {
		t.Errorf("stdout %q", stdout)
	}
	f, err := os.Open("grid.png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	im, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if size := im.Bounds().Size(); size != image.Pt(4*20-4, 4*20-4) {
		t.Errorf("size %v", size)
	}
	first := readText(t, "grid.png")
	mustRun(t, "simclr", "views", "--set", "data.path=images", "--set", "views.size=8", "--images", "4", "--views", "3", "--zoom", "2", "-o", "grid.png", "--epoch", "2")
	if readText(t, "grid.png") == first {
		t.Error("the views of two epochs are the same")
	}
	// There are no more rows than images.
	mustRun(t, "simclr", "views", "--set", "data.path=images", "--set", "views.size=8", "--images", "100", "--zoom", "1")
}

func TestSimCLRBadInput(t *testing.T) {
	large := image.NewRGBA(image.Rect(0, 0, 9, 8))
	for i := range large.Pix {
		large.Pix[i] = 255
	}
	broken := func(t *testing.T, count int) {
		for i := range count {
			writeTestFile(t, fmt.Sprintf("images/train/red/broken-%02d.png", i), "\x89PNG\r\n\x1a\nnonsense")
		}
	}
	arrays := func(name string, c int) func(t *testing.T) {
		return func(t *testing.T) { writeArray(t, name, 36, 8, 8, c) }
	}
	for name, tc := range map[string]struct {
		spoil func(t *testing.T)
		flags []string
		want  string // part of the message
	}{
		"missing":                               {nil, []string{"--set", "data.path=nowhere"}, "check the path (data.path)"},
		"missing labels":                        {nil, []string{"--set", "data.labels=nowhere.txt"}, "(data.labels)"},
		"sizes":                                 {func(t *testing.T) { writePNG(t, "images/train/red/large.png", large) }, nil, "large.png"},
		"one pixel":                             {func(t *testing.T) { writePNG(t, "images/train/red/pixel.png", image.NewRGBA(image.Rect(0, 0, 1, 1))) }, []string{"--set", "data.size=8"}, "pixel.png (it has a single pixel)"},
		"sizes, what to set":                    {func(t *testing.T) { writePNG(t, "images/train/red/large.png", large) }, nil, "(data.size)"},
		"transparent":                           {arrays("rgba.npy", 4), []string{"--set", "data.path=rgba.npy"}, "x[..., :3] drops transparency\n"},
		"unreadable":                            {func(t *testing.T) { broken(t, 1) }, nil, "broken-00.png"},
		"many unreadable":                       {func(t *testing.T) { broken(t, 13) }, nil, "images: 13 of the 49 images cannot be read: train/red/broken-00.png"},
		"how many unreadable":                   {func(t *testing.T) { broken(t, 13) }, nil, "broken-09.png (unexpected EOF), and 3 more; replace or remove them, or have them left out (data.skip_broken)\n"},
		"empty class":                           {func(t *testing.T) { must(t, os.Mkdir("images/train/yellow", 0o777)) }, nil, "yellow"},
		"no images":                             {func(t *testing.T) { must(t, os.Mkdir("empty", 0o777)) }, []string{"--set", "data.path=empty"}, "empty"},
		"not images":                            {func(t *testing.T) { writeTestFile(t, "x.csv", "1,2\n3,4\n") }, []string{"--set", "data.path=x.csv"}, "x.csv"},
		"images of one pixel":                   {func(t *testing.T) { writeArray(t, "pixels.npy", 36, 1, 1, 3) }, []string{"--set", "data.path=pixels.npy", "--set", "evaluate.at_end=false", "--set", "monitor.every=0"}, "pixels: the images have a single pixel each"},
		"fewer than a batch":                    {nil, []string{"--set", "train.batch_size=37"}, "train.batch_size is 37, but there are 36 images; give more images, or take smaller batches"},
		"fewer than a batch of training images": {nil, []string{"--set", "train.batch_size=25", "--set", "simclr.pretrain_on=train"}, "train.batch_size is 25, but there are 24 images"},
		"no labels":                             {arrays("colour.npy", 3), []string{"--set", "data.path=colour.npy"}, "has none; put the images into a folder for each class, or give a file of labels (data.labels); or set evaluate.at_end to false"},
		"no labels to watch":                    {arrays("colour.npy", 3), []string{"--set", "data.path=colour.npy", "--set", "evaluate.at_end=false"}, "or set monitor.every to 0"},
		"too few labels":                        {func(t *testing.T) { writeTestFile(t, "l.txt", "1\n2\n") }, []string{"--set", "data.labels=l.txt"}, "2 labels"},
		"no split":                              {arrays("colour.npy", 3), []string{"--set", "data.path=colour.npy", "--set", "simclr.pretrain_on=train"}, "or set simclr.pretrain_on to all"},
		"too many test images":                  {nil, []string{"--set", "evaluate.test=36"}, "evaluate.test is 36, but there are 36 images, of which some are to be trained on; take fewer, or set evaluate.at_end to false and monitor.every to 0\n"},
		"too many test images to watch":         {nil, []string{"--set", "evaluate.test=36", "--set", "evaluate.at_end=false"}, "evaluate.test is 36, but there are 36 images"},
		"no published split":                    {arrays("colour.npy", 3), []string{"--set", "data.path=colour.npy", "--set", "data.labels=l.txt", "--set", "evaluate.split=official"}, "or take no published split (evaluate.split)"},
		"too many neighbours":                   {nil, []string{"--set", "evaluate.k=28", "--set", "monitor.every=0"}, "evaluate.k is 28, but of 36 images evaluate.test leaves 27"},
		"config of a train run":                 {func(t *testing.T) { writeTestFile(t, "points.yaml", "graph: {k: 5}") }, []string{"--config", "points.yaml"}, `points.yaml:1: graph is a key of "cne train"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeImages(t, "images", 8, 8, 4)
			writeTestFile(t, "l.txt", strings.Repeat("a\nb\n", 18))
			if tc.spoil != nil {
				tc.spoil(t)
			}
			code, stdout, stderr := runCne(t.Context(), tiny(append(tc.flags, "--quiet")...)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stderr %q, want %q", code, stderr, tc.want)
			}
			if !strings.HasPrefix(stderr, "cne: ") || strings.Contains(stderr, "goroutine") {
				t.Errorf("stderr %q", stderr)
			}
			if _, err := os.Stat("run"); err == nil {
				t.Error("there is a run folder")
			}
		})
	}
}

// writeArray writes n images of h×w pixels with c colours as an array.
func writeArray(t *testing.T, name string, n, h, w, c int) {
	t.Helper()
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d, %d, %d), }", n, h, w, c)
	header += strings.Repeat(" ", 63-(len(header)+10)%64) + "\n"
	b := []byte("\x93NUMPY\x01\x00")
	b = append(b, byte(len(header)), byte(len(header)>>8))
	b = append(b, header...)
	for i := range n * h * w * c {
		b = append(b, byte(37*i))
	}
	writeTestFile(t, name, string(b))
}

func TestSimCLRUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"simclr", 0, ""},
		{"simclr pretrian", 2, `there is no command "simclr pretrian"; did you mean pretrain?`},
		{"simclr pretrain extra", 1, "stat extra: no such file or directory"},
		{"simclr pretrain extra --set data.path=more", 2, "the points are given twice"},
		{"simclr pretrain --resume run --force", 2, "--resume goes on with a run and --force replaces it"},
		{"simclr pretrain --resume run", 1, `there is no run in run to be resumed; start one with "cne simclr pretrain"`},
		{"simclr evaluate", 2, "needs one argument"},
		{"simclr evaluate nowhere", 1, `there is no run, and no network (stat nowhere: no such file or directory); give a run folder of "cne simclr pretrain"`},
		{"simclr evaluate run -o result.txt", 2, `--output is "result.txt", but must end in .json`},
		{"simclr evaluate run -o no/result.json", 1, "--output is no/result.json, but there is no folder no; make it"},
		{"simclr features run x -o x.csv", 2, `--output is "x.csv", but must end in .npy`},
		{"simclr features run x.npy -o no/x.npy", 1, "--output is no/x.npy, but there is no folder no; make it"},
		{"simclr views -o x.jpg", 2, `--output is "x.jpg", but must end in .png`},
		{"simclr views -o no/x.png", 1, "--output is no/x.png, but there is no folder no; make it"},
		{"simclr evaluate .", 1, "the folder . holds no config.yaml written by cne"},
		{"simclr features run", 2, "needs two arguments"},
		{"simclr views --images 0", 2, "must be at least 1"},
		{"simclr config --set views.siz=3", 2, "did you mean views.size?"},
		{"simclr config --check", 0, ""},
	} {
		code, _, stderr := runCne(t.Context(), strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(stderr, tc.want) {
			t.Errorf("cne %s: exit code %d, stderr %q", tc.args, code, stderr)
		}
	}
}

// A run that has not ended has no network to be evaluated.
func TestSimCLREvaluateTooEarly(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tiny()...)
	must(t, os.Remove("run/"+rundir.ModelFile))
	code, _, stderr := runCne(t.Context(), "simclr", "evaluate", "run")
	if code != 1 || !strings.Contains(stderr, `which is written when the run ends; "cne simclr pretrain --resume run" goes on`) {
		t.Error(code, stderr)
	}
	code, _, stderr = runCne(t.Context(), "simclr", "evaluate", "run", "--set", "network.width=8")
	if code != 1 || !strings.Contains(stderr, "the run in run was made with network.width 4, not 8 (--set network.width); leave that as it was") {
		t.Error(code, stderr)
	}
}

// A folder whose config.yaml is not whole is told from one in which there is no run.
func TestSimCLRFolderIsDamaged(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("run", 0o777))
	whole, _ := mustRun(t, "simclr", "config")
	for name, tc := range map[string]struct{ text, want string }{
		"empty":   {"", "the config.yaml in run does not end as cne has written it"},
		"cut off": {whole[:len(whole)/2], "the config.yaml in run does not end as cne has written it"},
		"longer":  {whole + "seed: 1\n", "the config.yaml in run does not end as cne has written it"},
		"foreign": {"seed: 1\n", `so that there is no run in it; give the folder of a run of "cne simclr pretrain"`},
	} {
		writeTestFile(t, "run/config.yaml", tc.text)
		if code, _, stderr := runCne(t.Context(), "simclr", "evaluate", "run"); code != 1 || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: exit code %d, %q", name, code, stderr)
		}
	}
}

// A step size with which the running statistics overflow, while the loss is finite, is
// a divergence, and leaves no network that cannot be used.
func TestSimCLRPretrainDiverges(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	for lr, epochs := range map[string]string{"1e6": "1", "1e30": "4"} {
		code, stdout, stderr := runCne(t.Context(), tiny("--set", "train.lr="+lr, "--set", "train.warm_up=0", "--set", "monitor.every=0",
			"--set", "evaluate.at_end=false", "--epochs", epochs, "--force")...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, "training diverged in epoch") || !strings.Contains(stderr, "lower train.lr") {
			t.Errorf("train.lr=%s: exit code %d, stdout %q, stderr %q", lr, code, stdout, stderr)
		}
		if _, err := os.Stat("run/" + rundir.ModelFile); err == nil {
			t.Errorf("train.lr=%s leaves a network", lr)
		}
	}
}

// The images of a run are known, and found from elsewhere.
func TestSimCLREvaluateKnowsTheImages(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	writeImages(t, "images", 8, 8, 4)
	for _, part := range []string{"all", "train"} {
		mustRun(t, tiny("--set", "simclr.pretrain_on="+part, "--set", "data.size=6", "-o", part)...)
		mustRun(t, "simclr", "evaluate", part)
	}
	t.Chdir(t.TempDir())
	mustRun(t, "simclr", "evaluate", filepath.Join(work, "all"))
	t.Chdir(work)
	must(t, os.Rename("images/train/blue/0.png", "images/train/blue/9.png"))
	for _, part := range []string{"all", "train"} {
		code, _, stderr := runCne(t.Context(), "simclr", "evaluate", part)
		if code != 1 || !strings.Contains(stderr, "the images of data.path (images) are not those that the run in "+part+" was trained on") {
			t.Errorf("%s: exit code %d, stderr %q", part, code, stderr)
		}
		mustRun(t, "simclr", "evaluate", part, "--set", "data.path=./images")
		mustRun(t, "simclr", "evaluate", part, "--set", "data.size=7")
	}
}
