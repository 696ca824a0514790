package report

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cne/configs"
	"cne/internal/app/rundir"
	"cne/internal/npy"
)

// Images are only accepted if the run was trained on them.
func TestPretrainedImages(t *testing.T) {
	folder := t.TempDir()
	c, _, err := configs.Pretrain.Load(&configs.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	c.Data.Path = []string{filepath.Join(folder, "images.npy")}
	pixels := bytes.Repeat([]byte{1, 2, 3, 4}, 3*4)
	write := func() { writeFile(t, c.Data.Path[0], append(npy.Head(64, "|u1", 4, 2, 2, 3), pixels...)) }
	write()
	images, rows, err := PretrainedImages(t.Context(), folder, c) // unknown images
	if err != nil || images.N != 4 {
		t.Fatal(images, err)
	}
	writeFile(t, filepath.Join(folder, rundir.MetricsFile), fmt.Appendf(nil, `{"points_key": %q}`, rundir.ImagesKey(images, rows)))
	if _, _, err := PretrainedImages(t.Context(), folder, c); err != nil {
		t.Error(err)
	}
	pixels[5]++
	write()
	if _, _, err := PretrainedImages(t.Context(), folder, c); err == nil || !strings.Contains(err.Error(), "not those that the run was trained on") {
		t.Errorf("error %v", err)
	}
}
