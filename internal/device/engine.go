package device

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"gorgonia.org/tensor"
)

// ErrAccess is the error of an attempt to read a device's memory as if it were the
// program's.
var ErrAccess = errors.New("device: the program cannot read a device's memory; copy the value first")

// An Engine is the engine of tensors in a device's memory. It keeps its allocations until
// Free, since tensors do not report their last use.
type Engine struct {
	device *Device

	mu   sync.Mutex
	kept map[uintptr]*Memory
}

var (
	_ tensor.Engine       = (*Engine)(nil)
	_ tensor.NonStdEngine = (*Engine)(nil)
)

// NewEngine returns an engine for an accelerator.
func NewEngine(d *Device) *Engine { return &Engine{device: d, kept: map[uintptr]*Memory{}} }

// Device returns the device in whose memory the engine's tensors are.
func (e *Engine) Device() *Device { return e.device }

// NonStdAlloc implements tensor.NonStdEngine: memory comes from Alloc.
func (e *Engine) NonStdAlloc() {}

// AllocAccessible implements tensor.Engine: the program cannot read the memory.
func (e *Engine) AllocAccessible() bool { return false }

// Alloc implements tensor.Engine.
func (e *Engine) Alloc(size int64) (tensor.Memory, error) {
	m, err := e.device.Alloc(int(size))
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept[m.Uintptr()] = m
	return m, nil
}

// Free implements tensor.Engine.
func (e *Engine) Free(mem tensor.Memory, _ int64) error {
	e.mu.Lock()
	m := e.kept[mem.Uintptr()]
	delete(e.kept, mem.Uintptr())
	e.mu.Unlock()
	if m == nil {
		return fmt.Errorf("device: freeing memory: got address %#x, want memory of this engine that is in use", mem.Uintptr())
	}
	m.Free()
	return nil
}

// Memset implements tensor.Engine, for float32 and int32.
func (e *Engine) Memset(mem tensor.Memory, value any) error {
	var word uint32
	switch v := value.(type) {
	case float32:
		word = math.Float32bits(v)
	case int32:
		word = uint32(v)
	default:
		return fmt.Errorf("device: setting memory: got a %T, want float32 or int32", value)
	}
	return e.device.Fill(Pointer(mem.Uintptr()), word, int(mem.MemSize()/4))
}

// Memclr implements tensor.Engine. A failure shows in the device's next call.
func (e *Engine) Memclr(mem tensor.Memory) {
	_ = e.device.Zero(Pointer(mem.Uintptr()), int(mem.MemSize()))
}

// Memcpy implements tensor.Engine, within the device.
func (e *Engine) Memcpy(dst, src tensor.Memory) error {
	return e.device.Copy(Pointer(dst.Uintptr()), Pointer(src.Uintptr()), int(min(dst.MemSize(), src.MemSize())))
}

// Accessible implements tensor.Engine: it refuses.
func (e *Engine) Accessible(tensor.Memory) (tensor.Memory, error) { return nil, ErrAccess }

// WorksWith implements tensor.Engine.
func (e *Engine) WorksWith(order tensor.DataOrder) bool {
	return order.IsContiguous() && order.IsRowMajor()
}
