package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cne/configs"
	"cne/data"
	"cne/internal/rundir"
	"cne/train/quality"
)

// shortSpectrum is the command line of a spectrum that takes a moment.
func shortSpectrum(more ...string) []string {
	return append([]string{"spectrum", "--set", "data.path=points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5", "--epochs", "12", "-o", "run"}, more...)
}

func readEmbedding(t *testing.T, path string) *data.Matrix {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	set, err := data.ReadNPY(f)
	if err != nil {
		t.Fatal(err)
	}
	return set.Points
}

func TestSpectrumWritesAllItPromises(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 90, 6)
	for name, tt := range map[string]struct {
		flags, folders []string
		axis           string
	}{
		"s":       {[]string{"--s", "1, -0.5,0"}, []string{"s=-0.5", "s=0", "s=1"}, "s"},
		"default": {nil, []string{"s=-0.5", "s=0", "s=0.5", "s=1", "s=1.5"}, "s"},
		"zbar":    {[]string{"--zbar", "1e3,100"}, []string{"zbar=100", "zbar=1000"}, "zbar"},
		"m":       {[]string{"--m", "full,2", "--set", "loss.name=nc"}, []string{"m=2", "m=full"}, "m"},
		"infonce": {[]string{"--s", "0,1", "--set", "loss.name=infonce"}, []string{"s=0", "s=1"}, "s"},
		"network": {[]string{"--s", "0,1", "--set", "model.kind=mlp", "--set", "model.hidden=[8]"}, []string{"s=0", "s=1"}, "s"},
		"one":     {[]string{"--s", "0.5"}, []string{"s=0.5"}, "s"},
		"alone":   {[]string{"--s", "0,1", "--set", "train.phases=[{epochs: 12}]"}, []string{"s=0", "s=1"}, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writePoints(t, "points.csv", 90, 6)
			code, stdout, stderr := runCne(t.Context(), shortSpectrum(tt.flags...)...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			found, err := filepath.Glob("run/*=*")
			if err != nil {
				t.Fatal(err)
			}
			for i := range found {
				found[i] = filepath.Base(found[i])
			}
			slices.Sort(found)
			if want := slices.Sorted(slices.Values(tt.folders)); !slices.Equal(found, want) {
				t.Fatalf("folders %v, want %v", found, want)
			}
			for _, file := range []string{rundir.SpectrumStrip, rundir.SpectrumCurves, rundir.SpectrumExplorer, "config.yaml"} {
				if info, err := os.Stat(filepath.Join("run", file)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", file, err)
				}
			}
			var figures rundir.SpectrumMetrics
			text, err := os.ReadFile("run/spectrum.json")
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &figures); err != nil {
				t.Fatal(err)
			}
			if figures.Axis != tt.axis || len(figures.Stops) != len(tt.folders) || figures.N != 90 {
				t.Fatalf("spectrum.json is of the axis %s, %d embeddings and %d points", figures.Axis, len(figures.Stops), figures.N)
			}
			f, err := os.Open("run/spectrum.csv")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			rows, err := csv.NewReader(f).ReadAll()
			if err != nil || len(rows) != len(tt.folders)+1 {
				t.Fatalf("spectrum.csv has %d rows (%v), want a heading and %d", len(rows), err, len(tt.folders))
			}
			for i, m := range figures.Stops {
				if m.Folder != tt.folders[i] || rows[i+1][0] != m.Value {
					t.Errorf("embedding %d is %s in spectrum.json and %s in the table, want %s", i, m.Folder, rows[i+1][0], tt.folders[i])
				}
				if !strings.Contains(stdout, m.Value) {
					t.Errorf("the table on stdout lacks %s:\n%s", m.Value, stdout)
				}
				// The figures are those of the embedding that lies there.
				e := readEmbedding(t, filepath.Join("run", m.Folder, "embedding.npy"))
				z, err := quality.PartitionFunction(t.Context(), e.X, e.D, nil)
				if err != nil {
					t.Fatal(err)
				}
				if m.PartitionFunction == nil || math.Abs(z/(*m.PartitionFunction)-1) > 1e-6 {
					t.Errorf("%s: partition function %v in spectrum.json, %v of the embedding", m.Folder, m.PartitionFunction, z)
				}
				if (m.Scale == nil) != (i == 0) {
					t.Errorf("%s: scale to the previous embedding %v", m.Folder, m.Scale)
				}
			}
		})
	}
}

