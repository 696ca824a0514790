package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cne/data"
	"cne/internal/finite"
	"cne/internal/projection"
	"cne/internal/rng"
	"cne/internal/rundir"
	"cne/internal/safetensors"
	"cne/model"
)

// aNetwork are the flags of a run that trains a small network.
func aNetwork(more ...string) []string {
	return append([]string{"--set", "model.kind=mlp", "--set", "model.hidden=[20, 10]"}, more...)
}

// aTable are those of one that trains a table and keeps its points.
func aTable(more ...string) []string {
	return append([]string{"--set", "model.keep_data=true"}, more...)
}

// place runs cne project with the model of the folder run and returns the
// file that it writes.
func place(t *testing.T, output string, args ...string) string {
	t.Helper()
	code, stdout, stderr := runCne(t.Context(), append([]string{"project", "--model", "run", "-o", output}, args...)...)
	if code != 0 || !strings.HasPrefix(stdout, output+": ") || !strings.Contains(stdout, " per second") || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	return readText(t, output)
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readPositions reads an array of positions.
func readPositions(t *testing.T, path string) *data.Matrix {
	t.Helper()
	set, err := data.Open(t.Context(), []string{path}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Points
}

// linesOf returns a table's header and its rows.
func linesOf(t *testing.T, path string) (header string, rows []string) {
	t.Helper()
	lines := strings.SplitAfter(readText(t, path), "\n")
	return lines[0], lines[1 : len(lines)-1]
}

// A network that is loaded gives the training points the positions that it
// gave them at the end of the run, bit for bit, and the same for any format,
// any order and any number of files.
func TestProjectTrainingPoints(t *testing.T) {
	for name, flags := range map[string][]string{
		"float32":        nil,
		"float64":        {"--set", "model.dtype=float64"},
		"unscaled":       {"--set", "data.scale=none"},
		"standardised":   {"--set", "data.scale=standard"},
		"PCA":            {"--set", "model.input=pca", "--set", "graph.pca=3"},
		"cosine, 3-D":    {"--set", "loss.metric=cosine", "--set", "loss.name=infonce", "--set", "model.dim=3"},
		"one dimension":  {"--set", "model.dim=1"},
		"a linear layer": {"--set", "model.hidden=[]"},
	} {
		t.Run(name, func(t *testing.T) {
			shortRun(t, aNetwork(flags...)...)
			want := readText(t, "run/embedding.npy")
			labelled := []string{"points.csv", "--label-column", "kind"}
			if place(t, "all.npy", labelled...) != want {
				t.Error("the positions are not those of embedding.npy")
			}
			if place(t, "all.csv", append(labelled, "--plot", "all.png")...) != readText(t, "run/embedding.csv") {
				t.Error("the positions and labels are not those of embedding.csv")
			}
			if got := readText(t, "all.png"); !strings.HasPrefix(got, "\x89PNG") {
				t.Errorf("the picture begins with %.5q", got)
			}
			if place(t, "file.npy", "--model", "run/model.safetensors", "points.csv", "--drop", "kind") != want {
				t.Error("the file gives other positions than the folder")
			}
			header, rows := linesOf(t, "points.csv")
			// Alone, and in several files of any length.
			positions := readPositions(t, "all.npy")
			for _, i := range []int{0, 7, 59} {
				writeTestFile(t, "one.csv", header+rows[i])
				place(t, "one.npy", "one.csv", "--label-column", "-1")
				if got := readPositions(t, "one.npy"); !slices.Equal(got.X, positions.Row(i)) {
					t.Errorf("alone, point %d lies at %v, among others at %v", i, got.X, positions.Row(i))
				}
			}
			files := []string{"--drop", "6"}
			for k, at := range [][2]int{{0, 1}, {1, 40}, {40, 60}} {
				path := fmt.Sprintf("part%d.csv", k)
				writeTestFile(t, path, header+strings.Join(rows[at[0]:at[1]], ""))
				files = append(files, path)
			}
			if place(t, "parts.npy", files...) != want {
				t.Error("several files give other positions")
			}
		})
	}
}

// More points than a block holds get the positions that they have alone.
func TestProjectManyBlocks(t *testing.T) {
	shortRun(t, aNetwork()...)
	const n = 2*projection.MaxBlockRows + 100
	s := rng.New(7, rng.Sample)
	points := data.NewMatrix(n, 5)
	for i := range points.X {
		points.X[i] = float32(10 * s.Normal())
	}
	writeMatrix(t, "many.npy", func(w io.Writer) error { return data.WriteNPY(w, points) })
	place(t, "many-out.npy", "many.npy")
	all := readPositions(t, "many-out.npy")
	if all.N != n {
		t.Fatalf("%d positions of %d points", all.N, n)
	}
	for _, at := range [][2]int{{0, 1}, {projection.MaxBlockRows - 3, projection.MaxBlockRows + 3}, {2 * projection.MaxBlockRows, n}} {
		part := points.Rows(at[0], at[1])
		writeMatrix(t, "some.npy", func(w io.Writer) error { return data.WriteNPY(w, part) })
		place(t, "some-out.npy", "some.npy")
		if got := readPositions(t, "some-out.npy"); !slices.Equal(got.X, all.Rows(at[0], at[1]).X) {
			t.Errorf("rows %v have other positions on their own", at)
		}
	}
}

// What a run writes for the points that it holds out is what cne project gives
// them afterwards.
func TestProjectHeldOutPoints(t *testing.T) {
	for name, flags := range map[string][]string{
		"network":           aNetwork(),
		"table":             aTable(),
		"table, NC, a seed": aTable("--set", "loss.name=nc", "--seed", "5"),
		"table of float64":  aTable("--set", "model.dtype=float64", "--set", "graph.pca=3"),
		"table, mean":       aTable("--set", "loss.reduction=mean"),
		"table, cosine":     aTable("--set", "loss.metric=cosine", "--set", "loss.name=infonce", "--set", "model.dim=3"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writePoints(t, "all.csv", 80, 5)
			header, rows := linesOf(t, "all.csv")
			writeTestFile(t, "points.csv", header+strings.Join(rows[:60], ""))
			writeTestFile(t, "held.csv", header+strings.Join(rows[60:], ""))
			if code, _, stderr := runCne(t.Context(), short(append(flags, "--set", "data.holdout=held.csv")...)...); code != 0 {
				t.Fatal(stderr)
			}
			if place(t, "held.npy", "held.csv", "--label-column", "kind") != readText(t, "run/holdout.npy") {
				t.Error("the positions are not those of holdout.npy")
			}
			if place(t, "held-out.csv", "held.csv", "--label-column", "kind") != readText(t, "run/holdout.csv") {
				t.Error("the positions and labels are not those of holdout.csv")
			}
		})
	}
}

// A table places training points near their positions, and a point at the same
// bits wherever it stands and however often.
func TestProjectBesideATable(t *testing.T) {
	for _, loss := range []string{"neg", "nc", "infonce", "umap"} {
		t.Run(loss, func(t *testing.T) {
			shortRun(t, aTable("--epochs", "60", "--set", "loss.name="+loss)...)
			place(t, "all.npy", "points.csv", "--drop", "kind")
			got, trained := readPositions(t, "all.npy"), readPositions(t, "run/embedding.npy")
			if got.N != trained.N || got.D != trained.D {
				t.Fatalf("%d×%d positions, want %d×%d", got.N, got.D, trained.N, trained.D)
			}
			// The clusters, every third point, are much farther apart than their
			// points are: a point comes to lie nearest to its own.
			centres := data.NewMatrix(3, trained.D)
			for i := range trained.N {
				for j, v := range trained.Row(i) {
					centres.Row(i % 3)[j] += v / float32(trained.N/3)
				}
			}
			for i := range got.N {
				nearest, least := 0, math.Inf(1)
				for c := range 3 {
					if d := distance(got.Row(i), centres.Row(c)); d < least {
						nearest, least = c, d
					}
				}
				if nearest != i%3 {
					t.Errorf("point %d of cluster %d comes to lie in cluster %d", i, i%3, nearest)
				}
			}
			header, rows := linesOf(t, "points.csv")
			// In another order, and the second half twice.
			s := rng.New(1, rng.Sample)
			order := append(s.Perm(60), s.Perm(60)[:30]...)
			text := header
			for _, i := range order {
				text += rows[i]
			}
			writeTestFile(t, "other.csv", text)
			place(t, "other.npy", "other.csv", "--drop", "kind")
			other := readPositions(t, "other.npy")
			for k, i := range order {
				if !slices.Equal(other.Row(k), got.Row(i)) {
					t.Fatalf("in another order point %d lies at %v, not %v", i, other.Row(k), got.Row(i))
				}
			}
			writeTestFile(t, "one.csv", header+rows[11])
			place(t, "one.npy", "one.csv", "--drop", "kind")
			if one := readPositions(t, "one.npy"); !slices.Equal(one.X, got.Row(11)) {
				t.Errorf("alone, point 11 lies at %v, not %v", one.X, got.Row(11))
			}
		})
	}
}

func distance(a, b []float32) float64 {
	var sum float64
	for j := range a {
		sum += float64(a[j]-b[j]) * float64(a[j]-b[j])
	}
	return math.Sqrt(sum)
}

// Points without a position have NaN in its place, and the others the position
// that they have without them.
func TestProjectSkipsBadPoints(t *testing.T) {
	for name, flags := range map[string][]string{"network": aNetwork(), "table": aTable()} {
		t.Run(name, func(t *testing.T) {
			shortRun(t, flags...)
			header, rows := linesOf(t, "points.csv")
			place(t, "good.npy", "points.csv", "--drop", "kind")
			good := readPositions(t, "good.npy")
			for i, row := range map[int]string{3: "1,nan,2,3,4,ant\n", 20: "1,2,3,4,-Inf,bee\n", 59: "inf,2,3,4,5,cat\n"} {
				rows[i] = row
			}
			writeTestFile(t, "bad.csv", header+strings.Join(rows, ""))
			code, stdout, stderr := runCne(t.Context(), "project", "--model", "run", "-o", "bad-out.csv", "bad.csv", "--label-column", "kind", "--skip-bad", "--plot", "bad.svg")
			if code != 0 || !strings.Contains(stderr, "points=3") || !strings.Contains(stderr, "of=60") || !strings.Contains(stdout, " 57 points placed") {
				t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			_, placed := linesOf(t, "bad-out.csv")
			place(t, "good.csv", "points.csv", "--label-column", "kind")
			_, all := linesOf(t, "good.csv")
			for i := range placed {
				want := all[i]
				switch i {
				case 3:
					want = "NaN,NaN,ant\n"
				case 20:
					want = "NaN,NaN,bee\n"
				case 59:
					want = "NaN,NaN,cat\n"
				}
				if placed[i] != want {
					t.Errorf("point %d is written as %q, want %q", i, placed[i], want)
				}
			}
			place(t, "bad.npy", "bad.csv", "--drop", "kind", "--skip-bad")
			array := readText(t, "bad.npy")
			array = array[len(array)-4*2*60:]
			for i := range 60 {
				for j := range 2 {
					v := math.Float32frombits(binary.LittleEndian.Uint32([]byte(array[4*(2*i+j):])))
					if slices.Contains([]int{3, 20, 59}, i) == finite.Is(v) || finite.Is(v) && v != good.Row(i)[j] {
						t.Errorf("coordinate %d of point %d is %v", j, i, v)
					}
				}
			}
			// If all are bad, there is nothing to draw, but the positions are there.
			writeTestFile(t, "none.csv", header+rows[3])
			code, _, stderr = runCne(t.Context(), "project", "--quiet", "--model", "run", "-o", "none.npy", "none.csv", "--drop", "kind", "--skip-bad", "--plot", "none.png")
			if code != 1 || !strings.Contains(stderr, "there is nothing to draw: no point has a position (the positions are in none.npy)") {
				t.Errorf("exit code %d, stderr %q", code, stderr)
			}
			if slices.Contains(listFiles(t, "."), "none.png") || len(readText(t, "none.npy")) == 0 {
				t.Error("there is a picture, or no file of positions")
			}
		})
	}
}

func TestProjectBuiltinPoints(t *testing.T) {
	t.Chdir(t.TempDir())
	points := data.NewMatrix(100, 784)
	s := rng.New(2, rng.Sample)
	for i := range points.X {
		points.X[i] = float32(s.IntN(256))
	}
	writeMatrix(t, "points.npy", func(w io.Writer) error { return data.WriteNPY(w, points) })
	code, _, stderr := runCne(t.Context(), append([]string{"train", "--set", "data.path=points.npy", "--epochs", "1", "-o", "run", "--quiet"}, aNetwork()...)...)
	if code != 0 {
		t.Fatal(stderr)
	}
	place(t, "digits.csv", "builtin:mnist10k")
	header, rows := linesOf(t, "digits.csv")
	if header != "x,y,label\n" || len(rows) != 10000 || !strings.HasSuffix(rows[0], ",7\n") {
		t.Errorf("%d rows under %q, the first is %q", len(rows), header, rows[0])
	}
}

// The state of a PyTorch module takes the points as they are, and says so.
func TestProjectForeignModel(t *testing.T) {
	shortRun(t, aNetwork("--set", "data.scale=none")...)
	f, err := safetensors.ReadFile("run/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	f.Metadata = map[string]string{"format": "pt"}
	for name, tensor := range f.Tensors {
		delete(f.Tensors, name)
		f.Tensors["encoder.net."+name] = tensor
	}
	if err := f.WriteFile("torch.safetensors"); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runCne(t.Context(), "project", "--model", "torch.safetensors", "points.csv", "--drop", "kind", "-o", "out.npy")
	if code != 0 || !strings.Contains(stderr, "does not say how points were scaled") {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	if readText(t, "out.npy") != readText(t, "run/embedding.npy") {
		t.Error("the positions are not those of the network")
	}
}

// reseal changes a model file and seals it as a file of that kind and version.
func reseal(t *testing.T, path, kind string, version int, change func(f *safetensors.File)) {
	t.Helper()
	f, err := safetensors.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change(f)
	f.Seal(kind, version)
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
}

func TestProjectBadInput(t *testing.T) {
	const modelPath = "run/model.safetensors"
	flip := func(t *testing.T) {
		text := []byte(readText(t, modelPath))
		text[len(text)-1] ^= 1 // of the tensors, whatever the size of the header
		writeTestFile(t, modelPath, string(text))
	}
	good := []string{"points.csv", "--label-column", "kind"}
	type badCase struct {
		spoil func(t *testing.T)
		args  []string // nil for good
		want  string   // part of the message
	}
	write := func(path, text string) func(t *testing.T) {
		return func(t *testing.T) { writeTestFile(t, path, text) }
	}
	npy := func(descr, shape string, values int) string {
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
		head += strings.Repeat(" ", 117-len(head)) + "\n"
		return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(head)))) + head + strings.Repeat("\x00", values)
	}
	forAll := map[string]badCase{
		"missing model": {nil, append(good, "-m", "nowhere"), "the model cannot be read (open nowhere: no such file or directory); check --model"},
		"no run":        {nil, append(good, "-m", "."), "the folder . holds no model.safetensors"},
		"no model":      {nil, append(good, "-m", "points.csv"), "points.csv: not valid safetensors"},
		"damaged model": {flip, nil, "the checksum does not agree with the contents"},
		"cut model":     {func(t *testing.T) { must(t, os.Truncate(modelPath, 500)) }, nil, "the file is cut off"},
		"empty model":   {write(modelPath, ""), nil, modelPath},
		"checkpoint":    {nil, append(good, "-m", "run/checkpoint.safetensors"), "checkpoint"},
		"for images": {func(t *testing.T) {
			n, err := model.NewResNet[float32](model.ResNetOptions{Width: 1}, 1)
			must(t, err)
			must(t, n.Save(modelPath, &model.Description{}))
		}, nil, "is a network for images, which places no points"},
		"later version":     {func(t *testing.T) { reseal(t, modelPath, "model", 99, func(*safetensors.File) {}) }, nil, "written by a newer version of cne (format 99"},
		"missing points":    {nil, []string{"nowhere.npy"}, "nowhere.npy"},
		"one is missing":    {nil, append(good, "nowhere.csv"), "nowhere.csv"},
		"width":             {nil, []string{"points.csv", "--drop", "kind", "--drop", "f0"}, `points.csv: the column "f0" was trained on, but is now the label column or to be dropped`},
		"labels as points":  {write("wide.csv", "1,2,3,4,5,0\n"), []string{"wide.csv"}, "have 6 values, but the model takes points of 5; give points of the same kind (--label-column and --drop leave columns of a table out)"},
		"widths":            {write("narrow.csv", "f0,f1,kind\n1,2,ant\n"), append(good, "narrow.csv"), `narrow.csv: of the 5 columns that were trained on, 3 are missing: "f2", "f3", "f4"`},
		"dtype":             {write("x.npy", npy("<c8", "(1, 5)", 40)), []string{"x.npy"}, `x.npy: the array has the dtype "<c8"`},
		"no points":         {write("x.npy", npy("<f4", "(0, 5)", 0)), []string{"x.npy"}, "x.npy: the array of shape 0×5 holds no values"},
		"cut array":         {write("x.npy", npy("<f4", "(9, 5)", 100)), []string{"x.npy"}, "truncated"},
		"huge rows":         {write("x.npy", npy("<f4", "(1, 99999999999)", 0)), []string{"x.npy"}, "x.npy"},
		"empty file":        {write("x.csv", ""), []string{"x.csv"}, "x.csv: the file is empty"},
		"only a header":     {write("x.csv", "a,b,c,d,e\n"), []string{"x.csv"}, "x.csv: the table has a header but no points"},
		"NaN":               {write("x.csv", "1,2,3,4,5\n1,2,nan,4,5\n"), []string{"x.csv"}, "x.csv: row 2: value 3 (counted from 1) is NaN; mend the values, or give --skip-bad to pass over such points"},
		"infinite":          {write("x.csv", "-Inf,2,3,4,5\n"), []string{"x.csv"}, "x.csv: row 1: value 1 (counted from 1) is -Inf; mend"},
		"NaN in the second": {write("x.csv", "f0,f1,f2,f3,f4,kind\n1,2,3,4,nan,ant\n"), append(good, "x.csv"), "x.csv: row 1 (row 61 over all files): value 5"},
		"not a number":      {write("x.csv", "1,2,3,4,5\n1,2,three,4,5\n"), []string{"x.csv"}, "three"},
		"ragged":            {write("x.csv", "1,2,3,4,5\n1,2\n"), []string{"x.csv"}, "line 2"},
		"label column":      {nil, []string{"points.csv", "--label-column", "sort"}, `there is no column "sort"`},
		"builtin":           {nil, []string{"builtin:mnist10k"}, "have 784 values, but the model takes points of 5"},
		"unknown builtin":   {nil, []string{"builtin:iris"}, `there is no built-in data set "iris"`},
		"builtin and file":  {nil, []string{"points.csv", "builtin:mnist10k"}, "builtin:mnist10k goes with no other file"},
		"builtin's labels":  {nil, []string{"builtin:mnist10k", "--label-column", "kind"}, "leave --label-column, --drop and --header out"},
		"over the input":    {nil, append(good, "-o", "points.csv"), "points.csv would be replaced by the results (--output)"},
		"over a model":      {func(t *testing.T) { must(t, os.Rename(modelPath, "m.npy")) }, append(good, "-m", "m.npy", "-o", "m.npy"), "m.npy would be replaced"},
		"no folder":         {nil, append(good, "-o", "no/such.npy"), "--output is no/such.npy, but there is no folder no; make it"},
		"no plot folder":    {nil, append(good, "--plot", "no/such.png"), "--plot is no/such.png, but there is no folder no; make it"},
		"a folder":          {func(t *testing.T) { must(t, os.Mkdir("x.npy", 0o755)) }, append(good, "-o", "x.npy"), "--output is x.npy, which is not a regular file"},
	}
	for kind, kindCases := range map[string]struct {
		flags []string
		cases map[string]badCase
	}{
		"network": {aNetwork(), map[string]badCase{
			"another architecture": {func(t *testing.T) {
				reseal(t, modelPath, "model", 1, func(f *safetensors.File) { f.Metadata["architecture"] = `{"kind": "transformer"}` })
			}, nil, `its architecture is "transformer"`},
			"other tensors": {func(t *testing.T) {
				f := &safetensors.File{Tensors: map[string]safetensors.Tensor{"bn1.running_mean": safetensors.New(make([]float32, 16), 16)}}
				must(t, f.WriteFile(modelPath))
			}, nil, "belongs to another architecture"},
			"too large": {write("x.csv", "1,2,3,4,5\n3e38,3e38,-3e38,3e38,-3e38\n"), []string{"x.csv", "-m", "steep.safetensors"}, "x.csv: row 2: the values are too large for this model"},
		}},
		"table": {aTable(), map[string]badCase{
			"no points kept": {func(t *testing.T) { must(t, os.Remove("run/"+rundir.PointsFile)) }, nil,
				"is a table, which places new points only beside its training points, and there is no " + filepath.Join("run", rundir.PointsFile) + " with them; train again with model.keep_data: true"},
			"damaged points": {write("run/"+rundir.PointsFile, "nonsense"), nil, rundir.PointsFile},
			"points of another number": {func(t *testing.T) {
				reseal(t, "run/"+rundir.PointsFile, "points", 1, func(f *safetensors.File) {
					f.Tensors["points"] = safetensors.New(make([]float32, 10), 2, 5)
				})
			}, nil, "has 60 points, but run/training_points.safetensors has 2; they are not of the same run"},
			"points of another width": {func(t *testing.T) {
				reseal(t, "run/"+rundir.PointsFile, "points", 1, func(f *safetensors.File) {
					f.Tensors["points"] = safetensors.New(make([]float32, 240), 60, 4)
				})
			}, nil, "prepares points of 5 values, but those of run/training_points.safetensors have 4"},
			"no step size": {func(t *testing.T) {
				reseal(t, modelPath, "model", 1, func(f *safetensors.File) {
					f.Metadata["training"] = `{"negatives": 5, "neighbors": 5}`
				})
			}, nil, "step size 0"},
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			shortRun(t, kindCases.flags...)
			from, err := os.Getwd()
			must(t, err)
			// A layer that multiplies by a large number.
			steep := &safetensors.File{Tensors: map[string]safetensors.Tensor{
				"0.weight": safetensors.New(slices.Repeat([]float32{1e10}, 10), 2, 5), "0.bias": safetensors.New(make([]float32, 2), 2)}}
			must(t, steep.WriteFile("steep.safetensors"))
			run := func(name string, tc badCase) {
				t.Run(name, func(t *testing.T) {
					dir := t.TempDir()
					must(t, os.CopyFS(dir, os.DirFS(from)))
					t.Chdir(dir)
					if tc.spoil != nil {
						tc.spoil(t)
					}
					before := listFiles(t, ".")
					args := tc.args
					if args == nil {
						args = good
					}
					code, stdout, stderr := runCne(t.Context(), append([]string{"project", "--quiet", "-m", "run", "-o", "out.npy"}, args...)...)
					stderr = strings.TrimPrefix(stderr, "warning: the file does not say how points were scaled for training; they are taken as they are\n")
					if code != 1 || stdout != "" || !strings.HasPrefix(stderr, "cne: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tc.want) {
						t.Errorf("exit code %d, stdout %q, stderr %q; want 1, nothing, and one line with %q", code, stdout, stderr, tc.want)
					}
					if after := listFiles(t, "."); !slices.Equal(after, before) {
						t.Errorf("files %v, before %v", after, before)
					}
				})
			}
			for name, tc := range forAll {
				run(name, tc)
			}
			for name, tc := range kindCases.cases {
				run(name, tc)
			}
		})
	}
}

func TestProjectUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                                "needs an argument: the file with the points",
		"a.npy -o b.npy":                  "--model is missing",
		"a.npy -m run":                    "--output is missing",
		"a.npy -m run -o b.txt":           `--output is "b.txt", but must end in .npy or .csv`,
		"a.npy -m run -o b":               `--output is "b"`,
		"a.npy -m run -o b.npy --plot c":  `--plot is "c", but must end in .png or .svg`,
		"a.npy -m r -o b.npy --header no": "",
		"a.npy -m r -o b.npy --header x":  `--header is "x", but must be auto, yes or no`,
		"a.npy -m run -o b.npy --skip":    "unknown flag: --skip",
	} {
		t.Chdir(t.TempDir())
		code, stdout, stderr := runCne(t.Context(), append([]string{"project"}, strings.Fields(args)...)...)
		wantCode := exitUsage
		if want == "" {
			wantCode = exitFailure
		}
		if code != wantCode || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

// Whether it reads, waits for a pipe or waits for one to be opened: a signal
// ends the program and nothing is written.
func TestProjectIsInterrupted(t *testing.T) {
	shortRun(t, aNetwork()...)
	makePipe(t, "pipe")
	for name, lines := range map[string]int{"before the pipe is opened": -1, "at its beginning": 0, "in a block": 10, "after a block": projection.MaxBlockRows + 10} {
		t.Run(name, func(t *testing.T) {
			before := listFiles(t, ".")
			cmd, stderr := program(t, "project", "--quiet", "-m", "run", "pipe", "-o", "out.npy")
			if lines >= 0 {
				pipe, err := os.OpenFile("pipe", os.O_WRONLY, 0) // waits for the program
				if err != nil {
					t.Fatal(err)
				}
				defer pipe.Close()
				if _, err := io.WriteString(pipe, strings.Repeat("1,2,3,4,5\n", lines)); err != nil {
					t.Fatal(err)
				}
			}
			waitUntilRead(t, cmd.Process.Pid, "run/"+rundir.ModelFile)
			time.Sleep(50 * time.Millisecond) // so that it waits
			interruptAndWait(t, cmd, stderr)
			if after := listFiles(t, "."); !slices.Equal(after, before) {
				t.Errorf("files %v, before %v", after, before)
			}
		})
	}
}

// waitUntilRead waits until a process has read as much as a file has: by then it
// catches signals, which a busy machine may let come to it earlier. Where the system
// does not tell, it waits for a second.
func waitUntilRead(t *testing.T, pid int, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var read int64
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			time.Sleep(time.Second)
			return
		}
		if _, err := fmt.Sscanf(string(text), "rchar: %d", &read); err == nil && read >= info.Size() {
			return
		}
	}
	t.Fatalf("the program does not read %s", path)
}

// interruptAndWait sends SIGINT and expects the one line about it.
func interruptAndWait(t *testing.T, cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 || stderr.String() != "cne: interrupted; nothing was written\n" {
		t.Errorf("%v, stderr %q", err, stderr)
	}
}
