// Layers of networks on rows of matrices, and their gradients.
//
// 2^lanes neighbouring threads, at most a warp, share a row: as many as it has columns,
// so that they read neighbouring memory. The grid has that many threads for each row,
// in blocks of 256.
#include "kernel.h"

DEVICE long row_of_thread(int lanes) { return index_of_thread() >> lanes; }
DEVICE int column_of_thread(int lanes) { return thread() & ((1 << lanes) - 1); }

// lanes_sum returns the sum over the threads of a row to all of them.
DEVICE float lanes_sum(float v, int lanes) {
  for (int mask = (1 << lanes) / 2; mask > 0; mask /= 2) v += shuffle_xor_f(v, mask);
  return v;
}

// pick returns row index[r], or r without an index.
DEVICE const float *pick(const float *x, const int *index, long r, int cols) { return x + (index ? index[r] : r) * cols; }

// gather_rows: row r of y [rows, cols] is row index[r] of x.
KERNEL(gather_rows)(float *restrict y, const float *restrict x, const int *restrict index, long rows, int cols, int lanes) {
  long r = row_of_thread(lanes);
  if (r >= rows) return;
  const float *from = pick(x, index, r, cols);
  float *restrict to = y + r * cols;
  for (int c = column_of_thread(lanes); c < cols; c += 1 << lanes) to[c] = from[c];
}

// expand_rows: row r of y [rows, cols] is row index[r] of a sparse matrix in CSR form
// (start, col, val). A block for each row, which needs dynamic shared memory for it.
KERNEL_SYNC(expand_rows)(float *restrict y, const long *start, const unsigned short *restrict col, const float *restrict val, const int *index, int cols) {
  DYNAMIC(float, row);
  for (int c = thread(); c < cols; c += threads()) row[c] = 0.f;
  barrier();
  long end = start[index[block()] + 1];
  for (long k = start[index[block()]] + thread(); k < end; k += threads()) row[col[k]] = val[k];
  barrier();
  float *to = y + (long)block() * cols;
  for (int c = thread(); c < cols; c += threads()) to[c] = row[c];
}

// Sums of rows with the same number are fixed-point, in 64 bits, so that they do not
// depend on the order. The unit is the smallest that holds a sum of as many elements of
// the largest size, so that they are far more precise than a float.
//
// block_largest returns the bits of the largest |x| of a block's share of n elements to
// all of its threads, a multiple of 32. Floats that are not negative are ordered as
// their bits are, with NaN last.
DEVICE int block_largest(const float *restrict x, long n) {
  SHARED_ARRAY(int, of_warps, 32);
  int bits = 0;
  for (long i = index_of_thread(); i < n; i += (long)blocks() * threads()) bits = max_i(bits, (int)(as_bits(x[i]) & 0x7fffffffu));
  for (int mask = 16; mask > 0; mask /= 2) bits = max_i(bits, shuffle_xor_i(bits, mask));
  if (thread() % 32 == 0) of_warps[thread() / 32] = bits;
  barrier();
  for (int i = 0; i < threads() / 32; i++) bits = max_i(bits, of_warps[i]);
  return bits;
}

// power_of_2 returns 2^e for e from −1022 to 1023.
DEVICE double power_of_2(int e) {
  union { u64 u; double d; } x = {(u64)(e + 1023) << 52};
  return x.d;
}

// unit_exponent returns an e such that a sum of 2^count elements is below 2⁶² units of
// 2^−e.
DEVICE int unit_exponent(int most, int count) { return 62 - count - ((most >> 23) - 126); }

// in_units returns an element in units, and 0 for NaN and infinity, which show in most.
DEVICE long in_units(float x, double units) {
  double v = (double)x * units;
  return v - v == 0. ? (long)v : 0;
}

// sum_of returns a sum of units as a float, or NaN if an element was not finite.
DEVICE float sum_of(long units, int most, int count) {
  float v = (float)((double)units * power_of_2(-unit_exponent(most, count)));
  return most >= 0x7f800000 ? as_float(0x7fc00000u) : v;
}

// scatter_largest: *most, 0 before, becomes the bits of the largest |x| of n elements.
// Blocks of 256, as many as there is work for.
KERNEL_SYNC(scatter_largest)(int *most, const float *restrict x, long n) {
  int bits = block_largest(x, n);
  if (thread() == 0) __atomic_fetch_max(most, bits, __ATOMIC_RELAXED);
}

// scatter_rows adds row r of x [rows, cols] to row index[r] of sums. rows is at most
// 2^count.
KERNEL(scatter_rows)(long *sums, const int *most, const float *restrict x, const int *restrict index, long rows, int cols, int count, int lanes) {
  long r = row_of_thread(lanes);
  if (r >= rows) return;
  double units = power_of_2(unit_exponent(*most, count));
  long *to = sums + (long)index[r] * cols;
  const float *from = x + r * cols;
  for (int c = column_of_thread(lanes); c < cols; c += 1 << lanes)
    __atomic_fetch_add(&to[c], in_units(from[c], units), __ATOMIC_RELAXED);
}