// An embedding of a spectrum is that of the run whose configuration lies beside
// it, but for its orientation, and each lies as near to its neighbour as it can.
func TestSpectrumIsMadeOfRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 90, 6)
	if code, _, stderr := runCne(t.Context(), shortSpectrum("--s", "0,1,2")...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var previous *data.Matrix
	for i, folder := range []string{"s=0", "s=1", "s=2"} {
		if code, _, stderr := runCne(t.Context(), "train", "--config", filepath.Join("run", folder, "config.yaml"), "-o", folder); code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		want := readEmbedding(t, filepath.Join(folder, "embedding.npy"))
		got := readEmbedding(t, filepath.Join("run", folder, "embedding.npy"))
		if i == 0 {
			if !slices.Equal(got.X, want.X) {
				t.Errorf("%s: other bits than those of its run", folder)
			}
		} else {
			scale, disparity, err := quality.Align(want, got)
			if err != nil || math.Abs(scale-1) > 1e-5 || disparity > 1e-9 {
				t.Errorf("%s: its run is of scale %v and disparity %v to it (%v)", folder, scale, disparity, err)
			}
			again := &data.Matrix{N: got.N, D: got.D, X: slices.Clone(got.X)}
			if _, _, err := quality.Align(again, previous); err != nil {
				t.Fatal(err)
			}
			for k, v := range again.X {
				if math.Abs(float64(v-got.X[k])) > 1e-3 {
					t.Fatalf("%s is not aligned to the embedding before it: coordinate %d moves from %v to %v", folder, k, got.X[k], v)
				}
			}
		}
		previous = got
	}
}

// With more attraction the embedding shrinks: the partition function rises with
// Z̄ (Section 5 and Figure 1i of the paper; Corollary 2: Neg-t-SNE's similarities
// are normalised to Z̄).
func TestPaperPartitionFunctionRisesWithZBar(t *testing.T) {
	if testing.Short() {
		t.Skip("embeds real images")
	}
	t.Chdir(t.TempDir())
	code, _, stderr := runCne(t.Context(), "spectrum", "--zbar", "1e5,1e6,1e7,1e8,1e9", "--epochs", "12", "--set", "quality.spearman=0", "-o", "run")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	text, err := os.ReadFile("run/spectrum.json")
	if err != nil {
		t.Fatal(err)
	}
	var figures rundir.SpectrumMetrics
	if err := json.Unmarshal(text, &figures); err != nil {
		t.Fatal(err)
	}
	for i, m := range figures.Stops[1:] {
		if before := *figures.Stops[i].PartitionFunction; *m.PartitionFunction < 1.5*before {
			t.Errorf("the partition function is %.3g at Z̄ = %s and %.3g at %s", before, figures.Stops[i].Value, *m.PartitionFunction, m.Value)
		}
	}
}

func TestSpectrumRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 40, 3)
	for name, tt := range map[string]struct {
		flags []string
		code  int
		want  string
	}{
		"two axes":            {[]string{"--s", "0", "--m", "5"}, exitUsage, "--s and --m are both given"},
		"no number":           {[]string{"--s", "0,x"}, exitUsage, `--s has "x" in its list, but each value must be a number from -100 to 100`},
		"empty list":          {[]string{"--s", ""}, exitUsage, "--s is empty; give it a value, or leave it out"},
		"negative Z̄":         {[]string{"--zbar", "-1"}, exitUsage, "must be a number above 0"},
		"half a negative":     {[]string{"--m", "2.5"}, exitUsage, "must be a whole number from 1 up, or full"},
		"twice":               {[]string{"--s", "1,1.0"}, exitUsage, "--s has 1.0 twice"},
		"points given twice":  {[]string{"points.csv"}, exitUsage, `the points are given twice, as the argument "points.csv" and with --set data.path; keep one of them`},
		"loss without s":      {[]string{"--s", "0", "--set", "loss.name=umap"}, exitUsage, "loss.name is umap, but --s moves along the spectrum of neg or infonce; choose one of them"},
		"loss without Z̄":     {[]string{"--zbar", "5", "--set", "loss.name=infonce"}, exitUsage, "loss.name is infonce, but --zbar sets the normalisation constant of neg; choose neg"},
		"held out":            {[]string{"--set", "data.holdout=0.1"}, exitUsage, "data.holdout keeps points from training"},
		"one epoch":           {[]string{"--epochs", "1"}, exitUsage, "train.epochs is 1"},
		"too far":             {[]string{"--s", "0,1e9"}, exitUsage, `--s has "1e9" in its list, but each value must be a number from -100 to 100`},
		"warm-up too long":    {[]string{"--set", "train.warm_up=5"}, exitUsage, "train.warm_up is 5, but all embeddings share the first third of train.epochs, which is 4; warm up"},
		"phases too short":    {[]string{"--set", "train.epochs=null", "--set", "train.warm_up=3", "--set", "train.phases=[{epochs: 3}]"}, exitUsage, "epochs of phase 1"},
		"the wrong key":       {[]string{"--set", "train.epoch=3"}, exitUsage, "did you mean train.epochs?"},
		"a file for a folder": {[]string{"-o", "points.csv"}, exitFailure, "is a file; choose another output.dir"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runCne(t.Context(), shortSpectrum(tt.flags...)...)
			if code != tt.code || !strings.Contains(stderr, tt.want) || stdout != "" {
				t.Errorf("exit code %d, stdout %q, stderr %q; want code %d and %q", code, stdout, stderr, tt.code, tt.want)
			}
			if strings.Count(stderr, "cne:") != 1 {
				t.Errorf("not one sentence: %q", stderr)
			}
			if files, err := filepath.Glob("run/*"); err != nil || len(files) > 0 {
				t.Errorf("files are left behind: %v", files)
			}
		})
	}
}

