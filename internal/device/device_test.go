package device

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"gorgonia.org/tensor"
)

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A fakeBackend is a Backend in the program's memory. Its kernels are count(p), which
// adds 1 to the word at p, and args, which records its arguments.
type fakeBackend struct {
	Backend // nil: other methods are not called

	t      *testing.T
	total  int64
	memory map[Pointer][]byte
	next   Pointer
	allocs int
	closed int

	fails     error // what each call returns, if it is not nil
	args      []uint64
	multiply  []bool // whether TF32 was allowed
	capturing *[]func()
	replays   int // open ones
	notes     []string

	busy atomic.Bool // during a call
}

func newPretence(t *testing.T, total int64) *fakeBackend {
	return &fakeBackend{t: t, total: total, memory: map[Pointer][]byte{}, next: 256}
}

// enter checks that calls come one at a time.
func (p *fakeBackend) enter() func() {
	if p.busy.Swap(true) {
		p.t.Error("two calls at once")
	}
	runtime.Gosched()
	return func() { p.busy.Store(false) }
}

func (p *fakeBackend) used() (n int64) {
	for _, m := range p.memory {
		n += int64(len(m))
	}
	return n
}

// bytes returns the memory at an address.
func (p *fakeBackend) bytes(at Pointer, n int) []byte {
	for first, m := range p.memory {
		if at >= first && int(at-first)+n <= len(m) {
			return m[at-first:][:n]
		}
	}
	p.t.Errorf("there is no memory of %d bytes at %d", n, at)
	return make([]byte, n)
}

func (p *fakeBackend) Alloc(bytes int64) (Pointer, error) {
	defer p.enter()()
	if p.fails != nil {
		return 0, p.fails
	}
	if used := p.used(); used+bytes > p.total {
		return 0, &MemoryError{Needed: bytes, Free: p.total - used, Total: p.total}
	}
	at := p.next
	p.next += Pointer((bytes + 255) / 256 * 256)
	p.memory[at] = make([]byte, bytes)
	p.allocs++
	return at, nil
}

func (p *fakeBackend) Free(at Pointer) error {
	defer p.enter()()
	if p.memory[at] == nil {
		p.t.Errorf("%d is freed, which was not allocated", at)
	}
	delete(p.memory, at)
	return p.fails
}

func (p *fakeBackend) MemInfo() (free, total int64, err error) {
	return p.total - p.used(), p.total, p.fails
}

func (p *fakeBackend) Upload(dst Pointer, src unsafe.Pointer, bytes int) error {
	defer p.enter()()
	copy(p.bytes(dst, bytes), unsafe.Slice((*byte)(src), bytes))
	return p.fails
}

func (p *fakeBackend) Download(dst unsafe.Pointer, src Pointer, bytes int) error {
	defer p.enter()()
	copy(unsafe.Slice((*byte)(dst), bytes), p.bytes(src, bytes))
	return p.fails
}

// ask calls f, or records it during a capture.
func (p *fakeBackend) ask(f func()) error {
	if p.fails != nil {
		return p.fails
	}
	if p.capturing != nil {
		*p.capturing = append(*p.capturing, f)
		return nil
	}
	f()
	return nil
}

func (p *fakeBackend) Copy(dst, src Pointer, bytes int) error {
	defer p.enter()()
	return p.ask(func() { copy(p.bytes(dst, bytes), p.bytes(src, bytes)) })
}

func (p *fakeBackend) Fill(dst Pointer, word uint32, words int) error {
	defer p.enter()()
	return p.ask(func() {
		for i := range words {
			*(*uint32)(unsafe.Pointer(&p.bytes(dst, 4*words)[4*i])) = word
		}
	})
}

func (p *fakeBackend) Launch(kernel string, l Launch, args *[MaxArgs]uint64, count int) error {
	defer p.enter()()
	given := slices.Clone(args[:count])
	switch kernel {
	case "count":
		return p.ask(func() { *(*uint32)(unsafe.Pointer(&p.bytes(Pointer(given[0]), 4)[0]))++ })
	case "args":
		return p.ask(func() { p.args = given })
	}
	return errors.New("there is no such kernel")
}

func (p *fakeBackend) Multiply(_ *Product, tf32 bool) error {
	defer p.enter()()
	return p.ask(func() { p.multiply = append(p.multiply, tf32) })
}

