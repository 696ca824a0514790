package device

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"cne/internal/kind"
	"cne/internal/memory"
)

// The kinds of error that devices return, to be told apart with errors.Is.
var (
	// ErrUnavailable: the machine does not have the device.
	ErrUnavailable = errors.New("no such device")
	// ErrLost: the device has failed, and what was in its memory is lost.
	ErrLost = errors.New("the device failed")
	// ErrHost: the CPU was asked for what only accelerators have.
	ErrHost = errors.New("device: the CPU has no memory apart from the program's and runs no kernels by name")
)

// A MemoryError says that a device has too little memory.
type MemoryError struct {
	Device              string
	Needed, Free, Total int64 // bytes
	// For names what ran out of memory if it does not say how much it needs, so that
	// Needed is 0.
	For string
}

func (e *MemoryError) Error() string {
	if e.Needed == 0 {
		return fmt.Sprintf("%s has too little memory: %s needs more than the %s of %s that are free; take smaller batches, or another device",
			e.Device, e.For, memory.Bytes(e.Free), memory.Bytes(e.Total))
	}
	return fmt.Sprintf("%s has too little memory: %s were needed, and %s of %s are free; take smaller batches, or another device",
		e.Device, memory.Bytes(e.Needed), memory.Bytes(e.Free), memory.Bytes(e.Total))
}

// A Pointer is an address in the memory of a device.
type Pointer uint64

// At returns the address of element i of an array whose elements have size bytes.
func (p Pointer) At(i, size int) Pointer { return p + Pointer(i*size) }

// An Arg is an argument of a kernel.
type Arg uint64

// Int makes an argument of an integer, for parameters of type int or long.
func Int(i int) Arg { return Arg(i) }

// Word makes an argument of 64 bits, for parameters of type unsigned long.
func Word(w uint64) Arg { return Arg(w) }

// F32 makes an argument of a float32, for parameters of type float_bits.
func F32(f float64) Arg { return Arg(math.Float32bits(float32(f))) }

// MaxArgs is the largest number of arguments of a kernel.
const MaxArgs = 24

// A Launch is the shape of a kernel's launch.
type Launch struct {
	// Grid is the number of blocks, at least 1, and Block the number of threads in
	// each, 1 … 1024.
	Grid, Block int
	// Shared is the size of a block's dynamic shared memory, in bytes.
	Shared int
}

// A Product is the matrix product C = Alpha·op(A)·op(B) + Beta·C of row-major
// matrices, of float32 unless BFloat16 is set. op(A) is [M, K], op(B) [K, N] and C [M, N];
// op transposes if TransA or TransB is set. LDA, LDB and LDC are the leading
// dimensions: the distances between rows in memory.
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
	// Exact forbids TF32, even if Device.TF32 allows it.
	Exact bool
	// BFloat16 says that the elements of A and B are bfloat16, the upper halves of float32
	// numbers. Their products are exact, and sums are float32. RoundC, which needs
	// BFloat16, says that the elements of C are bfloat16, too: sums are rounded when
	// complete.
	BFloat16, RoundC bool
}

// A Backend is one accelerator, as its driver offers it. Device calls it from one
// goroutine at a time. Operations are asynchronous and done in order. Errors wrap ErrLost
// or are *MemoryError where that applies.
type Backend interface {
	// Alloc allocates memory that begins at a multiple of 256 bytes. Free frees it
	// after all earlier operations are done.
	Alloc(bytes int64) (Pointer, error)
	Free(p Pointer) error
	// MemInfo returns the free and the total memory, in bytes.
	MemInfo() (free, total int64, err error)

	// Upload and Download wait for all earlier operations, Copy and Fill do not.
	Upload(dst Pointer, src unsafe.Pointer, bytes int) error
	Download(dst unsafe.Pointer, src Pointer, bytes int) error
	Copy(dst, src Pointer, bytes int) error
	Fill(dst Pointer, word uint32, words int) error

	Launch(kernel string, l Launch, args *[MaxArgs]uint64, count int) error
	Multiply(p *Product, tf32 bool) error
	// Convolve computes a part of a convolution of at least one image. scratch returns
	// workspace memory that is reserved for the call until it is done on the device. If
	// no library can compute it, the error wraps ErrNoConvolution and nothing has been
	// written.
	Convolve(c *Convolution, tf32 bool, scratch func(bytes int) (Pointer, error)) error

	// Capture records the operations that follow instead of doing them, until Captured
	// returns a Replay of them.
	Capture() error
	Captured() (Replay, error)

	// Synchronize waits for all earlier operations.
	Synchronize() error
	// Properties describe the accelerator.
	Properties() Properties
	// Notes returns the sentences for Device.OnNote that are new since the last call.
	Notes() []string
	Close() error
}

