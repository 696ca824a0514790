package device

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// The kinds of error that devices return, to be told apart with errors.Is.
var (
	// ErrUnavailable: there is no such device here.
	ErrUnavailable = errors.New("no such device")
	// ErrLost: the device has failed. Nothing in its memory can be had any more.
	ErrLost = errors.New("the device failed")
	// ErrHost: the processor was asked for what accelerators alone have.
	ErrHost = errors.New("device: the CPU has no memory apart from the program's and runs no kernels by name")
)

// A MemoryError says that a device has too little memory.
type MemoryError struct {
	Device              string
	Needed, Free, Total int64 // bytes
	// For is what needed it, where Needed is 0: it has not said how much.
	For string
}

func (e *MemoryError) Error() string {
	if e.Needed == 0 {
		return fmt.Sprintf("%s has too little memory: %s needs more than the %s of %s that are free; take smaller batches, or another device",
			e.Device, e.For, Bytes(e.Free), Bytes(e.Total))
	}
	return fmt.Sprintf("%s has too little memory: %s were needed, and %s of %s are free; take smaller batches, or another device",
		e.Device, Bytes(e.Needed), Bytes(e.Free), Bytes(e.Total))
}

// Bytes prints a number of bytes for people.
func Bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// A Pointer is an address in the memory of a device.
type Pointer uint64

// At returns the address of the i-th of elements of so many bytes.
func (p Pointer) At(i, size int) Pointer { return p + Pointer(i*size) }

// An Arg is an argument of a kernel.
type Arg uint64

// Int makes an argument of an integer, for parameters of type int or long.
func Int(i int) Arg { return Arg(i) }

// Word makes an argument of 64 bits, for parameters of type unsigned long.
func Word(w uint64) Arg { return Arg(w) }

// F32 makes an argument of a number, for parameters of type number.
func F32(f float64) Arg { return Arg(math.Float32bits(float32(f))) }

// MaxArgs is the largest number of arguments of a kernel.
const MaxArgs = 24

// A Launch is a kernel, how often it runs, and on what.
type Launch struct {
	// Grid is the number of blocks, at least 1, and Block that of threads in
	// each, 1 … 1024.
	Grid, Block int
	// Shared is the number of bytes of the dynamic shared memory of a block.
	Shared int
}

// A Product is C = Alpha·op(A)·op(B) + Beta·C of float32 matrices that lie row
// after row: op(A) is [M, K], op(B) [K, N] and C [M, N], where op transposes if
// told so. The strides LDA, LDB and LDC are those from one row to the next of A, B
// and C as they lie in memory.
type Product struct {
	TransA, TransB bool
	M, N, K        int
	Alpha          float32
	A              Pointer
	LDA            int
	B              Pointer
	LDB            int
	Beta           float32
	C              Pointer
	LDC            int
	// Exact forbids TF32, whatever Device.TF32 says.
	Exact bool
}

// A Backend is one accelerator as a driver gives access to it. A Device sees to
// it that only one call runs at a time. Operations may return before they are
// done; they are done in order. Errors wrap ErrLost or are *MemoryError where
// that is what they are.
type Backend interface {
	// Alloc allocates memory that begins at a multiple of 256 bytes; Free
	// frees it once what was asked for before is done.
	Alloc(bytes int64) (Pointer, error)
	Free(p Pointer) error
	// MemInfo returns the bytes that are free, and all of them.
	MemInfo() (free, total int64, err error)

	// Upload and Download wait until they are done; Copy and Fill do not.
	Upload(dst Pointer, src unsafe.Pointer, bytes int) error
	Download(dst unsafe.Pointer, src Pointer, bytes int) error
	Copy(dst, src Pointer, bytes int) error
	Fill(dst Pointer, word uint32, words int) error

	Launch(kernel string, l Launch, args *[MaxArgs]uint64, count int) error
	Multiply(p *Product, tf32 bool) error
	// Convolve computes a part of a convolution, with at least one image. scratch
	// gives memory that is its own until the call is done on the device. The error
	// wraps ErrNoConvolution if it cannot, and nothing is written then.
	Convolve(c *Convolution, tf32 bool, scratch func(bytes int) (Pointer, error)) error

	// Capture begins to note what is asked for instead of doing it, until
	// Captured returns what does all of it at once.
	Capture() error
	Captured() (Replay, error)

	Synchronize() error
	// Properties describe the accelerator.
	Properties() Properties
	// Notes returns what Device.Notify tells: what has been found out since it was
	// called last.
	Notes() []string
	Close() error
}

