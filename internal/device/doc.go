// Package device is where programs run: on the processor, or on an accelerator
// with memory of its own.
//
// A Device allocates, copies and clears its memory, launches kernels by name and
// multiplies matrices. What it is asked for happens in that order, but not
// necessarily at once: Synchronize, and whatever reads the memory, waits. Of the
// processor there is one, CPU, whose memory is the program's own: operations have
// Go forms for it, and use none of this.
//
// Accelerators come from drivers, which register themselves when their package is
// linked in. Package device/cuda is the driver of NVIDIA's, with the build tag cu
// (see docs/gpu.md); the kernels that it runs are package device/kernels. Open
// picks a device by name.
//
// An Engine is a device as a tensor.Engine: a value on it is a tensor.Dense whose
// memory the program cannot read, which Gorgonia's machines can pass from one
// operation to the next.
//
// What does not live here: which kernel computes what (package model/op and the
// packages that launch them), and when devices are used.
package device