// A Replay runs captured operations, as often as wanted (in CUDA a graph).
type Replay interface {
	Run() error
	Close() error
}

// Properties describe an accelerator.
type Properties struct {
	Name            string // the vendor's
	Multiprocessors int
	// SharedPerBlock is the number of bytes of shared memory that a block can have.
	SharedPerBlock int
	// Clusters says whether blocks can run in clusters, which share their memory.
	Clusters bool
	// Major and Minor are its compute capability.
	Major, Minor int
	// Software names the versions of the driver and of the libraries in use.
	Software string
}

// A Device is the CPU or an accelerator. Many goroutines may call its methods; calls
// are carried out in their order.
type Device struct {
	name   string
	reason string
	// TF32 allows matrix products to round the elements of their operands to 10 stored bits
	// of mantissa, which makes them several times as fast. Sums are float32 in any case.
	// Set it before the device is used.
	TF32 bool
	// Unpooled takes every allocation from the driver, in exactly the size asked for,
	// as memory checkers need it. It is much slower. Set it before the device is used.
	Unpooled bool

	mu      sync.Mutex
	backend Backend // nil: the CPU
	failed  error   // the error that ended it
	closed  bool
	onNote  func(sentence string)
	notes   []string // of the backend and of Note so far
	passed  int      // how many of them onNote has got
	// recorder is the thread that captures, 0 if there is no capture; recorded signals
	// its end.
	recorder int
	recorded sync.Cond
	args     [MaxArgs]uint64
	pool     pool

	// asked and replayed count operations: see Operations. captured counts the
	// operations of the current capture.
	asked, replayed, captured int

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

// OnHost reports whether the device is the CPU.
func (d *Device) OnHost() bool { return d == nil || d.backend == nil }

// Reason returns a sentence that says which device this is and why Open chose it.
func (d *Device) Reason() string { return d.reason }

// Properties describes an accelerator; the CPU has zero Properties.
func (d *Device) Properties() Properties {
	if d.OnHost() {
		return Properties{}
	}
	d.lock()
	defer d.mu.Unlock()
	return d.backend.Properties()
}

// OnNote sets a function f that gets sentences about how an accelerator computes, such as
// which library computes convolutions, or what is missing and replaced. f is called at
// once with the notes so far, and later by the goroutine that uses the device.
func (d *Device) OnNote(f func(sentence string)) {
	if d.OnHost() {
		return
	}
	d.lock()
	d.onNote = f
	d.mu.Unlock()
	d.flushNotes()
}

// Note passes a sentence about how something is computed on the accelerator to the
// function given to OnNote, now or once there is one.
func (d *Device) Note(sentence string) {
	d.lock()
	d.notes = append(d.notes, sentence)
	d.mu.Unlock()
	d.flushNotes()
}

// Notes returns all notes so far. The CPU has none.
func (d *Device) Notes() []string {
	if d.OnHost() {
		return nil
	}
	d.lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, d.backend.Notes()...)
	return slices.Clone(d.notes)
}

// flushNotes passes the notes that are new to the function given to OnNote.
func (d *Device) flushNotes() {
	d.lock()
	f := d.onNote
	var fresh []string
	if f != nil {
		d.notes = append(d.notes, d.backend.Notes()...)
		fresh, d.passed = d.notes[d.passed:], len(d.notes)
	}
	d.mu.Unlock()
	for _, sentence := range fresh {
		f(sentence)
	}
}

// lock locks the device, once no other goroutine is capturing.
func (d *Device) lock() {
	d.mu.Lock()
	for d.recorder != 0 && d.recorder != thread() {
		d.recorded.Wait()
	}
}

// do calls f with the device locked.
func (d *Device) do(f func() error) error {
	if d.OnHost() {
		return ErrHost
	}
	d.lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	return d.failIf(f())
}

// submit is do for an operation on n things that the device carries out in its turn; on none,
// it does nothing.
func (d *Device) submit(n int, f func() error) error {
	return d.do(func() error {
		if n == 0 {
			return nil
		}
		d.count()
		return f()
	})
}

// count counts an operation that is about to be submitted. The caller holds the lock.
func (d *Device) count() {
	if d.recorder != 0 {
		d.captured++
	} else {
		d.asked++
	}
}

