package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/data"
	"cne/internal/plot"
)

// drawAnimation makes a film of the snapshots of a run. It fills in the path of
// the picture.
func (p *plotting) drawAnimation(ctx context.Context) error {
	frames, labels, err := p.snapshots(ctx)
	if err != nil {
		return err
	}
	if p.output == "" {
		p.output = filepath.Join(p.input, "animation.gif")
	}
	last := frames[len(frames)-1].embedding
	a := plot.Animation{Scatter: *scatterOf(last, labels, p.plot), FramesPerSecond: p.fps, Follow: p.follow}
	for _, f := range frames {
		a.Frames = append(a.Frames, plot.Frame{Embedding: f.embedding, Caption: f.caption()})
	}
	return a.Save(p.output)
}

// A snapshot is the embedding of a run after an epoch.
type snapshot struct {
	epoch     int
	embedding *data.Matrix
}

func (s *snapshot) caption() string { return fmt.Sprintf("epoch %d", s.epoch) }

// snapshots reads the snapshots of a run in the order of their epochs, with the
// embedding of a finished run as the last, and the labels of the points, which
// may be nil.
func (p *plotting) snapshots(ctx context.Context) (list []snapshot, labels *data.Labels, err error) {
	if info, err := os.Stat(p.input); err != nil {
		return nil, nil, fmt.Errorf("the run cannot be read (%w); check the path", err)
	} else if !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is a file; name the folder of a run, which holds the snapshots", p.input)
	}
	folder := filepath.Join(p.input, "snapshots")
	epochs, err := snapshotEpochs(folder)
	if err != nil {
		return nil, nil, err
	}
	if len(epochs) == 0 {
		return nil, nil, fmt.Errorf("there are no snapshots in %s; train with output.snapshots", p.input)
	}
	epochs = evenly(epochs, mostFrames)
	var file string
	for _, e := range epochs {
		file = filepath.Join(folder, snapshotName(e))
		set, err := data.Open([]string{file}, data.Options{})
		if err != nil {
			return nil, nil, err
		}
		list = append(list, snapshot{e, set.Points})
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
	}
	// Of a run that goes on or was killed there may be no embedding, or an old
	// one, but its labels are right.
	if end, err := embeddingFile(p.input); err == nil {
		file = end
	}
	end, err := openEmbedding(file, p.data)
	if err != nil {
		return nil, nil, err
	}
	if n := p.epochs(); n > epochs[len(epochs)-1] {
		list = append(list, snapshot{n, end.Points})
	}
	for i := range list {
		if m := list[i].embedding; m.N != end.Points.N || m.D != end.Points.D {
			return nil, nil, fmt.Errorf("%s has %d points of %d coordinates, but %s has %d of %d; remove the snapshots of another run",
				filepath.Join(folder, snapshotName(list[i].epoch)), m.N, m.D, file, end.Points.N, end.Points.D)
		}
	}
	return list, end.Labels, nil
}

// mostFrames bounds the size of a film: of more snapshots, so many are shown.
const mostFrames = 250

// evenly returns n of some numbers, evenly spread from the first to the last,
// or all if there are no more; n is at least 2.
func evenly(all []int, n int) []int {
	if len(all) <= n {
		return all
	}
	out := make([]int, n)
	for i := range out {
		out[i] = all[i*(len(all)-1)/(n-1)]
	}
	return out
}

// epochs returns the number of epochs of a finished run, and 0 for others.
func (p *plotting) epochs() int {
	var m Metrics
	text, err := os.ReadFile(filepath.Join(p.input, "metrics.json"))
	if err != nil || json.Unmarshal(text, &m) != nil {
		return 0
	}
	return m.Epochs
}

func snapshotName(epoch int) string { return fmt.Sprintf("epoch-%04d.npy", epoch) }

// snapshotEpochs returns the epochs of which there are snapshots in a folder.
func snapshotEpochs(folder string) ([]int, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the snapshots cannot be read: %w", err)
	}
	var epochs []int
	for _, e := range entries {
		number := strings.TrimSuffix(strings.TrimPrefix(e.Name(), "epoch-"), ".npy")
		if epoch, err := strconv.Atoi(number); err == nil && e.Name() == snapshotName(epoch) {
			epochs = append(epochs, epoch)
		}
	}
	slices.Sort(epochs)
	return epochs, nil
}
