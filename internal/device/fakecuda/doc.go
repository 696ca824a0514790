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
// does not depend on it. Built with
//
//	internal/device/fakecuda/build /tmp/libfakecuda.so races
//
// it ends the process where two threads race for memory, which it finds whatever the
// order.
//
// What a program finds when it starts is in the environment as well: the version of
// the driver (FAKECUDA_DRIVER_VERSION, as 12020), how many GPUs there are
// (FAKECUDA_DEVICES, 0 or 1), and the statuses of cuInit (FAKECUDA_INIT_STATUS),
// cublasCreate (FAKECUDA_CUBLAS_STATUS) and cudnnCreate (FAKECUDNN_STATUS).
//
// What it cannot show: speed, and whether a GPU's compiler and cuBLAS do the same.
// scripts/gpu-check does that, on a GPU.
package fakecuda
