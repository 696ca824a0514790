package images

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// Images count as they are in colour, whatever they are stored as; what holds none has no
// size.
func TestSize(t *testing.T) {
	dir := t.TempDir()
	array := func(name, kind, shape string, bytes int) string {
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", kind, shape)
		head += strings.Repeat(" ", 127-10-len(head)%128) + "\n"
		path := filepath.Join(dir, name)
		content := slices.Concat([]byte("\x93NUMPY\x01\x00"), []byte{byte(len(head)), byte(len(head) >> 8)}, []byte(head), make([]byte, bytes))
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	colour := array("colour.npy", "|u1", "(5, 4, 6, 3)", 360)
	for name, tc := range map[string]struct {
		paths []string
		opt   Options
		want  data.Size
	}{
		"colour":        {[]string{colour, colour}, Options{}, data.SizeOf(10, 72)},
		"greyscale":     {[]string{array("grey.npy", "|u1", "(5, 4, 6)", 120)}, Options{}, data.SizeOf(5, 72)},
		"one channel":   {[]string{array("one.npy", "|u1", "(5, 4, 6, 1)", 120)}, Options{}, data.SizeOf(5, 72)},
		"scaled":        {[]string{colour}, Options{Size: 2}, data.SizeOf(5, 12)},
		"numbers":       {[]string{array("numbers.npy", "<f4", "(5, 4, 6, 3)", 1440)}, Options{}, data.UnknownSize},
		"a missing one": {[]string{filepath.Join(dir, "gone.npy")}, Options{}, data.UnknownSize},
	} {
		if got := Size(t.Context(), tc.paths, tc.opt); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
