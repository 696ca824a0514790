package main

import (
	"fmt"
	"image"
	"image/draw"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rundir"
	"cne/internal/safetensors"
	"cne/model"
	"cne/model/op"
)

// tsimcne are the flags of a quick t-SimCNE.
func tsimcne(more ...string) []string {
	return tiny(append([]string{"--set", "simclr.method=tsimcne", "--epochs", "6"}, more...)...)
}

// A run of t-SimCNE leaves the positions of all images, in their order, which are those
// that its network gives them afterwards, too.
func TestTSimCNEWritesAnEmbedding(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	stdout, _ := mustRun(t, tsimcne("--set", "simclr.pretrain_on=train")...)
	for _, part := range []string{filepath.FromSlash("run/embedding.npy"), "kNN accuracy in the plane"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("stdout lacks %q:\n%s", part, stdout)
		}
	}
	for _, name := range []string{"embedding.csv", "embedding.png", rundir.PageFile, rundir.NamesFile} {
		if _, err := os.Stat("run/" + name); err != nil {
			t.Error(err)
		}
	}
	if page := readText(t, "run/"+rundir.PageFile); !strings.Contains(page, "kNN accuracy") {
		t.Error("the page does not tell the accuracy")
	}
	m := readMetrics(t, "run/metrics.json")
	if plane := m["knn_plane"].(map[string]any)["mean"].(float64); !(plane > 0 && plane <= 1) || m["epochs"] != 6.0 {
		t.Errorf("metrics.json: %v", m)
	}
	var phases []int
	for _, r := range imageRecords(t) {
		phases = append(phases, r.Phase)
	}
	if !slices.Equal(phases, []int{0, 0, 0, 0, 1, 2}) {
		t.Errorf("the epochs are of stages %v", phases)
	}

	mustRun(t, "simclr", "project", "--model", "run", "images", "-o", "again.csv")
	again, err := data.Open(t.Context(), []string{"again.csv"}, data.Options{LabelColumn: "label", Drop: []string{"name"}})
	must(t, err)
	before, err := data.Open(t.Context(), []string{"run/embedding.csv"}, data.Options{LabelColumn: "label"})
	must(t, err)
	if !slices.Equal(again.Points.X, before.Points.X) || !slices.Equal(again.Labels.Class, before.Labels.Class) {
		t.Error("the images are placed elsewhere than in the run")
	}
	mustRun(t, "simclr", "project", "--model", "run/model.safetensors", "images", "--set", "views.size=8", "-o", "again.npy")
	if readText(t, "again.npy") != readText(t, "run/embedding.npy") {
		t.Error("the file of the network places the images elsewhere")
	}
	// What cannot be drawn is not written, nor what is not asked for.
	mustRun(t, tsimcne("-o", "bare", "--set", "output.csv=false", "--set", "output.plot=false", "--set", "output.html=false")...)
	if want := []string{"checkpoint.previous.safetensors", "config.yaml", "embedding.npy", "evaluation.json", "metrics.json", "metrics.jsonl", "model.safetensors", "names.csv"}; !slices.Equal(slices.DeleteFunc(listFiles(t, "bare"), func(s string) bool { return s == "checkpoint.safetensors" }), want) {
		t.Errorf("files %v", listFiles(t, "bare"))
	}
}

