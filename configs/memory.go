package configs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"

	"cne"
	"cne/data"
	"cne/internal/memory"
	"cne/model"
	"cne/simclr"
)

// MemoryOptions say what an estimate of memory needs beside a configuration.
type MemoryOptions struct {
	// Device is where the run is computed; nil is the CPU.
	Device *model.Device
	// Embeddings is the number of embeddings that are made: of tables, as many are trained
	// at a time on the CPU as there are cores. 0 means 1.
	Embeddings int
	// Edges is the number of edges of the graph, where it is known.
	Edges int
	// Finished is what is to be done with a network of images that is trained no more; nil
	// is a pretraining.
	Finished *Finished
}

// A Finished network of images represents them at a size in pixels, for the use that is
// not 0 in Use: of so many images, which are in memory.
type Finished struct {
	Network   model.ResNetOptions
	WholeSize int
	Use       simclr.Workload
}

// ofOne returns the same of a single image.
func (f *Finished) ofOne() *Finished {
	one := *f
	u := &one.Use
	u.Evaluated, u.Placed, u.Represented = min(1, u.Evaluated), min(1, u.Placed), min(1, u.Represented)
	return &one
}

// remedy says what helps where there is too little memory for most, which is neither the
// network nor depends on the size at which it sees images. One image may fit, or take too
// much as well.
func (f *Finished) remedy(most *memory.Part, oneFits bool) string {
	what := fmt.Sprintf("(%s: %s)", most.What, memory.Format(most.Bytes))
	switch {
	case oneFits:
		return fmt.Sprintf("give fewer images %s, or more memory", what)
	case f.Use.Pixels > 0:
		return fmt.Sprintf("make the images smaller by data.size %s, or give more memory", what)
	}
	return fmt.Sprintf("give more memory %s", what)
}

// memoryKeys are the keys of the options that an estimate names.
var memoryKeys = map[string]string{
	"Components": "graph.pca", "Neighbors": "graph.k", "Dim": "model.dim", "Hidden": "model.hidden",
	"BatchSize": "train.batch_size", "Negatives": "loss.negatives", "Quality.Sample": "quality.spearman", "Quality.K": "quality.k",
	"Network.Width": "network.width", "Network.Hidden": "network.hidden", "Network.Out": "network.out", "Augmentation.Size": "views.size",
	"Augmentation.WholeSize": "views.whole_size",
}

// Memory estimates what a run on data of a size takes: where only bounds of it are known,
// on the likely number. The parts name keys in place of options.
func (s *Schema[C]) Memory(c *C, size data.Size, o MemoryOptions) (cne.Memory, error) {
	e, err := s.memory(c, size, o)
	for i := range e.Parts {
		e.Parts[i].Option = memoryKeys[e.Parts[i].Option]
	}
	return e, err
}

// CheckMemory refuses a run that takes more memory than there is, as far as the size of
// its data is known: even the smallest that they can have. Faults are of the type
// *Error.
func (s *Schema[C]) CheckMemory(c *C, size data.Size, o MemoryOptions, origins Origins) error {
	available, known := memory.Available()
	if !known {
		return nil
	}
	memory.Bound() // garbage takes what is left, and no more
	size.Likely = size.Low
	e, err := s.Memory(c, size, o)
	if err != nil {
		return err
	}
	if e.Thrifty {
		memory.Thrift()
	}
	if float64(e.Live) <= usable*float64(available.Bytes) {
		return nil
	}
	points := ""
	if size.Low > AnySize.Low { // the number is known, and may be what is wrong
		points = fmt.Sprintf(", with %d rows of data", size.Low)
	}
	problem := fmt.Sprintf("the run takes at least %s of memory (while %s%s), but %s leaves %s", memory.Format(e.Live), e.During, points, available.Source, memory.Format(available.Bytes))
	fewer := ""
	if n := s.fitting(c, size, o, usable*float64(available.Bytes)); n > 0 {
		fewer = fmt.Sprintf(", give at most some %d rows of data", n)
	}
	largest := e.Largest()
	if o.Finished != nil && e.Parts[0].Option == "" {
		one := o
		one.Finished = o.Finished.ofOne()
		least, err := s.memory(c, size, one)
		fits := err == nil && float64(least.Live) <= usable*float64(available.Bytes)
		return &Error{Problem: problem + "; " + o.Finished.remedy(&e.Parts[0], fits)}
	}
	if largest == nil {
		return &Error{Problem: problem + cmp.Or(strings.Replace(fewer, ",", ";", 1), "; give fewer points") + ", or more memory"}
	}
	return &Error{
		Source: origins[largest.Option],
		Problem: fmt.Sprintf("%s; lower %s (%s: %s)%s, or give more memory",
			problem, largest.Option, largest.What, memory.Format(largest.Bytes), fewer),
	}
}

