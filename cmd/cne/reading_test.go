//go:build unix

package main

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whatever a command waits for to be written to a pipe, a signal ends it, and nothing
// is written.
func TestReadingIsInterrupted(t *testing.T) {
	shortRun(t)
	makePipe(t, "pipe")
	train := []string{"train", "--quiet", "--epochs", "3", "-o", "other"}
	set := func(settings ...string) []string {
		args := slices.Clone(train)
		for _, s := range settings {
			args = append(args, "--set", s)
		}
		return args
	}
	for name, args := range map[string][]string{
		"points":          set("data.path=pipe"),
		"second file":     set("data.path=[points.csv, pipe]", "data.label_column=kind"),
		"labels":          set("data.path=points.csv", "data.drop=[kind]", "data.labels=pipe"),
		"held out":        set("data.path=points.csv", "data.label_column=kind", "data.holdout=pipe"),
		"configuration":   append(slices.Clone(train), "--config", "pipe"),
		"on top":          {"train", "--quiet", "--resume", "run", "--config", "pipe"},
		"cne config":      {"config", "--check", "--config", "pipe"},
		"spectrum":        {"spectrum", "--quiet", "--set", "data.path=pipe", "-o", "other"},
		"plot":            {"plot", "pipe", "-o", "other.png"},
		"plot labels":     {"plot", "run/embedding.npy", "--labels", "pipe", "-o", "other.png"},
		"plot images":     {"plot", "run", "--images", "pipe", "--html", "-o", "other.html"},
		"plot curves":     {"plot", "--metrics", "pipe", "-o", "other.png"},
		"strip":           {"plot", "run", "pipe", "-o", "other.png"},
		"evaluate":        {"evaluate", "pipe", "--data", "points.csv", "-o", "other.json"},
		"evaluate config": {"evaluate", "run", "--config", "pipe", "-o", "other.json"},
		"views":           {"simclr", "views", "--set", "data.path=pipe", "-o", "other.png"},
		"views config":    {"simclr", "views", "--config", "pipe", "-o", "other.png"},
	} {
		t.Run(name, func(t *testing.T) {
			for opened, signal := range map[bool]syscall.Signal{false: syscall.SIGTERM, true: syscall.SIGINT} {
				if !opened && name != "points" && name != "configuration" && name != "strip" {
					continue // it is the same everywhere, and takes long
				}
				before := listFiles(t, ".")
				cmd, stderr := program(t, args...)
				if opened {
					pipe, err := os.OpenFile("pipe", os.O_WRONLY, 0) // waits for the program
					must(t, err)
					defer pipe.Close()
					_, err = pipe.WriteString("#")
					must(t, err)
				} else {
					time.Sleep(time.Second) // so that it catches signals
				}
				time.Sleep(50 * time.Millisecond) // so that it waits
				must(t, cmd.Process.Signal(signal))
				_ = waitWithin(t, cmd, 20)
				text := stderr.String()
				if cmd.ProcessState.ExitCode() != exitFailure || !strings.HasPrefix(text, "cne: interrupted") || strings.Count(text, "\n") != 1 {
					t.Errorf("pipe opened %t: %v, stderr %q", opened, cmd.ProcessState, text)
				}
				if after := listFiles(t, "."); !slices.Equal(after, before) {
					t.Errorf("files %v, before %v", after, before)
				}
			}
		})
	}
}

// A graph or a model cannot come from a pipe, which is said before it would be waited for.
func TestNoPipe(t *testing.T) {
	shortRun(t)
	makePipe(t, "pipe")
	for _, args := range [][]string{
		{"train", "--quiet", "--set", "data.path=points.csv", "--set", "data.label_column=kind", "--set", "graph.file=pipe", "-o", "other"},
		{"project", "--model", "pipe", "points.csv", "-o", "other.npy"},
	} {
		code, _, stderr := runCne(t.Context(), args...)
		if code != exitFailure || !strings.Contains(stderr, "pipe: not a regular file; ") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stderr %q", args[0], code, stderr)
		}
	}
}