// Convolve supports only images of one pixel, with a workspace of as many bytes as
// there are images.
func (p *fakeBackend) Convolve(c *Convolution, tf32 bool, scratch func(bytes int) (Pointer, error)) error {
	if c.H != 1 || c.W != 1 {
		return fmt.Errorf("images of %d×%d: %w", c.H, c.W, ErrNoConvolution)
	}
	at, err := scratch(c.N)
	defer p.enter()()
	p.notes = append(p.notes, fmt.Sprintf("a convolution of %d images", c.N))
	if err != nil {
		return err
	}
	p.bytes(at, c.N)
	return p.ask(func() { p.multiply = append(p.multiply, tf32) })
}

func (p *fakeBackend) Capture() error {
	defer p.enter()()
	p.capturing = new([]func())
	return p.fails
}

func (p *fakeBackend) Captured() (Replay, error) {
	defer p.enter()()
	r := &pretendedReplay{p, *p.capturing}
	p.capturing = nil
	if p.fails != nil {
		return nil, p.fails
	}
	p.replays++
	return r, nil
}

type pretendedReplay struct {
	of    *fakeBackend
	steps []func()
}

func (r *pretendedReplay) Run() error {
	defer r.of.enter()()
	for _, f := range r.steps {
		f()
	}
	return r.of.fails
}

func (r *pretendedReplay) Close() error {
	r.of.replays--
	return nil
}

func (p *fakeBackend) Synchronize() error {
	defer p.enter()()
	return p.fails
}

func (p *fakeBackend) Properties() Properties {
	return Properties{Name: "Pretence 1", Multiprocessors: 3, Software: "nothing 1.0"}
}

func (p *fakeBackend) Notes() []string {
	defer p.enter()()
	notes := p.notes
	p.notes = nil
	return notes
}

func (p *fakeBackend) Close() error {
	p.closed++
	return p.fails
}

// newDevice returns a device with total bytes of memory, and its backend.
func newDevice(t *testing.T, total int64) (*Device, *fakeBackend) {
	p := newPretence(t, total)
	return New("cuda:0", p), p
}

// A fakeDriver has count GPUs.
type fakeDriver struct {
	count         int
	failed, fails error // of Count, of Open
}

func (d fakeDriver) Count() (int, error) { return d.count, d.failed }
func (d fakeDriver) Open(int) (Backend, error) {
	return newPretence(nil, 1<<30), d.fails
}

// withDriver replaces the driver.
func withDriver(t *testing.T, d Driver) {
	before := CUDA
	CUDA = d
	t.Cleanup(func() { CUDA = before })
}