// Operations returns the number of kernels, products, convolutions, copies within memory
// and fills asked for so far, where a Replay counts as one, and the number of operations
// that Replays have run.
func (d *Device) Operations() (asked, replayed int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked, d.replayed
}

// Watch returns a function that returns who has computed since: "cpu", or the device's
// name and the vendor's if the device was asked for at least one operation. Copies from
// and to the program's memory do not count.
func (d *Device) Watch() func() string {
	if d.OnHost() {
		return cpu.Name
	}
	before, _ := d.Operations()
	return func() string {
		if after, _ := d.Operations(); after == before {
			return cpu.Name()
		}
		return d.name + ", " + d.Properties().Name
	}
}

// failIf completes an error, and remembers it if the device is lost.
func (d *Device) failIf(err error) error {
	if err == nil {
		return nil
	}
	if shortage, ok := errors.AsType[*MemoryError](err); ok {
		shortage.Device = d.name
		if err == error(shortage) {
			return err
		}
	}
	err = fmt.Errorf("%s: %w", d.name, err)
	if errors.Is(err, ErrLost) {
		d.failed = err
	}
	return err
}

// A Memory is a piece of a device's memory. Free returns it; so does the garbage
// collector.
type Memory struct {
	*block
	cleanup runtime.Cleanup
}

// A block is the memory of a Memory.
type block struct {
	device *Device
	at     Pointer
	bytes  int
	free   bool
}

// Pointer returns the address of the memory, a multiple of 256.
func (m *Memory) Pointer() Pointer { return m.at }

// Bytes returns its size.
func (m *Memory) Bytes() int { return m.bytes }

// Device returns the device that has the memory.
func (m *Memory) Device() *Device { return m.device }

// Uintptr implements tensor.Memory.
func (m *Memory) Uintptr() uintptr { return uintptr(m.at) }

// MemSize implements tensor.Memory.
func (m *Memory) MemSize() uintptr { return uintptr(m.bytes) }

// Free returns the memory to the device. It must not be used afterwards; operations
// asked for earlier still find it. Freeing twice does nothing.
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
			d.failed = d.failIf(d.backend.Free(b.at))
		}
		return
	}
	d.pool.put(b.at, b.bytes)
}

// Alloc allocates memory with undefined contents. If there is too little, the error is
// a *MemoryError.
func (d *Device) Alloc(bytes int) (*Memory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("device: memory: got %d bytes, want 0 or more", bytes)
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

// collect frees the memory that nothing refers to any more. Cleanups run some time
// after the garbage collection that found their objects: once the cleanup of an object
// found by a second collection has run, the cleanups of the first have run, too.
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

// Usage returns the bytes of memory in use, and those that the device keeps for later
// allocations.
func (d *Device) Usage() (used, kept int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pool.used, d.pool.allocated - d.pool.used
}

// Upload copies elements to the device's memory, once all requests are done.
func Upload[T any](d *Device, dst Pointer, src []T) error {
	return d.do(func() error {
		if len(src) == 0 {
			return nil
		}
		return d.backend.Upload(dst, unsafe.Pointer(&src[0]), len(src)*int(unsafe.Sizeof(src[0])))
	})
}

// Download waits for all requests, and copies elements from the device's memory.
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
	return d.submit(bytes, func() error { return d.backend.Copy(dst, src, bytes) })
}

// Zero clears bytes, a multiple of 4, of the device's memory.
func (d *Device) Zero(dst Pointer, bytes int) error { return d.Fill(dst, 0, bytes/4) }

// Fill sets words of 32 bits of the device's memory.
func (d *Device) Fill(dst Pointer, word uint32, words int) error {
	return d.submit(words, func() error { return d.backend.Fill(dst, word, words) })
}

// Launch runs a kernel of package kernels, with as many arguments as it has parameters,
// of their types.
func (d *Device) Launch(kernel string, l Launch, args ...Arg) error {
	if l.Grid < 1 || l.Block < 1 || l.Block > 1024 || len(args) > MaxArgs {
		return fmt.Errorf("device: kernel %s: got %d blocks of %d threads and %d arguments, want 1 block or more of 1 to 1024 threads and at most %d arguments", kernel, l.Grid, l.Block, len(args), MaxArgs)
	}
	return d.submit(l.Grid, func() error {
		for i, a := range args {
			d.args[i] = uint64(a)
		}
		if err := d.backend.Launch(kernel, l, &d.args, len(args)); err != nil {
			return fmt.Errorf("kernel %s: %w", kernel, err)
		}
		return nil
	})
}

