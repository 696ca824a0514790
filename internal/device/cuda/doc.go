// Package cuda is the driver of NVIDIA's GPUs for package device, with the build
// tag cu. Without the tag it is empty, and package device finds no GPU.
//
// It goes through gorgonia.org/cu: the context, memory, modules, streams and
// launches. What that package lacks (CUDA graphs that can be launched, kernels
// with much shared memory) are functions of the driver that are looked up when the
// program starts: the program is linked to none, so that it starts, and
// computes on the CPU, where there is no driver. The folder shim has the library
// that it is linked to instead.
//
// cuBLAS is opened with the first GPU, and the first that starts there is that of the
// process: see blasNames. cuDNN is opened for the first convolution of each device; without
// it the kernels and cuBLAS compute them.
//
// The kernels are those of package device/kernels. A module of them is given to
// the driver, which compiles it, when its first kernel is launched.
package cuda
