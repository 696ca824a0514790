package projection

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"cne"
	"cne/internal/app/rundir"
	"cne/model"
)

// Load reads the model that --model names, a file or the folder of a run.
func Load(path string, log *slog.Logger) (*cne.Embedding, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, rundir.ModelFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the folder %s holds no %s; name the folder of a finished run, or the file", filepath.Dir(path), rundir.ModelFile)
		}
	}
	e, err := cne.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the model cannot be read (%w); check --model", err)
	case errors.Is(err, cne.ErrImages):
		return nil, fmt.Errorf("%s is a network for images, which places no points; name a model that \"cne train\" has made", path)
	case err != nil:
		return nil, err
	}
	if e.Foreign {
		log.Warn("the file does not say how points were scaled for training; they are taken as they are")
	}
	if e.Positions != nil && !e.HasTrainingPoints() {
		err = loadTrainingPoints(e, path)
	}
	return e, err
}

// loadTrainingPoints gives a table the points beside which it places new ones, from their
// file beside the model.
func loadTrainingPoints(e *cne.Embedding, path string) error {
	beside := filepath.Join(filepath.Dir(path), rundir.PointsFile)
	points, err := model.LoadPoints(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is a table, which places new points only beside its training points, and there is no %s with them; train again with model.keep_data: true, or with model.kind: mlp", path, beside)
	}
	if err != nil {
		return err
	}
	if n := e.Positions.N; points.N != n {
		return fmt.Errorf("%s has %d points, but %s has %d; they are not of the same run, so name the folder of one", path, n, beside, points.N)
	}
	if before := e.Description.Preprocessing; before != nil && before.Out() != points.D {
		return fmt.Errorf("%s prepares points of %d values, but those of %s have %d; they are not of the same run, so name the folder of one", path, before.Out(), beside, points.D)
	}
	return e.UseTrainingPoints(points)
}

// CheckWidth compares the points of a file with those that the model takes.
func CheckWidth(e *cne.Embedding, path string, d int) error {
	want, err := e.Width()
	if err != nil || d == want {
		return err
	}
	return fmt.Errorf("the points of %s have %d values, but the model takes points of %d; give points of the same kind (--label-column and --drop leave columns of a table out)", path, d, want)
}
