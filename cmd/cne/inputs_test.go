package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Arguments of cne train are data.path, whatever characters are in them.
func TestTrainTakesInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 40, 3)
	odd := "[a], 'b' \"c\" #\\ é\u0085.csv"
	writePoints(t, odd, 30, 3)
	writeTestFile(t, "other.yaml", "data: {path: other.npy}\n")
	more := []string{"--set", "data.label_column=kind", "--set", "graph.k=5", "--set", "train.batch_size=64", "--epochs", "3"}
	for name, tc := range map[string]struct {
		args []string
		env  string
		like []string // other arguments for the same run; nil for none
		note string   // on stderr
	}{
		"one":               {args: []string{"points.csv"}, like: []string{"--set", "data.path=points.csv"}},
		"several":           {args: []string{"points.csv", odd}, like: []string{"--set", "data.path=" + `[points.csv, "` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\u0085", `\N`).Replace(odd) + `"]`}},
		"before the file":   {args: []string{"points.csv", "-c", "other.yaml"}, like: []string{"--set", "data.path=points.csv"}, note: "the points are those of the command line, in place of data.path of=other.yaml:1\n"},
		"before a variable": {args: []string{"points.csv"}, env: "other.npy", note: "in place of data.path of=CNE_DATA_PATH\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.env != "" {
				t.Setenv("CNE_DATA_PATH", tc.env)
			}
			train := func(args []string) (embedding []byte, stderr string) {
				t.Helper()
				dir := filepath.Join(t.TempDir(), "run")
				code, _, stderr := runCne(t.Context(), append(append([]string{"train", "-o", dir}, args...), more...)...)
				embedding, err := os.ReadFile(filepath.Join(dir, "embedding.npy"))
				if code != exitOK || err != nil {
					t.Fatalf("exit code %d, %v: %s", code, err, stderr)
				}
				return embedding, stderr
			}
			got, stderr := train(tc.args)
			if !strings.Contains(stderr, tc.note) || strings.Contains(stderr, "command line") != (tc.note != "") {
				t.Errorf("notes %s", stderr)
			}
			if tc.like == nil {
				return
			}
			if want, _ := train(tc.like); !bytes.Equal(got, want) {
				t.Error("another embedding than with --set")
			}
		})
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"points.csv", "--set", "data.path=points.csv"}, exitUsage, `the points are given twice, as the argument "points.csv" and with --set data.path; keep one of them`},
		{[]string{"points.csv", ""}, exitUsage, "an argument is empty"},
		{[]string{"loss.s=0"}, exitUsage, `there is no file "loss.s=0"; did you mean --set loss.s=0?`},
		{[]string{"\xff.csv"}, exitUsage, `INPUT: data.path is "[\xff.csv]", which is not text in UTF-8`},
		{[]string{"none.npy"}, exitFailure, "none.npy: no such file or directory); check the path (data.path)"},
	} {
		code, stdout, stderr := runCne(t.Context(), append([]string{"train", "--quiet"}, tc.args...)...)
		if code != tc.code || stdout != "" || !strings.Contains(stderr, tc.want) {
			t.Errorf("%q: exit code %d, stderr %s", tc.args, code, stderr)
		}
	}
}

// A run goes on with its points at another place, which an argument names.
func TestResumeTakesInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	if code, _, stderr := runCne(t.Context(), short()...); code != exitOK {
		t.Fatal(stderr)
	}
	if err := os.Rename("points.csv", "moved.csv"); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runCne(t.Context(), "train", "moved.csv", "--resume", "run", "--epochs", "9"); code != exitOK {
		t.Error(stderr)
	}
}

// A network places equal points at one position, for which no step size is to blame; a
// table scatters them by chance.
func TestEqualPoints(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, line := range map[string]string{"zeros.csv": "0,0,0,0\n", "equal.csv": "0.1,2,-3,0.7\n"} {
		writeTestFile(t, name, strings.Repeat(line, 60))
		args := []string{name, "--set", "data.header=no", "--epochs", "2", "-o", "run-" + name}
		want := "cne: " + name + ": all 60 points are equal, and a network places equal points at one position; give points that differ\n"
		for _, command := range []string{"train", "spectrum"} {
			code, _, stderr := runCne(t.Context(), append(append([]string{command}, args...), "--set", "model.kind=mlp")...)
			if code != exitFailure || !strings.HasSuffix(stderr, want) {
				t.Errorf("%s: exit code %d, stderr %s", name, code, stderr)
			}
		}
		code, _, stderr := runCne(t.Context(), append([]string{"train"}, args...)...)
		if code != exitOK || !strings.Contains(stderr, "warning: all points are equal") {
			t.Errorf("%s: exit code %d, stderr %s", name, code, stderr)
		}
	}
}
