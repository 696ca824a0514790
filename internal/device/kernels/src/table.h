// Training of an embedding table [n, D], D = 1 … 4, float32, with Euclidean distances,
// negatives drawn per head and plain SGD: package train's tableRun, without a graph.
// The step for a batch of b edges is
//
//	w ← w − lr·clip(norm·g)
//
// for the gradient g of each point, the sum over all of its pairs. NC-t-SNE moves log_z
// likewise.
//
// A batch's control block is 16 words of 32 bits: the state of its stream of negatives
// (0 and 1), theta (2; not NC), lr and clip bound of the gradients (4, 5) and of log Z
// (12, 13). Negatives are drawn as by internal/simd's DrawOthers, column by column,
// each beginning with the next word of the stream. Once a loss, or NC's log Z, is not
// finite or out of bounds, status becomes one more than the batch's number, and nothing
// moves any more.
//
// table_2.c and table_3.c have the kernels for D = 2 and 3, and table_any.c has the kernel
// for large batches and any D (see contrastive.h).
#ifndef CNE_TABLE_H
#define CNE_TABLE_H

#include "contrastive.h"

enum { STATE = 0, THETA = 2, LR = 4, CLIP = 5, LR_Z = 12, CLIP_Z = 13, WORDS = 16 };
// AT_ONCE is the number of negatives that a thread draws at a time, an even number;
// PAIRS_AT_ONCE is the number in a large batch, and AHEAD says whether the first ones are
// drawn early. IN_PLANE says whether points are known to have two coordinates.
#define AT_ONCE(d) ((d) < 3 ? 6 : 4)
#ifdef ANY_WIDTH
enum { PAIRS_AT_ONCE = 2, AHEAD = 0 };
#define IN_PLANE(d) 0
#else
enum { PAIRS_AT_ONCE = 8, AHEAD = 1 };
#define IN_PLANE(d) (d == 2)
#endif
#define LARGEST_LOG_Z 60.f

// The constants of a batch's loss. With base = a·x+o for the squared distance x of a
// pair, the loss is log(1+base) for a positive and log(1+1/base) for a negative pair: a
// = o = c for Neg-t-SNE and NC-t-SNE, a = 1 and o = 0 for UMAP. `one` is 1 for the
// first two and 0 for UMAP.
typedef struct {
  int loss;
  float a, o, one, weight, limit, clamp;
} constants;

DEVICE constants constants_of(int loss, float theta, int m, float limit) {
  constants k = {loss, 1.f, 0.f, 0.f, 1.f, limit, 1.f / limit};
  if (loss == NEG || loss == NC) {
    k.a = k.o = exp_f(theta) * (loss == NC ? (float)m : 1.f);
    k.one = 1.f;
  }
  if (loss == INFO) k.weight = exp_f(-theta);
  return k;
}

// A thread's sums: the loss, in units of ln 2, and its derivative with respect to
// theta.
typedef struct { float loss, d_theta; } sums;

// positive_pair and negative_pair return the derivative with respect to x.
DEVICE float positive_pair(const constants *k, float x, sums *s) {
  float base = fma_f(k->a, x, k->o), v = 1.f + base, by = div_approx(1.f, v);
  int in = !(v > k->limit);
  s->loss += log2_approx(in ? v : k->limit);
  s->d_theta += in ? base * by : 0.f;
  return in ? k->a * by : 0.f;
}
DEVICE float negative_pair(const constants *k, float x, sums *s) {
  float t = 1.f + x, base = fma_f(k->a, x, k->o), v = 1.f + div_approx(1.f, base);
  float w = div_approx(1.f, t * (base + k->one));
  int in = !(v > k->limit);
  s->loss += log2_approx(in ? v : k->limit);
  s->d_theta -= in ? t * w : 0.f;
  return in ? -w : 0.f;
}
// info_positive returns the derivative of InfoNC's positive pair. It turns total, the
// sum of the negatives' similarities, into their share.
DEVICE float info_positive(const constants *k, float x, float *total, sums *s) {
  float q = similarity(x, k->clamp);
  float all = *total + q, logs = log2_approx(all) * k->weight;
  s->loss += logs - log2_approx(q);
  s->d_theta -= logs * 0.693147181f;
  *total = div_approx(k->weight, all);
  if (q <= k->clamp) return 0.f;
  return q - q * (q * *total);
}
DEVICE float info_negative(const constants *k, float x, float share) {
  float q = similarity(x, k->clamp);
  return q <= k->clamp ? 0.f : -q * (q * share);
}

