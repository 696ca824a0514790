// Package fakecuda is a stand-in for the CUDA driver, cuBLAS and cuDNN, for tests on
// machines without a GPU: a library (src, which build compiles) instead of
// libcuda.so.1, with the kernels compiled for the CPU. With the build tag cu, Open
// gives a test the stand-in's device, and the other functions control it.
//
//	internal/device/fakecuda/build /tmp/libfakecuda.so
//	export CNE_LIBCUDA=/tmp/libfakecuda.so CNE_LIBCUBLAS=/tmp/libfakecuda.so CNE_LIBCUDNN=/tmp/libfakecuda.so
//	go test -tags cu ./...
//
// A GPU runs threads in any order. The environment variable FAKECUDA_ORDER makes the
// stand-in run them backwards (1) or shuffled (any larger number: a seed); tests must
// not depend on it.
//
// Another build of the stand-in is slower and stricter:
//
//	internal/device/fakecuda/build /tmp/libfakecuda.so checked
//
// It ends the process where two threads race for memory, whatever their order, and at
// undefined behaviour, such as misaligned accesses. It computes as differently from
// the CPU as a GPU may: it fuses multiplications and additions as the PTX does;
// approximate instructions have the error that NVIDIA documents; products are summed
// in another order and, if Device.TF32 is set, of operands rounded to TF32 (or
// truncated, with FAKECUDA_TF32=cut); and a kernel's failure shows only when the
// program waits for the device.
//
// What a program finds at its start is set in the environment, too: the driver's
// version (FAKECUDA_DRIVER_VERSION, such as 12020), the number of GPUs
// (FAKECUDA_DEVICES, 0 or 1), and the statuses of cuInit (FAKECUDA_INIT_STATUS),
// cublasCreate (FAKECUDA_CUBLAS_STATUS) and cudnnCreate (FAKECUDNN_STATUS).
//
// None of this shows speed, or that a GPU's compiler and libraries do the same:
// scripts/gpu-visit, which needs a GPU, does.
package fakecuda