// --force replaces an earlier spectrum and nothing else, and a spectrum is no
// run that cne train could resume.
func TestSpectrumFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	must := func(want int, args ...string) string {
		t.Helper()
		code, _, stderr := runCne(t.Context(), args...)
		if code != want {
			t.Fatalf("%v: exit code %d, want %d: %s", args, code, want, stderr)
		}
		return stderr
	}
	must(exitOK, shortSpectrum("--s", "0,1")...)
	if stderr := must(exitFailure, shortSpectrum("--s", "0.5")...); !strings.Contains(stderr, "--force") {
		t.Errorf("no word of --force: %s", stderr)
	}
	if stderr := must(exitFailure, "train", "--resume", "run"); !strings.Contains(stderr, `is one of "cne spectrum", which "cne train" cannot resume`) {
		t.Errorf("a spectrum is resumed: %s", stderr)
	}
	// Nor are its embeddings, and several are not one.
	if stderr := must(exitFailure, "train", "--resume", "run/s=0"); !strings.Contains(stderr, "run/s=0 is an embedding of a spectrum and no run to be resumed") {
		t.Errorf("an embedding of a spectrum is resumed: %s", stderr)
	}
	for _, command := range []string{"plot", "evaluate"} {
		want := "cne: the folder run is that of a spectrum; name one of its embeddings, such as " + filepath.Join("run", "s=0") + "\n"
		if stderr := must(exitFailure, command, "run"); stderr != want {
			t.Errorf("cne %s: %s", command, stderr)
		}
		must(exitOK, command, "run/s=0")
	}
	// What a process that was killed has left goes, but no folder of somebody else.
	for _, name := range []string{"run/s=1/.cne-00000000deadbeef.tmp", "run/size=1/embedding.png"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		writeTestFile(t, name, "text")
	}
	if err := os.WriteFile("run/s=0/notes.txt", []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	must(exitOK, shortSpectrum("--s", "0.5", "--force")...)
	if _, err := os.Stat("run/s=1"); !os.IsNotExist(err) {
		t.Errorf("the folder of an embedding of the earlier spectrum is still there (%v)", err)
	}
	if _, err := os.Stat("run/size=1/embedding.png"); err != nil {
		t.Errorf("a picture of somebody else is gone: %v", err)
	}
	if files := listFiles(t, "run/s=0"); !slices.Equal(files, []string{"notes.txt"}) {
		t.Errorf("of the earlier embedding's folder there is %v, want the file of somebody else", files)
	}
	// Its config.yaml repeats it, and says how.
	text, err := os.ReadFile("run/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(text), "\n"); !strings.HasSuffix(first, "; cne spectrum --s 0.5 --config takes it") {
		t.Errorf("config.yaml begins with %q", first)
	}
	must(exitOK, "spectrum", "--s", "0.5", "--config", "run/config.yaml", "-o", "again")
	if !slices.Equal(readEmbedding(t, "run/s=0.5/embedding.npy").X, readEmbedding(t, "again/s=0.5/embedding.npy").X) {
		t.Error("the spectrum's config.yaml gives another embedding")
	}
}

