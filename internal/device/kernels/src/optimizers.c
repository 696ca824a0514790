// The steps of optimisers.
//
// One launch moves all parameters whose rows all move. plan has 8 integers for each
// block of threads: the offsets, in floats from base, of its share of a parameter, of
// the gradient and of the one or two arrays of the optimiser's state; the number of
// elements; the bits of the weight decay; and whether to zero the gradient.
//
// numbers are the step's: its size, the clip bound of the gradient, and one that depends
// on the method. Nothing moves if *status is not 0.
#include "kernel.h"

typedef struct {
  float *w, *g, *first, *second;
  int count, clear;
  float decay;
} share;

DEVICE share share_of(float *base, const long *plan) {
  const long *p = plan + 8l * block();
  return (share){base + p[0], base + p[1], base + p[2], base + p[3], (int)p[4], (int)p[6], as_float((u32)p[5])};
}

// gradient_at returns element i of the clipped gradient plus weight decay for the
// parameter's value x.
DEVICE float gradient_at(share s, int i, float x, float bound) {
  float g = s.g[i];
  if (s.clear && g != 0.f) s.g[i] = 0.f;
  return clip(g, bound) + s.decay * x;
}

// sgd_steps: w −= step·g.
KERNEL(sgd_steps)(float *base, const long *plan, const float *numbers, const int *status) {
  if (*status != 0) return;
  share s = share_of(base, plan);
  float step = numbers[0], bound = numbers[1];
  for (int i = thread(); i < s.count; i += threads()) {
    float x = s.w[i];
    s.w[i] = x - step * gradient_at(s, i, x, bound);
  }
}

// momentum_steps: buf = momentum·buf + numbers[2]·g, w −= step·(of_g·g + of_buf·buf).
KERNEL(momentum_steps)(float *base, const long *plan, const float *numbers, const int *status, float_bits momentum, float_bits of_g, float_bits of_buf) {
  if (*status != 0) return;
  share s = share_of(base, plan);
  float step = numbers[0], bound = numbers[1], add = numbers[2];
  for (int i = thread(); i < s.count; i += threads()) {
    float x = s.w[i], g = gradient_at(s, i, x, bound), buf = VALUE(momentum) * s.first[i] + add * g;
    s.first[i] = buf;
    s.w[i] = x - step * (VALUE(of_g) * g + VALUE(of_buf) * buf);
  }
}

// adam_steps, with rest = 1 − beta: m += rest1·(g − m), v = beta2·v + rest2·g²,
// w −= step·m/(√v·numbers[2] + epsilon).
KERNEL(adam_steps)(float *base, const long *plan, const float *numbers, const int *status, float_bits rest1, float_bits beta2, float_bits rest2, float_bits epsilon) {
  if (*status != 0) return;
  share s = share_of(base, plan);
  float step = numbers[0], bound = numbers[1], scale = numbers[2];
  for (int i = thread(); i < s.count; i += threads()) {
    float x = s.w[i], g = gradient_at(s, i, x, bound), m = s.first[i], v = s.second[i];
    m += VALUE(rest1) * (g - m);
    v = VALUE(beta2) * v + VALUE(rest2) * g * g;
    s.first[i] = m;
    s.second[i] = v;
    s.w[i] = x - step * m / (sqrt_f(v) * scale + VALUE(epsilon));
  }
}

// sgd_rows moves the rows of w that rows names, each once, against the rows of g [count,
// cols]. 2^lanes threads for each row.
KERNEL(sgd_rows)(float *w, const float *g, const int *rows, long count, int cols, const float *numbers, const int *status, int lanes) {
  long r = index_of_thread() >> lanes;
  if (r >= count || *status != 0) return;
  float step = numbers[0], bound = numbers[1];
  float *to = w + (long)rows[r] * cols;
  for (int c = thread() & ((1 << lanes) - 1); c < cols; c += 1 << lanes) to[c] -= step * clip(g[r * cols + c], bound);
}

// place_rows copies the rows of g [count, cols] to the rows of y that rows names, each
// once. 2^lanes threads for each row.
KERNEL(place_rows)(float *y, const float *g, const int *rows, long count, int cols, const int *status, int lanes) {
  long r = index_of_thread() >> lanes;
  if (r >= count || *status != 0) return;
  float *to = y + (long)rows[r] * cols;
  for (int c = thread() & ((1 << lanes) - 1); c < cols; c += 1 << lanes) to[c] = g[r * cols + c];
}
