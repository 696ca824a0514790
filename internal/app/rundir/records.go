package rundir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"cne/internal/ctxio"
	"cne/train/quality"
)

// Records are the records of a run's epochs as curves.
type Records struct {
	Path   string    // of the file
	Epochs []float64 // one for each record, as in the curves
	// Curves are keyed by the names in curveNames; a value that a record lacks is NaN.
	Curves map[string][]float64
	// Phases holds the epochs after which another phase began.
	Phases []float64
}

// curveNames are the values of a record that are read.
var curveNames = namesOfCurves()

func namesOfCurves() []string {
	names := []string{"loss", "z"}
	for _, f := range quality.Table() {
		names = append(names, f.Key)
	}
	return names
}

// ReadRecords reads the records in a run folder, or in a file of records. An incomplete
// last line, as of a run at work, is left out. When ctx ends, ReadRecords returns its
// error.
func ReadRecords(ctx context.Context, path string) (*Records, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("the run cannot be read: %w", err)
	}
	r := &Records{Path: path, Curves: map[string][]float64{}}
	if info.IsDir() {
		r.Path = filepath.Join(path, RecordsFile)
	}
	text, err := ctxio.ReadFile(ctx, r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: got a folder without %s, want a run", path, RecordsFile)
	}
	if err != nil {
		return nil, fmt.Errorf("the records of the run cannot be read: %w", err)
	}
	line, phase := 0, 0
	for record := range bytes.Lines(text) {
		line++
		if !bytes.HasSuffix(record, []byte("\n")) {
			break
		}
		var v map[string]float64
		if err := json.Unmarshal(record, &v); err != nil || v["epoch"] < 1 {
			return nil, fmt.Errorf("%s: line %d: got no record of an epoch, want the %s of a run", r.Path, line, RecordsFile)
		}
		if now := int(v["phase"]); now != phase && len(r.Epochs) > 0 {
			r.Phases = append(r.Phases, r.Epochs[len(r.Epochs)-1])
			phase = now
		}
		r.Epochs = append(r.Epochs, v["epoch"])
		for _, name := range curveNames {
			value, ok := v[name]
			if !ok {
				value = math.NaN()
			}
			r.Curves[name] = append(r.Curves[name], value)
		}
	}
	if len(r.Epochs) == 0 {
		return nil, fmt.Errorf("%s holds no record of an epoch yet", r.Path)
	}
	return r, nil
}

// Has reports whether a curve has any value.
func (r *Records) Has(curve string) bool {
	return slices.ContainsFunc(r.Curves[curve], func(v float64) bool { return !math.IsNaN(v) })
}
