// Elementwise operations.
#include "kernel.h"

// Kernels whose names end with _4 or _h4 have a thread for four elements: see quad. Those
// with _h4 or _h1 have arrays of bfloat16: see load_at.
#define FOR_WIDTHS(declare) declare(, 1, 0) declare(_4, 4, 0) declare(_h1, 1, 1) declare(_h4, 4, 1)

// sum: y = a + b.
DEVICE void sum_at(void *y, const void *a, const void *b, long n, int width, int half) {
  long i = index_of_thread() * width;
  if (i < n) store_at(y, i, load_at(a, i, width, half) + load_at(b, i, width, half), width, half);
}
#define SUM(suffix, width, half) \
  KERNEL(sum##suffix)(void *y, const void *a, const void *b, long n) { sum_at(y, a, b, n, width, half); }
FOR_WIDTHS(SUM)

// relu_grad: g where y, the result of a ReLU, is positive, else 0.
DEVICE void relu_grad_at(void *dst, const void *y, const void *g, long n, int width, int half) {
  long i = index_of_thread() * width;
  if (i >= n) return;
  quad v = load_at(y, i, width, half), w = load_at(g, i, width, half);
  for (int k = 0; k < width; k++) w[k] = v[k] > 0.f ? w[k] : 0.f;
  store_at(dst, i, w, width, half);
}
#define RELU_GRAD(suffix, width, half) \
  KERNEL(relu_grad##suffix)(void *dst, const void *y, const void *g, long n) { relu_grad_at(dst, y, g, n, width, half); }
FOR_WIDTHS(RELU_GRAD)

// round: y of bfloat16 is x of floats, rounded; widen: y of floats is x of bfloat16.
#define ROUND(suffix, width) \
  KERNEL(round##suffix)(void *y, const float *x, long n) { \
    long i = index_of_thread() * width; \
    if (i < n) store_at(y, i, load_at(x, i, width, 0), width, 1); \
  } \
  KERNEL(widen##suffix)(float *y, const void *x, long n) { \
    long i = index_of_thread() * width; \
    if (i < n) store_at(y, i, load_at(x, i, width, 1), width, 0); \
  }
ROUND(, 1)
ROUND(_4, 4)
