package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cne/data"
)

// projectIn runs cne project with more arguments and expects it to succeed.
func projectIn(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := runCne(t.Context(), append([]string{"project"}, args...)...)
	if code != 0 {
		t.Fatalf("%q: exit code %d, stderr %q", args, code, stderr)
	}
	return stdout, stderr
}

// placeInParts places the parts of an output one after the other, the last first.
func placeInParts(t *testing.T, k int, output string, args ...string) {
	t.Helper()
	for i := k - 1; i >= 0; i-- {
		projectIn(t, append([]string{"--model", "run", "-o", output, "--shard", fmt.Sprintf("%d/%d", i, k)}, args...)...)
	}
}

// Points that are placed in parts get the bits that one process gives them, whatever
// places them, and whatever they are read from and written to.
func TestProjectInParts(t *testing.T) {
	for name, flags := range map[string][]string{
		"network":                          aNetwork(),
		"table":                            aTable(),
		"table that shares many negatives": aTable("--set", "loss.negatives=40"),
	} {
		t.Run(name, func(t *testing.T) {
			shortRun(t, flags...)
			writePoints(t, "new.csv", 47, 5)
			points, err := data.Open(t.Context(), []string{"new.csv"}, data.Options{Drop: []string{"kind"}})
			must(t, err)
			writeMatrix(t, "new.npy", func(w io.Writer) error { return data.WriteNPY(w, points.Points) })
			for _, input := range [][]string{{"new.npy"}, {"new.csv", "--label-column", "kind"}, {"new.csv", "points.csv", "--drop", "kind"}} {
				for _, output := range []string{"whole.npy", "whole.csv"} {
					want := place(t, output, input...)
					parts := "parts" + filepath.Ext(output)
					placeInParts(t, 3, parts, input...)
					stdout, stderr := projectIn(t, "--merge", "-o", parts)
					if !regexp.MustCompile(`^`+parts+`: \d+ points of 3 parts\n$`).MatchString(stdout) || stderr != "" {
						t.Errorf("%v: stdout %q, stderr %q", input, stdout, stderr)
					}
					if readText(t, parts) != want {
						t.Errorf("%v: the parts have other positions in %s than the whole", input, output)
					}
				}
			}
		})
	}
}

// A picture of the parts is that of the whole, points without a position are passed over in
// both, and a part that is there is not placed again.
func TestProjectPartsWithPicture(t *testing.T) {
	shortRun(t, aNetwork()...)
	header, rows := linesOf(t, "points.csv")
	rows[17], rows[40] = "1,2,nan,4,5,ant\n", "1,2,inf,4,5,bee\n"
	writeTestFile(t, "new.csv", header+strings.Join(rows, ""))
	input := []string{"new.csv", "--label-column", "kind", "--skip-bad"}
	want := place(t, "whole.npy", append(input, "--plot", "whole.png")...)
	placeInParts(t, 4, "parts.npy", input...)
	stdout, _ := projectIn(t, append([]string{"-m", "run", "-o", "parts.npy", "--shard", "1/4"}, input...)...)
	if !strings.HasPrefix(stdout, "parts.npy.part-1-of-4: ") || !strings.HasSuffix(stdout, " points had been placed before\n") {
		t.Errorf("stdout %q", stdout)
	}
	_, stderr := projectIn(t, append([]string{"-m", "run", "--merge", "-o", "parts.npy", "--plot", "parts.png"}, input...)...)
	if !strings.Contains(stderr, "have no position points=2 of=60") {
		t.Errorf("stderr %q", stderr)
	}
	if readText(t, "parts.npy") != want || readText(t, "parts.png") != readText(t, "whole.png") {
		t.Error("positions or picture are not those of the whole")
	}
	// A fault is told with its row in the file.
	for i, want := range []string{"new.csv: row 18: value 3 (counted from 1) is NaN", "new.csv: row 41: value 3 (counted from 1) is +Inf"} {
		code, _, stderr := runCne(t.Context(), "project", "-m", "run", "-o", "bad.npy", "new.csv", "--drop", "kind", "--shard", fmt.Sprintf("%d/2", i))
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, stderr %q, want %q", code, stderr, want)
		}
	}
	if files, _ := filepath.Glob("bad*"); files != nil {
		t.Errorf("there are %q", files)
	}
}

