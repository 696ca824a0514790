package main

import (
	"image/gif"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/internal/app/report"
)

// shortRuns trains two runs with snapshots and quality, below the current
// folder.
func shortRuns(t *testing.T) {
	t.Helper()
	writePoints(t, "points.csv", 300, 6)
	for _, loss := range []string{"neg", "nc"} {
		args := short("--set", "loss.name="+loss, "--set", "output.metrics_every=2", "--set", "output.snapshots=3", "-o", filepath.Join("runs", loss))
		mustRun(t, args...)
	}
}

// makeFile writes a file, and makes its folder.
func makeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	writeTestFile(t, path, text)
}

// plotTexts runs cne plot and returns the texts of the SVG that it names.
func plotTexts(t *testing.T, args ...string) []string {
	t.Helper()
	code, stdout, stderr := runCne(t.Context(), append([]string{"plot"}, args...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("cne plot %v: exit code %d: %s", args, code, stderr)
	}
	svg := readText(t, strings.TrimSpace(stdout))
	if !strings.HasPrefix(svg, "<?xml") {
		t.Fatalf("%s is no SVG", stdout)
	}
	shown := strings.Split(svg, "</text>")
	for i, s := range shown {
		shown[i] = s[strings.LastIndexByte(s, '>')+1:]
	}
	return shown
}

func TestPlotMetrics(t *testing.T) {
	t.Chdir(t.TempDir())
	shortRuns(t)
	for name, tc := range map[string]struct {
		args       string
		has, lacks []string
	}{
		"two":      {"runs/neg runs/nc", []string{"neg", "nc", "Loss", "Partition function (dashed: learnt Z)", "KL divergence", "epoch", "nats"}, []string{"Accuracy", "phase 2"}},
		"one":      {"runs/neg --title Title", []string{"Title", "Loss", "Partition function", "KL divergence"}, []string{"neg"}},
		"nc":       {"runs/nc", []string{"Partition function (dashed: learnt Z)"}, []string{"nc"}},
		"files":    {"runs/neg/metrics.jsonl runs/nc/metrics.jsonl", []string{filepath.FromSlash("runs/neg/metrics.jsonl"), filepath.FromSlash("runs/nc/metrics.jsonl")}, nil},
		"thrice":   {"runs/nc runs/neg runs/nc/.", []string{filepath.FromSlash("runs/nc"), "neg"}, []string{"nc"}},
		"only Z":   {"z.jsonl", []string{"Learnt Z", "Loss"}, []string{"KL divergence"}},
		"phases":   {"phases.jsonl", []string{"phase 2", "phase 3"}, nil},
		"accuracy": {"images.jsonl", []string{"Accuracy", "Loss"}, []string{"Partition function"}},
		"going on": {"going.jsonl", []string{"Loss"}, nil},
	} {
		writeTestFile(t, "z.jsonl", `{"epoch":1,"loss":2,"z":40}`+"\n"+`{"epoch":2,"loss":1,"z":30}`+"\n")
		writeTestFile(t, "phases.jsonl", `{"epoch":1,"phase":0,"loss":2}`+"\n"+`{"epoch":2,"phase":1,"loss":1}`+"\n"+`{"epoch":3,"phase":2,"loss":1}`+"\n")
		writeTestFile(t, "images.jsonl", `{"epoch":1,"loss":-2,"accuracy":0.5}`+"\n")
		writeTestFile(t, "going.jsonl", `{"epoch":1,"loss":2}`+"\n"+`{"epoch":2,"lo`)
		got := plotTexts(t, append(strings.Fields(tc.args), "--metrics", "-o", "curves.svg")...)
		for _, want := range tc.has {
			if !slices.Contains(got, want) {
				t.Errorf("%s: the picture lacks %q: %q", name, want, got)
			}
		}
		for _, other := range tc.lacks {
			if slices.Contains(got, other) {
				t.Errorf("%s: the picture has %q", name, other)
			}
		}
	}
}

func readGIF(t *testing.T, path string) *gif.GIF {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := gif.DecodeAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A film has the snapshots and the embedding, once.
func TestPlotAnimate(t *testing.T) {
	t.Chdir(t.TempDir())
	shortRuns(t) // snapshots of the epochs 3 and 6 of 8
	film, err := report.OpenFilm(t.Context(), "runs/nc", file.Options{}, configs.Plot{})
	if err != nil {
		t.Fatal(err)
	}
	var captions []string
	for _, f := range film.Frames {
		captions = append(captions, f.Caption)
	}
	if want := []string{"epoch 3", "epoch 6", "epoch 8"}; !slices.Equal(captions, want) {
		t.Errorf("frames %q, want %q", captions, want)
	}
	if got := film.Scatter.ClassNames; !slices.Equal(got, []string{"ant", "bee", "cat"}) {
		t.Errorf("classes %v", got)
	}
	set, err := file.Read(t.Context(), []string{"runs/nc/embedding.npy"}, file.Options{})
	if err != nil || !slices.Equal(film.Frames[2].Embedding.X, set.Points.X) {
		t.Errorf("the last frame is not the embedding (%v)", err)
	}

	for args, want := range map[string]struct {
		path   string
		frames int
		delay  int
	}{
		"runs/nc":                                    {"runs/nc/animation.gif", 3, 10},
		"runs/nc -o a.GIF --fps 4":                   {"a.GIF", 3, 25},
		"runs/neg --follow -o b.gif":                 {"b.gif", 3, 10},
		"runs/neg --title T -o c.gif":                {"c.gif", 3, 10},
		"killed -o d.gif":                            {"d.gif", 2, 10},
		"killed --labels killed/labels.txt -o e.gif": {"e.gif", 2, 10},
	} {
		if err := os.CopyFS("killed/snapshots", os.DirFS("runs/nc/snapshots")); err == nil {
			makeFile(t, "killed/labels.txt", strings.Repeat("a\nb\n", 150))
		}
		code, stdout, stderr := runCne(t.Context(), append([]string{"plot", "--animate"}, strings.Fields(args)...)...)
		if code != 0 || strings.TrimSpace(stdout) != filepath.FromSlash(want.path) {
			t.Errorf("%s: exit code %d, %q: %s", args, code, stdout, stderr)
			continue
		}
		g := readGIF(t, want.path)
		if len(g.Image) != want.frames || g.Delay[0] != want.delay || g.Config.Height != 600 {
			t.Errorf("%s: %d frames, %d pixels high, with the delay %d", args, len(g.Image), g.Config.Height, g.Delay[0])
		}
	}
	// Snapshots of the last epoch are not shown twice.
	if code, _, stderr := runCne(t.Context(), short("--set", "output.snapshots=4", "-o", "four")...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if film, err := report.OpenFilm(t.Context(), "four", file.Options{}, configs.Plot{}); err != nil || len(film.Frames) != 2 {
		t.Errorf("%+v (%v), want 2 frames", film, err)
	}
}

func TestPlotAnimateBadInput(t *testing.T) {
	t.Chdir(t.TempDir())
	makeEmbeddings(t)
	small := data.NewMatrix(5, 2)
	makeFile(t, "mixed/embedding.csv", readText(t, "run/embedding.csv"))
	makeArray(t, "mixed/snapshots/epoch-0001.npy", small)
	nan := data.NewMatrix(2, 2)
	nan.X[3] = float32(math.NaN())
	makeArray(t, "nan/snapshots/epoch-0010.npy", nan)
	makeFile(t, "cut/snapshots/epoch-0010.npy", "\x93NUMPY\x01\x00\x10\x00{")
	makeArray(t, "killed/snapshots/epoch-0010.npy", small)
	makeFile(t, "killed/labels.txt", "a\nb\n")
	const see = `; see "cne plot --help"`
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "cne plot needs an argument"},
		{"a b", 2, "cne plot: got 2 arguments"},
		{"run --fps 0", 2, "--fps: got 0, want a number from 0.1 to 50" + see},
		{"run --fps nan", 2, "--fps: got NaN, want a number from 0.1 to 50" + see},
		{"run -o a.png", 2, `--output: got "a.png", want a name that ends in .gif` + see},
		{"run -o a.html", 2, "--animate makes a GIF, not a page" + see},
		{"run --html", 2, "--animate makes a GIF, not a page" + see},
		{"missing", 1, "the run cannot be read: stat missing: no such file or directory"},
		{"a.npy", 1, "a.npy: got a file, want a run with snapshots"},
		{"run", 1, "run: got no snapshots, want a run with output.snapshots"},
		{"mixed", 1, filepath.FromSlash("mixed/snapshots/epoch-0001.npy: got 5 points of 2 coordinates, want 24 of 2 as in mixed/embedding.csv")},
		{"nan", 1, filepath.FromSlash("nan/snapshots/epoch-0010.npy")},
		{"cut", 1, filepath.FromSlash("cut/snapshots/epoch-0010.npy: the file ends within its npy header")},
		{"killed --labels killed/labels.txt", 1, "labels: got 2"},
	} {
		code, stdout, stderr := runCne(t.Context(), append([]string{"plot", "--animate"}, strings.Fields(tc.args)...)...)
		if code != tc.code || stdout != "" || !strings.HasPrefix(stderr, "cne: "+tc.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("cne plot --animate %s: exit code %d, stdout %q, stderr\n%swant %d and\ncne: %s", tc.args, code, stdout, stderr, tc.code, tc.want)
		}
	}
}
