package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"cne/configs"
)

// extremes are values of numbers that may make no sense.
var extremes = []string{"0", "-1", "1e-300", "0.5", "60", "1000", "1e31", "2147483647", "1e300"}

// A configuration that cne config --check accepts is not refused by a run; errors name
// the key.
func TestChecksAgreeWithRuns(t *testing.T) {
	folderOf(t, 60, 3)
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
		[]string{""})
}

// walk sets every key that takes numbers to all extremes, on top of the base, and the
// keys of the model and its loss also on top of each variant.
func walk[C any](t *testing.T, s *configs.Schema[C], check, command, base, variants []string) {
	for _, variant := range variants {
		if variant != "" && testing.Short() {
			continue
		}
		for _, completion := range s.Completions() {
			key, word, _ := strings.Cut(completion, "=")
			section, _, _ := strings.Cut(key, ".")
			// Files and folders may be called like a number.
			if word != "" || key == "data.path" || key == "output.dir" || key == "data.columns" || key == "data.drop" || key == "data.categories" || key == "data.dates" || key == "data.layer" || key == "data.obsm" || strings.HasPrefix(key, "data.label") || strings.HasPrefix(key, "data.holdout") || key == "graph.file" || key == "data.names" || key == "model.from" || key == "output.html_columns" || strings.HasPrefix(key, "model.init") && key != "model.init_std" {
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
					args := set(slices.Concat(base, strings.Fields(variant), []string{key + "=" + value})...)
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
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	code, _, stderr = runCne(ctx, run...)
	if strings.HasPrefix(stderr, "cne: "+key) && strings.HasPrefix(key, "plot.") {
		return // how wide the legend is shows when the labels have been read
	}
	if code != 0 && !strings.Contains(stderr, "interrupted") && !strings.Contains(stderr, "deadline") && !strings.Contains(stderr, "diverged") {
		t.Errorf("%s=%s: found right, but the run ends with exit code %d and %q", key, value, code, stderr)
	}
}