// Photographs of any size without classes become an embedding.
func TestTSimCNEOfPhotographs(t *testing.T) {
	t.Chdir(t.TempDir())
	for i := range 12 {
		m := image.NewRGBA(image.Rect(0, 0, 5+3*i, 40-2*i))
		for p := range m.Pix {
			m.Pix[p] = uint8(p * i)
			if p%4 == 3 {
				m.Pix[p] = 255
			}
		}
		writePNG(t, filepath.Join("photos", string(rune('a'+i))+".png"), m)
	}
	writeTestFile(t, "photos/broken.jpg", "none")
	args := tsimcne("--set", "data.path=photos", "--set", "data.size=8", "--set", "evaluate.at_end=false", "--set", "monitor.every=0")
	code, _, stderr := runCne(t.Context(), args...)
	if code != 1 || !strings.Contains(stderr, "broken.jpg (it is neither PNG nor JPEG)") || strings.Count(stderr, "broken.jpg") != 1 {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	_, stderr = mustRun(t, append(args, "--set", "data.skip_broken=true")...)
	if !strings.Contains(stderr, "broken.jpg (it is neither PNG nor JPEG)") {
		t.Errorf("stderr does not name what is left out:\n%s", stderr)
	}
	if rows := strings.Count(readText(t, "run/embedding.csv"), "\n"); rows != 13 {
		t.Errorf("%d lines of positions", rows)
	}
	if page := readText(t, "run/"+rundir.PageFile); !strings.Contains(page, "image/") {
		t.Error("the page has no thumbnails")
	}
	// Where none can be left out, since they belong to points, nobody says so.
	if _, _, stderr = runCne(t.Context(), "plot", "run", "--html", "--images", "photos"); !strings.Contains(stderr, "broken.jpg") || strings.Contains(stderr, "left out") {
		t.Errorf("images for a page: %s", stderr)
	}
}

// Images in greyscale are seen in colour, with the same result as if each value stood there
// three times; what is placed has the names of its files; and a page that is drawn again
// shows what the run's own does.
func TestTSimCNEOfGreyImages(t *testing.T) {
	t.Chdir(t.TempDir())
	for i := range 12 {
		grey := image.NewGray(image.Rect(0, 0, 8, 8))
		for p := range grey.Pix {
			grey.Pix[p] = uint8(p * (i + 1))
		}
		colour := image.NewRGBA(grey.Rect)
		draw.Draw(colour, grey.Rect, grey, image.Point{}, draw.Src)
		part := [...]string{"train", "train", "test"}[i%3]
		for folder, im := range map[string]image.Image{"grey": grey, "colour": colour} {
			writePNG(t, filepath.Join(folder, part, string(rune('a'+i%2)), fmt.Sprint(i, ".png")), im)
		}
	}
	for _, kind := range []string{"grey", "colour"} {
		_, stderr := mustRun(t, tsimcne("-o", "run-"+kind, "--set", "data.path="+kind, "--set", "simclr.pretrain_on=train",
			"--set", "monitor.every=0", "--set", "evaluate.k=2")...)
		if strings.Contains(stderr, "in greyscale") != (kind == "grey") {
			t.Errorf("%s: %s", kind, stderr)
		}
		mustRun(t, "simclr", "project", "--model", "run-"+kind, kind, "-o", kind+".csv")
	}
	if readText(t, "run-grey/embedding.csv") != readText(t, "run-colour/embedding.csv") || readText(t, "grey.csv") != readText(t, "colour.csv") {
		t.Error("images in greyscale get other positions than the same in colour")
	}
	if placed := readText(t, "grey.csv"); !strings.HasPrefix(placed, "x,y,label,name\n") || !strings.Contains(placed, ",a,train/a/0.png\n") {
		t.Errorf("placed images: %s", placed)
	}
	mustRun(t, "plot", "grey.csv", "-o", "grey.png")
	mustRun(t, "plot", "grey.csv", "--html", "--names", "name", "-o", "grey.html")
	page := readText(t, "run-grey/"+rundir.PageFile)
	mustRun(t, "plot", "run-grey", "--html")
	again := readText(t, "run-grey/"+rundir.PageFile)
	if strings.ReplaceAll(again, "run-grey", "grey") != page {
		t.Errorf("a page drawn again has %d bytes, and not the same as the run's with %d", len(again), len(page))
	}
	mustRun(t, "plot", "run-grey", "--html", "--images", "none", "-o", "none.html")
	if none := readText(t, "none.html"); len(none) >= len(again) {
		t.Errorf("a page without images has %d bytes, with them %d", len(none), len(again))
	}
	other := image.NewGray(image.Rect(0, 0, 8, 8))
	writePNG(t, "grey/train/a/0.png", other)
	if _, stderr := mustRun(t, "plot", "run-grey", "--html"); !strings.Contains(stderr, "not those that the run was trained on") {
		t.Errorf("stderr does not say that an image is another: %s", stderr)
	}
	must(t, os.RemoveAll("grey"))
	if _, stderr := mustRun(t, "plot", "run-grey", "--html"); !strings.Contains(stderr, "are left out of the page") {
		t.Errorf("stderr does not say that the images are gone: %s", stderr)
	}
}

// A network that was pretrained before gets its picture in stages two and three alone:
// one of a run, or one whose weights PyTorch has written.
func TestTSimCNEFromANetwork(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tiny("--set", "evaluate.at_end=false")...)
	saved, err := model.Load("run/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, tsimcne("--set", "model.from=run", "-o", "plane")...)
	placed, err := model.Load("plane/model.safetensors")
	if err != nil || placed.ResNet.Options().Out != 2 || saved.ResNet.Options().Out == 2 {
		t.Fatalf("an output of %d, error %v", placed.ResNet.Options().Out, err)
	}
	writeForeign(t, "run/model.safetensors", "pytorch.safetensors")
	mustRun(t, tsimcne("--set", "model.from=pytorch.safetensors", "-o", "foreign")...)
	if readText(t, "plane/embedding.csv") != readText(t, "foreign/embedding.csv") {
		t.Error("the same weights in PyTorch's form give other positions")
	}
	// The run needs the network no more when it goes on.
	must(t, os.Remove("pytorch.safetensors"))
	mustRun(t, "simclr", "pretrain", "--resume", "foreign")
	if readText(t, "plane/embedding.csv") != readText(t, "foreign/embedding.csv") {
		t.Error("the resumed run gives other positions")
	}
	writeTestFile(t, "points.npy", "\x93NUMPY")
	for args, want := range map[string]string{
		"--set model.from=nowhere":                    "nowhere: no such file or directory (model.from)",
		"--set model.from=images":                     "the folder images holds no run",
		"--set model.from=points.npy":                 "(model.from)",
		"--set model.from=run --set network.width=8":  "the network of model.from, run, has network.width 4 and network.hidden 64, but the configuration says 8 and 128; set them to those",
		"--set model.from=run --set network.hidden=5": "network.hidden 64, but the configuration says 4 and 5",
	} {
		code, _, stderr := runCne(t.Context(), tsimcne(append(strings.Fields(args), "-o", "none", "--quiet")...)...)
		if code != 1 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stderr %q", args, code, stderr)
		}
		if _, err := os.Stat("none"); err == nil {
			t.Errorf("%s leaves a folder", args)
		}
	}
	code, _, stderr := runCne(t.Context(), "simclr", "config", "--check", "--set", "model.from=nowhere")
	if code != 1 || !strings.Contains(stderr, "(model.from)") {
		t.Errorf("--check: exit code %d, stderr %q", code, stderr)
	}
}

