package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cne/configs"
	"cne/internal/rundir"
	"cne/train"
)

// mainVariable makes the test binary the program itself, so that tests can
// kill it.
const mainVariable = "RUN_THE_PROGRAM"

// program starts the program in a process of its own.
func program(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &stderr
}

// runKinds are runs that take long enough to be killed in the middle.
var runKinds = map[string][]string{
	"table": {"--set", "loss.name=nc", "--set", "train.optimizer=adam", "--set", "train.lr=0.1", "--set", "model.keep_data=true"},
	"mlp":   {"--set", "loss.name=nc", "--set", "model.kind=mlp", "--set", "model.hidden=[20, 10]", "--set", "data.holdout=0.1"},
}

func longRun(kind string) []string {
	return append([]string{"train", "--quiet", "--set", "data.path=points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5",
		"--set", "train.batch_size=4", "--epochs", "40", "--set", "checkpoint.minutes=1e-4", "--set", "output.snapshots=10", "-o", "run"}, runKinds[kind]...)
}

// results reads what must be the same bits whether a run was stopped or not:
// all but times.
func results(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range listFiles(t, "run") {
		switch name {
		case "metrics.json", "metrics.jsonl", "checkpoint.safetensors", "checkpoint.previous.safetensors":
			continue
		}
		text, err := os.ReadFile(filepath.Join("run", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	// Of the records the times differ.
	var records []string
	for _, r := range readRecords(t, "run/metrics.jsonl") {
		records = append(records, fmt.Sprintln(r.Epoch, r.Phase, r.Loss, r.LR, *r.LogZ))
	}
	files["records"] = strings.Join(records, "")
	m := readMetrics(t, "run/metrics.json")
	for _, key := range []string{"seconds", "peak_rss_bytes"} {
		delete(m, key)
	}
	files["metrics"] = fmt.Sprint(m)
	return files
}

func readRecords(t *testing.T, path string) []train.Record {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var records []train.Record
	for line := range bytes.Lines(text) {
		var r train.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		records = append(records, r)
	}
	return records
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

// A run whose process is killed, whenever that is, and which is resumed, gives
// the files of one that was not, bit for bit.
func TestKilledRunIsResumed(t *testing.T) {
	for kind := range runKinds {
		t.Run(kind, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writePoints(t, "points.csv", 120, 6)
			cmd, stderr := program(t, longRun(kind)...)
			if err := cmd.Wait(); err != nil {
				t.Fatal(err, stderr)
			}
			want := results(t)
			// As many lines are in metrics.jsonl when the process is killed.
			for _, moment := range []int{0, 1, 13, 27, 39} {
				if err := os.RemoveAll("run"); err != nil {
					t.Fatal(err)
				}
				cmd, stderr := program(t, longRun(kind)...)
				waitForRecords(t, moment)
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err == nil {
					t.Logf("moment %d: the run was over before it was killed", moment)
				}
				stderr.Reset()
				cmd, stderr = program(t, "train", "--quiet", "--resume", "run")
				if err := cmd.Wait(); err != nil {
					t.Fatalf("moment %d: %v: %s", moment, err, stderr)
				}
				sameResults(t, results(t), want)
			}
		})
	}
}

// waitForRecords waits until a run has begun and written so many records.
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

// However early a run is killed, the folder can be used: by --resume from when its
// configuration is there, and by the next run before.
func TestRunIsKilledAsItBegins(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 120, 6)
	resumed := 0
	for i := range 24 {
		cmd, _ := program(t, longRun("table")...)
		if i%2 == 0 { // as near to the beginning as can be
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
				if _, err := os.Stat("run/config.yaml"); err == nil {
					break
				}
			}
		} else {
			time.Sleep(time.Duration(20+10*i) * time.Millisecond)
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		args := longRun("table")
		if _, err := os.Stat("run/config.yaml"); err == nil {
			args = []string{"train", "--quiet", "--resume", "run", "--epochs", "40"}
			resumed++
		}
		if code, _, stderr := runCne(t.Context(), args...); code != 0 {
			t.Fatalf("%d, %v: %s", i, args, stderr)
		}
		if stale, _ := filepath.Glob("run/.cne-*"); stale != nil {
			t.Errorf("%d: %q are left", i, stale)
		}
		must(t, os.RemoveAll("run"))
	}
	if resumed < 12 {
		t.Errorf("only %d runs were resumed", resumed)
	}
}

// What cne project leaves when it is killed goes with the next file that is written there.
func TestKilledProjectionLeavesNothing(t *testing.T) {
	shortRun(t, aNetwork()...)
	makePipe(t, "pipe")
	must(t, os.Mkdir("out", 0o777))
	cmd, _ := program(t, "project", "-m", "run", "pipe", "-o", "out/new.npy")
	pipe, err := os.OpenFile("pipe", os.O_WRONLY, 0)
	must(t, err)
	defer pipe.Close()
	_, err = pipe.WriteString(strings.Repeat("1,2,3,4,5\n", 20000))
	must(t, err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if begun, _ := filepath.Glob("out/.cne-*.tmp"); len(begun) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("cne project does not begin to write")
		}
	}
	// While it lives, its file stays.
	mustRun(t, "project", "-m", "run", "points.csv", "--label-column", "kind", "-o", "out/a.npy")
	if left, _ := filepath.Glob("out/.cne-*.tmp"); len(left) != 1 {
		t.Errorf("%q are left of a living process", left)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	again, stderr := program(t, "project", "-m", "run", "points.csv", "--label-column", "kind", "-o", "out/new.npy")
	if err := again.Wait(); err != nil {
		t.Fatal(err, stderr)
	}
	if files := listFiles(t, "out"); !slices.Equal(files, []string{"a.npy", "new.npy"}) {
		t.Errorf("files %q", files)
	}
}

// Two processes do not work in one folder.
func TestFolderIsLocked(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks")
	}
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 120, 6)
	cmd, _ := program(t, append(longRun("table"), "--epochs", "100000")...)
	waitForRecords(t, 1)
	for _, args := range [][]string{{"train", "--resume", "run"}, append(longRun("mlp"), "--force")} {
		if code, _, stderr := runCne(t.Context(), args...); code != 1 || !strings.Contains(stderr, "another process of cne is at work in the run folder run") {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
}

// A run that is asked to stop saves its state and says how to go on.
func TestTerminatedRunIsResumed(t *testing.T) {
	for _, asked := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(asked) {
			continue // as after nohup, which programs heed
		}
		t.Chdir(t.TempDir())
		writePoints(t, "points.csv", 120, 6)
		args := append(longRun("table"), "--set", "checkpoint.minutes=0")
		cmd, stderr := program(t, args...)
		if err := cmd.Wait(); err != nil {
			t.Fatal(err, stderr)
		}
		want := results(t)
		if err := os.RemoveAll("run"); err != nil {
			t.Fatal(err)
		}
		cmd, stderr = program(t, args...)
		waitForRecords(t, 2)
		if err := cmd.Process.Signal(asked); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(stderr.String(), `"cne train --resume run" goes on`) {
			t.Fatalf("%v: %s", err, stderr)
		}
		if _, err := os.Stat("run/embedding.png"); err != nil {
			t.Error(err)
		}
		if code, _, stderr := runCne(t.Context(), "train", "--resume", "run"); code != 0 {
			t.Fatal(stderr)
		}
		sameResults(t, results(t), want)
	}
}

// shortRun makes a finished run in the folder run.
func shortRun(t *testing.T, flags ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 5)
	if code, _, stderr := runCne(t.Context(), short(flags...)...); code != 0 {
		t.Fatal(stderr)
	}
}

func TestResumeWithOtherSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		want  string // of the one line on stderr; "" for success
	}{
		"nothing":        {nil, ""},
		"more epochs":    {[]string{"--epochs", "9"}, ""},
		"neighbours":     {[]string{"--set", "quality.k=30"}, ""},
		"no recall":      {[]string{"--set", "quality.recall=false"}, ""},
		"same folder":    {[]string{"-o", "./run/"}, ""},
		"moved data":     {[]string{"--set", "data.path=./points.csv"}, ""},
		"what is kept":   {[]string{"--set", "output.csv=false", "--set", "plot.title=x", "--set", "quality.spearman=0", "--set", "train.log_every=2"}, ""},
		"fewer epochs":   {[]string{"--epochs", "7"}, "cne: the run in run was begun with train.epochs 8, not 7 (--epochs); leave that as it was, or start another run\n"},
		"another loss":   {[]string{"--set", "loss.name=umap", "--seed", "4"}, "cne: the run in run was begun with seed 0, not 4 (--seed), and with loss.name neg, not umap (--set loss.name); leave that"},
		"the same seed":  {[]string{"--seed", "0"}, ""},
		"another file":   {[]string{"--config", "other.yaml"}, "cne: the run in run was begun with data.label_column kind, not null (default), and with graph.k 5, not 7 (other.yaml:1)"},
		"another folder": {[]string{"-o", "elsewhere"}, `--resume run continues in that folder, but --output says elsewhere; leave it out`},
		"force":          {[]string{"--force"}, "--resume goes on with a run and --force replaces it; give one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			shortRun(t)
			writeTestFile(t, "other.yaml", "{graph: {k: 7}, data: {path: points.csv}, train: {batch_size: 64}}")
			before := listFiles(t, "run")
			code, _, stderr := runCne(t.Context(), append([]string{"train", "--quiet", "--resume", "run"}, tc.flags...)...)
			if tc.want == "" {
				if code != 0 {
					t.Error(stderr)
				}
				return
			}
			if code == 0 || !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stderr %q, want %q", code, stderr, tc.want)
			}
			if !slices.Equal(listFiles(t, "run"), before) {
				t.Error("the folder has changed")
			}
		})
	}
	t.Run("finished with more epochs", func(t *testing.T) {
		shortRun(t)
		if code, _, stderr := runCne(t.Context(), "train", "--resume", "run", "--epochs", "11"); code != 0 {
			t.Fatal(stderr)
		}
		if got := len(readRecords(t, "run/metrics.jsonl")); got != 11 {
			t.Errorf("%d records, want 11", got)
		}
		if c := mustLoadFile(t, "run/config.yaml"); c.Train.Epochs != 11 {
			t.Errorf("config.yaml says %d epochs", c.Train.Epochs)
		}
	})
}

