//go:build unix

package ctxio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// soon runs f in another goroutine and ends the context meanwhile; f is to return the
// context's error within seconds.
func soon(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	time.Sleep(30 * time.Millisecond) // so that f waits
	select {
	case err := <-done:
		t.Fatalf("did not wait: %v", err)
	default:
	}
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's error", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("still waiting after 10 s")
	}
}

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	return path
}

func TestPipeThatNobodyOpens(t *testing.T) {
	soon(t, func(ctx context.Context) error {
		_, err := Open(ctx, fifo(t))
		return err
	})
}

func TestPipeIntoWhichNobodyWrites(t *testing.T) {
	path := fifo(t)
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := io.WriteString(w, "some"); err != nil {
		t.Fatal(err)
	}
	soon(t, func(ctx context.Context) error {
		text, err := ReadFile(ctx, path)
		if text != nil {
			t.Errorf("got %q and an error", text)
		}
		return err
	})
}

func TestReadsWhatIsThere(t *testing.T) {
	path := fifo(t)
	text := strings.Repeat("a line\n", 100000)
	go func() {
		if w, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			_, _ = io.WriteString(w, text)
			w.Close()
		}
	}()
	if got, err := ReadFile(t.Context(), path); err != nil || string(got) != text {
		t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(t.Context(), file); err != nil || string(got) != text {
		t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
	}
	f, err := Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	if _, err := io.Copy(&all, f); err != nil || all.String() != text {
		t.Errorf("%d bytes of %d, %v", all.Len(), len(text), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestEndedContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f, err := Open(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cancel()
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, f); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Open(ctx, file); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	for _, open := range []func() error{
		func() error { _, err := Open(t.Context(), path); return err },
		func() error { _, err := OpenRegular(t.Context(), path); return err },
		func() error { _, err := ReadFile(t.Context(), path); return err },
	} {
		var missing *os.PathError
		if err := open(); !errors.Is(err, os.ErrNotExist) || !errors.As(err, &missing) || missing.Path != path {
			t.Error(err)
		}
	}
	if _, err := OpenRegular(t.Context(), fifo(t)); err == nil || !strings.HasSuffix(err.Error(), "pipe: not a regular file") {
		t.Error(err)
	}
}
