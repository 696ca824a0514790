package train_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"cne/internal/safetensors"
	"cne/train"
)

// FuzzResume changes the contents of checkpoints behind a right checksum:
// whatever they say, the run goes on from them or refuses them.
func FuzzResume(f *testing.F) {
	heads, tails := resumeEdges()
	r := resumables()["table, adam, learnt Z"]
	path := filepath.Join(f.TempDir(), "c")
	options := r.options()
	options.Checkpoints = &train.Checkpoints{Interval: 1, Save: func(c *train.Checkpoint) error { return c.WriteFile(path) }}
	ctx, cancel := context.WithCancel(context.Background())
	options.Hooks = []train.Hook{train.HookFunc(func(*train.State) error { cancel(); return nil })}
	if _, err := train.Fit(ctx, r.model(f), heads, tails, options); !errors.Is(err, context.Canceled) {
		f.Fatal(err)
	}
	text, err := os.ReadFile(path)
	must(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := safetensors.Read(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return // safetensors has a fuzz test of its own
		}
		if file.Metadata == nil {
			file.Metadata = map[string]string{}
		}
		file.Seal("checkpoint", 1)
		path := filepath.Join(t.TempDir(), "c")
		if err := file.WriteFile(path); err != nil {
			return
		}
		options := r.options()
		if options.Resume, err = train.ReadCheckpoint(path); err != nil {
			if !errors.Is(err, train.ErrCheckpoint) {
				t.Errorf("error %v is not ErrCheckpoint", err)
			}
			return
		}
		_, err = train.Fit(context.Background(), r.model(t), heads, tails, options)
		var diverged *train.DivergedError
		if err != nil && !errors.Is(err, train.ErrCheckpoint) && !errors.As(err, &diverged) {
			t.Error(err)
		}
	})
}
