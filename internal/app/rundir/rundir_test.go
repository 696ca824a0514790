package rundir

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/configs"
)

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a run folder.
func open(t *testing.T, path string, force bool) *Dir {
	t.Helper()
	d, err := Open(path, force)
	must(t, err)
	return d
}

// contains reports a folder with other files below it.
func contains(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := listFiles(t, dir); !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

// begins reports an error that begins otherwise.
func begins(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s: got %v, want %s", what, err, want)
	}
}

// listFiles returns the files below a folder by their relative paths, sorted.
func listFiles(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(rel))
		}
		return err
	})
	must(t, err)
	return found
}

func TestOpen(t *testing.T) {
	ours := configText(t)
	for _, tc := range []struct {
		name    string
		files   []string // config.yaml is ours, config.yaml:other is not
		force   bool
		remain  []string
		wantErr string // a part of the message
		exists  bool   // the error is ErrExists
	}{
		{name: "empty"},
		{name: "other files", files: []string{"notes.txt"}, remain: []string{"notes.txt"}},
		{name: "only a cache", files: []string{"cache.safetensors"}, remain: []string{"cache.safetensors"}},
		{name: "somebody's graph", files: []string{"graph.npz"}, remain: []string{"graph.npz"}, wantErr: "graph.npz that a run would overwrite"},
		{name: "a run", files: []string{"config.yaml", "metrics.json"}, remain: []string{"config.yaml", "metrics.json"},
			wantErr: "--force replaces it", exists: true},
		{name: "the beginning of a run", files: []string{"cache.safetensors", "config.yaml:empty", "notes.txt"}, remain: []string{"cache.safetensors", "notes.txt"}},
		{name: "more than a beginning", files: []string{"checkpoint.safetensors", "config.yaml:empty"}, remain: []string{"checkpoint.safetensors", "config.yaml"},
			wantErr: "--force replaces it", exists: true},
		{name: "a run, forced",
			files: []string{"cache.safetensors", "config.yaml", "embedding.csv", "embedding.npy", "graph.npz", "metrics.json", "metrics.jsonl",
				"notes.txt", "pca.npy", "snapshots/epoch-0010.npy", "snapshots/mine.npy"},
			force:  true,
			remain: []string{"cache.safetensors", "notes.txt", "pca.npy", "snapshots/mine.npy"}},
		{name: "forced and empty", force: true},
		{name: "somebody's configuration", files: []string{"config.yaml:other"}, remain: []string{"config.yaml"},
			wantErr: "holds a file config.yaml that a run would overwrite, and no config.yaml written by cne"},
		{name: "somebody's configuration, forced", files: []string{"config.yaml:other", "metrics.json"}, force: true,
			remain: []string{"config.yaml", "metrics.json"}, wantErr: "no config.yaml written by cne"},
		{name: "somebody's embedding, forced", files: []string{"embedding.npy"}, force: true,
			remain: []string{"embedding.npy"}, wantErr: "holds a file embedding.npy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "runs", "a")
			must(t, os.MkdirAll(dir, 0o777))
			for _, f := range tc.files {
				name, other, _ := strings.Cut(f, ":")
				text := "content"
				switch {
				case name == "config.yaml" && other == "":
					text = ours
				case other == "empty":
					text = ""
				}
				writeTestFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
			}
			before := listFiles(t, dir)
			d, err := Open(dir, tc.force)
			if tc.wantErr == "" && err != nil {
				t.Fatal(err)
			}
			contains(t, dir, before...)
			if err == nil {
				must(t, d.Begin(noConfig))
				must(t, d.Clear())
			}
			if tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr) || !strings.Contains(err.Error(), dir)) {
				t.Errorf("got the error %v", err)
			}
			if errors.Is(err, ErrExists) != tc.exists {
				t.Errorf("%v is ErrExists: %v", err, !tc.exists)
			}
			contains(t, dir, tc.remain...)
			if err == nil && d.Path("snapshots/x.npy") != filepath.Join(dir, "snapshots", "x.npy") {
				t.Errorf("path %s", d.Path("snapshots/x.npy"))
			}
		})
	}
}

// configText returns a config.yaml as a run writes it.
func configText(t *testing.T) string {
	t.Helper()
	c, _, err := configs.Train.Load(&configs.Sources{})
	must(t, err)
	var text strings.Builder
	must(t, configs.Train.Write(&text, c))
	return text.String()
}

