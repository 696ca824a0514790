package atomicfile

import (
	"errors"
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

// What a killed writer has left goes when another process writes, and what a living one
// is writing stays.
func TestAbandonedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, prefix+"0123456789abcdef"+suffix)
	if err := os.WriteFile(left, []byte("a part"), 0o666); err != nil {
		t.Fatal(err)
	}
	release, err := claim(left)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("files cannot be claimed here")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim(left); !errors.Is(err, errClaimed) {
		t.Errorf("claimed twice: %v", err)
	}
	sweep(dir)
	if _, err := os.Stat(left); err != nil {
		t.Errorf("a file that is being written: %v", err)
	}
	release()
	swept.Clear()
	if err := Write(filepath.Join(dir, "a"), text("a")); err != nil {
		t.Fatal(err)
	}
	onlyFile(t, dir, "a")
}

// Several processes that write in a folder, and sweep it again and again, do not take
// each other's files away.
func TestSweepingWhileOthersWrite(t *testing.T) {
	dir := t.TempDir()
	writer := exec.Command(os.Args[0])
	writer.Env = append(os.Environ(), writerOf+"="+filepath.Join(dir, "other"))
	var stderr strings.Builder
	writer.Stderr = &stderr
	if err := writer.Start(); err != nil {
		t.Skip(err)
	}
	var wait sync.WaitGroup
	for i := range 3 {
		wait.Go(func() {
			path := filepath.Join(dir, string(rune('a'+i)))
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
				swept.Clear()
				if err := Write(path, text(strings.Repeat("x", 1000))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	if err := writer.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = writer.Wait()
	if stderr.Len() > 0 {
		t.Errorf("the other process: %s", stderr.String())
	}
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	broken := errors.New("broken")
	if err := Create(path, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := Create(path, text("first")); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, text("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created twice: %v", err)
	}
	if got := content(t, path); got != "first" {
		t.Errorf("the file holds %q", got)
	}
	onlyFile(t, dir, "a")
	made := 0
	var lock sync.Mutex
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			err := Create(filepath.Join(dir, "b"), text("b"))
			lock.Lock()
			defer lock.Unlock()
			if err == nil {
				made++
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if made != 1 {
		t.Errorf("%d of 8 have created one file", made)
	}
}

// Where there are no links, the name is claimed in another way.
func TestCreateWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := link(filepath.Join(dir, "none"), path); !errors.Is(err, fs.ErrNotExist) { // no link to nothing
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the claim was left")
	}
}
