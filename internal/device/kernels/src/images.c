// Operations on images [n, h, w, c], except convolutions: see im2col.c.
#include "kernel.h"

// Kernels whose name ends with _4 take channels by fours, those with _1 one by one: see
// quad. Those with _h4 and _h1 have images of bfloat16: see load_at.
#define FOR_WIDTHS(declare) declare(_4, 4, 0) declare(_1, 1, 0) declare(_h4, 4, 1) declare(_h1, 1, 1)

// The kernels of batch normalisation see images as a matrix x [rows, c]. A block of 256
// threads has a strip of lanes·width columns and a part of the rows, 256/lanes of them
// at a time; lanes is a power of two, at most 32. There are strips·parts blocks.
enum { most_threads = 256 };
typedef struct { long first, end, step, part; int column, here; } place;
DEVICE place place_of(long rows, int c, int lanes, int strips, int width) {
  place p;
  long parts = blocks() / strips, each = (rows + parts - 1) / parts;
  p.part = block() / strips;
  p.first = p.part * each;
  p.end = p.first + each < rows ? p.first + each : rows;
  p.first += thread() / lanes;
  p.step = threads() / lanes;
  p.column = (block() % strips * lanes + thread() % lanes) * width;
  p.here = p.column < c;
  return p;
}

// store_partials writes the sums of a and of b over the block's rows to partial [parts,
// 2, c].
DEVICE void store_partials(float *partial, quad a, quad b, place p, int c, int lanes, int width) {
  SHARED_ARRAY(quad, of_a, most_threads);
  SHARED_ARRAY(quad, of_b, most_threads);
  of_a[thread()] = a;
  of_b[thread()] = b;
  barrier();
  if (thread() < lanes && p.here) {
    for (int i = thread() + lanes; i < threads(); i += lanes) {
      a += of_a[i];
      b += of_b[i];
    }
    float *to = partial + p.part * 2 * c + p.column;
    store(to, a, width);
    store(to + c, b, width);
  }
}

// state [11, c] has for each channel what normalisation needs, forward y = max(floor,
// factor·(x − pivot) + shift), and backward.
enum {
  of_pivot,   // the mean as a float
  of_factor,  // scale/√(variance + ε)
  of_shift,   //
  of_off,     // the mean less pivot
  of_inverse, // 1/√(variance + ε)
  of_sample,  // an estimate of the mean
  of_g, of_x, of_one, // dx = g·of_g + (x − pivot)·of_x + of_one
  of_sum_g, of_sum_gz, // the gradients of shift and scale
};
enum { samples = 16 };

// norm_moments: by part, Σ(x − sample) and Σ(x − sample)², where sample is the mean of
// some rows: about it there is no cancellation, however far the mean is from 0.
DEVICE void add_moments(quad *sum, quad *squares, const void *x, long at, long step, quad sample, int width, int half, int count) {
  quad v[4];
  for (int k = 0; k < count; k++) v[k] = load_at(x, at + k * step, width, half);
  for (int k = 0; k < count; k++) {
    quad d = v[k] - sample;
    *sum += d;
    *squares += d * d;
  }
}
DEVICE void moments(float *partial, float *state, const void *x, long rows, int c, int lanes, int strips, int width, int half) {
  place p = place_of(rows, c, lanes, strips, width);
  quad sum = 0.f, squares = 0.f;
  if (p.here) {
    quad sample = 0.f;
    for (int k = 0; k < samples; k++) sample += load_at(x, rows * k / samples * c + p.column, width, half);
    sample *= 1.f / samples;
    if (p.part == 0 && thread() < lanes) store(state + of_sample * c + p.column, sample, width);
    long r = p.first, step = p.step * c, at = r * c + p.column;
    for (; r + 3 * p.step < p.end; r += 4 * p.step, at += 4 * step) add_moments(&sum, &squares, x, at, step, sample, width, half, 4);
    for (; r < p.end; r += p.step, at += step) add_moments(&sum, &squares, x, at, step, sample, width, half, 1);
  }
  store_partials(partial, sum, squares, p, c, lanes, width);
}
#define MOMENTS(suffix, width, half) \
  KERNEL_SYNC(norm_moments##suffix)(float *partial, float *state, const void *x, long rows, int c, int lanes, int strips) { \
    moments(partial, state, x, rows, c, lanes, strips, width, half); \
  }
