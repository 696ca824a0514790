package rundir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cne"
	"cne/internal/ctxio"
	"cne/model"
	"cne/train/quality"
)

// Metrics is the content of metrics.json: the quality of an embedding and the cost of the
// run. Figures that were not asked for, or are undefined for the run, are left out.
type Metrics struct {
	quality.Figures
	*GraphRecall
	// Holdout is about the held-out points.
	Holdout *quality.HeldOutFigures `json:"holdout,omitempty"`
	// Z is NC-t-SNE's learnt constant times n(n−1), to compare with the
	// partition function.
	Z     *float64 `json:"z,omitempty"`
	Loss  float64  `json:"loss"` // of the last epoch, per edge
	N     int      `json:"n"`
	Edges int      `json:"edges"` // directed
	// Placed is the number of points placed in addition to the N training points
	// (data.sample). The figures are about the training points.
	Placed int `json:"placed,omitempty"`
	// PointsKey and GraphKey identify the points that were trained on, and the graph.
	PointsKey string `json:"points_key,omitempty"`
	GraphKey  string `json:"graph_key,omitempty"`

	Epochs       int     `json:"epochs"`
	Seconds      Seconds `json:"seconds"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	Computing
	Seed    uint64 `json:"seed"`
	Version string `json:"version"`
}

// Computing says who computed what: of a run that was interrupted, what the last process
// computed.
type Computing struct {
	Devices Devices `json:"devices"`
	// Notes are the sentences of an accelerator about how it computes.
	Notes []string `json:"device_notes,omitempty"`
}

// Devices maps the phases of a run, as Seconds names them, to who computed them: "cpu", or
// the name of an accelerator and the vendor's. Phases that computed nothing are left out.
type Devices map[string]string

// Add adds a phase, unless device is empty.
func (d Devices) Add(phase, device string) {
	if device != "" {
		d[phase] = device
	}
}

// String returns text such as "cpu: optimize; cuda:0, NVIDIA H100: graph, quality".
func (d Devices) String() string {
	phases := map[string][]string{}
	for _, phase := range slices.Sorted(maps.Keys(d)) {
		phases[d[phase]] = append(phases[d[phase]], phase)
	}
	var text []string
	for _, device := range slices.Sorted(maps.Keys(phases)) {
		text = append(text, device+": "+strings.Join(phases[device], ", "))
	}
	return strings.Join(text, "; ")
}

// Rows calls row for each line that a summary has about computing; there are none if only
// the CPU was at hand.
func (c *Computing) Rows(on *model.Device, row func(name, format string, values ...any)) {
	if on.OnHost() {
		return
	}
	row("computed by", "%s", c.Devices)
	for _, note := range c.Notes {
		row("note", "%s", note)
	}
}

// GraphRecall is the estimated share of the nearest neighbours that an approximate
// search has found, and its standard error.
type GraphRecall struct {
	Share  float64 `json:"graph_recall"`
	StdErr float64 `json:"graph_recall_stderr"`
}

// RecallOf returns the recall of the neighbours; nil if they are exact, or were not
// searched.
func RecallOf(h *cne.Neighborhood) *GraphRecall {
	if h.Recall == nil {
		return nil
	}
	return &GraphRecall{h.Recall.Share, h.Recall.StdErr}
}

// String returns text such as "0.9868 ± 0.0012 are among the nearest".
func (r *GraphRecall) String() string {
	return fmt.Sprintf("%.4f ± %.4f are among the nearest", r.Share, r.StdErr)
}

// Seconds has the times of a run. PCA and Graph are near 0 if they come from the cache.
// For a resumed run, Optimize and Total include earlier processes; the others count only
// the last process.
type Seconds struct {
	Load     float64 `json:"load"`
	PCA      float64 `json:"pca"`
	Graph    float64 `json:"graph"`
	Start    float64 `json:"start"` // of the model, before it learns: positions, for a table
	Optimize float64 `json:"optimize"`
	Project  float64 `json:"project,omitempty"` // of points that were not trained on
	Quality  float64 `json:"quality"`
	Total    float64 `json:"total"`
}

// SpectrumMetrics is the content of spectrum.json.
type SpectrumMetrics struct {
	Axis    string        `json:"axis"` // s, zbar or m
	Loss    string        `json:"loss"`
	N       int           `json:"n"`
	Edges   int           `json:"edges"`
	Shared  int           `json:"shared_epochs"`
	Seed    uint64        `json:"seed"`
	Version string        `json:"version"`
	Stops   []StopMetrics `json:"embeddings"` // by ascending value
}

// StopMetrics has the quality of one of the embeddings of a spectrum.
type StopMetrics struct {
	Value string `json:"value"` // of the axis
	// ZBar is Neg-t-SNE's normalisation constant there, however it was given.
	ZBar *float64 `json:"z_bar,omitempty"`
	// Scale is the factor that fits the embedding best to the previous one, and Disparity
	// the remaining difference, from 0 to 1.
	Scale     *float64 `json:"scale_to_previous,omitempty"`
	Disparity *float64 `json:"disparity_to_previous,omitempty"`
	Folder    string   `json:"folder"`
	Metrics
}

// ReadMetrics returns the metrics of a finished run. They are empty if the run has not
// ended, or metrics.json cannot be read.
func ReadMetrics(folder string) Metrics { return readMetrics(filepath.Join(folder, MetricsFile)) }

func readMetrics(path string) Metrics {
	var m Metrics
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &m) != nil {
		return Metrics{}
	}
	return m
}

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
