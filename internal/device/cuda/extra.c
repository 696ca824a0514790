//go:build cu

#define _GNU_SOURCE
#include "extra.h"

#include <string.h>

#include "library.h"

void *cneshim_symbol(const char *name);
const char *cneshim_missing(void);
int cneshim_state(void);

const char *extra_missing(void) { return cneshim_missing(); }
int extra_state(void) { return cneshim_state(); }

// Functions of the driver, by their names there.
static int (*begin_capture)(void *stream, int mode);
static int (*end_capture)(void *stream, void **graph);
static int (*instantiate)(void **exec, void *graph, unsigned long long flags);
static int (*launch_graph)(void *exec, void *stream);
static int (*destroy_graph)(void *graph);
static int (*destroy_exec)(void *exec);
static int (*set_attribute)(void *function, int attribute, int value);

const char *extra_open(void) {
  library_function wanted[] = {
      {&begin_capture, "cuStreamBeginCapture_v2"}, {&end_capture, "cuStreamEndCapture"},
      {&instantiate, "cuGraphInstantiateWithFlags"}, {&launch_graph, "cuGraphLaunch"},
      {&destroy_graph, "cuGraphDestroy"}, {&destroy_exec, "cuGraphExecDestroy"},
      {&set_attribute, "cuFuncSetAttribute"},
  };
  for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void *f = cneshim_symbol(wanted[i].name);
    if (!f) return wanted[i].name;
    memcpy(wanted[i].at, &f, sizeof f);
  }
  return 0;
}

int extra_begin_capture(void *stream) { return begin_capture(stream, 1); } // of this thread
int extra_end_capture(void *stream, void **exec) {
  void *graph = 0;
  int r = end_capture(stream, &graph);
  if (r) return r;
  r = instantiate(exec, graph, 0);
  int d = destroy_graph(graph);
  return r ? r : d;
}
int extra_launch_graph(void *exec, void *stream) { return launch_graph(exec, stream); }
int extra_destroy_exec(void *exec) { return destroy_exec(exec); }
// 8 is CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
int extra_allow_shared(void *function, int bytes) { return set_attribute(function, 8, bytes); }

// cuBLAS. The signatures are the same from version 11 to 13.
static int (*create)(void **);
static int (*destroy)(void *);
static int (*set_stream)(void *, void *);
static int (*set_math)(void *, int);
static int (*set_workspace)(void *, void *, size_t);
static int (*sgemm)(void *, int, int, int, int, int, const float *, uintptr_t, int, uintptr_t, int, const float *, uintptr_t, int);
static int (*gemm_ex)(void *, int, int, int, int, int, const void *, uintptr_t, int, int, uintptr_t, int, int, const void *, uintptr_t, int, int, int, int);
static int (*version)(void *, int *);

int blas_open(const char *name, char *why, size_t size) {
  library_function wanted[] = {
      {&create, "cublasCreate_v2"}, {&destroy, "cublasDestroy_v2"}, {&set_stream, "cublasSetStream_v2"},
      {&set_math, "cublasSetMathMode"}, {&set_workspace, "cublasSetWorkspace_v2"},
      {&sgemm, "cublasSgemm_v2"}, {&gemm_ex, "cublasGemmEx"}, {&version, "cublasGetVersion_v2"},
  };
  return library_open(name, wanted, sizeof wanted / sizeof *wanted, why, size);
}
int blas_create(void **handle) { return create(handle); }
int blas_destroy(void *handle) { return destroy(handle); }
int blas_prepare(void *handle, void *stream, uintptr_t workspace, size_t bytes) {
  int r = set_stream(handle, stream);
  return r ? r : set_workspace(handle, (void *)workspace, bytes);
}
int blas_math(void *handle, int mode) { return set_math(handle, mode); }
int blas_version(void *handle, int *v) { return version(handle, v); }
int blas_sgemm(void *h, int ta, int tb, int m, int n, int k, float alpha, uintptr_t a, int lda, uintptr_t b, int ldb, float beta, uintptr_t c, int ldc) {
  return sgemm(h, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}
int blas_bfloat16(void *h, int ta, int tb, int m, int n, int k, float alpha, uintptr_t a, int lda, uintptr_t b, int ldb, float beta, uintptr_t c, int ldc, int round_c) {
  enum { r_32f = 0, r_16bf = 14, compute_32f = 68, default_algorithm = -1 };
  return gemm_ex(h, ta, tb, m, n, k, &alpha, a, r_16bf, lda, b, r_16bf, ldb, &beta, c, round_c ? r_16bf : r_32f, ldc, compute_32f, default_algorithm);
}