FOR_WIDTHS(MOMENTS)

// add_parts returns the sums of both rows of partial for the thread's channel, in the
// block's first 32 threads. Blocks have 1024 threads and 32 channels.
typedef struct { double a, b; } pair;
DEVICE pair add_parts(const float *partial, int parts, int c) {
  SHARED_ARRAY(double, of_a, 1024);
  SHARED_ARRAY(double, of_b, 1024);
  int k = block() * 32 + thread() % 32;
  double a = 0, b = 0;
  if (k < c)
    for (int p = thread() / 32; p < parts; p += 32) {
      a += (double)partial[(long)p * 2 * c + k];
      b += (double)partial[((long)p * 2 + 1) * c + k];
    }
  of_a[thread()] = a;
  of_b[thread()] = b;
  barrier();
  if (thread() < 32)
    for (int i = thread() + 32; i < 1024; i += 32) {
      a += of_a[i];
      b += of_b[i];
    }
  return (pair){a, b};
}

// norm_is sets the state of channel k from its mean and variance; ε is 1e-5.
DEVICE void norm_is(float *state, int k, int c, double mean, double variance, float scale, float shift) {
  double inverse = 1. / sqrt_d(variance + 1e-5), factor = (double)scale * inverse;
  float pivot = (float)mean;
  state[of_pivot * c + k] = pivot;
  state[of_factor * c + k] = (float)factor;
  state[of_off * c + k] = (float)(mean - (double)pivot);
  state[of_shift * c + k] = (float)((double)shift - factor * (mean - (double)pivot));
  state[of_inverse * c + k] = (float)inverse;
}

// norm_batch: the state from the moments of count rows, which also enter the running
// means and unbiased variances [c] with weight 0.1. ⌈c/32⌉ blocks of 1024 threads.
KERNEL_SYNC_OF(1024, 1, norm_batch)(float *state, float *means, float *variances, const float *partial, const float *scale, const float *shift, int parts, int c, long count) {
  pair s = add_parts(partial, parts, c);
  int k = block() * 32 + thread();
  if (thread() >= 32 || k >= c) return;
  double n = (double)count, mean = (double)state[of_sample * c + k] + s.a / n, scatter = s.b - s.a / n * s.a;
  scatter = scatter < 0 ? 0 : scatter; // NaN stays
  means[k] = (float)(0.9 * (double)means[k] + 0.1 * mean);
  variances[k] = (float)(0.9 * (double)variances[k] + 0.1 * (scatter / (n - 1)));
  norm_is(state, k, c, mean, scatter / n, scale[k], shift[k]);
}

// norm_running: the state from the running means and variances; a thread for each
// channel.
KERNEL(norm_running)(float *state, const float *means, const float *variances, const float *scale, const float *shift, int c) {
  long k = index_of_thread();
  if (k < c) norm_is(state, (int)k, c, (double)means[k], (double)variances[k], scale[k], shift[k]);
}

// A norm is the part of the state that forward passes need, for a thread's channels.
typedef struct { quad pivot, factor, shift; float floor; } norm;
DEVICE norm norm_at(const float *state, float floor, int c, int width) {
  return (norm){load(state + of_pivot * c, width), load(state + of_factor * c, width), load(state + of_shift * c, width), floor};
}

// norm_apply: y = max(floor, factor·(x − pivot) + shift); norm_add: y = max(floor, factor·(x
// − pivot) + shift + plus).
DEVICE void apply_rows(void *y, const void *x, const void *plus, long at, long step, const norm *m, int width, int half, int count) {
  quad v[4], w[4];
  for (int k = 0; k < count; k++) {
    v[k] = load_at(x, at + k * step, width, half);
    if (plus) w[k] = load_at(plus, at + k * step, width, half);
  }
  for (int k = 0; k < count; k++) {
    quad z = m->factor * (v[k] - m->pivot) + m->shift;
    if (plus) z += w[k];
    store_at(y, at + k * step, clamp_below(z, m->floor, width), width, half);
  }
}
// some is the number of rows at a time: a constant, or they would be in local memory.
DEVICE void apply(void *y, const void *x, const void *plus, const float *state, float floor, long rows, int c, int lanes, int strips, int width, int half, int some) {
  place p = place_of(rows, c, lanes, strips, width);
  if (!p.here) return;
  norm m = norm_at(state + p.column, floor, c, width);
  long r = p.first, step = p.step * c, at = r * c + p.column;
  for (; r + (some - 1) * p.step < p.end; r += some * p.step, at += some * step) apply_rows(y, x, plus, at, step, &m, width, half, some);
  for (; r < p.end; r += p.step, at += step) apply_rows(y, x, plus, at, step, &m, width, half, 1);
}
#define APPLY(suffix, width, half) \
  KERNEL(norm_apply##suffix)(void *y, const void *x, const float *state, float_bits floor, long rows, int c, int lanes, int strips) { \
    apply(y, x, 0, state, VALUE(floor), rows, c, lanes, strips, width, half, 4); \
  } \
  KERNEL(norm_add##suffix)(void *y, const void *x, const void *plus, const float *state, float_bits floor, long rows, int c, int lanes, int strips) { \
    apply(y, x, plus, state, VALUE(floor), rows, c, lanes, strips, width, half, 2); \
  }
