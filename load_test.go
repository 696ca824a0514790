package cne_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/model"
)

// Load takes the folder of a run, as the program and Python's package do: the training points
// next to the model, whether the folder or the file is named, and a network's positions.
func TestLoadFolder(t *testing.T) {
	m, folder := points(t, 30), t.TempDir()
	h := prepare(t, m, few(nil))
	e := fit(t, h, few(nil))
	saved := filepath.Join(folder, model.RunFile)
	load := func(path string) *cne.Embedding {
		t.Helper()
		loaded, err := cne.Load(path)
		must(t, err)
		return loaded
	}
	if _, err := cne.Load(folder); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), model.RunFile) {
		t.Errorf("an empty folder: %v", err)
	}
	must(t, e.SaveModel(saved))
	if _, err := load(folder).Project(t.Context(), m); !errors.Is(err, cne.ErrNoTrainingPoints) || !strings.Contains(err.Error(), "UseTrainingPoints") {
		t.Errorf("without training points: %v", err)
	}
	beside := filepath.Join(folder, model.PointsFile)
	must(t, model.SavePoints(beside, h.Reduced))
	x := m.Rows(3, 9)
	for _, path := range []string{folder, saved} {
		loaded := load(path)
		same(t, "the points are placed elsewhere", project(t, loaded, x).X, project(t, e, x).X)
		same(t, "the positions are others", loaded.Positions.X, e.Positions.X)
	}
	must(t, model.SavePoints(beside, h.Reduced.Rows(0, 4)))
	if _, err := cne.Load(folder); !errors.Is(err, model.ErrFile) || !strings.Contains(err.Error(), "same run") {
		t.Errorf("training points of another run: %v", err)
	}
	must(t, e.Save(saved)) // which has its own
	same(t, "the points are placed elsewhere", project(t, load(folder), x).X, project(t, e, x).X)
	must(t, os.WriteFile(beside, []byte("nonsense"), 0o666))
	must(t, e.SaveModel(saved))
	if _, err := cne.Load(folder); !errors.Is(err, model.ErrFile) {
		t.Errorf("damaged training points: %v", err)
	}

	network := embed(t, m, few(func(o *cne.Options) { o.Hidden = []int{5} }))
	must(t, network.Save(saved))
	if load(folder).Positions != nil || load(saved).Positions != nil {
		t.Error("a network has positions from nowhere")
	}
	write := func(m *data.Matrix) {
		f, err := os.Create(filepath.Join(folder, "embedding.npy"))
		must(t, err)
		w, err := file.NewNPYWriter(f, m.D)
		must(t, err)
		must(t, errors.Join(w.Write(m), w.Close(), f.Close()))
	}
	write(network.Positions)
	same(t, "the network's positions are others", load(folder).Positions.X, network.Positions.X)
	same(t, "the points are placed elsewhere", project(t, load(folder), x).X, project(t, network, x).X)
	write(m)
	if _, err := cne.Load(folder); !errors.Is(err, model.ErrFile) {
		t.Errorf("positions in three dimensions: %v", err)
	}
}
