package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rng"
	"cne/internal/safetensors"
	"cne/internal/simd"
)

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

// A network that is loaded gives the training points the positions that it
// gave them at the end of the run, bit for bit, and the same for any format,
// any order and any number of files.
func TestProjectTrainingPoints(t *testing.T) {
	for name, settings := range map[string][]string{
		"float32":        nil,
		"float64":        {"model.dtype=float64"},
		"unscaled":       {"data.scale=none"},
		"standardised":   {"data.scale=standard"},
		"PCA":            {"model.input=pca", "graph.pca=3"},
		"cosine, 3-D":    {"loss.metric=cosine", "loss.name=infonce", "model.dim=3"},
		"one dimension":  {"model.dim=1"},
		"a linear layer": {"model.hidden=[]"},
	} {
		t.Run(name, func(t *testing.T) {
			shortRun(t, aNetwork(set(settings...)...)...)
			place(t, "all.npy", "points.csv", "--label-column", "kind")
			sameFile(t, "all.npy", "run/embedding.npy")
			place(t, "all.csv", "points.csv", "--label-column", "kind", "--plot", "all.png")
			sameFile(t, "all.csv", "run/embedding.csv")
			if got := readText(t, "all.png"); !strings.HasPrefix(got, "\x89PNG") {
				t.Errorf("the picture begins with %.5q", got)
			}
			place(t, "file.npy", "--model", "run/model.safetensors", "points.csv", "--drop", "kind")
			sameFile(t, "file.npy", "run/embedding.npy")
			// By itself, and in several files of any length.
			header, rows := linesOf(t, "points.csv")
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
				files = append(files, fmt.Sprintf("part%d.csv", k))
				writeTestFile(t, files[k+2], header+strings.Join(rows[at[0]:at[1]], ""))
			}
			place(t, "parts.npy", files...)
			sameFile(t, "parts.npy", "run/embedding.npy")
		})
	}
}

// More points than a block holds get the same positions as single points.
func TestProjectManyBlocks(t *testing.T) {
	shortRun(t, aNetwork()...)
	block := runtime.GOMAXPROCS(0) << 10 // rows that are placed at a time
	n := 2*block + 100
	s := rng.New(7, rng.Sample)
	points := data.NewMatrix(n, 5)
	for i := range points.X {
		points.X[i] = float32(10 * s.Normal())
	}
	makeArray(t, "many.npy", points)
	place(t, "many-out.npy", "many.npy")
	all := readPositions(t, "many-out.npy")
	if all.N != n {
		t.Fatalf("%d positions of %d points", all.N, n)
	}
	for _, at := range [][2]int{{0, 1}, {block - 3, block + 3}, {2 * block, n}} {
		makeArray(t, "some.npy", points.Rows(at[0], at[1]))
		place(t, "some-out.npy", "some.npy")
		if got := readPositions(t, "some-out.npy"); !slices.Equal(got.X, all.Rows(at[0], at[1]).X) {
			t.Errorf("rows %v have other positions on their own", at)
		}
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
			stdout, stderr := mustRun(t, "project", "--model", "run", "-o", "bad-out.csv", "bad.csv", "--label-column", "kind", "--skip-bad", "--plot", "bad.svg")
			if !strings.Contains(stderr, "points=3") || !strings.Contains(stderr, "of=60") || !strings.Contains(stdout, " 57 points placed") {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
			_, placed := linesOf(t, "bad-out.csv")
			place(t, "good.csv", "points.csv", "--label-column", "kind")
			_, all := linesOf(t, "good.csv")
			for i := range placed {
				want := all[i]
				if bad, ok := map[int]string{3: "NaN,NaN,ant\n", 20: "NaN,NaN,bee\n", 59: "NaN,NaN,cat\n"}[i]; ok {
					want = bad
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
					if slices.Contains([]int{3, 20, 59}, i) == simd.IsFinite(v) || simd.IsFinite(v) && v != good.Row(i)[j] {
						t.Errorf("coordinate %d of point %d is %v", j, i, v)
					}
				}
			}
		})
	}
}

func TestProjectBuiltinPoints(t *testing.T) {
	t.Chdir(t.TempDir())
	writeRandom(t, "points.npy", "|u1", 100, 784)
	mustRun(t, append(aNetwork(), "train", "points.npy", "--epochs", "1", "-o", "run", "--quiet")...)
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
	must(t, err)
	f.Metadata = map[string]string{"format": "pt"}
	for name, tensor := range f.Tensors {
		delete(f.Tensors, name)
		f.Tensors["encoder.net."+name] = tensor
	}
	must(t, f.WriteFile("torch.safetensors"))
	if _, stderr := mustRun(t, "project", "--model", "torch.safetensors", "points.csv", "--drop", "kind", "-o", "out.npy"); !strings.Contains(stderr, "does not say how the training points were scaled") {
		t.Errorf("stderr %q", stderr)
	}
	sameFile(t, "out.npy", "run/embedding.npy")
}

// A table whose run has not kept its training points places new points, bit for bit the
// same, from any folder, as long as the training points are where they were.
func TestProjectReadsTrainingPointsAgain(t *testing.T) {
	splitPoints(t, 90, 30, animal, animal)
	write10X(t, "cells", 1, 60)
	mustRun(t, short("--epochs", "1")...)
	must(t, os.Rename("run/graph.npz", "sparse.npz")) // any sparse matrix will do
	home, err := filepath.Abs(".")
	must(t, err)
	table := []string{"points.csv", "--drop", "kind"}
	for name, tc := range map[string]struct{ settings, input []string }{
		"all":          {nil, table},
		"components":   {[]string{"graph.pca=3", "data.scale=standard", "graph.cache=false"}, table},
		"cosine":       {[]string{"graph.metric=cosine", "model.dim=3"}, table},
		"float64":      {[]string{"model.dtype=float64"}, table},
		"sparse":       {[]string{"data.path=sparse.npz", "data.label_column=null", "graph.pca=3"}, []string{"sparse.npz"}},
		"a sample":     {[]string{"data.sample=40"}, table},
		"a share":      {[]string{"data.holdout=0.2"}, table},
		"held out":     {[]string{"data.holdout=held.csv"}, table},
		"imbalance":    {[]string{"data.imbalance=linear"}, table},
		"cells":        {[]string{"data.path=cells", "data.label_column=null", "data.genes=20"}, []string{"cells"}},
		"the built-in": {[]string{"data.path=builtin:mnist10k", "data.label_column=null", "data.sample=200"}, []string{"digits.npy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(home)
			writeRandom(t, "digits.npy", "|u1", 30, 784)
			args := short(append(aTable("--force", "--epochs", "3"), set(append(tc.settings, "output.plot=false")...)...)...)
			if at := slices.IndexFunc(tc.settings, func(s string) bool { return strings.HasPrefix(s, "data.path=") }); at >= 0 {
				args = slices.Delete(args, 1, 3) // the path of the table: another would be added to it
			}
			mustRun(t, args...)
			place(t, "kept.npy", tc.input...)
			must(t, os.Remove("run/training_points.safetensors"))
			must(t, os.RemoveAll("other"))
			must(t, os.Mkdir("other", 0o777))
			t.Chdir("other")
			input := append([]string{"../" + tc.input[0]}, tc.input[1:]...)
			_, stderr := mustRun(t, append([]string{"project", "--model", "../run", "-o", "../again.npy"}, input...)...)
			if !strings.Contains(stderr, "reading the training points again") {
				t.Errorf("the log says %q", stderr)
			}
			t.Chdir("..")
			sameFile(t, "again.npy", "kept.npy")
		})
	}
}
