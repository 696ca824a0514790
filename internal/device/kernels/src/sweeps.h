// The contrastive loss of a batch of edges, its gradient, and its derivative with
// respect to theta. package op's Contrastive says what the operands are.
//
// A sweep (contrast_heads, contrast_heads_any, contrast_groups or contrast_gemm) leaves
// sums without the factors Scale and 1/b: the loss and the derivative of each block, in
// parts; and the gradient [rows, d], zero before, in fixed point (contrast_gemm: as
// floats, by matrix products). contrast_total, contrast_gradient and contrast_theta
// turn these into results.
//
// The kind of negatives is read from runs; sweeps take all three kinds unless they say
// otherwise. The loss includes the gradient times zero, so that it shows if a feature
// is not finite.
//
// contrastive_2.c, contrastive_3.c and contrastive_any.c have the kernels for D dimensions
// (see contrastive.h), and contrastive.c has what does not depend on D.
#ifndef CNE_SWEEPS_H
#define CNE_SWEEPS_H

#include "contrastive.h"

enum { EUCLIDEAN, COSINE };
enum { WITH_GRADIENT = 1 };
enum { GROUP = 16 };

// The negatives of a head, or of the heads of a group.
typedef struct {
  int kind, m; // the first of runs; how many
  int b, rows, first; // of the run
  int self, count; // where in the run the head is, m if nowhere; how many without it
  const int *listed;
} negatives;

DEVICE negatives negatives_of(int head, int rows, int b, const int *listed, int m, const int *runs) {
  int kind = runs[0];
  m = kind == 0 ? m : kind < 0 ? rows - 2 : kind;
  negatives n = {kind, m, b, rows, 0, m, m, listed};
  if (kind > 0) {
    n.first = runs[1 + head / GROUP];
    int self = head - n.first + (head < n.first ? rows : 0);
    n.self = min_i(self, m);
    n.count = m - (self < m);
  }
  return n;
}
// of_run is row j of the run.
DEVICE int of_run(const negatives *n, int j) {
  int r = n->first + j;
  return r >= n->rows ? r - n->rows : r;
}
// negative is the j-th of a head's n->count negatives.
DEVICE int negative(const negatives *n, int head, int j) {
  if (n->kind == 0) return n->listed[(long)j * n->b + head];
  if (n->kind > 0) return of_run(n, j + (j >= n->self));
  j += j >= head;
  return j + (j >= n->b + head);
}

// softplus is log(1+exp x); slope becomes its derivative.
DEVICE float softplus(float x, float *slope) {
  float e = exp_f(x > 0.f ? -x : x);
  *slope = div_approx(x > 0.f ? 1.f : e, 1.f + e);
  return (x > 0.f ? x : 0.f) + log1p_approx(e);
}

// The constants of a loss, and the sums of a thread or warp.
typedef struct {
  int loss, metric, flags;
  float c, inverse, theta, weight, limit, clamp, inv_tau; // inverse: 1/c, inv_tau: 1/τ
  float sum, d_theta;
} loss_state;

