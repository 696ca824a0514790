package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, lines ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "metrics.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestTable(t *testing.T) {
	nc := write(t, `{"epoch": 1, "phase": 0, "loss": 2, "z": 8}`, `{"epoch": 2, "phase": 0, "loss": 1, "z": 4, "partition_function": 2}`,
		`{"epoch": 3, "phase": 0, "loss": 0.5, "z": 2e7, "partition_function": 5e6}`)
	picture := filepath.Join(t.TempDir(), "s9.png")
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"-o", picture, "table=" + nc}, &stdout); err != nil {
		t.Fatal(err)
	}
	want := "| run | epochs | partition function | Z | partition function / Z |\n|---|---|---|---|---|\n| table | 3 | 5.000e+06 | 2.000e+07 | 0.250 |\n"
	if stdout.String() != want {
		t.Errorf("table\n%swant\n%s", stdout.String(), want)
	}
	if info, err := os.Stat(picture); err != nil || info.Size() == 0 {
		t.Errorf("there is no picture: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	neg := write(t, `{"epoch": 1, "phase": 0, "loss": 2, "partition_function": 2}`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "at least one NAME=FOLDER"},
		{[]string{"folder"}, "is not of the form NAME=FOLDER"},
		{[]string{"a=" + filepath.Join(neg, "nowhere")}, "cannot be read"},
		{[]string{"a=" + neg}, "has no record of both"},
	} {
		if err := run(t.Context(), c.args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.args, err, c.want)
		}
	}
}