// A picture that cannot be drawn is refused before anything is trained.
func TestSpectrumChecksItsPictures(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	code, stdout, stderr := runCne(t.Context(), shortSpectrum("--s", "0,1", "--set", "plot.width_cm=2")...)
	if code != exitFailure || stdout != "" || !strings.Contains(stderr, "cne: plot.width_cm: cannot draw the plot") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if _, err := os.Stat("run"); !os.IsNotExist(err) {
		t.Error("a folder was made for it")
	}
}

// Of thinned-out images each embedding knows which they are.
func TestSpectrumOfSomeImages(t *testing.T) {
	t.Chdir(t.TempDir())
	writeIDX(t, 120)
	code, _, stderr := runCne(t.Context(), "spectrum", "--set", "data.path=images.idx", "--set", "data.labels=labels.txt", "--set", "data.imbalance=linear",
		"--set", "graph.k=5", "--epochs", "3", "--s", "0", "-o", "run")
	if code != 0 {
		t.Fatal(stderr)
	}
	if rows := readText(t, "run/s=0/rows.csv"); rows != readText(t, "run/rows.csv") {
		t.Errorf("other rows: %.40q", rows)
	}
	code, _, stderr = runCne(t.Context(), "plot", "--html", "run/s=0", "--log-format", "json")
	if p := readPage(t, "run/s=0/embedding.html"); code != 0 || stderr != "" || p.Images == nil {
		t.Errorf("exit code %d and %q, images %v", code, stderr, p.Images)
	}
	// What is wrong with the images is told in the form that is asked for.
	writeIDX(t, 30)
	if code, _, stderr = runCne(t.Context(), "plot", "--html", "run/s=0", "--log-format", "json"); code != 0 || !strings.HasPrefix(stderr, `{"time":`) {
		t.Errorf("exit code %d and %q", code, stderr)
	}
}