func TestOpen(t *testing.T) {
	const without = "this program was built without CUDA (build it with the tag cu, as docs/gpu.md says)"
	about := "Pretence 1 with 3 multiprocessors (nothing 1.0)"
	var none Driver
	two := fakeDriver{count: 2}
	blind := fakeDriver{failed: errors.New("there is no NVIDIA driver (libcuda.so.1 was not found)")}
	empty := fakeDriver{}
	shut := fakeDriver{count: 1, fails: errors.New("the GPU cannot be opened: it is in use")}
	for _, c := range []struct {
		name   string
		driver Driver
		is     string // the device's name
		says   string // the reason, or the error
	}{
		{"cpu", two, "cpu", "computing on the CPU, as asked for"},
		{"auto", none, "cpu", "computing on the CPU: " + without},
		{"auto", blind, "cpu", "computing on the CPU: there is no NVIDIA driver (libcuda.so.1 was not found)"},
		{"auto", empty, "cpu", "computing on the CPU: the driver sees no GPU"},
		{"auto", shut, "cpu", "computing on the CPU: the GPU cannot be opened: it is in use"},
		{"auto", two, "cuda:0", "computing on cuda:0, " + about},
		{"cuda", two, "cuda:0", "computing on cuda:0, " + about + ", as asked for"},
		{"cuda:1", two, "cuda:1", "computing on cuda:1, " + about + ", as asked for"},
		{"cuda:2", two, "", "device cuda:2 cannot be used: GPU: got number 2, want 0 to 1"},
		{"cuda", none, "", "device cuda cannot be used: " + without},
		{"cuda", blind, "", "device cuda cannot be used: there is no NVIDIA driver (libcuda.so.1 was not found)"},
		{"cuda:0", empty, "", "device cuda:0 cannot be used: the driver sees no GPU"},
		{"cuda", shut, "", "device cuda cannot be used: the GPU cannot be opened: it is in use"},
	} {
		t.Run(c.name+" "+c.says, func(t *testing.T) {
			withDriver(t, c.driver)
			d, err := Open(c.name)
			if c.is == "" {
				if err == nil || err.Error() != c.says || !errors.Is(err, ErrUnavailable) {
					t.Errorf("the error is %q, want %q, an ErrUnavailable", err, c.says)
				}
				return
			}
			must(t, err)
			if d.Name() != c.is || d.Reason() != c.says || d.OnHost() != (c.is == "cpu") {
				t.Errorf("it is %s (on the host: %t), and says %q; want %s, %q", d.Name(), d.OnHost(), d.Reason(), c.is, c.says)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"auto", "cpu", "cuda", "cuda:0", "cuda:17"} {
		if err := CheckName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "gpu", "CPU", "cpu:0", "auto:1", "cuda:", "cuda:-1", "cuda:x", "cuda:0:1", "cuda 0"} {
		err := CheckName(name)
		if want := fmt.Sprintf("device: got %q, want auto, cpu, cuda or cuda:n", name); err == nil || err.Error() != want {
			t.Errorf("%q: the error is %v, want %s", name, err, want)
		}
		if _, opened := Open(name); fmt.Sprint(opened) != fmt.Sprint(err) {
			t.Errorf("%q: Open's error is %v, CheckName's %v", name, opened, err)
		}
	}
}

// operations returns the errors of all operations of a device, with memory at an address.
func operations(d *Device, at Pointer) map[string]error {
	_, allocated := d.Alloc(1 << 10)
	_, captured := d.Capture(func() error { return nil })
	return map[string]error{
		"Alloc": allocated, "Capture": captured, "Copy": d.Copy(at, at, 4), "Fill": d.Fill(at, 1, 1), "Zero": d.Zero(at, 4),
		"Upload": Upload(d, at, []int32{1}), "Download": Download(d, []int32{1}, at),
		"Launch": d.Launch("count", Launch{Grid: 1, Block: 1}, Arg(at)), "Multiply": d.Multiply(Product{M: 1, N: 1}),
	}
}

func TestHostRefuses(t *testing.T) {
	for _, d := range []*Device{CPU(), nil} {
		if !d.OnHost() || d.Properties() != (Properties{}) {
			t.Error("the CPU has properties of an accelerator")
		}
		for what, err := range operations(d, 0) {
			if !errors.Is(err, ErrHost) {
				t.Errorf("%s on the CPU returns %v, want ErrHost", what, err)
			}
		}
		if err := errors.Join(d.Synchronize(), d.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestSizesOfMemory(t *testing.T) {
	last := int64(0)
	for n := 0; n < 1<<24; n += 1 + n/37 {
		c := classOf(n)
		if c < int64(n) || c < last || c%256 != 0 || float64(c) > float64(n)*1.125+256 {
			t.Fatalf("%d bytes get %d", n, c)
		}
		last = c
	}
}

func alloc(t *testing.T, d *Device, bytes int) *Memory {
	t.Helper()
	m, err := d.Alloc(bytes)
	must(t, err)
	return m
}

func expectUsage(t *testing.T, d *Device, used, kept int64) {
	t.Helper()
	if u, k := d.Usage(); u != used || k != kept {
		t.Errorf("%d bytes are in use and %d kept, want %d and %d", u, k, used, kept)
	}
}

func TestPool(t *testing.T) {
	const large = 7 << 17 // another size class
	d, p := newDevice(t, large+1024+256)
	a, b := alloc(t, d, 1000), alloc(t, d, 1000)
	expectUsage(t, d, 2048, 0)
	if a.Bytes() != 1000 || a.MemSize() != 1000 || a.Uintptr() != uintptr(a.Pointer()) || a.Device() != d {
		t.Error("the memory is not what was asked for")
	}
	at := a.Pointer()
	a.Free()
	expectUsage(t, d, 1024, 1024)
	if c := alloc(t, d, 1024); c.Pointer() != at || p.allocs != 2 {
		t.Errorf("memory of the same class is at %d after %d allocations, want what was freed, %d", c.Pointer(), p.allocs, at)
	} else {
		c.Free()
	}
	if empty := alloc(t, d, 0); empty.Bytes() != 0 {
		t.Errorf("no bytes are %d", empty.Bytes())
	} else {
		empty.Free()
	}
	expectUsage(t, d, 1024, 1024+256)

	// Free memory of other sizes makes room.
	big := alloc(t, d, large)
	if got := p.used(); got != large+1024 {
		t.Errorf("the driver has given out %d bytes, want %d", got, large+1024)
	}
	big.Free()
	b.Free()
	expectUsage(t, d, 0, large+1024)
	if _, err := d.Alloc(-1); err == nil {
		t.Error("there is memory of −1 bytes")
	}
}

// Notes from before OnNote are passed at once, and a convolution's notes after it: the
// function may use the device.
func TestNotify(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	p.notes = []string{"opened"}
	convolve := func(n int) {
		t.Helper()
		must(t, d.Convolve(Convolution{N: n, H: 1, W: 1}))
	}
	convolve(1)
	var told []string
	d.OnNote(func(sentence string) {
		told = append(told, sentence)
		if err := d.Scratch(1, func(Pointer) error { return d.Synchronize() }); err != nil {
			t.Error(err)
		}
	})
	if want := []string{"opened", "a convolution of 1 images"}; !slices.Equal(told, want) {
		t.Errorf("at first it told %q, want %q", told, want)
	}
	told = nil
	convolve(2)
	if want := []string{"a convolution of 2 images"}; !slices.Equal(told, want) {
		t.Errorf("then it told %q, want %q", told, want)
	}
	CPU().OnNote(func(sentence string) { t.Errorf("the CPU told %q", sentence) })
}

func TestMemoryError(t *testing.T) {
	for want, e := range map[string]MemoryError{
		"cuda:0 has too little memory: 3 MB were needed, and 2 MB of 3 MB are free; take smaller batches, or another device":          {Device: "cuda:0", Needed: 5 << 19, Free: 2 << 20, Total: 3 << 20},
		"cuda:0 has too little memory: cuDNN needs more than the 2 MB of 3 MB that are free; take smaller batches, or another device": {Device: "cuda:0", Free: 2 << 20, Total: 3 << 20, For: "cuDNN"},
	} {
		if e.Error() != want {
			t.Errorf("%+v is %q, want %q", e, e.Error(), want)
		}
	}
}

// Memory that is freed twice is allocated again only once.
func TestMemoryIsFreedOnce(t *testing.T) {
	for _, unpooled := range []bool{false, true} {
		d, _ := newDevice(t, 1<<20)
		d.Unpooled = unpooled
		m := alloc(t, d, 256)
		m.Free()
		m.Free()
		if a, b := alloc(t, d, 256), alloc(t, d, 256); a.Pointer() == b.Pointer() {
			t.Errorf("two pieces of memory are at %d", a.Pointer())
		}
		expectUsage(t, d, 512, 0)
	}
}

func TestUnpooledMemory(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	d.Unpooled = true
	m := alloc(t, d, 1001)
	if p.used() != 1001 {
		t.Errorf("the driver has given out %d bytes, want 1001", p.used())
	}
	expectUsage(t, d, 1001, 0)
	m.Free()
	expectUsage(t, d, 0, 0)
	if len(p.memory) != 0 {
		t.Error("freed memory is kept")
	}
}

func TestTooLittleMemory(t *testing.T) {
	d, _ := newDevice(t, 3<<20)
	m := alloc(t, d, 1<<20)
	_, err := d.Alloc(5 << 19)
	var full *MemoryError
	if !errors.As(err, &full) || *full != (MemoryError{Device: "cuda:0", Needed: 5 << 19, Free: 2 << 20, Total: 3 << 20}) {
		t.Fatalf("the error is %#v", err)
	}
	if want := "cuda:0 has too little memory: 3 MB were needed, and 2 MB of 3 MB are free; take smaller batches, or another device"; err.Error() != want {
		t.Errorf("the error is %q, want %q", err, want)
	}
	// The device still works.
	alloc(t, d, 1<<20).Free()
	m.Free()
	alloc(t, d, 5<<19)
}

// All pieces are allocated, or none.
func TestPieces(t *testing.T) {
	d, _ := newDevice(t, 3<<20)
	p, err := d.AllocPieces(1<<20, 256, 1<<20)
	must(t, err)
	for i, m := range p {
		if p.At(i) != m.Pointer() {
			t.Errorf("piece %d is at %d, and said to be at %d", i, m.Pointer(), p.At(i))
		}
	}
	p.Free()
	var full *MemoryError
	if p, err := d.AllocPieces(1<<20, 5<<19); !errors.As(err, &full) || p != nil {
		t.Errorf("pieces %v, error %v", p, err)
	}
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes are in use", used)
	}
}

func TestUnreferencedMemoryComesBack(t *testing.T) {
	d, _ := newDevice(t, 1<<20)
	for i := range 100 { // 16 of them fit
		alloc(t, d, 1<<16-i<<8)
	}
}

func TestLostDevice(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	m := alloc(t, d, 256)
	p.fails = errors.New("kernel count is too slow")
	if err := d.Synchronize(); err == nil || errors.Is(err, ErrLost) || err.Error() != "cuda:0: kernel count is too slow" {
		t.Errorf("the error is %v", err)
	}
	p.fails = fmt.Errorf("%w (CUDA's error IllegalAddress)", ErrLost)
	first := d.Fill(m.Pointer(), 1, 1)
	if want := "cuda:0: the device failed (CUDA's error IllegalAddress)"; !errors.Is(first, ErrLost) || first.Error() != want {
		t.Errorf("the error is %v, want %s", first, want)
	}
	// Nothing works any more, even if the driver recovers.
	p.fails = nil
	refused := operations(d, m.Pointer())
	refused["Synchronize"] = d.Synchronize()
	for what, err := range refused {
		if !errors.Is(err, ErrLost) || err.Error() != first.Error() {
			t.Errorf("%s returns %v, want %v", what, err, first)
		}
	}
	m.Free()
	p.fails = ErrLost // Close does not report it again
	if err := d.Close(); err != nil || p.closed != 1 {
		t.Errorf("it was closed %d times: %v", p.closed, err)
	}
}

func TestClosedDevice(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	p.fails = errors.New("it is busy")
	if err := d.Close(); err == nil || err.Error() != "cuda:0: it is busy" {
		t.Errorf("a device that cannot be closed returned %v", err)
	}
	d, p = newDevice(t, 1<<20)
	if err := errors.Join(d.Close(), d.Close()); err != nil || p.closed != 1 {
		t.Errorf("closed twice, it was closed %d times: %v", p.closed, err)
	}
	if err := d.Synchronize(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "it was closed") {
		t.Errorf("the error is %v", err)
	}
}

func TestLaunchArguments(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	all := make([]Arg, MaxArgs+1)
	for _, c := range []struct {
		l    Launch
		args []Arg
		ok   bool
	}{
		{Launch{Grid: 1, Block: 1}, nil, true},
		{Launch{Grid: 1, Block: 1024}, all[1:], true},
		{Launch{Grid: 0, Block: 1}, nil, false},
		{Launch{Grid: 1, Block: 0}, nil, false},
		{Launch{Grid: -1, Block: 32}, nil, false},
		{Launch{Grid: 1, Block: 1025}, nil, false},
		{Launch{Grid: 1, Block: 1}, all, false},
	} {
		if err := d.Launch("args", c.l, c.args...); (err == nil) != c.ok {
			t.Errorf("%+v with %d arguments: %v", c.l, len(c.args), err)
		}
	}
	must(t, d.Launch("args", Launch{Grid: 1, Block: 1}, Int(-1), Int(7), Word(1<<63), F32(-0.5), Arg(Pointer(512).At(3, 4))))
	if want := []uint64{math.MaxUint64, 7, 1 << 63, uint64(math.Float32bits(-0.5)), 524}; !slices.Equal(p.args, want) {
		t.Errorf("the arguments are %x, want %x", p.args, want)
	}
	if err := d.Launch("nothing", Launch{Grid: 1, Block: 1}); err == nil || err.Error() != "cuda:0: kernel nothing: there is no such kernel" {
		t.Errorf("the error is %v", err)
	}
	p.args = nil
	if err := d.Each("args", 0); err != nil || p.args != nil {
		t.Errorf("a kernel for no items was launched: %v", err)
	}
	if err := d.Each("args", 257, 1); err != nil || len(p.args) != 1 {
		t.Errorf("a kernel for 257 items was not launched: %v", err)
	}
}

func TestMultiplyAllowsTF32(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	for _, c := range []Product{{M: 1, N: 1}, {M: 1, N: 1, Exact: true}, {M: 0, N: 1}, {M: 1, N: 0}} {
		must(t, d.Multiply(c))
	}
	d.TF32 = false
	must(t, d.Multiply(Product{M: 1, N: 1}))
	if want := []bool{true, false, false}; !slices.Equal(p.multiply, want) {
		t.Errorf("products were allowed TF32: %v, want %v", p.multiply, want)
	}
}

// Operations without elements do not reach the driver.
func TestNothingToDo(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	p.fails = errors.New("asked")
	if err := errors.Join(Upload[int32](d, 0, nil), Download[int32](d, nil, 0), d.Copy(0, 0, 0), d.Fill(0, 0, 0), d.Zero(0, 0)); err != nil {
		t.Error(err)
	}
}

func TestCapture(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	m := alloc(t, d, 8)
	count := func() error { return d.Launch("count", Launch{Grid: 1, Block: 1}, Arg(m.Pointer())) }
	must(t, d.Zero(m.Pointer(), 8))
	r, err := d.Capture(func() error {
		return errors.Join(count(), count(), d.Copy(m.Pointer().At(1, 4), m.Pointer(), 4))
	})
	must(t, err)
	words := make([]uint32, 2)
	for run := range uint32(3) {
		must(t, Download(d, words, m.Pointer()))
		if words[0] != 2*run || words[1] != 2*run {
			t.Errorf("after %d runs: %v", run, words)
		}
		must(t, r.Run())
	}
	if err := r.Close(); err != nil || p.replays != 0 {
		t.Errorf("%d replays are open: %v", p.replays, err)
	}

	broken := errors.New("broken")
	if _, err := d.Capture(func() error { return errors.Join(count(), broken) }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if p.replays != 0 || p.capturing != nil {
		t.Error("what failed is still captured")
	}
	must(t, count())
	// The first error is returned, not the one of ending the capture.
	if _, err := d.Capture(func() error {
		p.fails = errors.New("invalidated")
		return broken
	}); err != broken {
		t.Errorf("the error is %v", err)
	}
	p.fails = nil
	if _, err := d.Capture(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// A capture within a capture is refused: it would wait for itself. A capture ends with
// its goroutine.
func TestCaptureWithin(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	r, err := d.Capture(func() error { return nil })
	must(t, err)
	for name, within := range map[string]func() error{
		"capture": func() error {
			_, err := d.Capture(func() error { return nil })
			return err
		},
		"replay": r.Run,
	} {
		if _, err := d.Capture(within); err != errCaptured {
			t.Errorf("a %s within a capture: %v", name, err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = d.Capture(func() error {
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	if p.capturing != nil {
		t.Error("the capture goes on after its goroutine")
	}
	if err := d.Synchronize(); err != nil {
		t.Error(err)
	}
}

func TestEngine(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	e := NewEngine(d)
	if e.AllocAccessible() || e.Device() != d {
		t.Error("the engine says that its memory is the program's")
	}
	dense := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(3, 5), tensor.WithEngine(e))
	if dense.IsNativelyAccessible() || dense.Engine() != tensor.Engine(e) || dense.MemSize() != 60 {
		t.Errorf("the tensor is %d bytes, natively accessible: %t", dense.MemSize(), dense.IsNativelyAccessible())
	}
	expectUsage(t, d, 256, 0)
	if !e.WorksWith(dense.DataOrder()) || e.WorksWith(tensor.ColMajor) || e.WorksWith(tensor.NonContiguous) {
		t.Error("the engine works with other orders of elements than rows")
	}
	mem, err := e.Alloc(60)
	must(t, err)
	got := make([]float32, 15)
	for _, step := range []struct {
		do   func() error
		want float32
	}{
		{func() error { return errors.Join(e.Memset(dense, float32(2.5)), e.Memcpy(mem, dense)) }, 2.5},
		{func() error { return e.Memset(mem, int32(math.Float32bits(-1))) }, -1},
		{func() error { e.Memclr(mem); return nil }, 0},
	} {
		must(t, errors.Join(step.do(), Download(d, got, Pointer(mem.Uintptr()))))
		for _, v := range got {
			if v != step.want {
				t.Fatalf("the memory holds %v, want %g", got, step.want)
			}
		}
	}
	if err := e.Memset(mem, 1.5); err == nil {
		t.Error("memory was set to a float64")
	}
	if _, err := e.Accessible(mem); !errors.Is(err, ErrAccess) {
		t.Errorf("the error is %v", err)
	}
	must(t, e.Free(mem, 60))
	if err := e.Free(mem, 60); err == nil {
		t.Error("memory was freed twice")
	}
	expectUsage(t, d, 256, 256)
	p.total = 0
	var full *MemoryError
	if _, err := e.Alloc(1 << 12); !errors.As(err, &full) {
		t.Errorf("the error is %v", err)
	}
}

// Goroutines share a device: calls reach the backend one at a time.
func TestGoroutinesShareADevice(t *testing.T) {
	d, _ := newDevice(t, 1<<20)
	counter := alloc(t, d, 4)
	must(t, d.Zero(counter.Pointer(), 4))
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 100 {
				m, err := d.Alloc(256 * (1 + i%5))
				if err != nil {
					t.Error(err)
					return
				}
				in, out := []int{g, i}, make([]int, 2)
				if err := errors.Join(Upload(d, m.Pointer(), in), d.Each("count", 1, Arg(counter.Pointer())), Download(d, out, m.Pointer())); err != nil {
					t.Error(err)
				}
				if !slices.Equal(in, out) {
					t.Errorf("%v were sent, and %v came back", in, out)
				}
				m.Free()
			}
		})
	}
	all.Wait()
	got := make([]uint32, 1)
	if err := Download(d, got, counter.Pointer()); err != nil || got[0] != 400 {
		t.Errorf("%d kernels ran, want 400: %v", got[0], err)
	}
	if used, _ := d.Usage(); used != 256 {
		t.Errorf("%d bytes are in use, want 256", used)
	}
}

// Operations are counted as they are asked for; a replay's when it runs.
func TestOperations(t *testing.T) {
	d, _ := newDevice(t, 1<<20)
	m := alloc(t, d, 8)
	check := func(what string, asked, replayed int) {
		t.Helper()
		if a, r := d.Operations(); a != asked || r != replayed {
			t.Errorf("%s: %d operations were asked for and %d replayed, want %d and %d", what, a, r, asked, replayed)
		}
	}
	three := func() error {
		return errors.Join(d.Zero(m.Pointer(), 4), d.Copy(m.Pointer().At(1, 4), m.Pointer(), 4), d.Each("count", 1, Arg(m.Pointer())))
	}
	must(t, errors.Join(three(), d.Copy(0, 0, 0), d.Zero(0, 0), d.Multiply(Product{M: 1, N: 1, K: 1}), d.Convolve(Convolution{N: 1, H: 1, W: 1})))
	check("one by one", 5, 0)
	r, err := d.Capture(three)
	must(t, err)
	check("captured", 5, 0)
	must(t, errors.Join(r.Run(), r.Run(), r.Close()))
	check("replayed twice", 7, 6)
}

// Notes from before OnNote are not lost, and no note is passed twice.
func TestSay(t *testing.T) {
	d := New("pretence", newPretence(t, 1<<20))
	d.Note("first")
	var heard []string
	d.OnNote(func(sentence string) { heard = append(heard, sentence) })
	d.Note("second")
	want := []string{"first", "second"}
	if !slices.Equal(heard, want) || !slices.Equal(d.Notes(), want) {
		t.Errorf("%q were heard, and %q noted, want %q", heard, d.Notes(), want)
	}
}

// Watch names the device once it was asked for an operation.
func TestWatch(t *testing.T) {
	d, _ := newDevice(t, 1<<20)
	watch := d.Watch()
	p, err := d.Alloc(64)
	must(t, err)
	if got := watch(); got != "cpu" {
		t.Errorf("after no operation it is %q", got)
	}
	must(t, d.Fill(p.Pointer(), 0, 16))
	if got := watch(); !strings.HasPrefix(got, d.Name()+", ") {
		t.Errorf("after an operation it is %q", got)
	}
	if got := CPU().Watch()(); got != "cpu" {
		t.Errorf("the CPU is %q", got)
	}
}