DEVICE loss_state loss_state_of(int loss, int metric, int flags, float theta, int m, float limit, float inv_tau) {
  loss_state k = {loss, metric, flags, exp_f(theta), 0.f, theta, exp_f(-theta), limit, 1.f / limit, inv_tau, 0.f, 0.f};
  if (loss == NC) {
    k.c *= (float)m;
    k.theta += log_f((float)m);
  }
  k.inverse = 1.f / k.c;
  return k;
}
// add_pair adds a pair of squared distance, or cosine over τ, x, and returns the
// derivative with respect to x; for losses whose pairs are independent.
DEVICE float add_pair(loss_state *k, float x, int positive) {
  if (k->metric == COSINE) {
    float slope;
    k->sum += softplus(positive ? k->theta - x : x - k->theta, &slope);
    k->d_theta += positive ? slope : -slope;
    return positive ? -slope : slope;
  }
  term t;
  if (k->loss == UMAP) t = positive ? umap_positive(x, k->limit) : umap_negative(x, k->limit);
  else t = positive ? neg_positive(x, k->c, k->limit) : neg_negative(x, k->inverse, k->limit);
  k->sum += log1p_approx(t.r);
  k->d_theta += t.share;
  return t.slope;
}
// InfoNC first adds up similarities: exp(x−top) for cosines, where top is the largest
// so far.
typedef struct { float total, top, share; } totals;
DEVICE void add_similarity(const loss_state *k, totals *t, float x) {
  if (k->metric == EUCLIDEAN) {
    t->total += similarity(x, k->clamp);
  } else if (x <= t->top) {
    t->total += exp_f(x - t->top);
  } else { // or NaN
    t->total = t->total * exp_f(t->top - x) + 1.f;
    t->top = x;
  }
}
// finish_total sets share and returns the derivative of the positive pair.
DEVICE float finish_total(loss_state *k, totals *t, float positive) {
  add_similarity(k, t, positive);
  float logs = k->weight * (log_f(t->total) + (k->metric == COSINE ? t->top : 0.f));
  k->sum += logs;
  k->d_theta -= logs;
  t->share = k->weight / t->total;
  if (k->metric == COSINE) {
    k->sum -= positive;
    return t->share * exp_f(positive - t->top) - 1.f;
  }
  float q = similarity(positive, k->clamp);
  k->sum -= log_f(q);
  return q <= k->clamp ? 0.f : q - q * (q * t->share);
}
DEVICE float info_negative(const loss_state *k, const totals *t, float x) {
  if (k->metric == COSINE) return t->share * exp_f(x - t->top);
  float q = similarity(x, k->clamp);
  return q <= k->clamp ? 0.f : -q * (q * t->share);
}
DEVICE totals no_totals(void) { return (totals){0.f, -INFINITE, 0.f}; }

DEVICE void store_parts(float *parts, float sum, float d_theta, SHARED float *scratch) {
  sum = block_sum(sum, scratch);
  d_theta = block_sum(d_theta, scratch);
  if (thread() == 0) {
    parts[2 * block()] = sum;
    parts[2 * block() + 1] = d_theta;
  }
}

// pair_value is the squared distance, or the cosine over τ, of a head x and a row of d
// coordinates, which it copies to y.
DEVICE float pair_value(const loss_state *k, const float *x, float *y, const float *row, int d) {
  float sum = 0.f;
  EACH(i, d) {
    y[i] = row[i];
    float a = x[i] - y[i];
    sum = k->metric == EUCLIDEAN ? fma_f(a, a, sum) : fma_f(x[i], y[i], sum);
  }
  return k->metric == EUCLIDEAN ? sum : sum * k->inv_tau;
}
// add_pair_gradient adds a pair's gradient to the head's, own, and the row's, other.
DEVICE void add_pair_gradient(const loss_state *k, const float *x, const float *y, float *own, long *other, float slope, int d) {
  EACH(i, d) {
    float g = k->metric == EUCLIDEAN ? 2.f * slope * (x[i] - y[i]) : k->inv_tau * slope * y[i];
    own[i] += g;
    if (k->flags & WITH_GRADIENT) add_fixed(other + i, k->metric == EUCLIDEAN ? -g : k->inv_tau * slope * x[i]);
  }
}