// draw_negatives sets at[u], u < many, to negative number from+u of head i, an endpoint
// 0 … 2b−1, for an even from and as far as there are m. Neighbouring lanes draw words
// for each other: all lanes of a warp must call it.
DEVICE void draw_negatives(int *at, const int many, u64 state, int from, int m, int i, int b) {
  int odd = i & 1;
  u64 words = ((u64)b + 1) / 2; // of a column
  u64 key = state + ((u64)(i / 2) + 1 + (u64)(from + odd) * words) * GAMMA;
#pragma clang loop unroll(full)
  for (int u = 0; u < many; u += 2) {
    if (from + u < m) {
      u64 word = mix(key);
      key += 2 * words * GAMMA;
      u32 low = (u32)word, high = (u32)(word >> 32);
      u32 keep = odd ? high : low, other = (u32)shuffle_xor_i((int)(odd ? low : high), 1);
      int first = (int)bounded(odd ? other : keep, 2 * (u32)b - 1), second = (int)bounded(odd ? keep : other, 2 * (u32)b - 1);
      at[u] = first + (first >= i);
      at[u + 1] = second + (second >= i);
    }
  }
}

// Loads of D coordinates, in one access where there are two.
typedef float two __attribute__((ext_vector_type(2)));
#define LOAD_FROM(space, to, from, d) \
  do { \
    if (IN_PLANE(d)) { two v2 = *(const space two *)(from); (to)[0] = v2[0], (to)[1] = v2[1]; } \
    else EACH(l, d) (to)[l] = (from)[l]; \
  } while (0)
#define LOAD(to, from, d) LOAD_FROM(, to, from, d)
#define LOAD_SHARED(to, from, d) LOAD_FROM(SHARED, to, from, d)

// squared_distance sets diff to the difference of two points.
DEVICE float squared_distance(float *diff, const float *x, const float *y, const int d) {
  float sum = 0.f;
  EACH(l, d) {
    diff[l] = x[l] - y[l];
    sum = fma_f(diff[l], diff[l], sum);
  }
  return sum;
}

// finite reports whether v is neither infinite nor NaN.
DEVICE int finite(float v) { return v - v == 0.f; }

// Small batches: one block of 1024 threads runs through `count` of them, with all of a
// batch in shared memory: the positions of its distinct points, and their gradients in
// fixed point, in units of 2⁻²⁸. These have 64 bits in two halves, each with atomic
// additions in hardware. Sums of the low halves rarely carry: they begin in the middle,
// and so can hold ±8. A summand is clipped to ±2³⁵.
#define UNIT 268435456.f
#define MIDDLE 0x80000000u

// add_point adds factor times g to a point's gradient, whose halves are [d, 2b] from
// low and from high on. It returns whether that has changed upper halves.
DEVICE int add_point(SHARED u32 *low, SHARED int *high, int most, const float *g, float factor, const int d) {
  int carry[4], any = 0;
  for (int l = 0; l < d; l++) {
#ifdef __NVPTX__
    long f = __nvvm_f2ll_rz(g[l] * (factor * UNIT));
#else
    float v = g[l] * (factor * UNIT);
    long f = v != v ? 0 : (long)clip(v, 4e18f);
#endif
    u32 part = (u32)f, before = __atomic_fetch_add(low + l * most, part, __ATOMIC_RELAXED);
    carry[l] = (int)(f >> 32) + (before + part < part);
    any |= carry[l];
  }
  if (any == 0) return 0;
  for (int l = 0; l < d; l++)
    if (carry[l] != 0) __atomic_fetch_add(high + l * most, carry[l], __ATOMIC_RELAXED);
  return 1;
}

// fetch_async begins to copy n ints, an even number, to shared memory.
DEVICE void fetch_async(SHARED int *to, const int *from, int n) {
  for (int i = 2 * thread(); i < n; i += 2 * threads()) async_copy_8(to + i, from + i);
}