FOR_WIDTHS(APPLY)

// relu_grad_of returns the gradient g where y is above the floor, else 0.
DEVICE quad relu_grad_of(quad g, quad y, float floor, int width) {
  for (int k = 0; k < width; k++) g[k] = y[k] <= floor ? 0.f : g[k];
  return g;
}

// norm_products: by part, Σg and Σg·(x − pivot).
DEVICE void add_products(quad *sum, quad *by_x, const void *g, const void *x, long at, long step, const norm *m, int width, int half, int count) {
  quad v[2], w[2];
  for (int k = 0; k < count; k++) {
    v[k] = load_at(x, at + k * step, width, half);
    w[k] = load_at(g, at + k * step, width, half);
  }
  for (int k = 0; k < count; k++) {
    quad d = v[k] - m->pivot, through = relu_grad_of(w[k], m->factor * d + m->shift, m->floor, width);
    *sum += through;
    *by_x += through * d;
  }
}
DEVICE void products(float *partial, const void *g, const void *x, const float *state, float floor, long rows, int c, int lanes, int strips, int width, int half) {
  place p = place_of(rows, c, lanes, strips, width);
  quad sum = 0.f, by_x = 0.f;
  if (p.here) {
    norm m = norm_at(state + p.column, floor, c, width);
    long r = p.first, step = p.step * c, at = r * c + p.column;
    for (; r + p.step < p.end; r += 2 * p.step, at += 2 * step) add_products(&sum, &by_x, g, x, at, step, &m, width, half, 2);
    if (r < p.end) add_products(&sum, &by_x, g, x, at, step, &m, width, half, 1);
  }
  store_partials(partial, sum, by_x, p, c, lanes, width);
}
#define PRODUCTS(suffix, width, half) \
  KERNEL_SYNC(norm_products##suffix)(float *partial, const void *g, const void *x, const float *state, float_bits floor, long rows, int c, int lanes, int strips) { \
    products(partial, g, x, state, VALUE(floor), rows, c, lanes, strips, width, half); \
  }
FOR_WIDTHS(PRODUCTS)

// norm_blend: the backward part of the state from the products, with z = (x −
// mean)·inverse. ⌈c/32⌉ blocks of 1024 threads.
KERNEL_SYNC_OF(1024, 1, norm_blend)(float *state, const float *partial, const float *scale, int parts, int c, long count, int evaluated) {
  pair s = add_parts(partial, parts, c);
  int k = block() * 32 + thread();
  if (thread() >= 32 || k >= c) return;
  double inverse = (double)state[of_inverse * c + k], off = (double)state[of_off * c + k];
  double gz = inverse * (s.b - off * s.a), factor = (double)scale[k] * inverse, n = (double)count;
  double by_x = 0, one = 0;
  if (!evaluated && count > 0) {
    by_x = -factor * inverse * gz / n;
    one = -factor * s.a / n - by_x * off;
  }
  state[of_g * c + k] = (float)factor;
  state[of_x * c + k] = (float)by_x;
  state[of_one * c + k] = (float)one;
  state[of_sum_g * c + k] = (float)s.a;
  state[of_sum_gz * c + k] = (float)gz;
}

