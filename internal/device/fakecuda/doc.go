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
// What it cannot show: races, speed, and whether a GPU's compiler and cuBLAS do the
// same. scripts/gpu-check does that, on a GPU.
package fakecuda
