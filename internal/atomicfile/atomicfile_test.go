package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// text returns a function that writes it.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// holds reports a file with other content.
func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %d bytes, %.10q and so on, want %d (%v)", path, len(got), got, len(want), err)
	}
}

// contains reports a folder with other names in it.
func contains(t *testing.T, folder string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("the folder contains %q, want %q", names, want)
	}
}

// wholeFile reports a file that is not one letter, size times.
func wholeFile(t *testing.T, path string, size int) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || len(got) != size || strings.Trim(string(got), string(got[:1])) != "" {
		t.Errorf("the file holds %d bytes, %.10q and so on (%v)", len(got), got, err)
	}
}

func TestWrite(t *testing.T) {
	t.Chdir(t.TempDir())
	for k, name := range []string{"a.txt", ".hidden", "name with spaces", strings.Repeat("n", 255)} {
		dir := fmt.Sprint("folder", k)
		must(t, os.Mkdir(dir, 0o777))
		for _, s := range []string{"first", strings.Repeat("second", 100_000), ""} {
			must(t, Write(filepath.Join(dir, name), text(s)))
			holds(t, filepath.Join(dir, name), s)
		}
		contains(t, dir, name)
	}
	// The permissions are those that os.Create gives, whatever the umask is, also in the
	// current folder, and in one that cannot be read and so not be brought to disk.
	usual, err := os.Create("usual")
	must(t, err)
	defer usual.Close()
	want, err := usual.Stat()
	must(t, err)
	must(t, os.Mkdir("unreadable", 0o777))
	must(t, os.Chmod("unreadable", 0o300))
	defer os.Chmod("unreadable", 0o700) // so that it can be removed
	for _, path := range []string{"a", filepath.Join("unreadable", "a")} {
		must(t, Write(path, text("a")))
		holds(t, path, "a")
		if got, err := os.Stat(path); err != nil || got.Mode() != want.Mode() {
			t.Errorf("the mode is %v (%v), want %v", got.Mode(), err, want.Mode())
		}
	}
}

