package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"cne/internal/plot"
	"cne/internal/rundir"
)

// drawMetrics draws the curves of one or more runs. It fills in the path of the
// picture.
func (p *plotting) drawMetrics(ctx context.Context) error {
	runs := make([]runRecords, len(p.inputs))
	for i, input := range p.inputs {
		var err error
		if runs[i], err = readRun(input); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	nameRuns(runs, p.inputs)
	if p.output == "" {
		p.output = filepath.Join(filepath.Dir(runs[0].path), "curves.png")
	}
	for i := range runs {
		if err := differ(runs[i].path, p.output); err != nil {
			return err
		}
	}
	c := curvesOf(runs)
	c.Title = p.plot.Title
	c.Width, c.Height = p.plot.WidthCM/centimetres, p.plot.HeightCM/centimetres
	return c.Save(p.output)
}

// runRecords are the curves of a run, one value for each record; NaN where
// there is none.
type runRecords struct {
	path  string // of metrics.jsonl
	name  string
	epoch []float64
	curve map[string][]float64 // by their names in metrics.jsonl
	// phases holds the epochs after which another phase began.
	phases []float64
}

// curveNames are the values that are drawn.
var curveNames = []string{"loss", "partition_function", "z", "kl", "accuracy"}

// readRun reads the records of a run folder, or of a file of records. The last
// line of a run that goes on may not be complete; it is left out.
func readRun(path string) (runRecords, error) {
	info, err := os.Stat(path)
	if err != nil {
		return runRecords{}, fmt.Errorf("the run cannot be read (%w); check the path", err)
	}
	r := runRecords{path: path, curve: map[string][]float64{}}
	if info.IsDir() {
		r.path = filepath.Join(path, rundir.RecordsFile)
	}
	text, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("the folder %s holds no %s; name the folder of a run", path, rundir.RecordsFile)
	}
	if err != nil {
		return r, fmt.Errorf("the records of the run cannot be read: %w", err)
	}
	line, phase := 0, 0
	for record := range bytes.Lines(text) {
		line++
		if !bytes.HasSuffix(record, []byte("\n")) {
			break
		}
		var v map[string]float64
		if err := json.Unmarshal(record, &v); err != nil || v["epoch"] < 1 {
			return r, fmt.Errorf("%s: line %d (counted from 1) is no record of an epoch; give the %s of a run", r.path, line, rundir.RecordsFile)
		}
		if now := int(v["phase"]); now != phase && len(r.epoch) > 0 {
			r.phases = append(r.phases, r.epoch[len(r.epoch)-1])
			phase = now
		}
		r.epoch = append(r.epoch, v["epoch"])
		for _, name := range curveNames {
			value, ok := v[name]
			if !ok {
				value = math.NaN()
			}
			r.curve[name] = append(r.curve[name], value)
		}
	}
	if len(r.epoch) == 0 {
		return r, fmt.Errorf("%s holds no record of an epoch yet", r.path)
	}
	return r, nil
}

// nameRuns names each run by the end of its path, or by all of it if that would
// give two the same name. A single run needs none.
func nameRuns(runs []runRecords, inputs []string) {
	if len(runs) == 1 {
		return
	}
	short := make([]string, len(runs))
	for i, input := range inputs {
		if at, err := filepath.Abs(input); err == nil {
			input = at
		}
		short[i] = filepath.Base(input)
	}
	for i := range runs {
		runs[i].name = short[i]
		if slices.Contains(short[:i], short[i]) || slices.Contains(short[i+1:], short[i]) {
			runs[i].name = filepath.Clean(inputs[i])
		}
	}
}

// curvesOf puts the curves of one kind into one panel. The learnt Z of NC-t-SNE
// stands beside the partition function, which it estimates.
func curvesOf(runs []runRecords) *plot.Curves {
	type part struct {
		name   string
		dashed bool
	}
	has := func(name string) bool {
		return slices.ContainsFunc(runs, func(r runRecords) bool { return r.has(name) })
	}
	partition := "Partition function"
	if has("z") {
		partition += " (dashed: learnt Z)"
	}
	if !has("partition_function") {
		partition = "Learnt Z"
	}
	c := &plot.Curves{}
	for _, panel := range []struct {
		title, unit string
		parts       []part
		log         float64 // ratio of the largest to the smallest value from which on the axis is logarithmic
	}{
		{"Loss", "per edge", []part{{"loss", false}}, 20},
		{partition, "", []part{{"partition_function", false}, {"z", has("partition_function")}}, 5},
		{"KL divergence", "nats", []part{{"kl", false}}, math.Inf(1)},
		{"Accuracy", "", []part{{"accuracy", false}}, math.Inf(1)},
	} {
		p := plot.Panel{Title: panel.title, XLabel: "epoch", YLabel: panel.unit}
		low, high := math.Inf(1), math.Inf(-1)
		for _, r := range runs {
			for _, part := range panel.parts {
				if !r.has(part.name) {
					continue
				}
				s := plot.Series{Name: r.name, Dashed: part.dashed}
				for i, y := range r.curve[part.name] {
					if !math.IsNaN(y) { // a line joins what was measured
						s.X, s.Y = append(s.X, r.epoch[i]), append(s.Y, y)
						low, high = min(low, y), max(high, y)
					}
				}
				p.Series = append(p.Series, s)
			}
		}
		if len(p.Series) == 0 {
			continue
		}
		p.LogY = low > 0 && high/low >= panel.log
		if len(runs) == 1 {
			p.Marks = phaseMarks(runs[0].phases)
		}
		c.Panels = append(c.Panels, p)
	}
	return c
}

func (r *runRecords) has(curve string) bool {
	return slices.ContainsFunc(r.curve[curve], func(v float64) bool { return !math.IsNaN(v) })
}

// phaseMarks marks where a phase begins, with names if there is room for them.
func phaseMarks(ends []float64) []plot.Mark {
	const most = 3
	var marks []plot.Mark
	for i, at := range ends {
		m := plot.Mark{X: at}
		if len(ends) <= most {
			m.Name = fmt.Sprintf("phase %d", i+2)
		}
		marks = append(marks, m)
	}
	return marks
}
