// Package device runs operations on an accelerator that has memory of its own. The CPU
// is a Device, too, so that callers can hold either.
//
// A Device allocates, copies and clears memory, launches kernels by name and multiplies
// matrices. Requests are executed in order, but asynchronously: Synchronize and reading
// memory wait for them. The CPU is a device without any of this: operations have Go code
// for it.
//
// Accelerators come from drivers, which register themselves when their package is
// linked in. Package device/cuda is the driver for NVIDIA's GPUs (build tag cu, see
// docs/gpu.md); it runs the kernels of package device/kernels. Open picks a device by
// name.
//
// An Engine makes a device a tensor.Engine: its values are tensor.Dense whose memory
// the program cannot read, and which Gorgonia's machines can pass from one operation to
// the next.
//
// Which kernel computes what is decided in package model/op and the other packages that
// launch kernels.
package device
