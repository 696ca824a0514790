package simclr_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"cne/model/op"
	"cne/simclr"
)

// Every epoch has a record, with what was measured or learnt.
func TestRecords(t *testing.T) {
	half := 0.5
	for name, tc := range map[string]struct {
		change   func(p *simclr.Pretraining)
		accuracy func(epoch int) *float64
		keys     string // in addition to the usual ones
	}{
		"no accuracy": {func(*simclr.Pretraining) {}, func(int) *float64 { return nil }, ""},
		"log Z":       {func(p *simclr.Pretraining) { p.Loss.Loss = op.NC }, nil, "log_z"},
		"accuracy": {func(*simclr.Pretraining) {}, func(epoch int) *float64 {
			if epoch == 1 {
				return &half
			}
			return nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := small()
			tc.change(&p)
			var b bytes.Buffer
			p.Hooks = append(p.Hooks, p.Records(&b, tc.accuracy))
			_, result := pretrain(t, p, patches(16, 8), nil)
			var epochs []int
			var last simclr.Record
			for line := range strings.Lines(b.String()) {
				var r simclr.Record
				var all map[string]any
				must(t, errors.Join(json.Unmarshal([]byte(line), &r), json.Unmarshal([]byte(line), &all)))
				epochs, last = append(epochs, r.Epoch), r
				if r.LR <= 0 || r.Seconds <= 0 || r.ImagesPerSecond <= 0 || (r.Accuracy != nil) != (name == "accuracy" && r.Epoch == 1) {
					t.Errorf("record %s", line)
				}
				if _, ok := all["log_z"]; ok != (tc.keys == "log_z") {
					t.Errorf("record %s: log_z is there: %v", line, ok)
				}
			}
			if !slices.Equal(epochs, []int{1, 2, 3}) {
				t.Errorf("records of epochs %v, want all", epochs)
			}
			if last.Epoch == result.Epochs && last.Loss != result.Loss || last.LogZ != nil && *last.LogZ != result.LogZ {
				t.Errorf("the last record is %+v, the result %+v", last, result)
			}
		})
	}
}

// A record that cannot be written ends the run.
func TestRecordsFail(t *testing.T) {
	p := small()
	full := errors.New("the disk is full")
	p.Hooks = append(p.Hooks, p.Records(writerFunc(func([]byte) (int, error) { return 0, full }), nil))
	if _, result, err := p.Run(t.Context(), patches(16, 8), nil); !errors.Is(err, full) || !strings.Contains(err.Error(), "epoch 1") || result.Epochs != 1 {
		t.Errorf("%v after %d epochs", err, result.Epochs)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
