// Elementwise operations.
#include "kernel.h"

// sum: y = a + b. Kernels whose names end with _4 have a thread for four elements: see
// quad.
DEVICE void sum_at(float *y, const float *a, const float *b, long n, int width) {
  long i = index_of_thread() * width;
  if (i < n) store(y + i, load(a + i, width) + load(b + i, width), width);
}
KERNEL(sum)(float *y, const float *a, const float *b, long n) { sum_at(y, a, b, n, 1); }
KERNEL(sum_4)(float *y, const float *a, const float *b, long n) { sum_at(y, a, b, n, 4); }

// relu_grad: g where y, the result of a ReLU, is positive, else 0.
DEVICE void relu_grad_at(float *dst, const float *y, const float *g, long n, int width) {
  long i = index_of_thread() * width;
  if (i >= n) return;
  quad v = load(y + i, width), w = load(g + i, width);
  for (int k = 0; k < width; k++) w[k] = v[k] > 0.f ? w[k] : 0.f;
  store(dst + i, w, width);
}
KERNEL(relu_grad)(float *dst, const float *y, const float *g, long n) { relu_grad_at(dst, y, g, n, 1); }
KERNEL(relu_grad_4)(float *dst, const float *y, const float *g, long n) { relu_grad_at(dst, y, g, n, 4); }

// relu: y = max(0, a); add_relu: y = max(0, a + b). NaN stays.
DEVICE void relu_at(float *y, const float *a, const float *b, long n, int width) {
  long i = index_of_thread() * width;
  if (i >= n) return;
  quad v = load(a + i, width);
  if (b) v += load(b + i, width);
  store(y + i, clamp_below(v, 0.f, width), width);
}
KERNEL(relu)(float *y, const float *a, long n) { relu_at(y, a, 0, n, 1); }
KERNEL(relu_4)(float *y, const float *a, long n) { relu_at(y, a, 0, n, 4); }
KERNEL(add_relu)(float *y, const float *a, const float *b, long n) { relu_at(y, a, b, n, 1); }
KERNEL(add_relu_4)(float *y, const float *a, const float *b, long n) { relu_at(y, a, b, n, 4); }

// scale_by_temperature: y = x/√τ, with log τ at log_temperature, clamped to [least,
// most].
KERNEL(scale_by_temperature)(float *y, const float *x, const float *log_temperature, float_bits least, float_bits most, long n) {
  long i = index_of_thread();
  if (i >= n) return;
  float t = *log_temperature;
  t = t < VALUE(least) ? VALUE(least) : t > VALUE(most) ? VALUE(most) : t; // a NaN stays one
  y[i] = exp_f(-.5f * t) * x[i];
}
