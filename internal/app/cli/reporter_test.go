package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/slogtest"
	"time"
)

func TestTextLog(t *testing.T) {
	var b bytes.Buffer
	log := newReporter(&b, "text", false).Log
	log.Debug("not shown")
	log.Info("points read", "n", 70000, "file", "a b.npy", "share", 1.0/3, "after", 1500*time.Millisecond)
	log.Warn("duplicates", "empty", "")
	log.With("a", 1).WithGroup("g").With("b", 2).Error("failed", "c", 3, slog.Group("h", "d", 4))
	want := `points read n=70000 file="a b.npy" share=0.33333 after=2s
warning: duplicates empty=""
error: failed a=1 g.b=2 g.c=3 g.h.d=4
`
	says(t, &b, want)
}

func TestProgressLogger(t *testing.T) {
	var b bytes.Buffer
	r := newReporter(&b, "text", false)
	never := r.ProgressLogger("waiting")
	for done := range 4 {
		never(done, 3)
	}
	r.interval = 0
	often := r.ProgressLogger("working")
	for done := range 4 {
		often(done, 3)
	}
	says(t, &b, "working done=0 of=3\nworking done=1 of=3\nworking done=2 of=3\n")
}

func TestQuietLog(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		r := newReporter(&b, format, true)
		r.Progress.Start(1)
		r.Progress.Report(EpochReport{Epoch: 1, Epochs: 1})
		r.Progress.Done()
		r.Log.Info("not shown")
		if b.Len() > 0 {
			t.Errorf("%s: got %s", format, b.String())
		}
		r.Log.Warn("shown")
		if !strings.Contains(b.String(), "shown") {
			t.Errorf("%s: the warning is missing", format)
		}
	}
}

// The handler keeps to slog's rules, as far as they do not concern the time,
// which it leaves out.
func TestLineHandlerRules(t *testing.T) {
	var b bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		b.Reset()
		return newLineHandler(&b, slog.LevelInfo)
	}, func(t *testing.T) map[string]any {
		record := map[string]any{slog.LevelKey: "INFO"}
		if !strings.HasSuffix(t.Name(), "zero-time") {
			record[slog.TimeKey] = "left out"
		}
		line := strings.TrimSuffix(b.String(), "\n")
		var message []string
		for word := range strings.SplitSeq(line, " ") {
			key, value, ok := strings.Cut(word, "=")
			if !ok {
				message = append(message, word)
				continue
			}
			group := record
			path := strings.Split(key, ".")
			for _, name := range path[:len(path)-1] {
				inner, ok := group[name].(map[string]any)
				if !ok {
					inner = map[string]any{}
					group[name] = inner
				}
				group = inner
			}
			group[path[len(path)-1]] = value
		}
		record[slog.MessageKey] = strings.Join(message, " ")
		return record
	})
}

func TestJSONLog(t *testing.T) {
	var b bytes.Buffer
	r := newReporter(&b, "json", false)
	r.Progress.Start(2)
	r.Progress.Report(EpochReport{Epoch: 1, Epochs: 2, Loss: 0.5, Unit: "edges", Speed: 1e6, Left: 3 * time.Second})
	r.Progress.Report(EpochReport{Epoch: 2, Epochs: 2, Loss: math.NaN(), Left: -1})
	r.Progress.Done()
	var records []map[string]any
	for line := range strings.Lines(b.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		records = append(records, record)
	}
	if len(records) != 4 {
		t.Fatalf("%d records", len(records))
	}
	for k, want := range map[string]any{"epoch": 1.0, "epochs": 2.0, "loss": 0.5, "edges_per_second": 1e6, "seconds_left": 3.0, "level": "INFO"} {
		if got := records[1][k]; got != want {
			t.Errorf("%s is %v, want %v", k, got, want)
		}
	}
	if _, known := records[2]["seconds_left"]; known {
		t.Error("an unknown time is given")
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                                  "0s",
		1500 * time.Microsecond:                       "2ms",
		59*time.Second + 400*time.Millisecond:         "59s",
		59*time.Second + 600*time.Millisecond:         "1m0s",
		80 * time.Second:                              "1m20s",
		time.Hour - 100*time.Millisecond:              "1h0m",
		3*time.Hour + 12*time.Minute + 10*time.Second: "3h12m",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