// The old file stays until the new one is complete, and for good if that fails.
func TestFailureLeavesNoTrace(t *testing.T) {
	broken := errors.New("broken")
	for name, end := range map[string]func() error{
		"none":  func() error { return nil },
		"error": func() error { return broken },
		"panic": func() error { panic(broken) },
	} {
		for _, old := range []string{"", "old"} {
			for _, part := range []int{0, 1 << 17} {
				dir := t.TempDir()
				path := filepath.Join(dir, "a")
				var left []string
				if old != "" {
					must(t, Write(path, text(old)))
					left = []string{"a"}
				}
				err := func() (err error) {
					defer func() {
						if r := recover(); r != nil {
							err = r.(error)
						}
					}()
					return Write(path, func(w io.Writer) error {
						must(t, text(strings.Repeat("x", part))(w))
						if old != "" {
							holds(t, path, old)
						}
						return end()
					})
				}()
				if name == "none" {
					must(t, err)
					holds(t, path, strings.Repeat("x", part))
					continue
				}
				if !errors.Is(err, broken) {
					t.Errorf("%s: got the error %v", name, err)
				}
				contains(t, dir, left...)
				if old != "" {
					holds(t, path, old)
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o777))
	for path, want := range map[string]error{
		filepath.Join(dir, "folder"):       ErrNotRegular,
		os.DevNull:                         ErrNotRegular,
		filepath.Join(dir, "missing", "a"): fs.ErrNotExist,
	} {
		if err := Write(path, func(io.Writer) error { t.Errorf("%s is written", path); return nil }); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	contains(t, dir, "folder")
}

func TestSymbolicLinkIsReplaced(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	must(t, Write(target, text("target")))
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err) // not every system lets everybody make links
	}
	must(t, Write(link, text("new")))
	holds(t, target, "target")
	holds(t, link, "new")
}

func TestWriteSeek(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	const rows = 100_000 // more than the buffer holds
	must(t, WriteSeek(path, func(w io.WriteSeeker) error {
		must(t, text("??????\n"+strings.Repeat("x", rows))(w))
		if at, err := w.Seek(0, io.SeekCurrent); err != nil || at != 7+rows {
			t.Errorf("after %d bytes, the position is %d (%v)", 7+rows, at, err)
		}
		_, err := w.Seek(0, io.SeekStart)
		must(t, err)
		must(t, text(fmt.Sprintf("%6d", rows))(w))
		_, err = w.Seek(0, io.SeekEnd)
		must(t, err)
		return text("end")(w)
	}))
	holds(t, path, "100000\n"+strings.Repeat("x", rows)+"end")
	if err := WriteSeek(path, func(w io.WriteSeeker) error {
		_, err := w.Seek(-1, io.SeekStart)
		return err
	}); err == nil {
		t.Error("no error from a position before the start")
	}
	contains(t, dir, "a")
}

// If several write at once, one wins, and its content is whole; if several create, only
// one does.
func TestConcurrentWriters(t *testing.T) {
	dir := t.TempDir()
	made := make(chan bool, 8)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			content := text(strings.Repeat(string(rune('a'+i)), 1<<17))
			if err := Write(filepath.Join(dir, "a"), content); err != nil {
				t.Error(err)
			}
			if err := Create(filepath.Join(dir, "b"), content); err == nil {
				made <- true
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	wholeFile(t, filepath.Join(dir, "a"), 1<<17)
	wholeFile(t, filepath.Join(dir, "b"), 1<<17)
	if len(made) != 1 {
		t.Errorf("%d of 8 have created one file", len(made))
	}
	contains(t, dir, "a", "b")
}

// Where there are no links, a name is claimed in another way; neither leaves anything
// of a failure.
func TestCreateFails(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	if err := Create(filepath.Join(dir, "a"), func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := link(filepath.Join(dir, "none"), filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) { // no link to nothing
		t.Error(err)
	}
	contains(t, dir)
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

// startWriter starts that program; kill ends it.
func startWriter(t *testing.T, path string) (kill func()) {
	t.Helper()
	writer := exec.Command(os.Args[0])
	writer.Env = append(os.Environ(), writerOf+"="+path)
	var stderr strings.Builder
	writer.Stderr = &stderr
	if err := writer.Start(); err != nil {
		t.Skip(err) // not every system starts processes
	}
	return func() {
		err := writer.Process.Kill()
		_ = writer.Wait() // it says that the process was killed
		if err != nil || stderr.Len() > 0 {
			t.Errorf("the writer failed: %s (%v)", stderr.String(), err)
		}
	}
}

// Whenever a writer is killed, the file is whole, and what else it left behind
// can be removed.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	must(t, Write(path, text(strings.Repeat("a", 1<<18))))
	for i := range 12 {
		kill := startWriter(t, path)
		time.Sleep(time.Duration(10+3*i) * time.Millisecond)
		kill()
		wholeFile(t, path, 1<<18)
	}
	RemoveAbandoned(dir)
	contains(t, dir, "a")
}

// Several processes that write in a folder, and sweep it again and again, do not take
// each other's files away.
func TestSweepingWhileOthersWrite(t *testing.T) {
	dir := t.TempDir()
	kill := startWriter(t, filepath.Join(dir, "other"))
	defer kill()
	var wait sync.WaitGroup
	for i := range 3 {
		wait.Go(func() {
			path := filepath.Join(dir, string(rune('a'+i)))
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
				cleaned.Clear()
				if err := Write(path, text(strings.Repeat("x", 1000))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// What a killed writer has left goes when another process writes, and what a living one
// is writing stays.
func TestAbandonedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	const name = prefix + "0123456789abcdef" + suffix
	left := filepath.Join(dir, name)
	must(t, os.WriteFile(left, []byte("a part"), 0o666))
	release, err := claim(left)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("files cannot be claimed here")
	}
	must(t, err)
	if _, err := claim(left); !errors.Is(err, errClaimed) {
		t.Errorf("claimed twice: %v", err)
	}
	removeAbandonedOnce(dir)
	contains(t, dir, name)
	release()
	cleaned.Clear()
	must(t, Write(filepath.Join(dir, "a"), text("a")))
	contains(t, dir, "a")
}

func TestOnlyTemporaryFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, ".cne-folder.tmp"), 0o777))
	for _, file := range []string{".cne-0123456789abcdef.tmp", ".cne-.tmp", ".cne-x.tmp~", "cne-x.tmp", ".tmp", "model"} {
		path := filepath.Join(dir, file)
		must(t, os.WriteFile(path, []byte("x"), 0o666))
		old := time.Now().Add(-2 * unclaimedAge)
		must(t, os.Chtimes(path, old, old))
	}
	RemoveAbandoned(dir)
	contains(t, dir, ".cne-folder.tmp", ".cne-x.tmp~", ".tmp", "cne-x.tmp", "model")
	RemoveAbandoned(filepath.Join(dir, "missing"))
}

// Names of temporary files match Pattern, and a file that is removed while it is written
// leaves the old content under the name.
func TestRemovedWhileWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	must(t, Write(path, text("old")))
	err := Write(path, func(w io.Writer) error {
		RemoveAbandoned(dir) // it is not
		found, _ := filepath.Glob(filepath.Join(dir, Pattern))
		if len(found) != 1 {
			t.Fatalf("the temporary file is not among %q", found)
		}
		must(t, text("new")(w))
		return os.Remove(found[0])
	})
	if err == nil {
		t.Skip("this system does not remove files that are open")
	}
	holds(t, path, "old")
	contains(t, dir, "a")
}
