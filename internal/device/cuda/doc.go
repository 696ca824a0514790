// Package cuda is the driver for NVIDIA's GPUs of package device, with the build tag
// cu. Without the tag it is empty, and package device finds no GPU.
//
// It uses gorgonia.org/cu for the context, memory, modules, streams and launches. What
// that package lacks (launching CUDA graphs, more than 48 KiB of shared memory) is
// looked up in the driver when the program starts. The program is not linked to the
// driver, so that it starts, and computes on the CPU, where there is none: it is linked
// to the library in folder shim.
//
// cuBLAS is opened with the first GPU, and the whole process uses the one that starts
// there: see blasNames. cuDNN is opened by each device's first convolution; without it
// kernels and cuBLAS compute convolutions. Both are also found among Python's packages:
// see pythons.
//
// The kernels are in package device/kernels. The driver gets a module, and compiles it,
// when the first of its kernels is launched.
package cuda