// contrast_heads_D: a thread for each of b heads, in D dimensions, in blocks of a
// multiple of 32.
DEVICE void sweep_heads(long *gradient, float *parts, const float *features, const int *listed, const int *runs, const float *theta,
                  int rows, int b, int m, int loss, int metric, int flags, float limit, float inv_tau, int d, SHARED float *scratch) {
  int head = (int)index_of_thread();
  loss_state k = loss_state_of(loss, metric, flags, *theta, 0, limit, inv_tau);
  if (head < b) {
    negatives n = negatives_of(head, rows, b, listed, m, runs);
    m = n.m;
    k = loss_state_of(loss, metric, flags, *theta, m, limit, inv_tau);
    float x[4], y[4], z[4], own[4];
    for (int i = 0; i < d; i++) x[i] = features[(long)head * d + i], own[i] = 0.f;
    long tail = b + (long)head;
    float positive = pair_value(&k, x, y, features + tail * d, d), slope;
    totals t = no_totals();
    if (loss == INFO) {
      for (int j = 0; j < n.count; j++) add_similarity(&k, &t, pair_value(&k, x, z, features + (long)negative(&n, head, j) * d, d));
      slope = finish_total(&k, &t, positive);
    } else {
      slope = add_pair(&k, positive, 1);
    }
    add_pair_gradient(&k, x, y, own, gradient + tail * d, slope, d);
    for (int j = 0; j < n.count; j++) {
      long row = negative(&n, head, j);
      float p = pair_value(&k, x, y, features + row * d, d);
      add_pair_gradient(&k, x, y, own, gradient + row * d, loss == INFO ? info_negative(&k, &t, p) : add_pair(&k, p, 0), d);
    }
    for (int i = 0; i < d; i++) {
      if (flags & WITH_GRADIENT) add_fixed(gradient + (long)head * d + i, own[i]);
      k.sum += 0.f * own[i];
    }
  }
  store_parts(parts, k.sum, k.d_theta, scratch);
}
#define HEADS(d) \
  KERNEL_SYNC(contrast_heads_##d)(long *gradient, float *parts, const float *features, const int *listed, const int *runs, \
                                      const float *theta, int rows, int b, int m, int loss, int metric, int flags, float_bits limit, float_bits inv_tau) { \
    SHARED_ARRAY(float, scratch, 32); \
    sweep_heads(gradient, parts, features, listed, runs, theta, rows, b, m, loss, metric, flags, VALUE(limit), VALUE(inv_tau), d, scratch); \
  }

