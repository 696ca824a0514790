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

	"cne/data/file"
	"cne/internal/app/rundir"
	"cne/internal/safetensors"
	"cne/model/op"
)

// tsimcne are the flags of a quick t-SimCNE.
func tsimcne(more ...string) []string {
	return tiny(append([]string{"--set", "simclr.method=tsimcne", "--epochs", "6"}, more...)...)
}

// tsimcneOf is tsimcne on the images in another folder.
func tsimcneOf(folder string, more ...string) []string {
	args := tsimcne(more...)
	args[slices.Index(args, "data.path=images")] = "data.path=" + folder
	return args
}

// A run of t-SimCNE leaves the positions of all images, in their order, which are those
// that its network gives them afterwards, too.
func TestTSimCNEWritesAnEmbedding(t *testing.T) {
	folderOfImages(t)
	stdout, _ := mustRun(t, tsimcne("--set", "simclr.pretrain_on=train", "--set", "output.plot=true")...)
	for _, part := range []string{filepath.FromSlash("run/embedding.npy"), "kNN accuracy in the plane"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("stdout lacks %q:\n%s", part, stdout)
		}
	}
	for _, name := range []string{"embedding.csv", "embedding.png", rundir.PageFile, rundir.NamesFile} {
		if !exists("run/" + name) {
			t.Errorf("there is no %s", name)
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
	again, err := file.Read(t.Context(), []string{"again.csv"}, file.Options{LabelColumn: "label", Drop: []string{"name"}})
	must(t, err)
	before, err := file.Read(t.Context(), []string{"run/embedding.csv"}, file.Options{LabelColumn: "label", Drop: []string{"name"}})
	must(t, err)
	if !slices.Equal(again.Points.X, before.Points.X) || !slices.Equal(again.Labels.Class, before.Labels.Class) {
		t.Error("the images are placed elsewhere than in the run")
	}
	mustRun(t, "simclr", "project", "--model", "run/model.safetensors", "images", "--set", "views.size=8", "-o", "again.npy")
	sameFile(t, "again.npy", "run/embedding.npy")
	// Files that cannot be drawn, or are not wanted, are not written.
	mustRun(t, tsimcne(append(set("output.csv=false", "output.plot=false", "output.html=false"), "-o", "bare")...)...)
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
	const broken = "broken.jpg (it is neither PNG nor JPEG nor WebP)"
	args := tsimcneOf("photos", set("data.size=8")...)
	mustFail(t, 1, broken, args...)
	if _, stderr := mustRun(t, append(args, "--set", "data.skip_broken=true")...); !strings.Contains(stderr, broken) {
		t.Errorf("stderr does not name what is left out:\n%s", stderr)
	}
	if rows := strings.Count(readText(t, "run/embedding.csv"), "\n"); rows != 13 {
		t.Errorf("%d lines of positions", rows)
	}
	if page := readText(t, "run/"+rundir.PageFile); !strings.Contains(page, "image/") {
		t.Error("the page has no thumbnails")
	}
	// Images that are given for a page may be of any size. One that is broken is left out, or
	// white if it has a point, too.
	positions := strings.SplitAfter(readText(t, "run/embedding.csv"), "\n")
	writeTestFile(t, "thirteen.csv", strings.Join(positions, "")+positions[1])
	for _, input := range []string{"run", "thirteen.csv"} {
		_, stderr := mustRun(t, "plot", input, "--html", "--images", "photos", "-o", "page.html")
		if page := readText(t, "page.html"); !strings.Contains(stderr, broken) || !strings.Contains(page, "image/") || !strings.Contains(page, `"names":true`) {
			t.Errorf("%s: images for a page: %s", input, stderr)
		}
	}
	writeTestFile(t, "eleven.csv", strings.Join(positions[:12], ""))
	mustFail(t, 1, "--images: got 13 images, want 11", "plot", "eleven.csv", "--html", "--images", "photos")
}

// Greyscale images give the result of colour images with three equal channels; placed
// images have the names of their files; and a page that is drawn again equals the run's
// own.
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
		_, stderr := mustRun(t, tsimcneOf(kind, append(set("simclr.pretrain_on=train", "monitor.every=0", "evaluate.k=2"), "-o", "run-"+kind)...)...)
		if strings.Contains(stderr, "in greyscale") != (kind == "grey") {
			t.Errorf("%s: %s", kind, stderr)
		}
		mustRun(t, "simclr", "project", "--model", "run-"+kind, kind, "-o", kind+".csv")
	}
	sameFile(t, "run-grey/embedding.csv", "run-colour/embedding.csv")
	sameFile(t, "grey.csv", "colour.csv")
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
	writePNG(t, "grey/train/a/0.png", image.NewGray(image.Rect(0, 0, 8, 8)))
	if _, stderr := mustRun(t, "plot", "run-grey", "--html"); !strings.Contains(stderr, "not those that the run was trained on") {
		t.Errorf("stderr does not say that an image is another: %s", stderr)
	}
	must(t, os.Rename("grey", "away"))
	if _, stderr := mustRun(t, "plot", "run-grey", "--html"); !strings.Contains(stderr, "are left out of the page") {
		t.Errorf("stderr does not say that the images are gone: %s", stderr)
	}
	if _, stderr := mustRun(t, "plot", "run-grey", "--html", "--images", "away"); !strings.Contains(stderr, "which images were held out is left out") {
		t.Errorf("stderr does not say that only the split is gone: %s", stderr)
	}
}

// A pretrained network, of a run or written by PyTorch, needs only stages two and three.
func TestTSimCNEFromANetwork(t *testing.T) {
	folderOfImages(t)
	mustRun(t, tiny("--set", "evaluate.at_end=false")...)
	mustRun(t, tsimcne("--set", "model.from=run", "-o", "plane")...)
	saved := networkIn(t, "run")
	if out := networkIn(t, "plane").ResNet.Options().Out; out != 2 || saved.ResNet.Options().Out == 2 {
		t.Errorf("an output of %d", out)
	}
	// The file without its description, as PyTorch would write it.
	f := &safetensors.File{Metadata: map[string]string{"format": "pt"}, Tensors: map[string]safetensors.Tensor{}}
	for name, a := range saved.ResNet.Tensors() {
		f.Tensors[name] = safetensors.New(op.Data[float32](a), a.Shape()...)
	}
	must(t, f.WriteFile("pytorch.safetensors"))
	mustRun(t, tsimcne("--set", "model.from=pytorch.safetensors", "-o", "foreign")...)
	sameFile(t, "plane/embedding.csv", "foreign/embedding.csv")
	// A resumed run does not need the network any more.
	must(t, os.Remove("pytorch.safetensors"))
	mustRun(t, "simclr", "pretrain", "--resume", "foreign")
	sameFile(t, "plane/embedding.csv", "foreign/embedding.csv")
}

// A killed run of stages resumes to the bits of an uninterrupted one.
func TestTSimCNEResumes(t *testing.T) {
	folderOfImages(t)
	mustRun(t, tsimcne("--set", "checkpoint.minutes=1e-9")...)
	want := readText(t, "run/embedding.csv")
	// The last but one of its checkpoints lies at the border of the last stage, or in it.
	must(t, os.Rename("run/checkpoint.previous.safetensors", "run/checkpoint.safetensors"))
	must(t, os.Remove("run/embedding.csv"))
	mustRun(t, "simclr", "pretrain", "--resume", "run")
	if readText(t, "run/embedding.csv") != want {
		t.Error("the resumed run has other positions")
	}
}
