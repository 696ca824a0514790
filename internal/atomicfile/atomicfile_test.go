package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
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

func TestWriteSeek(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	const rows = 100_000 // more than the buffer holds
	err := WriteSeek(path, func(w io.WriteSeeker) error {
		if err := text("??????\n" + strings.Repeat("x", rows))(w); err != nil {
			return err
		}
		if at, err := w.Seek(0, io.SeekCurrent); err != nil || at != 7+rows {
			t.Errorf("after %d bytes, the position is %d (%v)", 7+rows, at, err)
		}
		if _, err := w.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%6d", rows); err != nil {
			return err
		}
		if _, err := w.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		return text("end")(w)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, path), "100000\n"+strings.Repeat("x", rows)+"end"; got != want {
		t.Errorf("the file holds %d bytes, %.10q and so on", len(got), got)
	}
	broken := errors.New("broken")
	if err := WriteSeek(path, func(w io.WriteSeeker) error {
		if _, err := w.Seek(-1, io.SeekStart); err == nil {
			t.Error("no error from a place before the start")
		}
		return broken
	}); !errors.Is(err, broken) {
		t.Errorf("got the error %v", err)
	}
	onlyFile(t, dir, "a")
}

// A folder that cannot be read, and so not be brought to disk, can be written
// to all the same.
func TestWriteInAnUnreadableFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700) // so that it can be removed
	path := filepath.Join(dir, "a")
	if err := Write(path, text("a")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "a" {
		t.Errorf("the file holds %q", got)
	}
}

// writerOf is the environment variable that turns the test program into one
// that writes to a path until it is killed.
const writerOf = "CNE_TEST_WRITE_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerOf); path != "" {
		for i := 0; ; i++ {
			letter := string(rune('a' + i%26))
			if err := Write(path, text(strings.Repeat(letter, 1<<18))); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

// Whenever a writer is killed, the file is whole, and what else it left behind
// can be removed.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := Write(path, text(strings.Repeat("a", 1<<18))); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		writer := exec.Command(os.Args[0])
		writer.Env = append(os.Environ(), writerOf+"="+path)
		if err := writer.Start(); err != nil {
			t.Skip(err) // not every system starts processes
		}
		time.Sleep(time.Duration(10+3*i) * time.Millisecond)
		if err := writer.Process.Kill(); err != nil {
			t.Fatal("the writer failed: ", err)
		}
		_ = writer.Wait() // it says that the process was killed
		if got := content(t, path); len(got) != 1<<18 || strings.Trim(got, got[:1]) != "" {
			t.Errorf("the file holds %d bytes, %.10q and so on", len(got), got)
		}
	}
	if err := RemoveStale(dir, 0); err != nil {
		t.Fatal(err)
	}
	onlyFile(t, dir, "a")
}

func TestRemoveStale(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		left string
	}{
		"an hour": {time.Hour, ".cne-.tmp .cne-folder.tmp .cne-fresh.tmp .cne-x.tmp~ .tmp cne-x.tmp model"},
		"all":     {0, ".cne-folder.tmp .cne-x.tmp~ .tmp cne-x.tmp model"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			old := time.Now().Add(-2 * time.Hour)
			for file, changed := range map[string]time.Time{
				".cne-0123456789abcdef.tmp": old,
				".cne-fresh.tmp":            time.Now(),
				".cne-.tmp":                 time.Now().Add(time.Hour), // by a clock that was set back
				".cne-x.tmp~":               old,
				"cne-x.tmp":                 old,
				".tmp":                      old,
				"model":                     old,
			} {
				path := filepath.Join(dir, file)
				if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, changed, changed); err != nil {
					t.Fatal(err)
				}
			}
			folder := filepath.Join(dir, ".cne-folder.tmp")
			if err := errors.Join(os.Mkdir(folder, 0o777), os.Chtimes(folder, old, old)); err != nil {
				t.Fatal(err)
			}
			if err := RemoveStale(dir, tc.age); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			if left := strings.Join(names, " "); left != tc.left {
				t.Errorf("left are %s, want %s", left, tc.left)
			}
		})
	}
	if err := RemoveStale(filepath.Join(t.TempDir(), "missing"), 0); err != nil {
		t.Errorf("a missing folder: %v", err)
	}
}

// Names of temporary files are those that RemoveStale knows, and a file that is
// removed while it is written leaves the old content under the name.
func TestRemovedWhileWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := Write(path, text("old")); err != nil {
		t.Fatal(err)
	}
	err := Write(path, func(w io.Writer) error {
		if err := RemoveStale(dir, time.Hour); err != nil {
			return err
		}
		if found, _ := filepath.Glob(filepath.Join(dir, Pattern)); len(found) != 1 {
			t.Errorf("the temporary file is not among %q", found)
		}
		if err := text("new")(w); err != nil {
			return err
		}
		return RemoveStale(dir, 0)
	})
	if err == nil {
		t.Skip("this system does not remove files that are open")
	}
	if got := content(t, path); got != "old" {
		t.Errorf("the file holds %q", got)
	}
	onlyFile(t, dir, "a")
}