// A Replay does again what was captured.
type Replay interface {
	Run() error
	Close() error
}

// Properties describe an accelerator.
type Properties struct {
	Name            string // as the vendor has it
	Multiprocessors int
	// SharedPerBlock is how many bytes of shared memory a block can have.
	SharedPerBlock int
	// Major and Minor are its compute capability.
	Major, Minor int
	// Software says what drives it, as far as it is in use.
	Software string
}

// A Device is where programs run. Its methods may be called by many goroutines
// at a time; each call is ordered after those before it.
type Device struct {
	name string
	why  string
	// TF32 lets matrix products round the elements of their operands to 10 bits
	// of mantissa, which makes them several times as fast. The sums are of
	// float32 in any case. Set it before the device is used.
	TF32 bool
	// Unpooled makes each allocation one of the driver's and of just the size asked
	// for, as memory checkers need it. It takes much longer. Set it before the
	// device is used.
	Unpooled bool

	mu      sync.Mutex
	backend Backend // nil: the CPU
	failed  error   // that ended it
	closed  bool
	notify  func(sentence string)
	// recorder is the thread on which the device is being captured, 0 if it is not;
	// recorded tells that this is over.
	recorder int
	recorded sync.Cond
	args     [MaxArgs]uint64
	pool     pool

	scratch struct {
		sync.Mutex // taken before mu
		memory     []Pointer
		bytes      int // of the last
	}
}

// cpu is the processor.
var cpu = &Device{name: "cpu"}

// CPU returns the processor.
func CPU() *Device { return cpu }

// New makes a device of a backend.
func New(name string, b Backend) *Device {
	d := &Device{name: name, backend: b, TF32: true, pool: pool{free: map[int64][]Pointer{}}}
	d.recorded.L = &d.mu
	return d
}

// Name returns cpu, or the accelerator's name for Open, such as cuda:0.
func (d *Device) Name() string { return d.name }

// OnHost tells whether the device is the CPU.
func (d *Device) OnHost() bool { return d == nil || d.backend == nil }

// Why returns a sentence about which device it is and why Open chose it.
func (d *Device) Why() string { return d.why }

// Properties describes an accelerator; those of the CPU are zero.
func (d *Device) Properties() Properties {
	if d.OnHost() {
		return Properties{}
	}
	d.lock()
	defer d.mu.Unlock()
	return d.backend.Properties()
}

// Notify has f told, in a sentence each, what is worth knowing about how an accelerator
// computes: at once what was known when it was opened, and later, by the goroutine that
// uses the device, what is found out then, such as which library computes convolutions,
// or what is missing and what is used instead.
func (d *Device) Notify(f func(sentence string)) {
	if d.OnHost() {
		return
	}
	d.lock()
	d.notify = f
	d.mu.Unlock()
	d.tell()
}

// tell passes on what the backend has noted.
func (d *Device) tell() {
	d.lock()
	f := d.notify
	var notes []string
	if f != nil {
		notes = d.backend.Notes()
	}
	d.mu.Unlock()
	for _, sentence := range notes {
		f(sentence)
	}
}

// lock waits until nothing else is asked of the device, and no other goroutine has it
// captured.
func (d *Device) lock() {
	d.mu.Lock()
	for d.recorder != 0 && d.recorder != thread() {
		d.recorded.Wait()
	}
}

// do calls f while nothing else is asked of the device.
func (d *Device) do(f func() error) error {
	if d.OnHost() {
		return ErrHost
	}
	d.lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	return d.note(f())
}

// note remembers an error after which nothing works any more.
func (d *Device) note(err error) error {
	if err == nil {
		return nil
	}
	full := new(MemoryError)
	if errors.As(err, &full) {
		full.Device = d.name
		if err == error(full) {
			return err
		}
	}
	err = fmt.Errorf("%s: %w", d.name, err)
	if errors.Is(err, ErrLost) {
		d.failed = err
	}
	return err
}

// A Memory is a piece of a device's memory. It goes back to the device with Free,
// or after nothing refers to it any more.
type Memory struct {
	*block
	cleanup runtime.Cleanup
}

// A block is what a Memory stands for.
type block struct {
	device *Device
	at     Pointer
	bytes  int
	free   bool
}

