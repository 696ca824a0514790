// Package fakecuda is a stand-in for the CUDA driver, cuBLAS and cuDNN on machines
// without a GPU, for tests: a library (src, which build makes) in place of
// libcuda.so.1, with the kernels compiled for this machine. With the build tag cu,
// Open gives a test the device that it makes, and the other functions say how it
// is to behave.
//
//	internal/device/fakecuda/build /tmp/libfakecuda.so
//	export CNE_LIBCUDA=/tmp/libfakecuda.so CNE_LIBCUBLAS=/tmp/libfakecuda.so CNE_LIBCUDNN=/tmp/libfakecuda.so
//	go test -tags cu ./...
//
// A GPU runs threads in any order. FAKECUDA_ORDER in the environment makes the stand-in
// run them backwards (1) or shuffled (any larger number: a seed); what the tests see
// does not depend on it.
//
// There are other builds of the stand-in, for what else is different on a GPU:
//
//	internal/device/fakecuda/build /tmp/libfakecuda.so races
//	internal/device/fakecuda/build /tmp/libfakecuda.so hardware
//	internal/device/fakecuda/build /tmp/libfakecuda.so sanitize
//
// The first ends the process where two threads race for memory, which it finds whatever
// the order. The second computes as differently from the CPU as a GPU may: it fuses
// multiplications and additions as the PTX does, approximate instructions have the error
// that NVIDIA documents, products are summed in another order and, if Device.TF32
// allows it, of operands that are rounded to TF32 (or cut, with FAKECUDA_TF32=cut), and that a kernel has failed shows when the program
// waits for the device. The third ends the process at what C leaves undefined, such as
// accesses that are not aligned.
//
// What a program finds when it starts is in the environment as well: the version of
// the driver (FAKECUDA_DRIVER_VERSION, as 12020), how many GPUs there are
// (FAKECUDA_DEVICES, 0 or 1), and the statuses of cuInit (FAKECUDA_INIT_STATUS),
// cublasCreate (FAKECUDA_CUBLAS_STATUS) and cudnnCreate (FAKECUDNN_STATUS).
//
// What none can show: speed, and whether a GPU's compiler and libraries do the same.
// scripts/gpu-check does that, on a GPU.
package fakecuda
