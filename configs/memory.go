package configs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"cne"
	"cne/data"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/model"
)

// CheckMemory returns an *Error if the run takes more memory than is available, even for
// the smallest possible size of its data.
func (s *Schema[C]) CheckMemory(c *C, size data.Size, on *model.Device, origins Origins) error {
	return checkMemory(func(n int) cne.Memory {
		part := size
		part.Likely, part.Nonzeros = n, int(float64(size.Nonzeros)*float64(n)/float64(size.Low))
		return of(c).memory(part, on, s.embeddings)
	}, size.Low, size.Known(), origins)
}

// CheckMeasuring returns an *Error if memory does not suffice to measure embeddings of
// data of a size.
func (c *Config) CheckMeasuring(on *model.Device, size data.Size) error {
	measured := *c
	measured.Model.Kind = "table" // no network is trained
	return Train.CheckMemory(&measured, size, on, nil)
}

// CheckImages returns an *Error if memory does not suffice for a finished network to work
// with images that are in memory.
func CheckImages(use memory.Images) error {
	return checkMemory(func(int) cne.Memory { return use.Estimate() }, 0, false, nil)
}

// checkMemory returns an *Error if n rows take more memory than is available, by an
// estimate. known reports whether there are exactly n rows.
func checkMemory(of func(n int) cne.Memory, n int, known bool, origins Origins) error {
	e := of(n)
	memory.LimitGarbage(e.Live)
	available, ok := memory.Available()
	usable := int64(0.95 * float64(available.Bytes)) // estimates leave small things out
	if !ok || e.Live <= usable {
		return nil
	}
	rows, source := "", ""
	var remedies []string
	const small = 64e6 // every run needs this much
	large := func(p memory.Part) bool { return p.Key != "" && p.Bytes >= max(small, float64(e.Live)/10) }
	if i := slices.IndexFunc(e.Parts, large); i >= 0 {
		p := e.Parts[i] // the largest
		source, remedies = origins[p.Key], []string{fmt.Sprintf("lower %s (%s: %s)", p.Key, p.What, memory.Bytes(int64(p.Bytes)))}
	}
	if known {
		rows = fmt.Sprintf(", with %d rows of data", n)
		if fits := sort.Search(n, func(n int) bool { return of(n).Live > usable }) - 1; fits >= 1000 { // fewer are another kind of run
			unit := int(math.Pow10(int(math.Log10(float64(fits))) - 1))
			remedies = append(remedies, fmt.Sprintf("give at most some %d rows of data", fits/unit*unit))
		}
	}
	advice := "give more memory"
	if e.Live >= small {
		advice = cmp.Or(strings.Join(remedies, ", "), "give fewer data") + ", or " + advice
	}
	return &Error{Source: source, Problem: fmt.Sprintf("the run takes at least %s of memory (while %s%s), but %s leaves %s; %s",
		memory.Bytes(e.Live), e.During, rows,
		available.Source, memory.Bytes(available.Bytes), advice)}
}

// Report returns the errors of a run that can be found before the data are read, and a
// sentence on its memory.
func (s *Schema[C]) Report(ctx context.Context, c *C, origins Origins) (_ string, err error) {
	defer kind.Catch(&err)
	size := s.DataSize(ctx, c)
	kind.Check(checkFiles("data.path", s.Common(c).Path))
	kind.Check(s.CheckColumns(ctx, c, false))
	kind.Check(s.CheckSize(c, size, origins))
	kind.Check(s.CheckMemory(c, size, nil, origins)) // an estimate is of options that are valid
	e := of(c).memory(size, nil, s.embeddings)
	report := "about " + memory.Bytes(e.Peak)
	if !size.Known() {
		report += fmt.Sprintf(" for some %d points", size.Likely)
	}
	if most := &e.Parts[0]; most.Bytes >= float64(e.Peak)/10 { // otherwise most of it is the program's own
		report += fmt.Sprintf("; the largest part, %s, is %s", memory.Bytes(int64(most.Bytes)), most.What)
		if most.Key != "" {
			report += " (" + most.Key + ")"
		}
	}
	if size.High == math.MaxInt32 {
		report = fmt.Sprintf("at least %s; how many points there are is known once they are read", memory.Bytes(e.Peak))
	}
	if available, ok := memory.Available(); ok {
		report += fmt.Sprintf("; %s leaves %s", available.Source, memory.Bytes(available.Bytes))
	}
	return "memory: " + report, nil
}

// memory implements configuration, for a number of embeddings at a time.
func (c *Config) memory(size data.Size, on *model.Device, embeddings int) cne.Memory {
	o := c.Options()
	o.Device = on
	var held int
	size.Likely, held = c.Data.Divide(max(2, size.Likely))
	if c.Data.Sampled() { // the others are placed block by block
		size.Storage = min(size.Storage, data.AsBytes) // at best
	}
	w := o.Workload(size)
	w.Held, w.Columns, w.Spearman, w.Embeddings = held, len(c.Output.HTMLColumns), *c.Quality.SpearmanSample, embeddings
	if c.Data.Names != "" {
		w.Columns++
	}
	if c.Output.AutoLabels {
		w.Columns += 2 // the numbers of the words
	}
	if c.Quality.Recall {
		w.Neighbors = max(w.Neighbors, c.Quality.K)
	}
	return w.Estimate()
}

// memory implements Schema.memory.
func (c *SimCLR) memory(size data.Size, on *model.Device, _ int) cne.Memory {
	p := &c.Pretrain
	w := memory.Images{
		N: max(size.Likely, p.BatchSize), Bytes: max(3, size.Width), Batch: p.BatchSize * p.Views / 2, Size: p.Augmentation.Size,
		Whole: p.Augmentation.WholeSize, Device: !on.OnHost(),
		Listed: p.Sampling.Listed(p.Negatives, p.BatchSize), Width: p.Network.Width, Hidden: p.Network.Hidden, Out: p.Network.Out,
	}
	if p.Network.Small { // a ResNet18 of half the width has as wide representations
		w.Width = (w.Width + 1) / 2
	}
	for _, s := range p.Stages {
		w.Out, w.Size = max(w.Out, s.Out), max(w.Size, s.Size)
	}
	if c.Monitor.Every > 0 {
		w.Monitored = min(w.N, MonitorTest+max(MonitorTrain, c.Evaluate.K))
	}
	if c.Evaluate.AtEnd {
		w.Evaluated = w.N
	}
	if c.Embeds() {
		w.Placed = w.N
	}
	return w.Estimate()
}
