package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cne/data"
	"cne/data/file"
	"cne/internal/rng"
)

// mainVariable makes the test binary the program itself, so that tests can kill it.
const mainVariable = "RUN_THE_PROGRAM"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustRun runs the program in this process, and it has to succeed.
func mustRun(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := runCne(t.Context(), args...)
	if code != 0 {
		t.Fatalf("cne %s: exit code %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout, stderr
}

// mustFail runs the program, which has to fail with a code and to say something.
func mustFail(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	if got, _, stderr := runCne(t.Context(), args...); got != code || !strings.Contains(stderr, want) {
		t.Errorf("cne %s: exit code %d, stderr %q, want %d and %q", strings.Join(args, " "), got, stderr, code, want)
	}
}

// program starts the program in a process of its own.
func program(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	return cmd, &stderr
}

// programFolder makes a folder for PATH with the program, which needs mainVariable.
func programFolder(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	folder := t.TempDir()
	must(t, os.Symlink(self, filepath.Join(folder, "cne")))
	return folder
}

// waitWithin waits for a process, which it kills after some seconds.
func waitWithin(t *testing.T, cmd *exec.Cmd, seconds int) error {
	t.Helper()
	killer := time.AfterFunc(time.Duration(seconds)*time.Second, func() {
		t.Errorf("the program did not end within %d s", seconds)
		_ = cmd.Process.Kill()
	})
	defer killer.Stop()
	return cmd.Wait()
}

// listFiles returns the files below a folder by their relative paths, sorted.
func listFiles(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(rel))
		}
		return err
	}))
	return found
}

// exists reports whether there is a file or folder.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func fileText(t *testing.T, path string) string { return readText(t, path) }

// sameFile compares two files.
func sameFile(t *testing.T, a, b string) {
	t.Helper()
	if readText(t, a) != readText(t, b) {
		t.Errorf("%s and %s differ", a, b)
	}
}

// writeTestFile writes a file, and makes its folder.
func writeTestFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must(t, os.WriteFile(path, []byte(text), 0o666))
}

// writeMatrix writes a file with file.WriteNPY or file.WriteCSV.
func writeMatrix(t *testing.T, path string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	must(t, write(&b))
	writeTestFile(t, path, b.String())
}

func makeArray(t *testing.T, path string, m *data.Matrix) {
	t.Helper()
	writeMatrix(t, path, func(w io.Writer) error { return file.WriteNPY(w, m) })
}

// readPositions reads an array, or a table of numbers.
func readPositions(t *testing.T, path string) *data.Matrix {
	t.Helper()
	set, err := file.Read(t.Context(), []string{path}, file.Options{})
	must(t, err)
	return set.Points
}

// linesOf returns a table's header and its rows.
func linesOf(t *testing.T, path string) (header string, rows []string) {
	t.Helper()
	lines := strings.SplitAfter(readText(t, path), "\n")
	return lines[0], lines[1 : len(lines)-1]
}

// rowsIn returns the numbers in a file of rows.
func rowsIn(t *testing.T, path string) (rows []int) {
	t.Helper()
	header, lines := linesOf(t, path)
	if header != "row\n" {
		t.Fatalf("%s begins with %q", path, header)
	}
	for _, line := range lines {
		i, err := strconv.Atoi(strings.TrimSpace(line))
		must(t, err)
		rows = append(rows, i)
	}
	return rows
}

func readMetrics(t *testing.T, path string) map[string]any {
	t.Helper()
	var m map[string]any
	must(t, json.Unmarshal([]byte(readText(t, path)), &m))
	return m
}

func animal(i int) string { return []string{"ant", "bee", "cat"}[i%3] }

// writePoints writes a CSV file of n points in three clusters, with labels.
func writePoints(t *testing.T, path string, n, d int) {
	t.Helper()
	var b strings.Builder
	for j := range d {
		fmt.Fprintf(&b, "f%d,", j)
	}
	b.WriteString("kind\n")
	s := rng.New(1, rng.Sample)
	for i := range n {
		for j := range d {
			fmt.Fprintf(&b, "%g,", s.Normal()+10*float64(i%3*(j%3)))
		}
		fmt.Fprintln(&b, animal(i))
	}
	writeTestFile(t, path, b.String())
}

// folderOf makes a new folder the current one, with n points in points.csv.
func folderOf(t *testing.T, n, d int) {
	t.Helper()
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", n, d)
}

// set returns a flag --set for each setting.
func set(settings ...string) (flags []string) {
	for _, s := range settings {
		flags = append(flags, "--set", s)
	}
	return flags
}

// short returns the arguments of a quick run on points.csv.
func short(more ...string) []string {
	return append([]string{"train", "--set", "data.path=points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5",
		"--set", "train.batch_size=64", "--epochs", "8", "-o", "run"}, more...)
}

// shortRun makes a finished run in the folder run.
func shortRun(t *testing.T, flags ...string) {
	t.Helper()
	folderOf(t, 60, 5)
	mustRun(t, short(flags...)...)
}