// blockOfEach is the number of threads in a block of Each.
const blockOfEach = 256

// Each runs a kernel with a thread for each of n items, in blocks of 256 threads. The last
// block may have threads to spare. With n = 0 it does nothing.
func (d *Device) Each(kernel string, n int, args ...Arg) error {
	if n == 0 {
		return nil
	}
	return d.Launch(kernel, Launch{Grid: (n + blockOfEach - 1) / blockOfEach, Block: blockOfEach}, args...)
}

// Lanes returns the binary logarithm of the number of threads that share a row of cols
// columns in kernels that work row by row: at most 5, for the 32 threads of a warp. Each
// launches such a kernel with rows<<lanes threads.
func Lanes(cols int) int { return min(5, bits.Len(uint(max(cols, 1)-1))) }

// Multiply computes a product. With an empty C it does nothing; with K = 0 the product is
// Beta·C.
func (d *Device) Multiply(p Product) error {
	return d.submit(p.M*p.N, func() error { return d.backend.Multiply(&p, d.TF32 && !p.Exact) })
}

// Capture records the operations that f requests on the calling goroutine instead of
// executing them; other goroutines wait. The Replay then runs them all at little cost. f
// must not wait for the device, nor capture or run a Replay, nor allocate memory that the
// pool does not hold. Kernels, and products of the same sizes, must have run before,
// since a capture may forbid loading them.
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
		d.recorder, d.captured = thread(), 0
		return nil
	}); err != nil {
		return nil, err
	}
	captured := false
	var r Replay
	var count int
	end := func() error {
		captured = true
		defer func() {
			d.mu.Lock()
			d.recorder = 0
			d.mu.Unlock()
			d.recorded.Broadcast()
		}()
		return d.do(func() (err error) {
			count = d.captured
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
		return &replay{d, r, count}, nil
	case failed == nil:
		return nil, err
	case err == nil:
		_ = d.do(r.Close)
	}
	// A capture with a failure cannot be ended either; the first error is the cause.
	return nil, failed
}

// errCaptured is the error of a capture or a replay within a capture.
var errCaptured = errors.New("device: captures can neither be made nor run again while one is made")

// recording reports whether this goroutine is capturing.
func (d *Device) recording() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.recorder != 0 && d.recorder == thread()
}

// A replay runs a backend's Replay with the device locked.
type replay struct {
	device *Device
	of     Replay
	count  int // of its operations
}

func (r *replay) Run() error {
	if r.device.recording() {
		return errCaptured
	}
	r.device.scratch.Lock() // what was captured may use it
	defer r.device.scratch.Unlock()
	return r.device.do(func() error {
		r.device.asked++
		r.device.replayed += r.count
		return r.of.Run()
	})
}

func (r *replay) Close() error { return r.device.do(r.of.Close) }

// Synchronize waits until all requests are done, and returns what went wrong. On the CPU
// it does nothing.
func (d *Device) Synchronize() error {
	if d.OnHost() {
		return nil
	}
	return d.do(d.backend.Synchronize)
}

// FreeMemory returns how many bytes the driver could still allocate.
func (d *Device) FreeMemory() (free int64, err error) {
	err = d.do(func() (err error) {
		free, _, err = d.backend.MemInfo()
		return err
	})
	return free, err
}

// Close releases the accelerator and all its memory. Closing twice does nothing.
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
		return d.failIf(err)
	}
	return nil // or the device's failure was reported before
}

// Pieces are pieces of a device's memory with one lifetime.
type Pieces []*Memory

// AllocPieces allocates a piece for each number of bytes: all of them, or none and
// Alloc's error.
func (d *Device) AllocPieces(bytes ...int) (Pieces, error) {
	var p Pieces
	for _, n := range bytes {
		m, err := d.Alloc(n)
		if err != nil {
			p.Free()
			return nil, err
		}
		p = append(p, m)
	}
	return p, nil
}

// At returns the address of the i-th piece.
func (p Pieces) At(i int) Pointer { return p[i].Pointer() }

// Free frees all of them.
func (p Pieces) Free() {
	for _, m := range p {
		m.Free()
	}
}

// A pool keeps freed memory for allocations of the same size: the driver's own take
// longer than most kernels, and wait for all of them.
type pool struct {
	free            map[int64][]Pointer // by class
	allocated, used int64               // bytes
}

