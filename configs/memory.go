package configs

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sort"
	"strings"

	"cne"
	"cne/data"
	"cne/internal/memory"
	"cne/model"
)

// MemoryOptions say what an estimate of memory needs beside a configuration.
type MemoryOptions struct {
	// Device is where the run is computed; nil is the CPU.
	Device *model.Device
	// Embeddings is the number of embeddings that are made: of tables, as many are trained
	// at a time on the CPU as there are cores. 0 means 1.
	Embeddings int
}

// usable is the share of the memory that a run may fill: estimates leave small things
// out.
const usable = 0.95

// CheckMemory refuses a run that takes more memory than there is, as far as the size of
// its data is known: even the smallest that they can have. Errors are of the type *Error.
func (s *Schema[C]) CheckMemory(c *C, size data.Size, o MemoryOptions, origins Origins) error {
	known := 0
	if size.Known() {
		known = size.Low
	}
	return checkMemory(func(n int) cne.Memory {
		part := size
		part.Likely = n
		part.Nonzeros = int(float64(size.Nonzeros) * float64(n) / float64(size.Low))
		return s.memory(c, part, o)
	}, size.Low, known, "rows of data", origins)
}

// CheckMeasuring says why embeddings of data of a size cannot be measured, for want of
// memory.
func (c *Config) CheckMeasuring(on *model.Device, size data.Size) error {
	measured := *c
	measured.Model.Kind, measured.Graph.Cache = "table", Cache{} // no network is trained
	return Train.CheckMemory(&measured, size, MemoryOptions{Device: on}, nil)
}

// CheckImages says why a network that is trained no more cannot work with images that are
// in memory, for want of more.
func CheckImages(use memory.Images) error {
	n := max(use.Evaluated, use.Represented, use.Placed)
	return checkMemory(func(n int) cne.Memory {
		part := use
		part.Evaluated, part.Represented, part.Placed = min(n, use.Evaluated), min(n, use.Represented), min(n, use.Placed)
		return part.Estimate()
	}, n, n, "images", nil)
}

// checkMemory refuses what takes more memory than there is, by an estimate for n rows,
// which is 0 in known if their number may be another.
func checkMemory(of func(n int) cne.Memory, n, known int, rows string, origins Origins) error {
	e := of(n)
	memory.Economize(e.Live)
	available, ok := memory.Available()
	room := int64(usable * float64(available.Bytes))
	if !ok || e.Live <= room {
		return nil
	}
	problem := fmt.Sprintf("the run takes at least %s of memory (while %s", memory.Format(e.Live), e.During)
	if known > 0 {
		problem += fmt.Sprintf(", with %d %s", known, rows)
	}
	problem += fmt.Sprintf("), but %s leaves %s; ", available.Source, memory.Format(available.Bytes))
	source := ""
	var remedies []string
	for _, p := range e.Parts { // the largest comes first
		if p.Key != "" && p.Bytes >= float64(e.Live)/10 {
			source = origins[p.Key]
			remedies = append(remedies, fmt.Sprintf("lower %s (%s: %s)", p.Key, p.What, memory.Format(int64(p.Bytes))))
			break
		}
	}
	// Fewer than a thousand are no smaller run of the same kind.
	if fits := sort.Search(known, func(n int) bool { return of(n).Live > room }) - 1; fits >= 1000 {
		unit := int(math.Pow10(int(math.Log10(float64(fits))) - 1))
		remedies = append(remedies, fmt.Sprintf("give at most some %d %s", fits/unit*unit, rows))
	} else if len(remedies) == 0 {
		remedies = append(remedies, "give fewer "+rows)
	}
	return &Error{Source: source, Problem: problem + strings.Join(remedies, ", ") + ", or give more memory"}
}

// Report looks for what a run would be refused for, as far as it is known before the data
// are read, and says in a sentence what memory it takes.
func (s *Schema[C]) Report(ctx context.Context, c *C, origins Origins) (string, error) {
	size := s.DataSize(ctx, c)
	err := s.CheckColumns(ctx, c, false)
	if err == nil {
		err = s.CheckSize(c, size, origins)
	}
	if err == nil {
		err = s.CheckMemory(c, size, MemoryOptions{}, origins)
	}
	if err != nil {
		return "", err
	}
	return "memory: " + describeMemory(s.memory(c, size, MemoryOptions{}), size), nil
}

