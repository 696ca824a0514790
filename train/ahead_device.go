package train

import (
	"errors"
	"fmt"

	"cne/internal/device"
	"cne/internal/memory"
)

// A deviceWindow is a part of an epoch whose batches were prepared together: all of it,
// or as much as windowOf says.
type deviceWindow struct {
	epoch, first, count int // epoch is −1 while there are none
	order               *device.Memory
	// layout has the distinct points of batches from number from on. Batches before it
	// are trained without them.
	layout *deviceLayout
	from   int
	// counts, in the program's memory, are how many distinct points there are, once
	// somebody has asked.
	counts []int32

	on              *device.Stream // that prepared it
	ready, released *device.Event  // it is prepared; nothing asked for so far needs it any more
}

func (w *deviceWindow) holds(epoch, batch int) bool {
	return w.epoch == epoch && w.first <= batch && batch < w.first+w.count
}

// distinct returns the number of distinct points of a batch that is in the layout. The
// first call for a window waits for its preparation.
func (w *deviceWindow) distinct(batch int) (int, error) {
	if w.counts == nil {
		w.counts = make([]int32, w.layout.counts.Len())
		if err := device.DownloadFrom(w.on, w.counts, w.layout.counts.Pointer()); err != nil {
			return 0, err
		}
	}
	return int(w.counts[batch-w.from]), nil
}

// A devicePreparer prepares the windows of a run, one after the other: the order of an
// epoch's edges, and the distinct points of its batches. While the device trains on one,
// its side stream prepares the next, which takes another array for the order and another
// layout; where the device has no room for them, each is prepared when it is needed.
// Either way the batches are the same.
type devicePreparer struct {
	batcher   *deviceBatcher
	batches   int // of an epoch
	perWindow int // of a window
	epochs    int // after which nothing is prepared
	// layoutFrom returns from which batch on an epoch's distinct points are needed.
	layoutFrom func(epoch int) int

	orders   [2]*device.Memory // of the last epoch that was shuffled, and of the one before
	shuffled int               // that epoch; −1: none
	windows  [2]*deviceWindow
	current  int
	// ahead is whether there are two of all, and tried whether that was tried.
	ahead, tried bool
}

// windowOf returns how many batches of size edges a window has, of an epoch with so many.
func windowOf(batches, size int) int {
	return min(batches, windowBatches, max(1, chunkEdges/size))
}