// Pointer returns where the memory begins: a multiple of 256 bytes.
func (m *Memory) Pointer() Pointer { return m.at }

// Bytes returns how large it is.
func (m *Memory) Bytes() int { return m.bytes }

// Device returns whose memory it is.
func (m *Memory) Device() *Device { return m.device }

// Uintptr implements tensor.Memory.
func (m *Memory) Uintptr() uintptr { return uintptr(m.at) }

// MemSize implements tensor.Memory.
func (m *Memory) MemSize() uintptr { return uintptr(m.bytes) }

// Free gives the memory back, which must not be used any more: what was asked
// for before still finds it. The second time it does nothing.
func (m *Memory) Free() {
	m.cleanup.Stop()
	m.block.release()
}

func (b *block) release() {
	d := b.device
	d.lock()
	defer d.mu.Unlock()
	if b.free {
		return
	}
	b.free = true
	if d.Unpooled {
		d.pool.used -= int64(b.bytes)
		d.pool.allocated -= int64(b.bytes)
		if d.failed == nil {
			d.failed = d.note(d.backend.Free(b.at))
		}
		return
	}
	d.pool.put(b.at, b.bytes)
}

// Alloc allocates memory; what is in it is not defined. If there is too little,
// the error is a *MemoryError.
func (d *Device) Alloc(bytes int) (*Memory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("device: there is no memory of %d bytes", bytes)
	}
	b := &block{device: d, bytes: bytes}
	size := classOf(bytes)
	if d != nil && d.Unpooled {
		size = int64(max(bytes, 4))
		b.bytes = int(size)
	}
	allocate := func() error {
		at, ok := d.pool.take(size)
		if !ok {
			var err error
			if at, err = d.backend.Alloc(size); err != nil {
				return err
			}
			d.pool.allocated += size
		}
		b.at = at
		d.pool.used += size
		return nil
	}
	if err := d.retried(bytes, allocate); err != nil {
		return nil, err
	}
	m := &Memory{block: b}
	m.cleanup = runtime.AddCleanup(m, (*block).release, b)
	return m, nil
}

// collect gives back the memory that nothing refers to any more. Cleanups run some
// time after the collection that finds what they are for: those of one are done once
// that of something which the next one finds is.
func collect() {
	for range 2 {
		done := make(chan struct{})
		runtime.AddCleanup(&struct{ _ *int }{}, func(c chan struct{}) { close(c) }, done)
		runtime.GC()
		select {
		case <-done:
		case <-time.After(time.Second):
		}
	}
}

// Usage returns how many bytes of memory are in use, and how many more the
// device keeps for later use.
func (d *Device) Usage() (used, kept int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pool.used, d.pool.allocated - d.pool.used
}

// Upload copies elements to the device's memory.
func Upload[T any](d *Device, dst Pointer, src []T) error {
	return d.do(func() error {
		if len(src) == 0 {
			return nil
		}
		return d.backend.Upload(dst, unsafe.Pointer(&src[0]), len(src)*int(unsafe.Sizeof(src[0])))
	})
}

// Download copies elements from the device's memory, once all that was asked for
// is done.
func Download[T any](d *Device, dst []T, src Pointer) error {
	return d.do(func() error {
		if len(dst) == 0 {
			return nil
		}
		return d.backend.Download(unsafe.Pointer(&dst[0]), src, len(dst)*int(unsafe.Sizeof(dst[0])))
	})
}

// Copy copies bytes within the device's memory. The two pieces must not overlap.
func (d *Device) Copy(dst, src Pointer, bytes int) error {
	return d.do(func() error {
		if bytes == 0 {
			return nil
		}
		return d.backend.Copy(dst, src, bytes)
	})
}

// Zero clears bytes, in fours, of the device's memory.
func (d *Device) Zero(dst Pointer, bytes int) error { return d.Fill(dst, 0, bytes/4) }

// Fill sets words of 32 bits of the device's memory.
func (d *Device) Fill(dst Pointer, word uint32, words int) error {
	return d.do(func() error {
		if words == 0 {
			return nil
		}
		return d.backend.Fill(dst, word, words)
	})
}