DEVICE u64 state_of(const SHARED u32 *word) { return (u64)word[STATE + 1] << 32 | word[STATE]; }

DEVICE void batches(const int info, float *table, float *log_z, float *losses, int *status, const u32 *control, const int *rows, const int *local, const int *counts,
                    int stride, int b, int m, int count, int number_of, int loss, float limit, float scale, float norm, const int d,
                    SHARED float *position, SHARED u32 *words, SHARED float *parts) {
  if (*status != 0) return;
  const int most = 2 * b, t = thread(), lane = t % 32;
  const int many = AT_ONCE(d);
  SHARED u32 *low = (SHARED u32 *)(position + (long)most * d); // [d, 2b]
  SHARED int *high = (SHARED int *)(low + most * d);           // [d, 2b]
  SHARED int *local_here = high + most * d, *row = local_here + 2 * most;  // [2, 2b]: of this batch and the next
  fetch_async(local_here, local, most);
  fetch_async(row, rows, most);
  if (t <= WORDS) async_copy_4(words + t, t < WORDS ? (const void *)(control + t) : counts);
  for (int i = t; i < most * d; i += threads()) low[i] = MIDDLE, high[i] = 0;
  float z = loss == NC ? *log_z : 0.f;
  async_wait();
  barrier();
  for (int k = 0; k < count; k++) {
    const SHARED u32 *word = words + (k & 1) * (WORDS + 1);
    const SHARED int *own_local = local_here + (k & 1) * most, *own_row = row + (k & 1) * most;
    const int points = (int)word[WORDS];
    // The first negatives are drawn while the positions are loaded.
    float first[4], second[4];
    int a = t, c = t + threads(), at[6];
    if (a < points) LOAD(first, table + (long)own_row[a] * d, d);
    if (c < points) LOAD(second, table + (long)own_row[c] * d, d);
    draw_negatives(at, many, state_of(word), 0, m, t, b);
    for (int l = 0; l < d; l++) {
      if (a < points) position[a * d + l] = first[l];
      if (c < points) position[c * d + l] = second[l];
    }
    for (int s = t + 2 * threads(); s < points; s += threads())
      for (int l = 0; l < d; l++) position[s * d + l] = table[(long)own_row[s] * d + l];
    barrier();

    if (k + 1 < count) {
      fetch_async(local_here + (~k & 1) * most, local + (long)(k + 1) * stride, most);
      fetch_async(row + (~k & 1) * most, rows + (long)(k + 1) * stride, most);
      if (t <= WORDS) async_copy_4(words + (~k & 1) * (WORDS + 1) + t, t < WORDS ? (const void *)(control + (long)(k + 1) * WORDS + t) : counts + k + 1);
    }
    const constants con = constants_of(loss, loss == NC ? z : as_float(word[THETA]), m, limit);
    for (int base = 0; base < b; base += threads()) {
      int i = base + t, in = i < b;
      if (base > 0) draw_negatives(at, many, state_of(word), 0, m, i, b);
      float x[4], y[4], diff[4], own[4] = {0.f, 0.f, 0.f, 0.f};
      int head = own_local[in ? i : 0], tail = own_local[in ? b + i : b];
      LOAD_SHARED(x, position + head * d, d);
      LOAD_SHARED(y, position + tail * d, d);
      float share = 0.f, slope;
      if (info) {
        for (int from = 0; from < m; from += many) {
          if (from > 0) draw_negatives(at, many, state_of(word), from, m, i, b);
#pragma clang loop unroll(full)
          for (int u = 0; u < many; u++) {
            if (from + u < m) {
              float o[4];
              LOAD_SHARED(o, position + own_local[at[u]] * d, d);
              share += similarity(squared_distance(diff, x, o, d), con.clamp);
            }
          }
        }
        if (m > many) draw_negatives(at, many, state_of(word), 0, m, i, b);
      }
      sums mine = {0.f, 0.f};
      float apart = squared_distance(diff, x, y, d);
      slope = info ? info_positive(&con, apart, &share, &mine) : positive_pair(&con, apart, &mine);
      for (int l = 0; l < d; l++) own[l] = diff[l] *= 2.f * slope;
      if (in) add_point(low + tail, high + tail, most, diff, -1.f, d);
      for (int from = 0; from < m; from += many) {
        if (from > 0) draw_negatives(at, many, state_of(word), from, m, i, b);
#pragma clang loop unroll(full)
        for (int u = 0; u < many; u++) {
          if (from + u < m) {
            float o[4];
            int other = own_local[at[u]];
            LOAD_SHARED(o, position + other * d, d);
            apart = squared_distance(diff, x, o, d);
            slope = info ? info_negative(&con, apart, share) : negative_pair(&con, apart, &mine);
            for (int l = 0; l < d; l++) own[l] += diff[l] *= 2.f * slope;
            if (in) add_point(low + other, high + other, most, diff, -1.f, d);
          }
        }
      }
      for (int l = 0; l < d; l++) mine.loss += 0.f * own[l]; // so that the loss shows a gradient that is not finite
      if (in) add_point(low + head, high + head, most, own, 1.f, d);
      // From the second 1024 heads on, the warp's earlier sum is added.
      mine.loss = warp_sum(in ? mine.loss : 0.f);
      if (loss == NC) mine.d_theta = warp_sum(in ? mine.d_theta : 0.f);
      if (lane == 0) {
        parts[t / 32] = mine.loss + (base > 0 ? parts[t / 32] : 0.f);
        if (loss == NC) parts[32 + t / 32] = mine.d_theta + (base > 0 ? parts[32 + t / 32] : 0.f);
      }
    }
    barrier();

    // Every warp adds up all parts, so that all know whether to continue.
    float total = warp_sum(parts[lane]) * (0.693147181f * scale);
    if (loss == NC) z -= as_float(word[LR_Z]) * clip(norm * warp_sum(parts[32 + lane]), as_float(word[CLIP_Z]));
    int stop = !finite(total) || !(z <= LARGEST_LOG_Z && z >= -LARGEST_LOG_Z);
    if (t == 0) {
      losses[k] = total;
      if (loss == NC && finite(total)) *log_z = z;
      if (stop) *status = number_of + k + 1;
    }
    if (!finite(total)) {
      async_wait(); // no copy outlasts the block
      return;
    }
    const float lr = as_float(word[LR]), bound = as_float(word[CLIP]);
    for (int s = t; s < points; s += threads()) {
      float w[4];
      LOAD_SHARED(w, position + s * d, d);
      for (int l = 0; l < d; l++) {
        u32 part = low[l * most + s];
        int top = high[l * most + s];
        low[l * most + s] = MIDDLE;
        float g = (float)(int)(part - MIDDLE);
        if (top != 0) {
          high[l * most + s] = 0;
          g = (float)((long)top * (1l << 32) + (long)part - (long)MIDDLE);
        }
        w[l] -= lr * clip(g * (norm / UNIT), bound);
      }
      float *to = table + (long)own_row[s] * d;
      if (d == 2) *(two *)to = (two){w[0], w[1]};
      else for (int l = 0; l < d; l++) to[l] = w[l];
    }
    async_wait();
    if (stop) return;
    barrier();
  }
}
// table_batches_dD, and table_info_batches_dD for InfoNC: rows [count, stride] are the
// distinct points of each batch, counts [count] their numbers, and local [count,
// stride] begins with the 2b local numbers of the points of heads, then of tails.
// stride is even and at least 2b; 1 ≤ m < 2b−1. losses [count] are sums over the edges,
// times scale. number_of is the first batch's number for status. Dynamic shared memory:
// b·(24·D+32) bytes.
#define BATCHES(name, info, d) \
  KERNEL_SYNC_OF(1024, 1, name##_d##d)(float *table, float *log_z, float *losses, int *status, const u32 *control, const int *rows, \
                                             const int *local, const int *counts, int stride, int b, int m, int count, int number_of, int loss, \
                                             float_bits limit, float_bits scale, float_bits norm) { \
    DYNAMIC(float, position); \
    SHARED_ARRAY(u32, words, 2 * (WORDS + 1)); \
    SHARED_ARRAY(float, parts, 64); \
    batches(info, table, log_z, losses, status, control, rows, local, counts, stride, b, m, count, number_of, info ? INFO : loss, \
            VALUE(limit), VALUE(scale), VALUE(norm), d, position, words, parts); \
  }

