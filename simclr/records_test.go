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

// Records are written of the epochs asked for, and of those with an accuracy.
func TestRecords(t *testing.T) {
	half := 0.5
	for name, tc := range map[string]struct {
		change   func(p *simclr.Pretraining)
		every    int
		accuracy func(epoch int) *float64
		epochs   []int
		keys     string // in addition to the usual ones
	}{
		"all":         {func(*simclr.Pretraining) {}, 1, nil, []int{1, 2, 3}, ""},
		"some":        {func(*simclr.Pretraining) {}, 2, func(int) *float64 { return nil }, []int{2}, ""},
		"zero":        {func(*simclr.Pretraining) {}, 0, nil, []int{1, 2, 3}, ""},
		"temperature": {func(p *simclr.Pretraining) { p.LearnTemperature = true }, 3, nil, []int{3}, "temperature"},
		"log Z":       {func(p *simclr.Pretraining) { p.Loss.Loss = op.NC }, 3, nil, []int{3}, "log_z"},
		"accuracy": {func(*simclr.Pretraining) {}, 3, func(epoch int) *float64 {
			if epoch == 1 {
				return &half
			}
			return nil
		}, []int{1, 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := small()
			tc.change(&p)
			var b bytes.Buffer
			p.Hooks = append(p.Hooks, p.Records(&b, tc.every, tc.accuracy))
			n, result := pretrain(t, p, patches(16, 8), nil)
			var epochs []int
			var last simclr.Record
			for line := range strings.Lines(b.String()) {
				var r simclr.Record
				var all map[string]any
				must(t, errors.Join(json.Unmarshal([]byte(line), &r), json.Unmarshal([]byte(line), &all)))
				epochs, last = append(epochs, r.Epoch), r
				if r.LR <= 0 || r.Seconds <= 0 || r.ImagesPerSecond <= 0 || (r.Accuracy != nil) != (tc.accuracy != nil && r.Epoch == 1) {
					t.Errorf("record %s", line)
				}
				for _, key := range []string{"temperature", "log_z"} {
					if _, ok := all[key]; ok != (key == tc.keys) {
						t.Errorf("record %s: %s is there: %v", line, key, ok)
					}
				}
			}
			if !slices.Equal(epochs, tc.epochs) {
				t.Errorf("records of epochs %v, want %v", epochs, tc.epochs)
			}
			if last.Epoch == result.Epochs && last.Loss != result.Loss || last.Temperature != nil && *last.Temperature != n.Objective().Temperature || last.LogZ != nil && *last.LogZ != result.LogZ {
				t.Errorf("the last record is %+v, the result %+v", last, result)
			}
		})
	}
}

// A record that cannot be written ends the run.
func TestRecordsFail(t *testing.T) {
	p := small()
	full := errors.New("the disk is full")
	p.Hooks = append(p.Hooks, p.Records(writerFunc(func([]byte) (int, error) { return 0, full }), 1, nil))
	if _, result, err := p.Run(t.Context(), patches(16, 8), nil); !errors.Is(err, full) || !strings.Contains(err.Error(), "epoch 1") || result.Epochs != 1 {
		t.Errorf("%v after %d epochs", err, result.Epochs)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