// writeTestFile writes a file, and makes its folder.
func writeTestFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must(t, os.WriteFile(path, []byte(text), 0o666))
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	writeTestFile(t, file, "")
	for path, want := range map[string]string{
		file:                     "the run folder " + file + " is a file",
		filepath.Join(file, "x"): "cannot make the run folder " + filepath.Join(file, "x"),
	} {
		_, err := Open(path, true)
		begins(t, path, err, want)
	}
	if os.Geteuid() == 0 {
		t.Skip("root can write everywhere")
	}
	must(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o777) }) // so that it can be removed
	_, err := Open(dir, false)
	begins(t, "a folder without write permission", err, "cannot write in the run folder "+dir)
}

// A run that is refused before it begins leaves nothing: only the folders made for it are
// removed.
func TestRemoveEmpty(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll("there/kept", 0o777))
	exists := func(path string, want bool) {
		t.Helper()
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	open(t, "there/kept", false).RemoveEmpty()
	exists("there/kept", true)
	open(t, "there/a/b/", false).RemoveEmpty()
	exists("there/a", false)
	exists("there", true)
	d := open(t, "there/a/b", false)
	must(t, os.WriteFile(d.Path("cache.safetensors"), nil, 0o666))
	d.RemoveEmpty()
	exists("there/a/b/cache.safetensors", true)
	if _, err := Open("there/new/"+strings.Repeat("x", 300), false); err == nil {
		t.Error("a name of 300 bytes is taken")
	}
	exists("there/new", false)
}

// Folders of a file are made, and errors name it.
func TestWriteFile(t *testing.T) {
	d := NewDir(t.TempDir())
	const name = "snapshots/a.txt"
	must(t, d.WriteFile(name, func(w io.Writer) error {
		_, err := io.WriteString(w, "content")
		return err
	}))
	broken := errors.New("broken")
	if err := d.WriteFile(name, func(io.Writer) error { return broken }); !errors.Is(err, broken) || !strings.Contains(err.Error(), d.Path(name)) {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(d.Path(name)); err != nil || string(b) != "content" {
		t.Errorf("the file holds %q (%v)", b, err)
	}
	contains(t, d.Path("."), name)
	for path, want := range map[string]string{
		"snapshots":       "cannot write " + d.Path("snapshots") + ": not a regular file",
		name + "/below/x": "cannot write " + d.Path(name+"/below/x") + ": ",
	} {
		begins(t, path, d.WriteFile(path, noConfig), want)
	}
}

// noConfig writes a config.yaml with nothing in it.
func noConfig(io.Writer) error { return nil }

// If two runs find the folder free, one gets it.
func TestBeginClaimsTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	first, second := open(t, dir, false), open(t, dir, false)
	must(t, first.Begin(noConfig))
	if err := second.Begin(noConfig); !errors.Is(err, ErrExists) {
		t.Errorf("the second run got %v", err)
	}
	contains(t, dir, "config.yaml")
}

func TestRecordsUpTo(t *testing.T) {
	const lines = "{\"epoch\": 1}\n{\"epoch\": 2}\n{\"epoch\": 3}\n{\"epo"
	for epoch, want := range map[int]int{0: 0, 1: 13, 2: 26, 3: 39, 9: 39} {
		if got := recordsUpTo([]byte(lines), epoch); string(got) != lines[:want] {
			t.Errorf("up to epoch %d: %q", epoch, got)
		}
	}
}

func TestInspect(t *testing.T) {
	for name, tc := range map[string]struct {
		config  string // "" is an empty file, "-" none, "/" a folder
		want    Contents
		command string
	}{
		"none":            {"-", NoRun, ""},
		"killed":          {"", NoRun, ""},
		"a folder":        {"/", NotOurs, ""},
		"somebody's":      {"seed: 1\n", NotOurs, ""},
		"too short":       {"# c", NotOurs, ""},
		"train":           {configText(t), Run, "cne train"},
		"a later version": {configs.Header + "9: of a run; cne fly --config takes it\n", Run, ""},
		"a spectrum":      {configs.Header + "1: of a run; cne spectrum --s 0,1 --config takes it\n", Run, "cne spectrum"},
		"images":          {configs.Header + "1: of a run; cne simclr pretrain --config takes it\n", Run, "cne simclr pretrain"},
	} {
		dir := t.TempDir()
		switch path := filepath.Join(dir, ConfigFile); tc.config {
		case "-":
		case "/":
			must(t, os.Mkdir(path, 0o777))
		default:
			writeTestFile(t, path, tc.config)
		}
		if got, command, err := Inspect(dir); got != tc.want || command != tc.command || err != nil {
			t.Errorf("%s: %v of %q (%v), want %v of %q", name, got, command, err, tc.want, tc.command)
		}
	}
}