func mustLoadFile(t *testing.T, path string) *configs.Config {
	t.Helper()
	c, _, err := configs.Train.Load(configs.Sources{File: path})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestResumeRefuses(t *testing.T) {
	damage := func(t *testing.T, name string) {
		t.Helper()
		text, err := os.ReadFile("run/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)-3] ^= 1
		writeTestFile(t, "run/"+name, string(text))
	}
	for name, tc := range map[string]struct {
		spoil func(t *testing.T)
		want  string
	}{
		"no folder":      {func(t *testing.T) { must(t, os.RemoveAll("run")) }, "there is no run in run to be resumed"},
		"no run":         {func(t *testing.T) { must(t, os.Remove("run/config.yaml")) }, "there is no run in run to be resumed"},
		"other config":   {func(t *testing.T) { writeTestFile(t, "run/config.yaml", "nonsense: 1") }, "the folder run holds no config.yaml written by cne"},
		"broken config":  {func(t *testing.T) { writeTestFile(t, "run/config.yaml", configs.Header+"\nnonsense: 1") }, "run/config.yaml:2: nonsense is not a key"},
		"other points":   {func(t *testing.T) { writePoints(t, "points.csv", 61, 5) }, "the points of data.path are not those that the run was begun with"},
		"missing points": {func(t *testing.T) { must(t, os.Remove("points.csv")) }, "points.csv"},
		"damaged": {func(t *testing.T) { damage(t, "checkpoint.safetensors") },
			"the checkpoint cannot be used: run/checkpoint.safetensors: the checksum does not agree with the contents"},
		"not a checkpoint": {func(t *testing.T) { must(t, os.Rename("run/"+rundir.ModelFile, "run/checkpoint.safetensors")) }, "its kind is"},
	} {
		t.Run(name, func(t *testing.T) {
			shortRun(t)
			tc.spoil(t)
			code, stdout, stderr := runCne(t.Context(), "train", "--quiet", "--resume", "run")
			if code != 1 || stdout != "" || !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stderr %q, want %q", code, stderr, tc.want)
			}
		})
	}
	t.Run("no name", func(t *testing.T) {
		if code, _, stderr := runCne(t.Context(), "train", "--resume", ""); code != 2 || !strings.Contains(stderr, "--resume is empty") {
			t.Error(code, stderr)
		}
	})
	t.Run("more of an exaggeration", func(t *testing.T) {
		shortRun(t, "--set", "loss.s=0", "--set", "train.early_exaggeration=third")
		code, _, stderr := runCne(t.Context(), "train", "--quiet", "--resume", "run", "--epochs", "60")
		if code != 1 || !strings.Contains(stderr, "cannot be given more epochs than 8, since its early exaggeration is a share of them") {
			t.Error(code, stderr)
		}
	})
	// What the run was begun with is in the checkpoint, whatever config.yaml
	// says meanwhile.
	t.Run("configuration edited", func(t *testing.T) {
		shortRun(t)
		writeTestFile(t, "run/config.yaml", strings.Replace(readText(t, "run/config.yaml"), "name: neg", "name: umap", 1))
		code, _, stderr := runCne(t.Context(), "train", "--quiet", "--resume", "run")
		if code != 1 || !strings.Contains(stderr, "the run in run was begun with ") {
			t.Error(code, stderr)
		}
	})
	// A part of a configuration is valid, but not that of the run.
	t.Run("configuration cut off", func(t *testing.T) {
		shortRun(t)
		whole := readText(t, "run/config.yaml")
		writeTestFile(t, "whole.yaml", whole)
		for _, at := range []int{0, 100, strings.Index(whole, "\ntrain:"), len(whole) - 1} {
			writeTestFile(t, "run/config.yaml", whole[:at])
			code, _, stderr := runCne(t.Context(), "train", "--quiet", "--resume", "run")
			if code != 1 || !strings.Contains(stderr, "run/config.yaml is cut off; give the configuration") || strings.Count(stderr, "\n") != 1 {
				t.Error(at, code, stderr)
			}
		}
		if code, _, stderr := runCne(t.Context(), "train", "--resume", "run", "--config", "whole.yaml"); code != 0 || readText(t, "run/config.yaml") != whole {
			t.Error(code, stderr)
		}
	})
	t.Run("checkpoint of another run", func(t *testing.T) {
		shortRun(t, "--set", "loss.name=umap")
		other := readText(t, "run/checkpoint.safetensors")
		shortRun(t)
		writeTestFile(t, "run/checkpoint.safetensors", other)
		code, _, stderr := runCne(t.Context(), "train", "--quiet", "--resume", "run")
		if code != 1 || !strings.Contains(stderr, "was begun with loss.name umap, not neg") {
			t.Error(code, stderr)
		}
	})
	t.Run("other held-out points", func(t *testing.T) {
		t.Chdir(t.TempDir())
		writePoints(t, "points.csv", 60, 5)
		writePoints(t, "held.csv", 9, 5)
		if code, _, stderr := runCne(t.Context(), short("--set", "data.holdout=held.csv")...); code != 0 {
			t.Fatal(stderr)
		}
		writePoints(t, "moved.csv", 9, 5)
		if code, _, stderr := runCne(t.Context(), "train", "--resume", "run", "--set", "data.holdout=moved.csv"); code != 0 {
			t.Error(stderr)
		}
		writePoints(t, "held.csv", 10, 5)
		code, _, stderr := runCne(t.Context(), "train", "--quiet", "--resume", "run", "--set", "data.holdout=held.csv")
		if code != 1 || !strings.Contains(stderr, "the points of data.holdout are not those that the run was begun with") {
			t.Error(code, stderr)
		}
	})
	// A resumed run that fails takes nothing away.
	t.Run("nothing is lost", func(t *testing.T) {
		shortRun(t)
		must(t, os.Remove("run/checkpoint.safetensors"))
		must(t, os.Mkdir("run/checkpoint.safetensors", 0o777)) // no checkpoint can be written
		before := listFiles(t, "run")
		code, _, stderr := runCne(t.Context(), "train", "--quiet", "--resume", "run")
		if code != 1 || !strings.Contains(stderr, "the checkpoint cannot be read") || !slices.Equal(listFiles(t, "run"), before) {
			t.Error(code, stderr, listFiles(t, "run"))
		}
		must(t, os.Remove("run/checkpoint.safetensors"))
		must(t, os.MkdirAll("run/embedding.html/x", 0o777)) // no page can be written
		code, _, stderr = runCne(t.Context(), "train", "--resume", "run", "--set", "train.log_every=100000", "--set", "output.html=true")
		if _, err := os.Stat("run/embedding.npy"); code != 1 || err != nil || !strings.Contains(stderr, "there is no checkpoint in the run folder; the run begins again") {
			t.Error(code, stderr, err)
		}
	})
	// A run that was killed as it began leaves a folder that can be used.
	t.Run("begun", func(t *testing.T) {
		t.Chdir(t.TempDir())
		writePoints(t, "points.csv", 60, 5)
		must(t, os.Mkdir("run", 0o777))
		writeTestFile(t, "run/config.yaml", "")
		if code, _, stderr := runCne(t.Context(), "train", "--resume", "run"); code != 1 || !strings.Contains(stderr, `begin it again with "cne train -o run"`) {
			t.Error(code, stderr)
		}
		if code, _, stderr := runCne(t.Context(), short()...); code != 0 {
			t.Error(stderr)
		}
	})
	t.Run("the one before", func(t *testing.T) {
		shortRun(t, "--set", "checkpoint.epochs=3")
		want := embeddingAndModel(t)
		damage(t, "checkpoint.safetensors")
		code, _, stderr := runCne(t.Context(), "train", "--resume", "run")
		if code != 0 || !strings.Contains(stderr, "a checkpoint is damaged; going on from the one before") {
			t.Fatal(code, stderr)
		}
		sameResults(t, embeddingAndModel(t), want)
	})
}

// embeddingAndModel reads these two files of the run.
func embeddingAndModel(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"embedding.npy", rundir.ModelFile} {
		text, err := os.ReadFile("run/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return files
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A run that is interrupted before its first epoch is over can be resumed.
func TestInterruptedAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 5)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat("run/metrics.jsonl"); err == nil {
				cancel()
				return
			}
		}
	}()
	code, _, stderr := runCne(ctx, short("--epochs", "1000000")...)
	if code != 1 || !strings.Contains(stderr, `"cne train --resume run" goes on`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