func newDevicePreparer(f *deviceBatcher, batches, epochs int, layoutFrom func(epoch int) int) (p *devicePreparer, err error) {
	p = &devicePreparer{batcher: f, batches: batches, perWindow: windowOf(batches, f.size), epochs: epochs, layoutFrom: layoutFrom, shuffled: -1}
	if p.orders[0], err = f.newOrder(); err == nil {
		p.windows[0], err = p.newWindow()
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *devicePreparer) newWindow() (w *deviceWindow, err error) {
	w = &deviceWindow{epoch: -1}
	w.layout, err = newDeviceLayout(p.batcher.device)
	return w, err
}

// close waits until nothing is prepared any more, and frees the memory.
func (p *devicePreparer) close() error {
	var failed error
	if p.ahead {
		failed = p.batcher.device.Side().Synchronize()
	}
	free(p.orders[:]...)
	for _, w := range p.windows {
		if w == nil {
			continue
		}
		w.layout.free()
		for _, e := range []*device.Event{w.ready, w.released} {
			if e != nil {
				failed = errors.Join(failed, e.Close())
			}
		}
	}
	p.orders, p.windows, p.ahead = [2]*device.Memory{}, [2]*deviceWindow{}, false
	return failed
}

// at returns the window of a batch, to be trained on next: what is asked of the main
// stream from now on finds it prepared. The window before it is over.
func (p *devicePreparer) at(epoch, batch int) (*deviceWindow, error) {
	w := p.windows[p.current]
	if w.holds(epoch, batch) {
		return w, nil
	}
	main := p.batcher.device.Main()
	if p.ahead {
		if err := main.Record(w.released); err != nil {
			return nil, err
		}
		p.current = 1 - p.current
		w = p.windows[p.current]
	}
	if !w.holds(epoch, batch) {
		if err := p.prepare(w, epoch, batch/p.perWindow); err != nil {
			return nil, err
		}
	}
	if p.ahead {
		return w, main.Wait(w.ready)
	}
	return w, nil
}

// next has the window after the current one prepared meanwhile, if there is one and it is
// not yet. It is called when training on the current one was begun, so that the model has
// taken its memory before.
func (p *devicePreparer) next() error {
	w := p.windows[p.current]
	epoch, number := w.epoch, w.first/p.perWindow+1
	if w.first+w.count >= p.batches {
		epoch, number = epoch+1, 0
	}
	if epoch >= p.epochs {
		return nil
	}
	if !p.tried {
		p.tried = true
		if err := p.goAhead(); err != nil {
			return err
		}
	}
	if other := p.windows[1-p.current]; p.ahead && !other.holds(epoch, number*p.perWindow) {
		return p.prepare(other, epoch, number)
	}
	return nil
}

// goAhead allocates what windows need to be prepared ahead, unless they would take more
// than half of what is left.
func (p *devicePreparer) goAhead() error {
	d, w := p.batcher.device, p.windows[p.current]
	need := int64(p.orders[0].Bytes()) + 4*int64(w.layout.rows.Cap()+w.layout.local.Cap()+w.layout.counts.Cap())
	left, err := d.FreeMemory()
	if err != nil {
		return err
	}
	refuse := func() error {
		d.Say(fmt.Sprintf("the next epoch is not prepared while one is trained, since that would take %s, and %s are free", memory.Bytes(need), memory.Bytes(left)))
		return nil
	}
	if 2*need > left {
		return refuse()
	}
	other := &p.windows[1-p.current]
	if p.orders[1], err = p.batcher.newOrder(); err == nil {
		*other, err = p.newWindow()
	}
	if err == nil {
		err = (*other).layout.reserve(w.layout)
	}
	if err != nil {
		free(p.orders[1])
		p.orders[1] = nil
		if *other != nil {
			(*other).layout.free()
			*other = nil
		}
		if errors.As(err, new(*device.MemoryError)) {
			return refuse()
		}
		return err
	}
	p.ahead = true
	for _, w := range p.windows {
		for _, e := range []**device.Event{&w.ready, &w.released} {
			if *e, err = d.NewEvent(); err != nil {
				return err
			}
		}
	}
	// The first window, the batcher's memory, and what had the new memory before, are the
	// main stream's so far.
	return d.Main().Record((*other).released)
}

// prepare makes w a window: that number of an epoch. In another window's epoch it takes
// over that one's order.
func (p *devicePreparer) prepare(w *deviceWindow, epoch, number int) error {
	d, f := p.batcher.device, p.batcher
	w.epoch, w.first, w.counts = -1, number*p.perWindow, nil
	w.count = min(p.perWindow, p.batches-w.first)
	w.from = min(max(w.first, p.layoutFrom(epoch)), w.first+w.count)
	grown, err := w.layout.resize(w.first+w.count-w.from, f.size)
	if err != nil {
		return err
	}
	w.on = d.Main()
	if p.ahead {
		w.on = d.Side()
		if grown { // into memory that was the main stream's
			err = d.Main().Record(w.released)
		}
		if err = errors.Join(err, w.on.Wait(w.released)); err != nil {
			return err
		}
	}
	if p.shuffled != epoch {
		if p.ahead {
			p.orders[0], p.orders[1] = p.orders[1], p.orders[0]
		}
		p.shuffled = -1
		if err := f.begin(w.on, p.orders[0], epoch); err != nil {
			return err
		}
		p.shuffled = epoch
	}
	w.order = p.orders[0]
	if err := f.distinct(w.on, w.order, w.layout, w.from); err != nil {
		return err
	}
	w.epoch = epoch
	if p.ahead {
		return w.on.Record(w.ready)
	}
	return nil
}

// alone finds the distinct points of one batch of a window in a new layout, of which
// nothing else was asked.
func (p *devicePreparer) alone(w *deviceWindow, batch int) (*deviceWindow, error) {
	d, f := p.batcher.device, p.batcher
	if err := d.Synchronize(); err != nil { // the batcher's memory is the side stream's
		return nil, err
	}
	layout, err := newDeviceLayout(d)
	if err != nil {
		return nil, err
	}
	one := &deviceWindow{epoch: w.epoch, first: batch, count: 1, from: batch, order: w.order, layout: layout, on: d.Main()}
	if _, err = layout.resize(1, f.size); err == nil {
		err = f.distinct(one.on, one.order, layout, batch)
	}
	if err != nil {
		layout.free()
		return nil, err
	}
	return one, nil
}
