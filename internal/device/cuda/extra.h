// What gorgonia.org/cu lacks: see doc.go. Functions return the driver's or
// cuBLAS's status, 0 for success, unless they say otherwise.
#ifndef CNE_EXTRA_H
#define CNE_EXTRA_H

#include <stddef.h>
#include <stdint.h>

// extra_missing returns 0 if there is a driver, else the dynamic linker's message.
// extra_state returns cuInit's status.
const char *extra_missing(void);
int extra_state(void);

// extra_open looks up the driver's functions, and returns the name of the first one
// that is missing, or 0.
const char *extra_open(void);
int extra_begin_capture(void *stream);
int extra_end_capture(void *stream, void **exec);
int extra_launch_graph(void *exec, void *stream);
int extra_destroy_exec(void *exec);
int extra_allow_shared(void *function, int bytes);

// blas_open opens a cuBLAS by name, as library_open does. The functions below are from
// the last one opened.
int blas_open(const char *name, char *why, size_t size);
int blas_create(void **handle);
int blas_destroy(void *handle);
int blas_prepare(void *handle, void *stream, uintptr_t workspace, size_t bytes);
int blas_math(void *handle, int mode);
int blas_version(void *handle, int *v);
int blas_sgemm(void *handle, int ta, int tb, int m, int n, int k, float alpha, uintptr_t a, int lda, uintptr_t b, int ldb, float beta, uintptr_t c, int ldc);
// blas_bfloat16 is blas_sgemm of matrices a and b of bfloat16; c is of bfloat16 if
// round_c, else of float.
int blas_bfloat16(void *handle, int ta, int tb, int m, int n, int k, float alpha, uintptr_t a, int lda, uintptr_t b, int ldb, float beta, uintptr_t c, int ldc, int round_c);

#endif