// writeForeign writes the network of a file without its description, as PyTorch would.
func writeForeign(t *testing.T, from, to string) {
	t.Helper()
	saved, err := model.Load(from)
	must(t, err)
	f := &safetensors.File{Metadata: map[string]string{"format": "pt"}, Tensors: map[string]safetensors.Tensor{}}
	for name, a := range saved.ResNet.Tensors() {
		f.Tensors[name] = safetensors.New(op.Data[float32](a), a.Shape()...)
	}
	must(t, f.WriteFile(to))
}

// A killed run of stages goes on with the bits of one that never stopped.
func TestTSimCNEResumes(t *testing.T) {
	t.Chdir(t.TempDir())
	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tsimcne("--set", "checkpoint.epochs=1")...)
	want := readText(t, "run/embedding.csv")
	// The last but one of its checkpoints lies at the border of the last stage, or in it.
	must(t, os.Rename("run/checkpoint.previous.safetensors", "run/checkpoint.safetensors"))
	must(t, os.Remove("run/embedding.csv"))
	mustRun(t, "simclr", "pretrain", "--resume", "run")
	if readText(t, "run/embedding.csv") != want {
		t.Error("the resumed run has other positions")
	}
	code, _, stderr := runCne(t.Context(), "simclr", "pretrain", "--resume", "run", "--epochs", "9")
	if code != 2 || !strings.Contains(stderr, "the stages say how many epochs are run") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestSimCLRProjectRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("empty", 0o777))
	writeImages(t, "images", 8, 8, 4)
	mustRun(t, tsimcne("--set", "evaluate.at_end=false", "--set", "monitor.every=0")...)
	writePNG(t, "pixels/one.png", image.NewGray(image.Rect(0, 0, 1, 1)))
	for args, tc := range map[string]struct {
		code int
		want string
	}{
		"images":                               {2, "needs --model"},
		"--model run":                          {2, "needs --model"},
		"--model run images -o x.txt":          {2, "must end in"},
		"--model run images -o no/x.csv":       {1, "there is no folder no"},
		"--model run empty":                    {1, "there are no images in the folder"},
		"--model run pixels":                   {1, "a single pixel"},
		"--model run pixels --set data.size=8": {1, "one.png (it has a single pixel)"},
		"--model nowhere images":               {1, "there is no run"},
		"--model images images":                {1, "images"},
		"--model run images -o run/x.csv":      {0, ""},
		"--model run images -o run/names.csv":  {1, "a file of the run"},
	} {
		code, _, stderr := runCne(t.Context(), strings.Fields("simclr project "+args)...)
		if code != tc.code || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: exit code %d, stderr %q", args, code, stderr)
		}
	}
}