// scatter_result: y is the n sums as floats.
KERNEL(scatter_result)(float *restrict y, const long *restrict sums, const int *most, long n, int count) {
  long i = index_of_thread();
  if (i < n) y[i] = sum_of(sums[i], *most, count);
}

// scatter_one_block does all of this in one block, for small matrices. y has n
// elements, and dynamic shared memory has room for their sums.
KERNEL_SYNC_OF(1024, 1, scatter_one_block)(float *restrict y, const float *restrict x, const int *restrict index, int rows, int cols, int n, int count) {
  DYNAMIC(long, sums);
  for (int i = thread(); i < n; i += threads()) sums[i] = 0;
  int most = block_largest(x, (long)rows * cols);
  double units = power_of_2(unit_exponent(most, count));
  for (int i = thread(); i < rows * cols; i += threads())
    __atomic_fetch_add(&sums[index[i / cols] * cols + i % cols], in_units(x[i], units), __ATOMIC_RELAXED);
  barrier();
  for (int i = thread(); i < n; i += threads()) y[i] = sum_of(sums[i], most, count);
}

// add_bias: y [rows, cols] += bias, followed by a ReLU if relu is not 0.
KERNEL(add_bias)(float *restrict y, const float *restrict bias, long rows, int cols, int relu, int lanes) {
  long r = row_of_thread(lanes);
  if (r >= rows) return;
  float *to = y + r * cols;
  for (int c = column_of_thread(lanes); c < cols; c += 1 << lanes) {
    float v = to[c] + bias[c];
    to[c] = relu && v < 0.f ? 0.f : v;
  }
}

// Narrow layers have at most MOST_NARROW outputs, too few for a matrix product to pay.
// Their functions are compiled for each number of outputs.
#define MOST_NARROW 4
#define FOR_EACH_NARROW(out, f)                   \
  switch (out) {                                  \
  case 1: f(1); break;                            \
  case 2: f(2); break;                            \
  case 3: f(3); break;                            \
  default: f(4); break;                           \
  }

// linear_narrow: y [rows, out] = act(x·wᵀ + bias), for the rows of x that index names
// (all without an index), and w [out, cols].
DEVICE void linear_of(int out, float *restrict y, const float *restrict x, long r, long rows, const float *restrict w, const float *restrict bias, int cols, int relu, int lanes) {
  float sums[MOST_NARROW] = {0};
  if (r < rows)
    for (int c = column_of_thread(lanes); c < cols; c += 1 << lanes) {
      float v = x[c];
      for (int o = 0; o < out; o++) sums[o] = fma_f(v, w[o * cols + c], sums[o]);
    }
  for (int o = 0; o < out; o++) sums[o] = lanes_sum(sums[o], lanes);
  if (r >= rows || column_of_thread(lanes) != 0) return;
  for (int o = 0; o < out; o++) {
    float v = sums[o] + bias[o];
    y[r * out + o] = relu && v < 0.f ? 0.f : v;
  }
}
KERNEL_SYNC(linear_narrow)(float *restrict y, const float *restrict x, const int *restrict index, const float *restrict w, const float *restrict bias, long rows, int cols, int out, int relu, int lanes) {
  long r = row_of_thread(lanes);
  const float *from = r < rows ? pick(x, index, r, cols) : x;
#define LINEAR(out) linear_of(out, y, from, r, rows, w, bias, cols, relu, lanes)
  FOR_EACH_NARROW(out, LINEAR)
}

// product_narrow: y [rows, cols] = g·w, for g [rows, out] and w [out, cols].
DEVICE void product_of(int out, float *restrict y, const float *restrict g, const float *restrict w, int cols, int lanes) {
  float factors[MOST_NARROW];
  for (int o = 0; o < out; o++) factors[o] = g[o];
  for (int c = column_of_thread(lanes); c < cols; c += 1 << lanes) {
    float v = 0.f;
    for (int o = 0; o < out; o++) v = fma_f(factors[o], w[o * cols + c], v);
    y[c] = v;
  }
}
KERNEL(product_narrow)(float *restrict y, const float *restrict g, const float *restrict w, long rows, int cols, int out, int lanes) {
  long r = row_of_thread(lanes);
  if (r >= rows) return;
#define PRODUCT(out) product_of(out, y + r * cols, g + r * out, w, cols, lanes)
  FOR_EACH_NARROW(out, PRODUCT)
}

