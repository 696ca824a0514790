package file

import (
	"context"
	"io"
	"math"
	"os"

	"cne/data"
)

const (
	// sampledValues is how many values of a table are read to estimate how many it has.
	sampledValues = 1 << 17
	// sampleMargin is the factor by which the rest of a table may have more or fewer
	// rows than the sample lets expect.
	sampleMargin = 1.5
)

// Size returns what the heads of files tell of the points that Read would read from them:
// those of arrays all, and the first rows of a table that is not compressed how many there
// will be. It reads no further, and takes nothing from pipes, of which, as of counts and of
// what Read would refuse, nothing is known.
func Size(ctx context.Context, paths []string, o Options) data.Size {
	list, err := find(paths, &o)
	if err != nil {
		return data.UnknownSize
	}
	var all data.Size
	var heads []*head
	for _, from := range list {
		size, h := sizeOf(ctx, from, &o)
		all, heads = all.Add(size), append(heads, h)
	}
	if all.Known() && list.again() {
		all.Storage = o.leaves(all.Low, all.Width, storageOf(heads))
	}
	return all
}

// sizeOf is Size for one file, and returns what is known of it.
func sizeOf(ctx context.Context, from source, o *Options) (data.Size, *head) {
	if info, err := os.Stat(from.path); err != nil || !info.Mode().IsRegular() {
		return data.UnknownSize, nil
	}
	f, err := from.open(ctx, o)
	if err != nil {
		return data.UnknownSize, nil
	}
	defer f.close()
	h := f.about()
	switch {
	case h.counts:
		return data.UnknownSize, h
	case h.open:
		return estimate(f), h
	}
	size := data.SizeOf(h.n, h.width)
	size.Nonzeros = h.nonzeros
	return size, h
}

// estimate estimates the size of points whose number is not known from the first of them.
func estimate(r reader) data.Size {
	h := r.about()
	in, d := h.in, h.width
	before := in.raw.n - int64(in.r.Buffered())
	buffer := make([]float32, max(d, sampledValues/d*d))
	got, err := r.read(buffer)
	rows := got / d
	if err == io.EOF {
		return data.SizeOf(rows, d)
	}
	taken := in.raw.n - int64(in.r.Buffered()) - before
	if err != nil || in.packed || in.size <= 0 || rows < 1 || taken < 1 {
		return data.Size{Low: max(1, rows), High: math.MaxInt32, Likely: max(1, rows), Width: d}
	}
	likely := float64(rows) * float64(in.size-before) / float64(taken)
	return data.Size{
		Low: max(rows, int(likely/sampleMargin)), High: int(min(math.MaxInt32, likely*sampleMargin+1)),
		Likely: int(min(math.MaxInt32, likely)), Width: d,
	}
}
