package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// events returns the sum of a run's event files: tags and values by step, and where the
// sessions begin. A second file replaces the steps from its first on.
func events(t *testing.T) (files int, values map[int]map[string]float64, sessions []int) {
	t.Helper()
	paths, err := filepath.Glob("run/events.out.tfevents.*")
	must(t, err)
	slices.Sort(paths)
	values = map[int]map[string]float64{}
	for _, path := range paths {
		b := []byte(readText(t, path))
		for len(b) > 0 {
			n := int(binary.LittleEndian.Uint64(b))
			event := b[12+9 : 12+n] // without the time
			b = b[16+n:]
			step, used := binary.Uvarint(event[1:])
			rest := event[1+used:]
			switch rest[0] {
			case 7<<3 | 2: // a session begins
				if !bytes.Equal(rest, []byte("\x3a\x02\x08\x01")) {
					t.Errorf("a session begins with %x", rest)
				}
				sessions = append(sessions, int(step))
				for s := range values {
					if s >= int(step) {
						delete(values, s)
					}
				}
			case 5<<3 | 2:
				_, used = binary.Uvarint(rest[1:])
				values[int(step)] = map[string]float64{}
				for summary := rest[1+used:]; len(summary) > 0; {
					value := summary[2 : 2+int(summary[1])]
					summary = summary[2+len(value):]
					tag := value[2 : 2+int(value[1])]
					values[int(step)][string(tag)] = float64(math.Float32frombits(binary.LittleEndian.Uint32(value[len(tag)+3:])))
				}
			}
		}
	}
	return len(paths), values, sessions
}

// The event files of a run agree with metrics.jsonl, also when a resumed run repeats
// epochs after its last checkpoint.
func TestTensorBoard(t *testing.T) {
	folderOf(t, 300, 6)
	check := func(wantFiles, wantRecords int, wantSessions ...int) {
		t.Helper()
		files, values, sessions := events(t)
		if files != wantFiles || len(values) != wantRecords || !slices.Equal(sessions, wantSessions) {
			t.Errorf("%d event files with %d steps and sessions from %v, want %d, %d and %v", files, len(values), sessions, wantFiles, wantRecords, wantSessions)
		}
		for line := range strings.Lines(readText(t, "run/metrics.jsonl")) {
			var r map[string]float64
			must(t, json.Unmarshal([]byte(line), &r))
			epoch := int(r["epoch"])
			for _, notACurve := range []string{"epoch", "phase", "seconds"} {
				delete(r, notACurve)
			}
			if len(values[epoch]) != len(r) {
				t.Errorf("epoch %d has the curves %v, want those of %v", epoch, values[epoch], r)
			}
			for name, v := range r {
				if got := values[epoch][name]; got != float64(float32(v)) {
					t.Errorf("epoch %d: %s is %v, want %v", epoch, name, got, v)
				}
			}
		}
	}
	args := short(set("loss.name=nc", "output.tensorboard=true", "output.metrics_every=3", "checkpoint.minutes=1e-9")...)
	mustRun(t, args...)
	check(1, 8, 1)
	// As if it had been killed in epoch 8.
	must(t, os.Rename("run/checkpoint.previous.safetensors", "run/checkpoint.safetensors"))
	mustRun(t, "train", "--resume", "run")
	check(2, 8, 1, 8)
	mustRun(t, "train", "--resume", "run", "--epochs", "12")
	check(3, 12, 1, 8, 9)
	// Another run in the folder begins with files of its own.
	mustRun(t, append(args, "--force")...)
	check(1, 8, 1)
	mustRun(t, short("--force")...)
	if files, _, _ := events(t); files != 0 {
		t.Errorf("%d event files that were not asked for", files)
	}
}