// fewestFitting is the number of points below which a run is no smaller one of the same
// kind.
const fewestFitting = 1000

// fitting returns how many points, of a size that is known and too large, a run could
// have within so many bytes, rounded down to two digits; 0 if they are too few to name.
func (s *Schema[C]) fitting(c *C, size data.Size, o MemoryOptions, bytes float64) int {
	if !size.Known() {
		return 0
	}
	o.Edges = 0
	low, high := 0, size.Low // low fits, high does not
	for high-low > 1+low/1000 {
		middle := low + (high-low)/2
		part := data.SizeOf(middle, size.Width)
		part.Storage, part.Joined = size.Storage, size.Joined
		part.Nonzeros = int(float64(size.Nonzeros) * float64(middle) / float64(size.Low))
		if e, err := s.memory(c, part, o); err == nil && float64(e.Live) <= bytes {
			low = middle
		} else {
			high = middle
		}
	}
	if low < fewestFitting {
		return 0
	}
	unit := int(math.Pow10(int(math.Log10(float64(low))) - 1))
	return low / unit * unit
}

// CheckMeasuring says why embeddings of data of a size cannot be measured, for want of
// memory.
func (c *Config) CheckMeasuring(on *model.Device, size data.Size) error {
	measured := *c
	measured.Model.Kind, measured.Graph.Cache = "table", Cache{} // no network is trained
	return Train.CheckMemory(&measured, size, MemoryOptions{Device: on}, nil)
}

// CheckFinished says why a network of images that is trained no more cannot do what it is
// to do with them, for want of memory.
func (c *SimCLR) CheckFinished(on *model.Device, f *Finished) error {
	return Pretrain.CheckMemory(c, AnySize, MemoryOptions{Device: on, Finished: f}, nil)
}

// Report looks for what a run would be refused for, as far as it is known before the data
// are read, and says in a sentence what memory it takes.
func (s *Schema[C]) Report(ctx context.Context, c *C, origins Origins) (string, error) {
	if err := s.CheckColumns(ctx, c, false); err != nil {
		return "", err
	}
	size := s.DataSize(ctx, c)
	if err := s.CheckSize(c, size, origins); err != nil {
		return "", err
	}
	if err := s.CheckMemory(c, size, MemoryOptions{}, origins); err != nil {
		return "", err
	}
	e, err := s.Memory(c, size, MemoryOptions{})
	if err != nil {
		return "", err
	}
	return "memory: " + describeMemory(e, size), nil
}

// usable is the share of the memory that a run may fill: estimates leave small things
// out.
const usable = 0.95

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
		fmt.Fprintf(&b, "; most of it, %s, is %s", memory.Format(p.Bytes), p.What)
		if p.Option != "" {
			fmt.Fprintf(&b, " (%s)", p.Option)
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
func (c *Config) memory(size data.Size, more MemoryOptions) (cne.Memory, error) {
	o := c.Options()
	o.Device = more.Device
	n := max(2, size.Likely)
	q := c.Quality.Options()
	together := 1
	if c.Model.Kind == "table" && more.Device.OnHost() {
		together = min(more.Embeddings, runtime.GOMAXPROCS(0))
	}
	left := c.left(n)
	if c.Data.TrainOn != nil { // the others are placed block by block
		if n = left; size.Storage == data.InFiles {
			size.Storage = data.AsBytes // which they are at best
		}
	}
	return o.Memory(cne.Workload{
		Points: left, Held: n - left, Width: max(1, size.Width), Storage: size.Storage, Nonzeros: size.Nonzeros, Joined: size.Joined,
		Names: c.Data.Names != nil, Columns: len(c.Output.HTMLColor), Thrifty: true, Edges: more.Edges, Quality: &q,
		Cached: c.Graph.Cache.Keep, Checkpoints: true, Embeddings: together,
	})
}

// memory implements Schema.memory.
func (c *SimCLR) memory(size data.Size, more MemoryOptions) (cne.Memory, error) {
	p := c.Pretraining()
	p.Device = more.Device
	if f := more.Finished; f != nil {
		p.Network, p.Augmentation.WholeSize = f.Network, f.WholeSize
		return p.Finished(f.Use)
	}
	w := simclr.Workload{Images: max(size.Likely, c.Train.BatchSize), Bytes: max(3, size.Width), Checkpoints: true}
	if c.Monitor.Every > 0 {
		w.Monitored = min(w.Images, c.Monitor.Test+c.Monitor.Train)
	}
	if c.Evaluate.AtEnd {
		w.Evaluated = w.Images
	}
	if c.Embeds() {
		w.Placed = w.Images
	}
	return p.Memory(w)
}