// Cosines are of the angles at the origin, which an alignment must not move.
func TestSpectrumKeepsAngles(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 90, 6)
	if code, _, stderr := runCne(t.Context(), shortSpectrum("--s", "0,1", "--set", "loss.metric=cosine")...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if code, _, stderr := runCne(t.Context(), "train", "--config", "run/s=1/config.yaml", "-o", "single"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	got, want := readEmbedding(t, "run/s=1/embedding.npy"), readEmbedding(t, "single/embedding.npy")
	cosine := func(m *data.Matrix, i int) float64 {
		x, y := m.Row(0), m.Row(i)
		dot := float64(x[0])*float64(y[0]) + float64(x[1])*float64(y[1])
		return dot / math.Hypot(float64(x[0]), float64(x[1])) / math.Hypot(float64(y[0]), float64(y[1]))
	}
	for i := 1; i < got.N; i++ {
		if a, b := cosine(got, i), cosine(want, i); math.Abs(a-b) > 1e-5 {
			t.Fatalf("the cosine of points 0 and %d is %v, but %v in the run", i, a, b)
		}
	}
}

// With Z̄ as the axis, it stands in the table once.
func TestSpectrumTableOfZBar(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	for flag, want := range map[string]string{"--zbar": "zbar,partition_function,", "--s": "s,z_bar,partition_function,"} {
		code, stdout, stderr := runCne(t.Context(), shortSpectrum(flag, "2", "--force")...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		if table := readText(t, "run/spectrum.csv"); !strings.HasPrefix(table, want) {
			t.Errorf("%s: spectrum.csv begins with %.60q, want %q", flag, table, want)
		}
		if !strings.Contains(stdout, "60 points at 1 place in ") {
			t.Errorf("%s: it prints %q", flag, stdout)
		}
	}
}

// However many cores there are, the bits are the same.
func TestSpectrumOnManyCores(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	var want []float32
	for i, cores := range []int{1, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		if code, _, stderr := runCne(t.Context(), shortSpectrum("--s", "0,0.5,1", "--force")...); code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		got := readEmbedding(t, "run/s=1/embedding.npy").X
		if i > 0 && !slices.Equal(got, want) {
			t.Errorf("%d cores give other bits than one", cores)
		}
		want = got
	}
}

// interruptOnce runs a command and interrupts it as soon as a file exists.
func interruptOnce(t *testing.T, file string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(file); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return runCne(ctx, args...)
}

// A spectrum that is interrupted wherever it may be ends, when it goes on, with the
// bytes of one that was left alone; so does one that has lost all but its checkpoints.
func TestSpectrumGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	const epochs = "300" // long enough to be interrupted in
	flags := func(dir string) []string {
		return shortSpectrum("--s", "0,1,2", "--epochs", epochs, "-o", dir, "--set", "checkpoint.epochs=20")
	}
	if code, _, stderr := runCne(t.Context(), flags("whole")...); code != 0 {
		t.Fatal(stderr)
	}
	compare := func(t *testing.T) {
		t.Helper()
		for _, file := range []string{rundir.SpectrumTable, "s=0/embedding.npy", "s=1/embedding.npy", "s=2/embedding.csv", "s=2/embedding.npy"} {
			if readText(t, filepath.Join("run", file)) != readText(t, filepath.Join("whole", file)) {
				t.Errorf("%s has other bytes than that of the spectrum that was left alone", file)
			}
		}
	}
	for _, file := range []string{"checkpoint.safetensors", "s=0/checkpoint.safetensors", "s=2/checkpoint.safetensors"} {
		t.Run(file, func(t *testing.T) {
			if err := os.RemoveAll("run"); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := interruptOnce(t, filepath.Join("run", file), flags("run")...)
			if code != exitFailure || stdout != "" || !strings.Contains(stderr, "cne: interrupted ") || !strings.Contains(stderr, `; "cne spectrum --resume run" goes on`) {
				t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			if code, _, stderr := runCne(t.Context(), "spectrum", "--resume", "run"); code != 0 {
				t.Fatal(stderr)
			}
			compare(t)
		})
	}
	t.Run("only checkpoints", func(t *testing.T) {
		for _, file := range []string{rundir.SpectrumTable, rundir.SpectrumFigures, "s=0/embedding.npy", "s=1/metrics.json", "s=2/embedding.csv"} {
			if err := os.Remove(filepath.Join("run", file)); err != nil {
				t.Fatal(err)
			}
		}
		if code, _, stderr := runCne(t.Context(), "spectrum", "--resume", "run", "--s", "0,1,2"); code != 0 {
			t.Fatal(stderr)
		}
		compare(t)
	})
	t.Run("refusals", func(t *testing.T) {
		for name, tt := range map[string]struct {
			flags []string
			want  string
		}{
			"other values": {[]string{"--s", "0,1"}, `was begun with "cne spectrum --s 0,1,2", not "cne spectrum --s 0,1"; leave --s out`},
			"more epochs":  {[]string{"--epochs", "301"}, "cannot be given more epochs than " + epochs},
			"another loss": {[]string{"--set", "loss.name=infonce"}, "was begun with loss.name neg"},
		} {
			code, _, stderr := runCne(t.Context(), append([]string{"spectrum", "--resume", "run"}, tt.flags...)...)
			if code != exitFailure || !strings.Contains(stderr, tt.want) {
				t.Errorf("%s: exit code %d and %q, want %q", name, code, stderr, tt.want)
			}
		}
		writePoints(t, "points.csv", 59, 3)
		if code, _, stderr := runCne(t.Context(), "spectrum", "--resume", "run"); code != exitFailure || !strings.Contains(stderr, "are not those that the run was begun with") {
			t.Errorf("other points: exit code %d and %q", code, stderr)
		}
	})
}

// Before there is a checkpoint, an interrupted spectrum leaves the folder free.
func TestSpectrumIsInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := runCne(ctx, shortSpectrum()...)
	if code != exitFailure || stdout != "" || !strings.Contains(stderr, "cne: interrupted") || !strings.Contains(stderr, "nothing was written") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if _, err := os.Stat("run"); !os.IsNotExist(err) {
		t.Errorf("there is a folder (%v)", err)
	}
}

func TestSpectrumNamesItsFolder(t *testing.T) {
	for path, want := range map[string]string{"": "runs/spectrum-mnist10k", "data/points.npy": "runs/spectrum-points"} {
		var from configs.Sources
		if path != "" {
			from.Settings = []configs.Setting{{Source: "--set data.path", Key: "data.path", Value: path}}
		}
		c, _, err := configs.Spectrum.Load(from)
		if err != nil {
			t.Fatal(err)
		}
		if c.Output.Dir != want {
			t.Errorf("the folder for %q is %s, want %s", path, c.Output.Dir, want)
		}
	}
}