// contrast_groups_D, and contrast_info_groups_D for InfoNC: Euclidean distances in D
// dimensions, where runs begins with −1 or a number of rows (0: there are no
// negatives). A block for every 8 heads, half a group, goes through the rows, with a
// thread for each row: the gradients of the heads and of a row stay in registers until
// all their pairs are done. Blocks have at most 256 threads, a multiple of 32.
//
// own [8, SLOTS(d)] is, for each head, its gradient and, last, InfoNC's sum of similarities.
enum { HEADS_PER_BLOCK = 8 };
enum { PAIRS, SIMILARITIES, SHARES }; // what a sweep over the rows computes
DEVICE void sweep_rows(const int what, loss_state *k, const negatives *n, int first, int size, long *gradient, const float *features, int rows, const int d,
                  const SHARED float *x, const SHARED float *shares, float *own) {
  int columns = n->kind < 0 ? rows : n->m;
  int tails = n->kind < 0 ? n->b + first : -HEADS_PER_BLOCK; // in a run they are negatives
  for (int j = thread(); j < columns; j += threads()) {
    int row = n->kind < 0 ? j : of_run(n, j);
    float y[4], g[4];
    EACH(i, d) y[i] = features[(long)row * d + i], g[i] = 0.f;
    UNROLLED for (int h = 0; h < HEADS_PER_BLOCK; h++) {
      float d2 = 0.f, diff[4];
      EACH(i, d) {
        diff[i] = x[h * d + i] - y[i];
        d2 = fma_f(diff[i], diff[i], d2);
      }
      int in = h < size && row != first + h && row != tails + h;
      float w;
      if (what == PAIRS) {
        loss_state before = *k;
        w = 2.f * add_pair(k, d2, 0);
        k->sum = in ? k->sum : before.sum;
        k->d_theta = in ? k->d_theta : before.d_theta;
      } else {
        float q = similarity(d2, k->clamp);
        w = q <= k->clamp ? 0.f : -2.f * q * q;
        if (what == SIMILARITIES) own[h * SLOTS(d) + SLOTS(d) - 1] += in ? q : 0.f;
        else w *= shares[h];
      }
      w = in ? w : 0.f;
      EACH(i, d) {
        float f = in ? w * diff[i] : 0.f;
        if (what != SHARES) own[h * SLOTS(d) + i] += f;
        if (what != SIMILARITIES) g[i] -= f;
      }
    }
    if (what != SIMILARITIES && k->flags & WITH_GRADIENT)
      EACH(i, d) add_fixed(gradient + (long)row * d + i, g[i]);
  }
}
DEVICE void sweep_groups(const int info, long *gradient, float *parts, const float *features, const int *runs, const float *theta, int rows, int b, int loss,
                   int flags, float limit, const int d, SHARED float *x, SHARED float *tail, SHARED float *shares, SHARED float *sums, SHARED float *scratch) {
  int first = HEADS_PER_BLOCK * block(), size = min_i(HEADS_PER_BLOCK, b - first);
  negatives n = negatives_of(first, rows, b, 0, 0, runs);
  loss_state k = loss_state_of(info ? INFO : loss, EUCLIDEAN, flags, *theta, n.m, limit, 1.f);
  for (int i = thread(); i < HEADS_PER_BLOCK * d; i += threads()) {
    int in = i < size * d;
    x[i] = in ? features[(long)first * d + i] : 0.f;
    tail[i] = in ? features[(b + (long)first) * d + i] : 0.f;
  }
  barrier();
  float own[HEADS_PER_BLOCK * 5];
  UNROLLED for (int i = 0; i < HEADS_PER_BLOCK * SLOTS(d); i++) own[i] = 0.f;
  sweep_rows(info ? SIMILARITIES : PAIRS, &k, &n, first, size, gradient, features, rows, d, x, shares, own);
  UNROLLED for (int i = 0; i < HEADS_PER_BLOCK * SLOTS(d); i++) {
    if (!info && i % SLOTS(d) == SLOTS(d) - 1) continue;
    float v = warp_sum(own[i]);
    if (thread() % 32 == 0) scratch[thread() / 32 * HEADS_PER_BLOCK * SLOTS(d) + i] = v;
  }
  barrier();
  for (int i = thread(); i < HEADS_PER_BLOCK * SLOTS(d); i += threads()) {
    float v = 0.f;
    for (int w = 0; w < threads() / 32; w++) v += scratch[w * HEADS_PER_BLOCK * SLOTS(d) + i];
    sums[i] = v;
  }
  barrier();
  if (thread() < size) {
    int h = thread();
    float d2 = 0.f;
    EACH(i, d) d2 = fma_f(x[h * d + i] - tail[h * d + i], x[h * d + i] - tail[h * d + i], d2);
    totals t = {0.f, 0.f, info ? 0.f : 1.f};
    if (info) t.total = sums[h * SLOTS(d) + SLOTS(d) - 1];
    float slope = info ? finish_total(&k, &t, d2) : add_pair(&k, d2, 1);
    if (info) shares[h] = t.share;
    EACH(i, d) {
      float g = 2.f * slope * (x[h * d + i] - tail[h * d + i]), all = g + t.share * sums[h * SLOTS(d) + i];
      if (flags & WITH_GRADIENT) {
        add_fixed(gradient + (long)(first + h) * d + i, all);
        add_fixed(gradient + (b + (long)first + h) * d + i, -g);
      }
      k.sum += 0.f * all;
    }
  }
  barrier();
  if (info && flags & WITH_GRADIENT) sweep_rows(SHARES, &k, &n, first, size, gradient, features, rows, d, x, shares, own);
  store_parts(parts, k.sum, k.d_theta, scratch);
}
#define GROUPS(name, info, d) \
  KERNEL_SYNC(name##_##d)(long *gradient, float *parts, const float *features, const int *runs, const float *theta, int rows, int b, \
                              int loss, int flags, float_bits limit WIDTH_PARAMETER) { \
    SHARED_ARRAY(float, x, HEADS_PER_BLOCK * d); \
    SHARED_ARRAY(float, tail, HEADS_PER_BLOCK * d); \
    SHARED_ARRAY(float, shares, HEADS_PER_BLOCK); \
    SHARED_ARRAY(float, sums, HEADS_PER_BLOCK * SLOTS(d)); \
    SHARED_ARRAY(float, scratch, 8 * HEADS_PER_BLOCK * SLOTS(d)); \
    sweep_groups(info, gradient, parts, features, runs, theta, rows, b, loss, flags, VALUE(limit), WIDTH(d), x, tail, shares, sums, scratch); \
  }

#endif
