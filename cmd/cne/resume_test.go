package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// results reads what must be the same bits whether a run was stopped or not: all but times.
func results(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range listFiles(t, "run") {
		switch name {
		case "metrics.json", "metrics.jsonl", "checkpoint.safetensors", "checkpoint.previous.safetensors":
		default:
			files[name] = readText(t, "run/"+name)
		}
	}
	for _, r := range readRecords(t, "run/metrics.jsonl") {
		files["records"] += fmt.Sprintln(r.Epoch, r.Phase, r.Loss, r.LR, *r.LogZ)
	}
	m := readMetrics(t, "run/metrics.json")
	delete(m, "seconds")
	delete(m, "peak_rss_bytes")
	delete(m, "devices") // of the last process
	files["metrics"] = fmt.Sprint(m)
	return files
}

func sameResults(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs from that of the run that was not stopped", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("there is a file %s, which the run that was not stopped does not have", name)
		}
	}
}

// A run that is killed at any time and resumed gives the files of an uninterrupted run,
// bit for bit.
func TestKilledRunIsResumed(t *testing.T) {
	for kind, flags := range map[string][]string{
		"table": set("train.optimizer=adam", "train.lr=0.1", "model.keep_data=true"),
		"mlp":   set("model.kind=mlp", "model.hidden=[20, 10]", "data.holdout=0.1"),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("CNE_OUTPUT_PLOT", strconv.FormatBool(kind == "table"))
			folderOf(t, 120, 6)
			// Runs that take long enough to be killed in the middle.
			args := short(slices.Concat(flags, []string{"--quiet", "--epochs", "40"}, set("loss.name=nc", "train.batch_size=4", "checkpoint.minutes=1e-4", "output.snapshots=10"))...)
			mustRun(t, args...)
			want := results(t)
			// As many lines are in metrics.jsonl when the process is killed.
			for _, moment := range []int{0, 13, 39} {
				must(t, os.RemoveAll("run"))
				cmd, _ := program(t, args...)
				waitForRecords(t, moment)
				must(t, cmd.Process.Kill())
				if err := cmd.Wait(); err == nil {
					t.Logf("moment %d: the run was over before it was killed", moment)
				}
				// Another process, since one clears a folder of temporary files only once.
				cmd, _ = program(t, "train", "--quiet", "--resume", "run")
				must(t, cmd.Wait())
				sameResults(t, results(t), want)
			}
		})
	}
}

// waitForRecords waits until a run has begun and written that many records.
func waitForRecords(t *testing.T, lines int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if info, err := os.Stat("run/config.yaml"); err != nil || info.Size() == 0 {
			continue
		}
		text, err := os.ReadFile("run/metrics.jsonl")
		if bytes.Count(text, []byte("\n")) >= lines && (err == nil || lines == 0) {
			return
		}
	}
	t.Fatal("the run does not begin")
}