// norm_gradient: dx = g·of_g + (x − pivot)·of_x + of_one.
typedef struct { quad by_g, by_x, one; } blend;
DEVICE void gradient_rows(void *dx, const void *g, const void *x, long at, long step, const norm *m, const blend *b, int width, int half, int count) {
  quad v[2], w[2];
  for (int k = 0; k < count; k++) {
    v[k] = load_at(x, at + k * step, width, half);
    w[k] = load_at(g, at + k * step, width, half);
  }
  for (int k = 0; k < count; k++) {
    quad d = v[k] - m->pivot, through = relu_grad_of(w[k], m->factor * d + m->shift, m->floor, width);
    store_at(dx, at + k * step, b->by_g * through + (b->by_x * d + b->one), width, half);
  }
}
DEVICE void gradient(void *dx, const void *g, const void *x, const float *state, float floor, long rows, int c, int lanes, int strips, int width, int half) {
  place p = place_of(rows, c, lanes, strips, width);
  if (!p.here) return;
  const float *s = state + p.column;
  norm m = norm_at(s, floor, c, width);
  blend b = {load(s + of_g * c, width), load(s + of_x * c, width), load(s + of_one * c, width)};
  long r = p.first, step = p.step * c, at = r * c + p.column;
  for (; r + p.step < p.end; r += 2 * p.step, at += 2 * step) gradient_rows(dx, g, x, at, step, &m, &b, width, half, 2);
  if (r < p.end) gradient_rows(dx, g, x, at, step, &m, &b, width, half, 1);
}
#define GRADIENT(suffix, width, half) \
  KERNEL(norm_gradient##suffix)(void *dx, const void *g, const void *x, const float *state, float_bits floor, long rows, int c, int lanes, int strips) { \
    gradient(dx, g, x, state, VALUE(floor), rows, c, lanes, strips, width, half); \
  }
FOR_WIDTHS(GRADIENT)

// transpose_each: transposes matrices x [n/(rows·cols), rows, cols] into y
// [n/(rows·cols), cols, rows]; a thread for each of n elements. transpose_round makes
// bfloat16 of floats, transpose_widen floats of bfloat16.
DEVICE void transpose(void *y, int to_half, const void *x, int from_half, int rows, int cols, long n) {
  long i = index_of_thread();
  if (i >= n) return;
  int size = rows * cols, at = (int)(i % size);
  store_at(y, i, load_at(x, i - at + at % rows * cols + at / rows, 1, from_half), 1, to_half);
}
KERNEL(transpose_each)(float *y, const float *x, int rows, int cols, long n) { transpose(y, 0, x, 0, rows, cols, n); }
KERNEL(transpose_round)(void *y, const float *x, int rows, int cols, long n) { transpose(y, 1, x, 0, rows, cols, n); }
KERNEL(transpose_widen)(float *y, const void *x, int rows, int cols, long n) { transpose(y, 0, x, 1, rows, cols, n); }

// pixel_means: y [n/c, c] are the means of images x [n/c, pixels, c] over their pixels;
// a thread for each of n. The images of pixel_means_h are of bfloat16.
DEVICE void means(float *y, const void *x, int pixels, int c, long n, int half) {
  long i = index_of_thread();
  if (i >= n) return;
  long at = i / c * pixels * c + i % c;
  float sum = 0.f;
  for (int p = 0; p < pixels; p++) sum += load_at(x, at + (long)p * c, 1, half).x;
  y[i] = sum / (float)pixels;
}
KERNEL(pixel_means)(float *y, const float *x, int pixels, int c, long n) { means(y, x, pixels, c, n, 0); }
KERNEL(pixel_means_h)(float *y, const void *x, int pixels, int c, long n) { means(y, x, pixels, c, n, 1); }

// pixel_means_grad: dx [n/(pixels·c), pixels, c] from the gradient g [n/(pixels·c), c]
// of the means; a thread for each of n elements. dx of pixel_means_grad_h is of bfloat16.
DEVICE void means_grad(void *dx, const float *g, int pixels, int c, long n, int half) {
  long i = index_of_thread();
  if (i < n) store_at(dx, i, (quad){g[i / ((long)pixels * c) * c + i % c] / (float)pixels, 0.f, 0.f, 0.f}, 1, half);
}
KERNEL(pixel_means_grad)(float *dx, const float *g, int pixels, int c, long n) { means_grad(dx, g, pixels, c, n, 0); }
KERNEL(pixel_means_grad_h)(void *dx, const float *g, int pixels, int c, long n) { means_grad(dx, g, pixels, c, n, 1); }
