package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data/file"
)

// Ranges of rows get the same bits as all rows in one process, for every model and every
// format of input and output.
func TestProjectRows(t *testing.T) {
	for name, flags := range map[string][]string{
		"network":                          aNetwork(),
		"table":                            aTable(),
		"table that shares many negatives": aTable("--set", "loss.negatives=40"),
	} {
		t.Run(name, func(t *testing.T) {
			shortRun(t, flags...)
			writePoints(t, "new.csv", 47, 5)
			points, err := file.Read(t.Context(), []string{"new.csv"}, file.Options{Drop: []string{"kind"}})
			must(t, err)
			writeMatrix(t, "new.npy", func(w io.Writer) error { return file.WriteNPY(w, points.Points) })
			for _, input := range [][]string{{"new.npy"}, {"new.csv", "--label-column", "kind"}, {"new.csv", "new.csv", "--drop", "kind"}} {
				want := place(t, "whole.csv", input...)
				got := ""
				for i, rows := range []string{":13", "13:46", "46:"} {
					part := place(t, fmt.Sprintf("part%d.csv", i), append(input, "--rows", rows)...)
					if i > 0 {
						_, part, _ = strings.Cut(part, "\n")
					}
					got += part
				}
				if got != want {
					t.Errorf("%v: the parts have other positions than the whole", input)
				}
			}
		})
	}
}

// Points without a position, pictures, and points that are held in memory.
func TestProjectRowsOfOtherPoints(t *testing.T) {
	shortRun(t, aNetwork()...)
	header, rows := linesOf(t, "points.csv")
	rows[17], rows[40] = "1,2,nan,4,5,ant\n", "1,2,inf,4,5,bee\n"
	writeTestFile(t, "new.csv", header+strings.Join(rows, ""))
	args := []string{"project", "-m", "run", "new.csv", "--label-column", "kind", "-o", "new.npy", "--rows", "18:50"}
	if code, _, stderr := runCne(t.Context(), args...); code != 1 || !strings.Contains(stderr, "new.csv:42: column \"f2\": got +Inf, want a finite number") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	if code, _, stderr := runCne(t.Context(), append(args, "--skip-bad", "--plot", "new.png")...); code != 0 || !strings.Contains(stderr, "have no position points=1 of=32") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}

	cells := filepath.Join(sourceFolder(t), "data", "counts", "testdata", "cells")
	mustRun(t, "train", "--quiet", cells, "--epochs", "1", "--set", "graph.k=2", "--set", "model.kind=mlp", "--set", "model.hidden=[5]", "-o", "cellrun")
	mustRun(t, "project", "-m", "cellrun", cells, "-o", "cells.csv")
	all := readText(t, "cells.csv")
	mustRun(t, "project", "-m", "cellrun", cells, "-o", "rest.csv", "--rows", "1:")
	if lines := strings.SplitAfter(all, "\n"); strings.Join(slices.Delete(lines, 1, 2), "") != readText(t, "rest.csv") {
		t.Error("cells have other positions in a part")
	}
}

// Rows that are not there are one sentence, and nothing is written.
func TestProjectRowsBeyondTheEnd(t *testing.T) {
	shortRun(t, aNetwork()...)
	points, err := file.Read(t.Context(), []string{"points.csv"}, file.Options{Drop: []string{"kind"}})
	must(t, err)
	writeMatrix(t, "points.npy", func(w io.Writer) error { return file.WriteNPY(w, points.Points) })
	for _, input := range [][]string{{"points.npy"}, {"points.csv", "--drop", "kind"}} {
		for _, rows := range []string{"60:", "61:", "70:80", "0:61", "59:61"} {
			code, _, stderr := runCne(t.Context(), append([]string{"project", "--quiet", "-m", "run", "-o", "out.npy", "--rows", rows}, input...)...)
			want := fmt.Sprintf("cne: --rows: got %s, want rows of the 60 points, counted from 0\n", rows)
			if code != 1 || stderr != want {
				t.Errorf("%v, %s: exit code %d, stderr %q, want %q", input, rows, code, stderr, want)
			}
		}
	}
	if _, err := os.Stat("out.npy"); err == nil {
		t.Error("positions are written")
	}
}

// The files of parts are one embedding for cne plot and cne evaluate.
func TestJoinedParts(t *testing.T) {
	shortRun(t, aNetwork()...)
	for _, ending := range []string{".npy", ".csv"} {
		whole := "whole" + ending
		place(t, whole, "points.csv", "--label-column", "kind")
		parts := []string{"--join"}
		for i, rows := range []string{":20", "20:41", "41:"} {
			part := fmt.Sprintf("part%d%s", i, ending)
			place(t, part, "points.csv", "--label-column", "kind", "--rows", rows)
			parts = append(parts, part)
		}
		for _, picture := range []string{"a.png", "b.html"} {
			mustRun(t, "plot", whole, "-o", "whole-"+picture, "--title", "points")
			mustRun(t, append([]string{"plot", "-o", "parts-" + picture, "--title", "points"}, parts...)...)
			want := strings.ReplaceAll(readText(t, "whole-"+picture), "whole", "part0")
			if strings.HasSuffix(picture, ".png") && readText(t, "parts-"+picture) != want {
				t.Errorf("%s: the picture of the parts is another", ending)
			} else if got := readText(t, "parts-"+picture); len(got) != len(want) {
				t.Errorf("%s: the page of the parts has %d bytes, that of the whole %d", ending, len(got), len(want))
			}
		}
		flags := []string{"--data", "points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5", "--set", "quality.k=5"}
		want, _ := mustRun(t, slices.Concat([]string{"evaluate", whole}, flags)...)
		got, _ := mustRun(t, slices.Concat([]string{"evaluate"}, parts, flags)...)
		figures := func(s string) string {
			_, rest, _ := strings.Cut(s, "kNN recall")
			return strings.Join(strings.Fields(rest), " ")
		}
		if figures(got) != figures(want) || figures(got) == "" {
			t.Errorf("%s: the figures of the parts are\n%swant\n%s", ending, got, want)
		}
	}
	for want, args := range map[string][]string{
		"--join needs --output":                  {"plot", "--join", "part0.npy", "part1.npy"},
		"--join is for the parts":                {"plot", "--join", "--metrics", "run", "run", "-o", "a.png"},
		"part0.npy: labels: got none, want some": {"plot", "--join", "part0.npy", "whole.csv", "-o", "a.png"},
		"none.npy: no such file or directory":    {"evaluate", "--join", "part0.npy", "none.npy", "--data", "points.csv"},
	} {
		if code, _, stderr := runCne(t.Context(), args...); code == 0 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stderr %q, want %q", args, code, stderr, want)
		}
	}
}

// sourceFolder returns the root of the module.
func sourceFolder(t *testing.T) string {
	t.Helper()
	return filepath.Dir(filepath.Dir(startFolder))
}

// startFolder is the folder of the package, where tests begin.
var startFolder, _ = os.Getwd()

func TestParseRows(t *testing.T) {
	for s, want := range map[string]rowRange{"0:1": {0, 1}, "3:40": {3, 40}, ":7": {0, 7}, "7:": {7, 0}, ":": {}} {
		if got, ok := parseRows(s); got != want || !ok {
			t.Errorf("%q: %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "1", "2:1", "1:1", "0:0", ":0", "-1:2", "1:-2", "a:2", "1:b", "1:2:3", "1e3:", "99999999999999999999:"} {
		if got, ok := parseRows(s); ok {
			t.Errorf("%q is taken for %v", s, got)
		}
	}
}