// More parts than points, built-in points, and counts.
func TestProjectPartsOfOtherPoints(t *testing.T) {
	shortRun(t, aNetwork()...)
	header, rows := linesOf(t, "points.csv")
	writeTestFile(t, "few.csv", header+strings.Join(rows[:3], ""))
	want := place(t, "few.npy", "few.csv", "--drop", "kind")
	placeInParts(t, 12, "parts.npy", "few.csv", "--drop", "kind")
	// Of a part without points, too, it is told whether it has been there before.
	for i, want := range []string{"0 points placed in", "0 points had been placed before"} {
		if i == 0 {
			must(t, os.Remove("parts.npy.part-11-of-12"))
		}
		if stdout, _ := projectIn(t, "-m", "run", "-o", "parts.npy", "few.csv", "--drop", "kind", "--shard", "11/12"); !strings.Contains(stdout, want) {
			t.Errorf("stdout %q, want %q", stdout, want)
		}
	}
	projectIn(t, "--merge", "-o", "parts.npy")
	if readText(t, "parts.npy") != want {
		t.Error("few points have other positions in many parts")
	}

	cells := filepath.Join(t.TempDir(), "cells")
	must(t, os.CopyFS(cells, os.DirFS(filepath.Join(sourceFolder(t), "data", "testdata", "cells"))))
	if code, _, stderr := runCne(t.Context(), "train", "--quiet", cells, "--epochs", "1", "--set", "graph.k=2", "--set", "model.kind=mlp", "--set", "model.hidden=[5]", "-o", "cellrun"); code != 0 {
		t.Fatal(stderr)
	}
	projectIn(t, "-m", "cellrun", cells, "-o", "cells.csv")
	for i := range 2 {
		projectIn(t, "-m", "cellrun", cells, "-o", "cellparts.csv", "--shard", fmt.Sprintf("%d/2", i))
	}
	projectIn(t, "-m", "cellrun", cells, "--merge", "-o", "cellparts.csv")
	if readText(t, "cellparts.csv") != readText(t, "cells.csv") {
		t.Error("cells have other positions in parts")
	}
}

// sourceFolder returns the root of the module.
func sourceFolder(t *testing.T) string {
	t.Helper()
	folder := startFolder
	for range 2 {
		folder = filepath.Dir(folder)
	}
	return folder
}

// startFolder is that of the package, in which tests begin.
var startFolder, _ = os.Getwd()

