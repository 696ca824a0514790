package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// text returns a function that writes it.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// onlyFile reports anything in a folder beside a file of that name.
func onlyFile(t *testing.T, folder, name string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != name {
			t.Errorf("%s is left in the folder", e.Name())
		}
	}
}

func TestWrite(t *testing.T) {
	for _, name := range []string{"a.txt", ".hidden", "name with spaces", strings.Repeat("n", 255)} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		for _, s := range []string{"first", strings.Repeat("second", 100_000), ""} {
			if err := Write(path, text(s)); err != nil {
				t.Fatal(err)
			}
			if got := content(t, path); got != s {
				t.Errorf("%s: wrote %d bytes, read %d", name, len(s), len(got))
			}
		}
		onlyFile(t, dir, name)
	}
}

func TestWriteInTheCurrentFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Write("a.txt", text("a")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, "a.txt"); got != "a" {
		t.Errorf("the file holds %q", got)
	}
	onlyFile(t, ".", "a.txt")
}

// The old file stays until the new one is complete.
func TestWriteShowsNoPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := Write(path, text("old")); err != nil {
		t.Fatal(err)
	}
	err := Write(path, func(w io.Writer) error {
		if err := text(strings.Repeat("new", 1<<17))(w); err != nil {
			return err
		}
		if got := content(t, path); got != "old" {
			t.Errorf("while the new content is written, the file holds %d bytes", len(got))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); len(got) != 3<<17 {
		t.Errorf("in the end the file holds %d bytes", len(got))
	}
}

func TestFailureLeavesNoTrace(t *testing.T) {
	broken := errors.New("broken")
	part := func(w io.Writer) { fmt.Fprint(w, strings.Repeat("x", 1<<17)) }
	for name, write := range map[string]func(io.Writer) error{
		"at once": func(io.Writer) error { return broken },
		"halfway": func(w io.Writer) error { part(w); return broken },
		"panic":   func(w io.Writer) error { part(w); panic(broken) },
	} {
		for _, old := range []string{"", "old"} {
			t.Run(fmt.Sprintf("%s/%q", name, old), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "a")
				if old != "" {
					if err := Write(path, text(old)); err != nil {
						t.Fatal(err)
					}
				}
				func() {
					defer func() {
						if r := recover(); (r != nil) != (name == "panic") {
							t.Errorf("recovered %v", r)
						}
					}()
					if err := Write(path, write); !errors.Is(err, broken) {
						t.Errorf("got the error %v", err)
					}
				}()
				if old == "" {
					onlyFile(t, dir, "")
				} else {
					onlyFile(t, dir, "a")
					if got := content(t, path); got != old {
						t.Errorf("the file holds %d bytes", len(got))
					}
				}
			})
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	called := false
	write := func(io.Writer) error { called = true; return nil }
	if err := Write(folder, write); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a folder: got %v", err)
	}
	if err := Write(os.DevNull, write); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a device: got %v", err)
	}
	if err := Write(filepath.Join(dir, "missing", "a"), write); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: got %v", err)
	}
	if called {
		t.Error("the content was written before the path was looked at")
	}
	onlyFile(t, dir, "folder")
}

// The permissions are those that os.Create gives, whatever the umask is.
func TestPermissions(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "usual"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := f.Stat()
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a")
	if err := Write(path, text("a")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.Stat(path); err != nil || got.Mode() != want.Mode() {
		t.Errorf("the mode is %v (%v), want %v", got.Mode(), err, want.Mode())
	}
}

func TestSymbolicLinkIsReplaced(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("target"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err) // not every system lets everybody make links
	}
	if err := Write(link, text("new")); err != nil {
		t.Fatal(err)
	}
	if content(t, target) != "target" || content(t, link) != "new" {
		t.Errorf("the target holds %q, the link %q", content(t, target), content(t, link))
	}
}

// Of several that write at once, one wins, and its content is whole.
func TestConcurrentWrites(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			if err := Write(path, text(strings.Repeat(string(rune('a'+i)), 1<<17))); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := content(t, path); len(got) != 1<<17 || strings.Trim(got, got[:1]) != "" {
		t.Errorf("the file holds %d bytes of several writers", len(got))
	}
	onlyFile(t, dir, "a")
}
