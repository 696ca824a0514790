package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cne/configs"
)

// What can be known before the points are read is told before: they are a pipe here, to
// which nobody ever writes.
func TestKnownEarly(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	if code, _, stderr := runCne(t.Context(), short()...); code != 0 {
		t.Fatal(stderr)
	}
	makePipe(t, "pipe")
	run := func(more ...string) []string {
		return append([]string{"train", "--quiet", "--set", "data.path=pipe", "--epochs", "2"}, more...)
	}
	images := func(more ...string) []string {
		return append([]string{"simclr", "pretrain", "--quiet", "--set", "data.path=pipe"}, more...)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"taken folder":            {run("-o", "run"), "the folder holds the files of another run: run; choose another output.dir, or give --force"},
		"folder is a file":        {run("-o", "points.csv"), "the run folder points.csv is a file"},
		"missing labels":          {run("-o", "new", "--set", "data.labels=gone.txt"), "gone.txt: no such file or directory (data.labels)"},
		"missing graph":           {run("-o", "new", "--set", "graph.file=gone.npz"), "graph.file cannot be used: stat gone.npz: no such file"},
		"missing holdout":         {run("-o", "new", "--set", "data.holdout=gone.npy"), "check the path (data.holdout)"},
		"missing holdout labels":  {run("-o", "new", "--set", "data.holdout=points.csv", "--set", "data.holdout_labels=gone"), "(data.holdout_labels)"},
		"one of several missing":  {run("-o", "new", "--set", "data.path=['pipe', 'gone.npy']"), "check the path (data.path)"},
		"spectrum":                {[]string{"spectrum", "--quiet", "--s", "0", "--set", "data.path=pipe", "-o", "run"}, "the files of another run"},
		"images: taken folder":    {images("-o", "run"), "the files of another run"},
		"images: missing labels":  {images("-o", "new", "--set", "data.labels=gone.txt"), "(data.labels)"},
		"images: too much memory": {images("-o", "new", "--set", "views.size=4096"), "lower views.size"},
	} {
		t.Run(name, func(t *testing.T) {
			type result struct {
				code   int
				stderr string
			}
			done := make(chan result, 1)
			go func() {
				code, _, stderr := runCne(t.Context(), tc.args...)
				done <- result{code, stderr}
			}()
			select {
			case r := <-done:
				if r.code != exitFailure || !strings.Contains(r.stderr, tc.want) || strings.Count(r.stderr, "\n") != 1 {
					t.Errorf("exit code %d and %q, want %q", r.code, r.stderr, tc.want)
				}
			case <-time.After(30 * time.Second):
				t.Error("it waits for the points")
			}
			if _, err := os.Stat("new"); err == nil {
				t.Error("it has made a folder")
			}
		})
	}
}

// extremes are values of numbers that may make no sense.
var extremes = []string{"0", "-1", "1e-300", "0.5", "60", "1000", "1e31", "2147483647", "1e300"}

// What cne config --check finds right a run does not refuse for its options; and what is
// refused is refused by its key.
func TestChecksAgreeWithRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	writeRandom(t, "images.npy", "|u1", 24, 8, 8, 3)
	writeTestFile(t, "labels.txt", strings.Repeat("a\nb\n", 12))
	walk(t, configs.Train, []string{"config"}, []string{"train"},
		[]string{"data.path=points.csv", "data.label_column=kind", "train.epochs=1", "graph.k=5", "quality.k=5"},
		[]string{"", "model.kind=mlp", "loss.name=nc data.holdout=0.1", "loss.name=infonce loss.metric=cosine model.dim=3"})
	walk(t, configs.Pretrain, []string{"simclr", "config"}, []string{"simclr", "pretrain"},
		[]string{
			"data.path=images.npy", "data.labels=labels.txt", "views.size=8", "network.width=1", "train.batch_size=8", "train.epochs=1", "train.warm_up=0",
			"monitor.every=0", "evaluate.test=4", "evaluate.k=2",
		},
		[]string{"", "loss.learn_temperature=true"})
}

// walk sets every key that takes numbers to all extremes, beside the base, and those of
// the model and its loss beside each of the variants, too.
func walk[C any](t *testing.T, s *configs.Schema[C], check, command, base, variants []string) {
	for _, variant := range variants {
		if variant != "" && testing.Short() {
			continue
		}
		for _, completion := range s.Completions() {
			key, word, _ := strings.Cut(completion, "=")
			section, _, _ := strings.Cut(key, ".")
			// Files and folders may be called like a number.
			if word != "" || key == "data.path" || key == "output.dir" || key == "data.columns" || key == "data.drop" || key == "plot.title" || strings.HasPrefix(key, "data.label") || strings.HasPrefix(key, "data.holdout") || key == "graph.file" || key == "data.names" || key == "model.from" || key == "output.html_color" || strings.HasPrefix(key, "model.init") && key != "model.init_std" {
				continue
			}
			if variant != "" && section != "loss" && section != "model" {
				continue
			}
			t.Run(strings.Join(append(command, strings.Fields(variant)...), " ")+" "+key, func(t *testing.T) {
				for i, value := range extremes {
					if (i+len(key))%4 != 0 { // a part of them, another one for each key
						continue
					}
					var args []string
					for _, x := range slices.Concat(base, strings.Fields(variant), []string{key + "=" + value}) {
						args = append(args, "--set", x)
					}
					compareCheck(t, key, value, slices.Concat(check, []string{"--check"}, args), slices.Concat(command, []string{"--quiet", "--force", "-o", "run"}, args))
				}
			})
		}
	}
}

// compareCheck checks a configuration and, if that finds it right, runs it for a moment.
func compareCheck(t *testing.T, key, value string, check, run []string) {
	t.Helper()
	code, _, stderr := runCne(t.Context(), check...)
	if code != 0 {
		if code != exitFailure && code != exitUsage || !strings.Contains(stderr, key) {
			t.Errorf("%s=%s: refused with exit code %d by %q, which does not name the key", key, value, code, stderr)
		}
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
	defer cancel()
	code, _, stderr = runCne(ctx, run...)
	if strings.HasPrefix(stderr, "cne: "+key) && strings.HasPrefix(key, "plot.") {
		return // how wide the legend is shows when the labels have been read
	}
	if code != 0 && !strings.Contains(stderr, "interrupted") && !strings.Contains(stderr, "deadline") && !strings.Contains(stderr, "diverged") {
		t.Errorf("%s=%s: found right, but the run ends with exit code %d and %q", key, value, code, stderr)
	}
}