// describeMemory says in a sentence what an estimate is.
func describeMemory(e cne.Memory, size data.Size) string {
	var b strings.Builder
	switch {
	case size.Known():
		fmt.Fprintf(&b, "about %s", memory.Format(e.Peak))
	case size.High < math.MaxInt32:
		fmt.Fprintf(&b, "about %s for some %d points", memory.Format(e.Peak), size.Likely)
	default:
		fmt.Fprintf(&b, "at least %s; how many points there are is known once they are read", memory.Format(e.Live))
	}
	if len(e.Parts) > 0 && size.High < math.MaxInt32 {
		p := e.Parts[0]
		fmt.Fprintf(&b, "; most of it, %s, is %s", memory.Format(int64(p.Bytes)), p.What)
		if p.Key != "" {
			fmt.Fprintf(&b, " (%s)", p.Key)
		}
	}
	if available, ok := memory.Available(); ok {
		fmt.Fprintf(&b, "; %s leaves %s", available.Source, memory.Format(available.Bytes))
	}
	return b.String()
}

// dataSize returns what is known of the points of data.path.
func (c *Config) dataSize(ctx context.Context) data.Size {
	d := &c.Data
	if name, ok := strings.CutPrefix(d.Path[0], BuiltinPrefix); ok && len(d.Path) == 1 {
		size, err := data.BuiltinSize(name)
		if err != nil {
			return AnySize
		}
		return d.TrainOn.listed(ctx, size)
	}
	return d.TrainOn.listed(ctx, data.PointsSize(ctx, d.Path, c.ReadOptions(d)))
}

// listed returns the size of the points whose rows a file lists, of points of a size, or
// that of all if there is no such file.
func (t *TrainOn) listed(ctx context.Context, size data.Size) data.Size {
	if t == nil || t.File == "" {
		return size
	}
	lines, heading, err := data.OpenLines(ctx, t.File)
	n := len(lines)
	if heading {
		n--
	}
	if err != nil || n < 1 || n > size.High { // which reading says best
		size.Low, size.Likely = min(2, size.Low), min(2, size.Low)
		return size
	}
	size.Low, size.High, size.Likely = n, n, n
	return size
}

// memory implements Schema.memory.
func (c *Config) memory(size data.Size, more MemoryOptions) cne.Memory {
	o := c.Options()
	o.Device = more.Device
	n := max(2, size.Likely)
	size.Likely = c.left(n)
	held := n - size.Likely
	if c.Data.TrainOn != nil { // the others are placed block by block
		if held = 0; size.Storage == data.InFiles {
			size.Storage = data.AsBytes // which they are at best
		}
	}
	w := o.Workload(size)
	w.Held, w.Columns, w.Spearman = held, len(c.Output.HTMLColor), c.Quality.Spearman
	if c.Data.Names != nil {
		w.Columns++
	}
	if c.Quality.Recall {
		w.Neighbors = max(w.Neighbors, c.Quality.K)
	}
	if c.Model.Kind == "table" {
		w.Embeddings = min(more.Embeddings, runtime.GOMAXPROCS(0))
	}
	return w.Estimate()
}

// memory implements Schema.memory.
func (c *SimCLR) memory(size data.Size, more MemoryOptions) cne.Memory {
	t := &c.Train
	w := memory.Images{
		N: max(size.Likely, t.BatchSize), Bytes: max(3, size.Width), Batch: t.BatchSize, Size: c.Views.Size, Listed: c.Loss.Sampling.Listed(int(c.Loss.Negatives), t.BatchSize),
		Width: c.Network.Width, Hidden: c.Network.Hidden, Out: c.Network.Out, Begun: c.Model.From != nil || len(c.Stages) > 1, Device: !more.Device.OnHost(), Whole: c.Views.WholeSize,
	}
	for _, s := range c.stages() {
		w.Out = max(w.Out, s.Out)
	}
	if c.Monitor.Every > 0 {
		w.Monitored = min(w.N, c.Monitor.Test+c.Monitor.Train)
	}
	if c.Evaluate.AtEnd {
		w.Evaluated = w.N
	}
	if c.Embeds() {
		w.Placed = w.N
	}
	return w.Estimate()
}