func TestProjectPartsThatDoNotFit(t *testing.T) {
	good := []string{"new.csv", "--label-column", "kind"}
	part := func(i int) string { return fmt.Sprintf("out.npy.part-%d-of-3", i) }
	again := func(t *testing.T, more ...string) {
		must(t, os.Remove(part(1)))
		projectIn(t, append([]string{"-m", "run", "-o", "out.npy", "--shard", "1/3"}, more...)...)
	}
	// change writes a file whose time of change is certainly another.
	change := func(t *testing.T, path, text string) {
		writeTestFile(t, path, text)
		must(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Minute)))
	}
	// edit changes what a part says of itself.
	edit := func(t *testing.T, path string, f func(about map[string]any)) {
		b := []byte(readText(t, path))
		tail := b[len(b)-16:]
		n := int(tail[0]) | int(tail[1])<<8 | int(tail[2])<<16
		about := map[string]any{}
		must(t, json.Unmarshal(b[len(b)-16-n:len(b)-16], &about))
		f(about)
		text, err := json.Marshal(about)
		must(t, err)
		writeTestFile(t, path, string(slices.Concat(b[:len(b)-16-n], text, sealOf(text), tail[8:])))
	}
	for name, tc := range map[string]struct {
		spoil func(t *testing.T)
		args  []string // beside --merge
		want  string
	}{
		"none": {func(t *testing.T) {
			for i := range 3 {
				must(t, os.Remove(part(i)))
			}
		}, nil, "there are no parts of out.npy beside it; place them first, with --shard 0/k, 1/k and so on, and the same --output"},
		"missing":     {func(t *testing.T) { must(t, os.Remove(part(1))) }, nil, "of the 3 parts of out.npy, 1 are missing; place them with --shard 1/3"},
		"unfinished":  {func(t *testing.T) { must(t, os.Rename(part(1), part(1)+".unfinished")) }, nil, "1 are missing; place them with --shard 1/3"},
		"another k":   {func(t *testing.T) { must(t, os.Rename(part(1), "out.npy.part-1-of-4")) }, nil, "out.npy.part-1-of-4 one of 4; remove those that are not meant"},
		"twice":       {func(t *testing.T) { writeTestFile(t, part(1), readText(t, part(0))) }, nil, "out.npy.part-1-of-3 was written as part 0 of 3, counted from 0; give it its name again, or place part 1 of 3"},
		"other name":  {func(t *testing.T) { must(t, os.Rename(part(1), "out.npy.part-01-of-3")) }, nil, "out.npy.part-01-of-3 has a name that no part has"},
		"cut off":     {func(t *testing.T) { must(t, os.Truncate(part(1), 100)) }, nil, "out.npy.part-1-of-3 is not as a part was written (damaged: it does not begin or end as one); remove it and place that part again"},
		"empty":       {func(t *testing.T) { writeTestFile(t, part(2), "") }, nil, "out.npy.part-2-of-3 is not as a part was written (damaged: it is cut off)"},
		"a bit":       {func(t *testing.T) { flipBit(t, part(1), 30) }, nil, "out.npy.part-1-of-3 is not as a part was written (damaged: the checksum of a block does not agree)"},
		"another end": {func(t *testing.T) { flipBit(t, part(1), -30) }, nil, "(damaged: the checksum of its end does not agree)"},
		"another model": {func(t *testing.T) {
			if code, _, stderr := runCne(t.Context(), short(aNetwork("--seed", "3", "-o", "other")...)...); code != 0 {
				t.Fatal(stderr)
			}
			again(t, append(good, "-m", "other")...)
		}, nil, "out.npy.part-1-of-3 is of another model than out.npy.part-0-of-3; place all parts with the same model, input and options"},
		"a changed input": {func(t *testing.T) {
			text := readText(t, "new.csv")
			change(t, "new.csv", text[:len(text)-1]+"\n")
			again(t, good...)
		}, nil, "out.npy.part-1-of-3 is of another state of the input: new.csv has changed in between than out.npy.part-0-of-3"},
		"another input": {func(t *testing.T) { again(t, "points.csv", "--label-column", "kind") }, nil, "is of another input than"},
		"other files":   {func(t *testing.T) { again(t, append(good, "points.csv")...) }, nil, "is of another input than"},
		"other options": {func(t *testing.T) { again(t, append(good, "--skip-bad")...) }, nil, "is of other options (--label-column, --drop, --header, --skip-bad) than"},
		"a border": {func(t *testing.T) {
			edit(t, part(1), func(a map[string]any) { a["from"] = map[string]any{"file": 0, "at": 7} })
		}, nil, "but out.npy.part-1-of-3 begins at 7 in file 1; choose another number of parts, and place all"},
		"fewer rows":          {func(t *testing.T) { edit(t, part(1), func(a map[string]any) { a["rows"] = 1 }) }, nil, "in place of 1"},
		"impossible":          {func(t *testing.T) { edit(t, part(1), func(a map[string]any) { a["dim"] = -1 }) }, nil, "its numbers are impossible"},
		"no JSON":             {func(t *testing.T) { edit(t, part(1), func(a map[string]any) { a["dim"] = "x" }) }, nil, "its end cannot be understood"},
		"partly":              {func(t *testing.T) { edit(t, part(1), func(a map[string]any) { a["partly"] = true }) }, nil, "is a part whose end is missing; place it again with --shard 1/3"},
		"not the named model": {func(t *testing.T) { must(t, os.Rename("run", "old")); must(t, os.Rename("second", "run")) }, []string{"-m", "run"}, "the parts of out.npy are of another model than the command line names"},
		"not the named input": {nil, []string{"points.csv", "--label-column", "kind"}, "the parts of out.npy are of another input than the command line names"},
		"changed meanwhile":   {func(t *testing.T) { change(t, "new.csv", readText(t, "new.csv")) }, good, "the parts of out.npy are of another state of the input: new.csv has changed in between than the command line names"},
	} {
		t.Run(name, func(t *testing.T) {
			shortRun(t, aNetwork()...)
			if name == "not the named model" {
				if code, _, stderr := runCne(t.Context(), short(aNetwork("--seed", "3", "-o", "second")...)...); code != 0 {
					t.Fatal(stderr)
				}
			}
			writePoints(t, "new.csv", 40, 5)
			placeInParts(t, 3, "out.npy", good...)
			writeTestFile(t, "out.npy", "what was there")
			if tc.spoil != nil {
				tc.spoil(t)
			}
			before := listFiles(t, ".")
			code, stdout, stderr := runCne(t.Context(), append([]string{"project", "--quiet", "--merge", "-o", "out.npy"}, tc.args...)...)
			if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, stdout %q, stderr\n%swant\n%s", code, stdout, stderr, tc.want)
			}
			if after := listFiles(t, "."); !slices.Equal(after, before) || readText(t, "out.npy") != "what was there" {
				t.Errorf("files %v, before %v", after, before)
			}
		})
	}
}

