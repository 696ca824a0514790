package rundir

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"cne/data/neighbors"
	"cne/internal/ctxio"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/model"
	"cne/train"
	"cne/train/quality"
)

// Metrics is the content of metrics.json: the quality of an embedding and the cost of the
// run. Figures that were not asked for, or are undefined for the run, are left out.
type Metrics struct {
	quality.Figures
	*neighbors.Recall
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
	return strings.Join(selection.Map(slices.Sorted(maps.Keys(phases)), func(device string) string {
		return device + ": " + strings.Join(phases[device], ", ")
	}), "; ")
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
	Network  float64 `json:"network,omitempty"` // that learnt the map
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
	Value string   `json:"value"`          // of the axis
	Pull  *float64 `json:"pull,omitempty"` // of the row of a grid
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
	Images bool      // the run pretrained a network of images
	Epochs []float64 // one for each record, as in the curves
	// Curves are keyed by the names in curveNames; a value that a record lacks is NaN.
	Curves map[string][]float64
	// Phases holds the epochs after which another phase began.
	Phases []float64
}

// curveNames are the values of a record that are read.
var curveNames = append([]string{"loss", "lr", "z"}, selection.Map(quality.Table(), func(f quality.Figure) string { return f.Key })...)

// ReadRecords reads the records in a run folder, or in a file of records. An incomplete
// last line, as of a run at work, is left out. When ctx ends, ReadRecords returns its
// error.
func ReadRecords(ctx context.Context, path string) (_ *Records, err error) {
	defer kind.Catch(&err)
	info, err := os.Stat(path)
	kind.Checkf(err, "the run cannot be read: %w", err)
	r := &Records{Path: path, Curves: map[string][]float64{}}
	if info.IsDir() {
		r.Path = filepath.Join(path, RecordsFile)
	}
	text, err := ctxio.ReadFile(ctx, r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: got a folder without %s, want a run", path, RecordsFile)
	}
	kind.Checkf(err, "the records of the run cannot be read: %w", err)
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
		_, r.Images = v["images_per_second"]
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

// A scalar is a value of the curve with the name tag; TensorBoard shows tags
// with the same part before a slash together. It is stored in single precision.
type scalar struct {
	tag   string
	value float64
}

// An eventWriter writes an event file of TensorBoard: a sequence of TFRecords, each an
// Event of TensorFlow's event.proto. The first has the version of the format, the others
// have the step, the time and the values of some scalars. Every call of write is a single,
// unbuffered write to the file: TensorBoard sees it at once, and a killed process loses
// none.
type eventWriter struct{ w io.Writer }

// newEventWriter begins an event file on w at the given time. first is the first step
// that it reports. TensorBoard drops this and later steps of the folder's other files,
// which is right for a run resumed from an earlier checkpoint. Errors are w's.
func newEventWriter(w io.Writer, at time.Time, first int) (*eventWriter, error) {
	version := newEvent(at, 0).bytes(fieldFileVersion, []byte("brain.Event:2"))
	start := newEvent(at, first).bytes(fieldSessionLog, message(nil).number(fieldStatus, statusStart))
	t := &eventWriter{w}
	return t, t.records(version, start)
}

// write adds an event with the values of a step. Values that are not finite are written,
// too; TensorBoard marks them. Errors come from the writer.
func (t *eventWriter) write(at time.Time, step int, values []scalar) error {
	var summary message
	for _, v := range values {
		value := protowire.AppendTag(message(nil).bytes(fieldTag, []byte(v.tag)), fieldSimpleValue, protowire.Fixed32Type)
		summary = summary.bytes(fieldValue, protowire.AppendFixed32(value, math.Float32bits(float32(v.value))))
	}
	return t.records(newEvent(at, step).bytes(fieldSummary, summary))
}

// records writes each event as a TFRecord: its length and its bytes, each with a checksum.
func (t *eventWriter) records(events ...message) error {
	var b []byte
	for _, e := range events {
		start := len(b)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(e)))
		b = binary.LittleEndian.AppendUint32(b, checksum(b[start:]))
		b = append(b, e...)
		b = binary.LittleEndian.AppendUint32(b, checksum(e))
	}
	if _, err := t.w.Write(b); err != nil {
		return fmt.Errorf("the TensorBoard events cannot be written: %w", err)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the masked CRC-32C of TFRecords. The mask keeps the CRC of
// data that itself holds CRCs from being a constant.
func checksum(b []byte) uint32 {
	const delta = 0xa282ead8
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + delta
}

// Numbers of fields in event.proto and summary.proto.
const (
	fieldWallTime    = 1 // of Event: double, seconds since 1970
	fieldStep        = 2 // int64
	fieldFileVersion = 3 // string
	fieldSummary     = 5
	fieldSessionLog  = 7

	fieldStatus = 1 // of SessionLog: an enumeration
	statusStart = 1

	fieldValue       = 1 // of Summary, repeated
	fieldTag         = 1 // of Summary.Value: string
	fieldSimpleValue = 2 // float
)

// A message is the encoding of a protocol buffer message.
type message []byte

func newEvent(at time.Time, step int) message {
	m := protowire.AppendTag(nil, fieldWallTime, protowire.Fixed64Type)
	m = protowire.AppendFixed64(m, math.Float64bits(float64(at.UnixMicro())/1e6))
	return message(m).number(fieldStep, uint64(step))
}

func (m message) number(field protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m message) bytes(field protowire.Number, v []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), v)
}

// RecordHook returns a hook that writes the records of a run to w and, with tensorBoard,
// to a TensorBoard file in the folder that begins with the epoch first. withZ
// includes log Z. Call done after training.
func (d *Dir) RecordHook(w io.Writer, withZ, tensorBoard bool, first int) (hook train.Hook, done func() error, err error) {
	records := train.Records(w, withZ)
	if !tensorBoard {
		return records, func() error { return nil }, nil
	}
	f, err := d.CreateEvents(time.Now())
	if err != nil {
		return nil, nil, err
	}
	events, err := newEventWriter(f, time.Now(), first)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	both := train.HookFunc(func(s *train.State) error {
		if err := records.AfterEpoch(s); err != nil {
			return err
		}
		return events.write(time.Now(), s.Epoch, scalars(s.Record(withZ)))
	})
	return both, f.Close, nil
}

// scalars returns the curves of TensorBoard, with the names in metrics.jsonl.
func scalars(r train.Record) []scalar {
	list := []scalar{{"loss", r.Loss}, {"lr", r.LR}, {"edges_per_second", r.EdgesPerSecond}}
	add := func(tag string, value *float64) {
		if value != nil {
			list = append(list, scalar{tag, *value})
		}
	}
	add("log_z", r.LogZ)
	add("z", r.Z)
	for _, f := range quality.Table() {
		value, _ := f.Of(&r.Figures)
		add(f.Key, value)
	}
	return list
}