// Launch runs a kernel of package kernels. The arguments must be as many as the
// kernel has parameters, and of their types.
func (d *Device) Launch(kernel string, l Launch, args ...Arg) error {
	if l.Grid < 1 || l.Block < 1 || l.Block > 1024 || len(args) > MaxArgs {
		return fmt.Errorf("device: kernel %s cannot run with %d blocks of %d threads and %d arguments", kernel, l.Grid, l.Block, len(args))
	}
	if d.OnHost() {
		return ErrHost
	}
	d.lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	for i, a := range args {
		d.args[i] = uint64(a)
	}
	if err := d.backend.Launch(kernel, l, &d.args, len(args)); err != nil {
		return d.note(fmt.Errorf("kernel %s: %w", kernel, err))
	}
	return nil
}

// blockOfEach is how many threads a block of Each has.
const blockOfEach = 256

// Each runs a kernel with a thread for each of n items, in blocks of 256; the
// last block may have threads to spare. With no items there is nothing to do.
func (d *Device) Each(kernel string, n int, args ...Arg) error {
	if n == 0 {
		return nil
	}
	return d.Launch(kernel, Launch{Grid: (n + blockOfEach - 1) / blockOfEach, Block: blockOfEach}, args...)
}

// Lanes returns the logarithm of how many threads work on a row of so many columns
// in a kernel that takes rows: up to the 32 of a warp. Each then runs it with
// rows<<lanes threads.
func Lanes(cols int) int { return min(5, bits.Len(uint(max(cols, 1)-1))) }

// Multiply computes a product. With no elements in C there is nothing to do;
// with K = 0 it is Beta·C.
func (d *Device) Multiply(p Product) error {
	if p.M == 0 || p.N == 0 {
		return nil
	}
	return d.do(func() error { return d.backend.Multiply(&p, d.TF32 && !p.Exact) })
}

// Capture notes what f asks of the device, on the goroutine that calls it, instead of
// having it done; others wait until it is over. What it notes can then be run again
// and again at little cost. In f nothing may be waited for, and neither may memory be
// allocated that the device does not keep, nor another capture be made or run again. A
// kernel, or a product of such a size, is to have run before it is captured: to load
// it may need what a capture forbids.
func (d *Device) Capture(f func() error) (Replay, error) {
	if d.OnHost() {
		return nil, ErrHost
	}
	if d.recording() {
		return nil, errCaptured
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d.scratch.Lock() // for what f asks for
	defer d.scratch.Unlock()
	if err := d.do(func() error {
		if err := d.backend.Capture(); err != nil {
			return err
		}
		d.recorder = thread()
		return nil
	}); err != nil {
		return nil, err
	}
	captured := false
	var r Replay
	end := func() error {
		captured = true
		defer func() {
			d.mu.Lock()
			d.recorder = 0
			d.mu.Unlock()
			d.recorded.Broadcast()
		}()
		return d.do(func() (err error) {
			r, err = d.backend.Captured()
			return err
		})
	}
	defer func() {
		if !captured { // f has ended the goroutine, or panicked
			_ = end()
		}
	}()
	failed := f()
	err := end()
	switch {
	case failed == nil && err == nil:
		return &replay{d, r}, nil
	case failed == nil:
		return nil, err
	case err == nil:
		_ = d.do(r.Close)
	}
	// That a capture cannot be ended follows from what has failed in it.
	return nil, failed
}

// errCaptured is the error of who asks for what a capture forbids.
var errCaptured = errors.New("device: captures can neither be made nor run again while one is made")

// recording tells whether this goroutine has the device captured.
func (d *Device) recording() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.recorder != 0 && d.recorder == thread()
}

// A replay is a backend's, one call at a time.
type replay struct {
	device *Device
	of     Replay
}

func (r *replay) Run() error {
	if r.device.recording() {
		return errCaptured
	}
	r.device.scratch.Lock() // what was captured may use it
	defer r.device.scratch.Unlock()
	return r.device.do(r.of.Run)
}

func (r *replay) Close() error { return r.device.do(r.of.Close) }

// Synchronize waits until all that was asked for is done, and returns what went
// wrong with it. The CPU is never behind.
func (d *Device) Synchronize() error {
	if d.OnHost() {
		return nil
	}
	return d.do(d.backend.Synchronize)
}

// Close gives the accelerator back, with all its memory; the second time it does
// nothing.
func (d *Device) Close() error {
	if d.OnHost() {
		return nil
	}
	d.lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	lost := d.failed
	d.closed, d.failed = true, fmt.Errorf("%s: it was closed: %w", d.name, ErrLost)
	if err := d.backend.Close(); err != nil && lost == nil {
		return d.note(err)
	}
	return nil // or it was said before that the device has failed
}
