package rundir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"cne/train"
	"cne/train/quality"
)

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