// Large batches: table_pairs_D, with a thread for each edge, adds the gradient up in
// gradient [n, D], in fixed point, zero before, and leaves sums of losses and of
// derivatives in parts [blocks, 2]; table_finish and table_update do the rest. edges
// are b words, with the head in the lower half and the tail in the upper.
DEVICE void pairs_of(long *gradient, float *parts, const float *table, const float *log_z, const int *status, const u32 *control, const int *edges, int b,
                  int m, int loss, float limit, const int d, SHARED float *scratch) {
  if (*status != 0) return;
  const u64 state = (u64)control[STATE + 1] << 32 | control[STATE];
  const constants con = constants_of(loss, loss == NC ? *log_z : as_float(control[THETA]), m, limit);
  int i = (int)index_of_thread(), in = i < b, at[PAIRS_AT_ONCE];
  sums mine = {0.f, 0.f};
  float x[4], y[4], diff[4], own[4] = {0.f, 0.f, 0.f, 0.f}, share = 0.f, slope;
  long head = edges[in ? 2 * (long)i : 0], tail = edges[in ? 2 * (long)i + 1 : 1];
  LOAD(x, table + head * d, d);
  LOAD(y, table + tail * d, d);
#define DRAW(from) \
  do { \
    draw_negatives(at, PAIRS_AT_ONCE, state, from, m, i, b); \
    _Pragma("clang loop unroll(full)") for (int u = 0; u < PAIRS_AT_ONCE; u++) \
      if ((from) + u < m) at[u] = edges[at[u] < b ? 2 * (long)at[u] : 2 * ((long)at[u] - b) + 1]; \
  } while (0)
  if (AHEAD) DRAW(0);
  if (loss == INFO) {
    for (int from = 0; from < m; from += PAIRS_AT_ONCE) {
      if (!AHEAD || from > 0) DRAW(from);
#pragma clang loop unroll(full)
      for (int u = 0; u < PAIRS_AT_ONCE; u++) {
        if (from + u < m) {
          float o[4];
          LOAD(o, table + (long)at[u] * d, d);
          share += similarity(squared_distance(diff, x, o, d), con.clamp);
        }
      }
    }
    if (AHEAD && m > PAIRS_AT_ONCE) DRAW(0);
  }
  float apart = squared_distance(diff, x, y, d);
  slope = loss == INFO ? info_positive(&con, apart, &share, &mine) : positive_pair(&con, apart, &mine);
  EACH(l, d) {
    own[l] = 2.f * slope * diff[l];
    if (in) add_fixed(gradient + tail * d + l, -own[l]);
  }
  for (int from = 0; from < m; from += PAIRS_AT_ONCE) {
    if (!AHEAD || from > 0) DRAW(from);
#pragma clang loop unroll(full)
    for (int u = 0; u < PAIRS_AT_ONCE; u++) {
      if (from + u < m) {
        float o[4];
        LOAD(o, table + (long)at[u] * d, d);
        apart = squared_distance(diff, x, o, d);
        slope = loss == INFO ? info_negative(&con, apart, share) : negative_pair(&con, apart, &mine);
        EACH(l, d) {
          float g = 2.f * slope * diff[l];
          own[l] += g;
          if (in) add_fixed(gradient + (long)at[u] * d + l, -g);
        }
      }
    }
  }
  EACH(l, d) {
    mine.loss += 0.f * own[l];
    if (in) add_fixed(gradient + head * d + l, own[l]);
  }
  float total = block_sum(in ? mine.loss : 0.f, scratch), derivative = loss == NC ? block_sum(in ? mine.d_theta : 0.f, scratch) : 0.f;
  if (thread() == 0) parts[2 * block()] = total, parts[2 * block() + 1] = derivative;
}
// blocks is as for KERNEL_SYNC_OF.
#define PAIRS(d, blocks) \
  KERNEL_SYNC_OF(256, blocks, table_pairs_##d)(long *gradient, float *parts, const float *table, const float *log_z, const int *status, \
                                                   const u32 *control, const int *edges, int b, int m, int loss, float_bits limit WIDTH_PARAMETER) { \
    SHARED_ARRAY(float, scratch, 32); \
    pairs_of(gradient, parts, table, log_z, status, control, edges, b, m, loss, VALUE(limit), WIDTH(d), scratch); \
  }

#endif
