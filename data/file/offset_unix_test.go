//go:build unix

package file_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cne/data/file"
)

// A pipe is read once; the log says what precision this costs and how to avoid it.
func TestOffsetOfPipe(t *testing.T) {
	far := tableOf(moved(drawn(6, 500, 1), 1e8))
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(path, far, 0) }()
	log, said := logged()
	ds, err := file.Read(t.Context(), []string{path}, file.Options{Log: log})
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if err != nil || ds.Points.Offset != nil || ds.Points.N != 500 {
		t.Fatal(ds, err)
	}
	if !strings.Contains(said.String(), "give files, which can be read twice") {
		t.Errorf("the log says %q", said)
	}
	said.Reset()
	if _, err := file.Decode(io.MultiReader(bytes.NewReader(far)), file.Options{Log: log}); err != nil || !strings.Contains(said.String(), "can be read twice") {
		t.Errorf("the log says %q (%v)", said, err)
	}
}