// sealOf is what stands behind the JSON at the end of a part: its length and checksum.
func sealOf(text []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

// flipBit changes a byte of a file, counted from the end if at is negative.
func flipBit(t *testing.T, path string, at int) {
	t.Helper()
	b := []byte(readText(t, path))
	b[(at+len(b))%len(b)] ^= 1
	writeTestFile(t, path, string(b))
}

// A part of something else under the same name is placed again, as is one that is damaged.
func TestProjectPartIsPlacedAgain(t *testing.T) {
	shortRun(t, aNetwork()...)
	writePoints(t, "new.csv", 40, 5)
	args := []string{"-m", "run", "new.csv", "--drop", "kind", "-o", "out.npy"}
	want := place(t, "whole.npy", "new.csv", "--drop", "kind")
	shard := func(i int, more ...string) string {
		_, stderr := projectIn(t, slices.Concat(args, []string{"--shard", fmt.Sprintf("%d/2", i)}, more)...)
		return stderr
	}
	shard(0, "--skip-bad")
	shard(1)
	flipBit(t, "out.npy.part-1-of-2", 30)
	if stderr := shard(0); !strings.Contains(stderr, "it is of other options") {
		t.Errorf("stderr %q", stderr)
	}
	if stderr := shard(1); !strings.Contains(stderr, "the part that is there is damaged; it is placed again") {
		t.Errorf("stderr %q", stderr)
	}
	projectIn(t, append(args, "--merge")...)
	if readText(t, "out.npy") != want {
		t.Error("the positions are not those of the whole")
	}
}

func TestProjectPartsUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"a.npy -m run -o b.npy --shard 4/4":              `--shard is "4/4", but the parts are numbered from 0 to 3`,
		"a.npy -m run -o b.npy --shard -1/4":             `--shard is "-1/4", but the parts are numbered from 0 to 3`,
		"a.npy -m run -o b.npy --shard 0/0":              `--shard is "0/0", but there can be 1 to 100000 parts`,
		"a.npy -m run -o b.npy --shard 1":                `--shard is "1", but must be i/k`,
		"a.npy -m run -o b.npy --shard 1/2/3":            "but must be i/k",
		"a.npy -m run -o b.npy --shard x/2":              "but must be i/k",
		"a.npy -m run -o b.npy --shard 0/2 --plot b.png": "--plot is given with --shard, but one part is no picture; give it with --merge",
		"a.npy -m run -o b.npy --shard 0/2 --merge":      "--shard and --merge are given together",
		"--merge":                           "--output is missing",
		"--merge -o b.npy --skip-bad":       "--merge is given with how the points are read",
		"--merge -o b.npy --header no":      "--merge is given with how the points are read",
		"-m run -o b.npy --shard 0/2":       "needs an argument: the file with the points",
		"a.npy -o b.npy --shard 0/2":        "--model is missing",
		"a.npy -m run --merge -o b.parquet": "must end in .npy or .csv",
	} {
		code, stdout, stderr := runCne(t.Context(), append([]string{"project"}, strings.Fields(args)...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}
