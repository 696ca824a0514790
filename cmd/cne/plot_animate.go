package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"cne/data"
	"cne/internal/explorer"
	"cne/internal/plot"
	"cne/internal/rundir"
)

// drawAnimation makes a film of the snapshots of a run, or a page to move
// through them. It fills in the path of the picture.
func (p *plotting) drawAnimation(ctx context.Context) error {
	page := p.isHTML()
	if p.output == "" {
		p.output = filepath.Join(p.input, "animation.gif")
		if page {
			p.output = filepath.Join(p.input, "animation.html")
		}
	}
	list, labels, err := p.snapshots(ctx, page)
	if err != nil {
		return err
	}
	common := scatterOf(list[len(list)-1].embedding, labels, p.plot)
	if page {
		return p.filmPage(list, common)
	}
	a := plot.Animation{Scatter: *common, FramesPerSecond: p.fps, Follow: p.follow}
	for _, s := range list {
		a.Frames = append(a.Frames, plot.Frame{Embedding: s.embedding, Caption: s.caption()})
	}
	return a.Save(p.output)
}

// filmPage writes a page with a slider over the snapshots, which have the title
// and the colours of a picture. What was recorded of their epochs stands beside
// them.
func (p *plotting) filmPage(list []snapshot, colours *plot.Scatter) error {
	embeddings := make([]*data.Matrix, len(list))
	for i := range list {
		embeddings[i] = list[i].embedding
	}
	flat, note, err := plot.OnePlane(embeddings)
	if err != nil {
		return err
	}
	records, err := readRun(p.input)
	if err != nil {
		records = runRecords{} // a page without them is as good
	}
	page := explorer.Page{
		Title: p.plot.Title, Slider: "epoch", Classes: colours.Classes, ClassNames: colours.ClassNames, Values: colours.Values,
	}
	for i := range list {
		facts := records.facts(list[i].epoch)
		if note != "" {
			facts = append(facts, explorer.Fact{Name: "shown", Value: note})
		}
		page.Views = append(page.Views, explorer.View{Name: list[i].caption(), Embedding: flat[i], Facts: facts})
	}
	return page.Save(p.output)
}

// facts returns what was recorded of an epoch.
func (r *runRecords) facts(epoch int) []explorer.Fact {
	i := slices.Index(r.epoch, float64(epoch))
	if i < 0 {
		return nil
	}
	var facts []explorer.Fact
	for _, f := range []struct{ curve, name, format string }{
		{"loss", "loss", "%.4f"},
		{"partition_function", "partition function", "%.3g"},
		{"z", "learnt Z", "%.3g"},
		{"kl", "KL divergence", "%.3f"},
	} {
		if v := r.curve[f.curve][i]; !math.IsNaN(v) {
			facts = append(facts, explorer.Fact{Name: f.name, Value: fmt.Sprintf(f.format, v)})
		}
	}
	return facts
}

// A snapshot is the embedding of a run after an epoch.
type snapshot struct {
	epoch     int
	embedding *data.Matrix
}

func (s *snapshot) caption() string { return fmt.Sprintf("epoch %d", s.epoch) }

// snapshots reads the snapshots of a run in the order of their epochs, with the
// embedding of a finished run as the last, and the labels of the points, which
// may be nil. A page gets no more than it loads quickly.
func (p *plotting) snapshots(ctx context.Context, page bool) (list []snapshot, labels *data.Labels, err error) {
	if info, err := os.Stat(p.input); err != nil {
		return nil, nil, fmt.Errorf("the run cannot be read (%w); check the path", err)
	} else if !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is a file; name the folder of a run, which holds the snapshots", p.input)
	}
	folder := filepath.Join(p.input, "snapshots")
	epochs, err := rundir.SnapshotEpochs(folder)
	if err != nil {
		return nil, nil, err
	}
	if len(epochs) == 0 {
		return nil, nil, fmt.Errorf("there are no snapshots in %s; train with output.snapshots", p.input)
	}
	most := mostFrames
	if page {
		info, err := os.Stat(filepath.Join(folder, rundir.SnapshotName(epochs[0])))
		if err != nil {
			return nil, nil, fmt.Errorf("the snapshots cannot be read: %w", err)
		}
		most = min(most, max(2, int(largestPage/(1+info.Size()))))
	}
	epochs = evenly(epochs, most)
	var file string
	for _, e := range epochs {
		file = filepath.Join(folder, rundir.SnapshotName(e))
		set, err := data.Open(context.Background(), []string{file}, data.Options{})
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
				filepath.Join(folder, rundir.SnapshotName(list[i].epoch)), m.N, m.D, file, end.Points.N, end.Points.D)
		}
	}
	return list, end.Labels, nil
}

// Bounds of the size of a film, of which so many frames are shown, and of a
// page, whose positions take so many bytes before they are written as text. Of
// more snapshots some are shown.
const (
	mostFrames  = 250
	largestPage = 15 << 20
)

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
	if m := readMetricsFile(filepath.Join(p.input, rundir.MetricsFile)); m != nil {
		return m.Epochs
	}
	return 0
}
