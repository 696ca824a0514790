package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, folder, name string, epochs int, seconds float64) {
	t.Helper()
	text := fmt.Sprintf(`{"epochs": %d, "seconds": {"optimize": %g}}`, epochs, seconds)
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestTable(t *testing.T) {
	folder := filepath.Join(t.TempDir(), `[a] \b*`) // no pattern
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, folder, "09-1.json", 20, 1)
	write(t, folder, "09-2.json", 20, 8)
	write(t, folder, "09-3.json", 20, 2)
	write(t, folder, "10-1.json", 50, 1)
	write(t, folder, "10-2.json", 50, 3)
	picture := filepath.Join(t.TempDir(), "s6.png")
	var stdout bytes.Buffer
	if err := run([]string{"-o", picture, folder}, &stdout); err != nil {
		t.Fatal(err)
	}
	want := "| batch | optimisation of 750 epochs, s |\n|---|---|\n| 2^9 | 75.0 |\n| 2^10 | 30.0 |\n"
	if stdout.String() != want {
		t.Errorf("table\n%swant\n%s", stdout.String(), want)
	}
	if info, err := os.Stat(picture); err != nil || info.Size() == 0 {
		t.Errorf("there is no picture: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing":       {nil, "measure first"},
		"another name":  {map[string]string{"a-b.json": "{}"}, "is not named POWER-ROUND.json"},
		"no metrics":    {map[string]string{"09-1.json": "{}"}, "09-1.json holds no metrics"},
		"no JSON":       {map[string]string{"09-1.json": "x"}, "09-1.json holds no metrics"},
		"more words":    {map[string]string{"09-1-old.json": `{"epochs": 1, "seconds": {"optimize": 1}}`}, "is not named POWER-ROUND.json"},
		"no round":      {map[string]string{"09.json": "{}"}, "is not named POWER-ROUND.json"},
		"absurd number": {map[string]string{"99-1.json": "{}"}, "is not named POWER-ROUND.json"},
	} {
		folder := t.TempDir()
		for file, text := range tt.files {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := run([]string{folder}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
	if err := run([]string{filepath.Join(t.TempDir(), "nowhere")}, &bytes.Buffer{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := run(nil, &bytes.Buffer{}); err == nil {
		t.Error("no error without a folder")
	}
}
