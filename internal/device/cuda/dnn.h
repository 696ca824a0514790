// cuDNN, version 8 or 9: see dnn.c. Functions return its status, 0 for success,
// unless they say otherwise.
#ifndef CNE_DNN_H
#define CNE_DNN_H

#include <stddef.h>
#include <stdint.h>

typedef struct dnn dnn;

// dnn_open opens a library by name. It returns 0 on failure, with library_open's
// message, or with the part of cuDNN 9 that is missing.
dnn *dnn_open(const char *name, char *why, size_t size);
int dnn_create(dnn *d, void *stream);
// dnn_destroy frees d, also after a dnn_create that failed.
int dnn_destroy(dnn *d);
size_t dnn_version(dnn *d);

// The parts of a convolution, numbered as in device.ConvolutionPart.
enum { dnn_images, dnn_weights, dnn_result };
// A convolution: see device.Convolution.
typedef struct { int part, n, h, w, c, k, kh, kw, oh, ow, stride, pad; } dnn_shape;

// One of cuDNN's algorithms for it.
typedef struct {
  int algorithm, math;
  size_t workspace; // bytes
} dnn_way;
enum { dnn_most_ways = 16 };
// A plan has cuDNN's descriptors of a convolution and the deterministic algorithms for
// it, the fastest first by cuDNN's heuristics.
typedef struct {
  int part, count;
  void *images, *weights, *result, *convolution;
  dnn_way ways[dnn_most_ways];
} dnn_plan;

// The numbers that a convolution is computed in: float32, float32 whose factors may be
// rounded to TF32, or bfloat16. Sums are float32.
enum { dnn_float32, dnn_tf32, dnn_bfloat16 };
// dnn_make fills in a plan, which dnn_free must free even after an error.
int dnn_make(dnn *d, dnn_plan *p, const dnn_shape *s, int numbers);
void dnn_free(dnn *d, dnn_plan *p);
int dnn_run(dnn *d, const dnn_plan *p, int way, uintptr_t images, uintptr_t weights, uintptr_t result, uintptr_t workspace);

#endif