// column_sums: y [out, cols] = gᵀ·x, for factors g [rows, out] and the rows of x that
// index names (all without an index); without g, out is 1 and so is the factor. A block
// of 256 threads sums step rows in 2^lanes columns, one of `tiles` tiles; blocks go by
// tiles, then parts of the rows. The last block to finish in a tile adds up the sums
// [parts, out, cols] of all parts, in order. done [tiles] is 0 before and after.
DEVICE void add_threads(int out, SHARED float *of_threads, const float *sums, int lanes) {
  for (int o = 0; o < out; o++) of_threads[256 * o + thread()] = sums[o];
  barrier();
  for (int half = 128; half >= 1 << lanes; half /= 2) {
    if (thread() < half)
      for (int o = 0; o < out; o++) of_threads[256 * o + thread()] += of_threads[256 * o + thread() + half];
    barrier();
  }
}
DEVICE void sums_of(int out, float *restrict y, const float *restrict g, const float *restrict x, const int *restrict index, long rows, int cols, long step, int tiles, int lanes, volatile float *sums, int *done) {
  SHARED_ARRAY(float, of_threads, 256 * MOST_NARROW);
  SHARED_ARRAY(int, last, 1);
  int part = block() / tiles, parts = blocks() / tiles, tile = block() % tiles;
  int c = (tile << lanes) + column_of_thread(lanes), mine = thread() < 1 << lanes && c < cols;
  long first = part * step, end = first + step < rows ? first + step : rows;
  float total[MOST_NARROW] = {0};
  if (c < cols)
    for (long r = first + (thread() >> lanes); r < end; r += 256 >> lanes) {
      float v = pick(x, index, r, cols)[c];
      for (int o = 0; o < out; o++) total[o] = g ? fma_f(g[r * out + o], v, total[o]) : total[o] + v;
    }
  add_threads(out, of_threads, total, lanes);
  if (parts > 1) {
    if (mine)
      for (int o = 0; o < out; o++) sums[((long)part * out + o) * cols + c] = of_threads[256 * o + thread()];
    fence();
    barrier();
    if (thread() == 0) {
      last[0] = __atomic_fetch_add(&done[tile], 1, __ATOMIC_RELAXED) == parts - 1;
      if (last[0]) done[tile] = 0;
    }
    barrier();
    if (!last[0]) return;
    fence();
    for (int o = 0; o < out; o++) {
      total[o] = 0.f;
      if (c < cols)
        for (int p = thread() >> lanes; p < parts; p += 256 >> lanes) total[o] += sums[((long)p * out + o) * cols + c];
    }
    add_threads(out, of_threads, total, lanes);
  }
  if (mine)
    for (int o = 0; o < out; o++) y[o * cols + c] = of_threads[256 * o + thread()];
}
KERNEL_SYNC(column_sums)(float *restrict y, const float *restrict g, const float *restrict x, const int *restrict index, long rows, int cols, int out, long step, int tiles, int lanes, float *sums, int *done) {
#define SUMS(out) sums_of(out, y, g, x, index, rows, cols, step, tiles, lanes, sums, done)
  FOR_EACH_NARROW(out, SUMS)
}

// normalize_rows: the rows of y [rows, cols] are the rows of x divided by their norm, or
// by least if that is larger.
KERNEL_SYNC(normalize_rows)(float *restrict y, const float *restrict x, float_bits least, long rows, int cols, int lanes) {
  long r = row_of_thread(lanes);
  float squares = 0.f;
  if (r < rows)
    for (int c = column_of_thread(lanes); c < cols; c += 1 << lanes) squares = fma_f(x[r * cols + c], x[r * cols + c], squares);
  float length = sqrt_f(lanes_sum(squares, lanes));
  float f = 1.f / (length < VALUE(least) ? VALUE(least) : length); // a NaN stays one
  if (r < rows)
    for (int c = column_of_thread(lanes); c < cols; c += 1 << lanes) y[r * cols + c] = f * x[r * cols + c];
}

// normalize_grad: dst = (g − y·(y·g))/‖x‖ in each row, where y is the normalised x. A
// norm below least is a constant least.
KERNEL_SYNC(normalize_grad)(float *restrict dst, const float *restrict x, const float *restrict y, const float *restrict g, float_bits least, long rows, int cols, int lanes) {
  long r = row_of_thread(lanes);
  float squares = 0.f, along = 0.f;
  if (r < rows)
    for (int c = column_of_thread(lanes); c < cols; c += 1 << lanes) {
      long i = r * cols + c;
      squares = fma_f(x[i], x[i], squares);
      along = fma_f(y[i], g[i], along);
    }
  float length = sqrt_f(lanes_sum(squares, lanes));
  along = lanes_sum(along, lanes);
  if (length < VALUE(least)) {
    length = VALUE(least);
    along = 0.f;
  }
  if (r < rows)
    for (int c = column_of_thread(lanes); c < cols; c += 1 << lanes) {
      long i = r * cols + c;
      dst[i] = (g[i] - along * y[i]) / length;
    }
}
