// What is done to each element of arrays on its own.
#include "kernel.h"

// sum: y = a + b.
KERNEL(sum)(float *y, const float *a, const float *b, long n) {
  long i = index_of_thread();
  if (i < n) y[i] = a[i] + b[i];
}

// relu_grad: what of g comes through to where y, a rectified result, is positive.
KERNEL(relu_grad)(float *dst, const float *y, const float *g, long n) {
  long i = index_of_thread();
  if (i < n) dst[i] = y[i] > 0.f ? g[i] : 0.f;
}

// temper: y = x/√τ for log τ at log_temperature, bounded to [least, most].
KERNEL(temper)(float *y, const float *x, const float *log_temperature, number least, number most, long n) {
  long i = index_of_thread();
  if (i >= n) return;
  float t = *log_temperature;
  t = t < VALUE(least) ? VALUE(least) : t > VALUE(most) ? VALUE(most) : t; // a NaN stays one
  y[i] = exponential(-.5f * t) * x[i];
}