// classOf rounds a number of bytes up to a multiple of 256 and to one of few sizes, at
// most an eighth larger.
func classOf(bytes int) int64 {
	n := max(int64(bytes), 1)
	step := int64(256)
	for step*16 <= n {
		step *= 2
	}
	return (n + step - 1) / step * step
}

func (p *pool) take(class int64) (Pointer, bool) {
	list := p.free[class]
	if len(list) == 0 {
		return 0, false
	}
	at := list[len(list)-1]
	p.free[class] = list[:len(list)-1]
	return at, true
}

func (p *pool) put(at Pointer, bytes int) {
	class := classOf(bytes)
	p.free[class] = append(p.free[class], at)
	p.used -= class
}

// empty returns all free memory to the driver.
func (p *pool) empty(free func(Pointer) error) error {
	var failed error
	for class, list := range p.free {
		for _, at := range list {
			failed = errors.Join(failed, free(at))
		}
		p.allocated -= class * int64(len(list))
	}
	clear(p.free)
	return failed
}

// A Driver gives access to accelerators.
type Driver interface {
	// Count returns the number of accelerators. An error says why none can be used, and
	// what would help, as the end of a sentence.
	Count() (int, error)
	// Open opens one of them.
	Open(number int) (Backend, error)
}

// CUDA is the driver of NVIDIA's GPUs, nil without the build tag cu. Its package sets it when
// it is initialised.
var CUDA Driver

// CheckName returns an error for an invalid name of a device. Valid are auto, cpu, cuda
// and cuda:n, where n counts from 0.
func CheckName(name string) error {
	if name == "auto" || name == "cpu" {
		return nil
	}
	_, err := parseName(name)
	return err
}

// parseName returns the number of the accelerator of a name.
func parseName(name string) (number int, err error) {
	vendor, digits, numbered := strings.Cut(name, ":")
	if numbered {
		number, err = strconv.Atoi(digits)
	}
	if vendor != "cuda" || err != nil || number < 0 {
		return 0, fmt.Errorf("device: got %q, want auto, cpu, cuda or cuda:n", name)
	}
	return number, nil
}

// Open opens a device by name: cpu; cuda for NVIDIA's first GPU and cuda:n for number
// n, from 0; auto for the first GPU if it can be used, else the CPU. Device.Reason then
// says which it is and why. If the device is not available, the error wraps ErrUnavailable
// and says what is missing.
func Open(name string) (*Device, error) {
	switch name {
	case "cpu":
		return &Device{name: "cpu", reason: "computing on the CPU, as asked for"}, nil
	case "auto":
		d, err := open(0)
		if err != nil {
			return &Device{name: "cpu", reason: "computing on the CPU: " + err.Error()}, nil
		}
		d.reason = fmt.Sprintf("computing on %s, %s", d.name, d.Properties())
		return d, nil
	}
	number, err := parseName(name)
	if err != nil {
		return nil, err
	}
	d, err := open(number)
	if err != nil {
		return nil, fmt.Errorf("device %s cannot be used: %w", name, err)
	}
	d.reason = fmt.Sprintf("computing on %s, %s, as asked for", d.name, d.Properties())
	return d, nil
}

// DriverInstalled reports whether a driver of a vendor seems to be installed, or is named:
// users then expect an accelerator to be used.
func DriverInstalled() bool {
	return os.Getenv("CNE_LIBCUDA") != "" ||
		slices.ContainsFunc([]string{"/proc/driver/nvidia", "/usr/lib/wsl/lib/libcuda.so.1"}, func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		})
}

// open opens an accelerator. Errors are of the kind ErrUnavailable.
func open(number int) (*Device, error) {
	if CUDA == nil {
		return nil, kind.Errorf(ErrUnavailable, "this program was built without CUDA (build it with the tag cu, as docs/gpu.md says)")
	}
	count, err := CUDA.Count()
	switch {
	case err != nil:
		return nil, kind.Errorf(ErrUnavailable, "%v", err)
	case count == 0:
		return nil, kind.Errorf(ErrUnavailable, "the driver sees no GPU")
	case number >= count:
		return nil, kind.Errorf(ErrUnavailable, "GPU: got number %d, want 0 to %d", number, count-1)
	}
	b, err := CUDA.Open(number)
	if err != nil {
		return nil, kind.Errorf(ErrUnavailable, "%v", err)
	}
	return New(fmt.Sprintf("cuda:%d", number), b), nil
}

// String describes an accelerator for a log.
func (p Properties) String() string {
	return fmt.Sprintf("%s with %d multiprocessors (%s)", p.Name, p.Multiprocessors, p.Software)
}
