// The contrastive loss of a batch of edges, its gradient, and its derivative with
// respect to theta: package op's Contrastive, which says what the operands are.
//
// A sweep (contrast_heads, contrast_warps, contrast_groups or contrast_cosines)
// leaves sums without the factors Scale and 1/b: two numbers for each block, loss and
// derivative, in parts; and the gradient [rows, d], zero before, as fixed-point
// numbers (contrast_cosines: through matrix products, as float). contrast_total,
// contrast_gradient and contrast_theta make the results of them.
//
// What a head is contrasted with is read from runs; the sweeps that do not say
// otherwise take all three kinds. A sum of the gradient times zero is part of the
// loss, so that it shows where a feature is not finite.
#include "contrastive.h"

enum { EUCLIDEAN, COSINE };
enum { WITH_GRADIENT = 1, WITHOUT_POSITIVE = 2 };
enum { GROUP = 16 };

// The negatives of a head, or of the heads of a group.
typedef struct {
  int kind, m; // the first of runs; how many
  int b, lo, size, first, outside;
  const int *listed;
} negatives;

DEVICE negatives negatives_of(int head, int rows, int b, const int *listed, int m, const int *runs) {
  int kind = runs[0], lo = head / GROUP * GROUP, size = min_i(GROUP, b - lo);
  negatives n = {kind, kind == 0 ? m : kind < 0 ? rows - 2 : kind, b, lo, size, 0, rows - 2 * size, listed};
  if (kind > 0) n.first = runs[1 + head / GROUP];
  return n;
}
// outside_group is the number-th row, in a circle, that is no end of the group.
DEVICE int outside_group(const negatives *n, int number) {
  int r = number >= n->outside ? number - n->outside : number;
  if (r >= n->lo) r += n->size;
  if (r >= n->b + n->lo) r += n->size;
  return r;
}
DEVICE int negative(const negatives *n, int head, int j) {
  if (n->kind == 0) return n->listed[(long)j * n->b + head];
  if (n->kind > 0) return outside_group(n, n->first + j);
  j += j >= head;
  return j + (j >= n->b + head);
}

// softplus is log(1+exp x), of which slope is the derivative.
DEVICE float softplus(float x, float *slope) {
  float e = exponential(x > 0.f ? -x : x);
  *slope = quotient(x > 0.f ? 1.f : e, 1.f + e);
  return (x > 0.f ? x : 0.f) + log_1p(e);
}

// The numbers of a loss, and what a thread or warp adds up.
typedef struct {
  int loss, metric, flags;
  float c, inverse, theta, weight, limit, clamp, warmth; // warmth: 1/τ
  float sum, d_theta;
} contrast;

DEVICE contrast contrast_of(int loss, int metric, int flags, float theta, int m, float limit, float warmth) {
  contrast k = {loss, metric, flags, exponential(theta), 0.f, theta, exponential(-theta), limit, 1.f / limit, warmth, 0.f, 0.f};
  if (loss == NC) {
    k.c *= (float)m;
    k.theta += logarithm((float)m);
  }
  k.inverse = 1.f / k.c;
  return k;
}
// Of a pair of squared distance or tempered cosine x, add returns the derivative,
// for the losses where pairs do not depend on each other.
DEVICE float add_pair(contrast *k, float x, int positive) {
  if (k->metric == COSINE) {
    float slope;
    k->sum += softplus(positive ? k->theta - x : x - k->theta, &slope);
    k->d_theta += positive ? slope : -slope;
    return positive ? -slope : slope;
  }
  term t;
  if (k->loss == UMAP) t = positive ? umap_positive(x, k->limit) : umap_negative(x, k->limit);
  else t = positive ? neg_positive(x, k->c, k->limit) : neg_negative(x, k->inverse, k->limit);
  k->sum += log_1p(t.r);
  k->d_theta += t.share;
  return t.slope;
}
// InfoNC adds up similarities first: exp(x−top) of cosines, whose largest is kept.
typedef struct { float total, top, share; } totals;
DEVICE void add_similarity(const contrast *k, totals *t, float x) {
  if (k->metric == EUCLIDEAN) {
    t->total += similarity(x, k->clamp);
  } else if (x <= t->top) {
    t->total += exponential(x - t->top);
  } else { // or NaN
    t->total = t->total * exponential(t->top - x) + 1.f;
    t->top = x;
  }
}
// finish_total sets the share, and returns the derivative of the positive pair.
DEVICE float finish_total(contrast *k, totals *t, float positive, int m) {
  int in = !(k->flags & WITHOUT_POSITIVE);
  if (in) add_similarity(k, t, positive);
  if (in || m > 0) { // else there is nothing to contrast with: the sum drops out
    float logs = k->weight * (logarithm(t->total) + (k->metric == COSINE ? t->top : 0.f));
    k->sum += logs;
    k->d_theta -= logs;
    t->share = k->weight / t->total;
  }
  if (k->metric == COSINE) {
    k->sum -= positive;
    return (in ? t->share * exponential(positive - t->top) : 0.f) - 1.f;
  }
  float q = similarity(positive, k->clamp);
  k->sum -= logarithm(q);
  if (q <= k->clamp) return 0.f;
  return in ? q - q * (q * t->share) : q;
}
DEVICE float info_negative(const contrast *k, const totals *t, float x) {
  if (t->share == 0.f) return 0.f; // without negatives there is no largest cosine
  if (k->metric == COSINE) return t->share * exponential(x - t->top);
  float q = similarity(x, k->clamp);
  return q <= k->clamp ? 0.f : -q * (q * t->share);
}
DEVICE totals no_totals(void) { return (totals){0.f, -INFINITE, 0.f}; }

DEVICE void leave(float *parts, float sum, float d_theta, SHARED float *scratch) {
  sum = block_sum(sum, scratch);
  d_theta = block_sum(d_theta, scratch);
  if (thread() == 0) {
    parts[2 * block()] = sum;
    parts[2 * block() + 1] = d_theta;
  }
}

// meet is the squared distance, or tempered cosine, of a head and a row of d
// coordinates, to which it sets y.
DEVICE float meet(const contrast *k, const float *x, float *y, const float *row, int d) {
  float sum = 0.f;
  for (int i = 0; i < d; i++) {
    y[i] = row[i];
    float a = x[i] - y[i];
    sum = k->metric == EUCLIDEAN ? fused(a, a, sum) : fused(x[i], y[i], sum);
  }
  return k->metric == EUCLIDEAN ? sum : sum * k->warmth;
}
// pull adds a pair's gradient to that of the head, and of the row.
DEVICE void pull(const contrast *k, const float *x, const float *y, float *own, long *other, float slope, int d) {
  for (int i = 0; i < d; i++) {
    float g = k->metric == EUCLIDEAN ? 2.f * slope * (x[i] - y[i]) : k->warmth * slope * y[i];
    own[i] += g;
    if (k->flags & WITH_GRADIENT) add_fixed(other + i, k->metric == EUCLIDEAN ? -g : k->warmth * slope * x[i]);
  }
}

// contrast_heads_D: a thread for each head, for D coordinates. The grid is b threads
// in blocks of a multiple of 32.
DEVICE void heads(long *gradient, float *parts, const float *features, const int *listed, const int *runs, const float *theta,
                  int rows, int b, int m, int loss, int metric, int flags, float limit, float warmth, int d, SHARED float *scratch) {
  int head = (int)index_of_thread();
  contrast k = contrast_of(loss, metric, flags, *theta, 0, limit, warmth);
  if (head < b) {
    negatives n = negatives_of(head, rows, b, listed, m, runs);
    m = n.m;
    k = contrast_of(loss, metric, flags, *theta, m, limit, warmth);
    float x[4], y[4], z[4], own[4];
    for (int i = 0; i < d; i++) x[i] = features[(long)head * d + i], own[i] = 0.f;
    long tail = b + (long)head;
    float positive = meet(&k, x, y, features + tail * d, d), slope;
    totals t = no_totals();
    if (loss == INFO) {
      for (int j = 0; j < m; j++) add_similarity(&k, &t, meet(&k, x, z, features + (long)negative(&n, head, j) * d, d));
      slope = finish_total(&k, &t, positive, m);
    } else {
      slope = add_pair(&k, positive, 1);
    }
    pull(&k, x, y, own, gradient + tail * d, slope, d);
    for (int j = 0; j < m; j++) {
      long row = negative(&n, head, j);
      float p = meet(&k, x, y, features + row * d, d);
      pull(&k, x, y, own, gradient + row * d, loss == INFO ? info_negative(&k, &t, p) : add_pair(&k, p, 0), d);
    }
    for (int i = 0; i < d; i++) {
      if (flags & WITH_GRADIENT) add_fixed(gradient + (long)head * d + i, own[i]);
      k.sum += 0.f * own[i];
    }
  }
  leave(parts, k.sum, k.d_theta, scratch);
}
#define HEADS(d) \
  KERNEL_TOGETHER(contrast_heads_##d)(long *gradient, float *parts, const float *features, const int *listed, const int *runs, \
                                      const float *theta, int rows, int b, int m, int loss, int metric, int flags, number limit, number warmth) { \
    SHARED_ARRAY(float, scratch, 32); \
    heads(gradient, parts, features, listed, runs, theta, rows, b, m, loss, metric, flags, VALUE(limit), VALUE(warmth), d, scratch); \
  }
HEADS(1) HEADS(2) HEADS(3) HEADS(4)

// meet_warp is meet by the 32 lanes of a warp, for rows of any width.
DEVICE float meet_warp(const contrast *k, const float *x, const float *y, int d) {
  float sum = 0.f;
  for (int i = thread() % 32; i < d; i += 32) {
    float a = x[i] - y[i];
    sum = k->metric == EUCLIDEAN ? fused(a, a, sum) : fused(x[i], y[i], sum);
  }
  sum = warp_sum(sum);
  return k->metric == EUCLIDEAN ? sum : sum * k->warmth;
}

// contrast_warps: a warp for each head, for any number d of coordinates. The grid is
// b warps in blocks of at most 32. Coordinates are worked on 128 at a time, of which
// each lane has four; what a pair's derivative is is computed again for each.
KERNEL_TOGETHER(contrast_warps)(long *gradient, float *parts, const float *features, const int *listed, const int *runs, const float *theta,
                                int rows, int b, int m, int loss, int metric, int flags, number limit, number warmth, int d) {
  SHARED_ARRAY(float, scratch, 32);
  int head = (int)(index_of_thread() / 32), lane = thread() % 32;
  contrast k = contrast_of(loss, metric, flags, *theta, 0, VALUE(limit), VALUE(warmth));
  if (head < b) {
    negatives n = negatives_of(head, rows, b, listed, m, runs);
    m = n.m;
    k = contrast_of(loss, metric, flags, *theta, m, VALUE(limit), VALUE(warmth));
    const float *x = features + (long)head * d;
    float positive = meet_warp(&k, x, features + (b + (long)head) * d, d), slope;
    totals t = no_totals();
    if (loss == INFO) {
      for (int j = 0; j < m; j++) add_similarity(&k, &t, meet_warp(&k, x, features + (long)negative(&n, head, j) * d, d));
      slope = finish_total(&k, &t, positive, m);
    } else {
      slope = add_pair(&k, positive, 1);
    }
    contrast after = k;
    float traces = 0.f;
    for (int from = 0; from < d; from += 128) {
      after = k;
      float own[4] = {0.f, 0.f, 0.f, 0.f};
      for (int j = -1; j < m; j++) {
        long row = j < 0 ? b + (long)head : negative(&n, head, j);
        const float *y = features + row * d;
        float w = slope;
        if (j >= 0) {
          float p = meet_warp(&k, x, y, d);
          w = loss == INFO ? info_negative(&k, &t, p) : add_pair(&after, p, 0);
        }
        for (int i = 0; i < 4; i++) {
          int at = from + 32 * i + lane;
          if (at >= d) break;
          float g = metric == EUCLIDEAN ? 2.f * w * (x[at] - y[at]) : k.warmth * w * y[at];
          own[i] += g;
          if (flags & WITH_GRADIENT) add_fixed(gradient + row * d + at, metric == EUCLIDEAN ? -g : k.warmth * w * x[at]);
        }
      }
      for (int i = 0; i < 4; i++) {
        int at = from + 32 * i + lane;
        if (at < d && flags & WITH_GRADIENT) add_fixed(gradient + (long)head * d + at, own[i]);
        traces += 0.f * own[i];
      }
    }
    k = after;
    k.sum = (lane == 0 ? k.sum : 0.f) + traces;
    k.d_theta = lane == 0 ? k.d_theta : 0.f;
  }
  leave(parts, k.sum, k.d_theta, scratch);
}

// contrast_groups_D, and contrast_info_groups_D for InfoNC: Euclidean distances in D
// dimensions, where runs begin with −1 or a number of rows (with 0 there are no
// negatives). A block for every 8 heads, half a group, passes along the rows, a thread
// for each: neither the heads' gradient nor a row's leaves the registers before it has
// met all of the other. The blocks have at most 256 threads, a multiple of 32.
//
// own [8, d+1] is, for each head, its gradient and InfoNC's sum of similarities.
enum { PARTY = 8 };
enum { PAIRS, SIMILARITIES, SHARES }; // what is done along the rows
DEVICE void along(const int what, contrast *k, const negatives *n, int first, int size, long *gradient, const float *features, int rows, const int d,
                  const SHARED float *x, const SHARED float *shares, float *own) {
  int columns = n->kind < 0 ? rows : n->m;
  for (int j = thread(); j < columns; j += threads()) {
    int row = n->kind < 0 ? j : outside_group(n, n->first + j);
    float y[4], g[4];
    for (int i = 0; i < d; i++) y[i] = features[(long)row * d + i], g[i] = 0.f;
#pragma clang loop unroll(full)
    for (int h = 0; h < PARTY; h++) {
      float d2 = 0.f, diff[4];
#pragma clang loop unroll(full)
      for (int i = 0; i < d; i++) {
        diff[i] = x[h * d + i] - y[i];
        d2 = fused(diff[i], diff[i], d2);
      }
      int in = h < size && row != first + h && row != n->b + first + h;
      float w;
      if (what == PAIRS) {
        contrast before = *k;
        w = 2.f * add_pair(k, d2, 0);
        k->sum = in ? k->sum : before.sum;
        k->d_theta = in ? k->d_theta : before.d_theta;
      } else {
        float q = similarity(d2, k->clamp);
        w = q <= k->clamp ? 0.f : -2.f * q * q;
        if (what == SIMILARITIES) own[h * (d + 1) + d] += in ? q : 0.f;
        else w *= shares[h];
      }
      w = in ? w : 0.f;
#pragma clang loop unroll(full)
      for (int i = 0; i < d; i++) {
        float f = in ? w * diff[i] : 0.f;
        if (what != SHARES) own[h * (d + 1) + i] += f;
        if (what != SIMILARITIES) g[i] -= f;
      }
    }
    if (what != SIMILARITIES && k->flags & WITH_GRADIENT)
      for (int i = 0; i < d; i++) add_fixed(gradient + (long)row * d + i, g[i]);
  }
}
DEVICE void groups(const int info, long *gradient, float *parts, const float *features, const int *runs, const float *theta, int rows, int b, int loss,
                   int flags, float limit, const int d, SHARED float *x, SHARED float *tail, SHARED float *shares, SHARED float *sums, SHARED float *scratch) {
  int first = PARTY * block(), size = min_i(PARTY, b - first);
  negatives n = negatives_of(first, rows, b, 0, 0, runs);
  contrast k = contrast_of(info ? INFO : loss, EUCLIDEAN, flags, *theta, n.m, limit, 1.f);
  for (int i = thread(); i < PARTY * d; i += threads()) {
    int in = i < size * d;
    x[i] = in ? features[(long)first * d + i] : 0.f;
    tail[i] = in ? features[(b + (long)first) * d + i] : 0.f;
  }
  barrier();
  float own[PARTY * 5];
#pragma clang loop unroll(full)
  for (int i = 0; i < PARTY * (d + 1); i++) own[i] = 0.f;
  along(info ? SIMILARITIES : PAIRS, &k, &n, first, size, gradient, features, rows, d, x, shares, own);
#pragma clang loop unroll(full)
  for (int i = 0; i < PARTY * (d + 1); i++) {
    if (!info && i % (d + 1) == d) continue;
    float v = warp_sum(own[i]);
    if (thread() % 32 == 0) scratch[thread() / 32 * PARTY * (d + 1) + i] = v;
  }
  barrier();
  for (int i = thread(); i < PARTY * (d + 1); i += threads()) {
    float v = 0.f;
    for (int w = 0; w < threads() / 32; w++) v += scratch[w * PARTY * (d + 1) + i];
    sums[i] = v;
  }
  barrier();
  if (thread() < size) {
    int h = thread();
    float d2 = 0.f;
    for (int i = 0; i < d; i++) d2 = fused(x[h * d + i] - tail[h * d + i], x[h * d + i] - tail[h * d + i], d2);
    totals t = {0.f, 0.f, info ? 0.f : 1.f};
    if (info) t.total = sums[h * (d + 1) + d];
    float slope = info ? finish_total(&k, &t, d2, n.m) : add_pair(&k, d2, 1);
    if (info) shares[h] = t.share;
    for (int i = 0; i < d; i++) {
      float g = 2.f * slope * (x[h * d + i] - tail[h * d + i]), all = g + t.share * sums[h * (d + 1) + i];
      if (flags & WITH_GRADIENT) {
        add_fixed(gradient + (long)(first + h) * d + i, all);
        add_fixed(gradient + (b + (long)first + h) * d + i, -g);
      }
      k.sum += 0.f * all;
    }
  }
  barrier();
  if (info && flags & WITH_GRADIENT) along(SHARES, &k, &n, first, size, gradient, features, rows, d, x, shares, own);
  leave(parts, k.sum, k.d_theta, scratch);
}
#define GROUPS(name, info, d) \
  KERNEL_TOGETHER(name##_##d)(long *gradient, float *parts, const float *features, const int *runs, const float *theta, int rows, int b, \
                              int loss, int flags, number limit) { \
    SHARED_ARRAY(float, x, PARTY * d); \
    SHARED_ARRAY(float, tail, PARTY * d); \
    SHARED_ARRAY(float, shares, PARTY); \
    SHARED_ARRAY(float, sums, PARTY *(d + 1)); \
    SHARED_ARRAY(float, scratch, 8 * PARTY * (d + 1)); \
    groups(info, gradient, parts, features, runs, theta, rows, b, loss, flags, VALUE(limit), d, x, tail, shares, sums, scratch); \
  }
GROUPS(contrast_groups, 0, 1) GROUPS(contrast_groups, 0, 2) GROUPS(contrast_groups, 0, 3) GROUPS(contrast_groups, 0, 4)
GROUPS(contrast_info_groups, 1, 1) GROUPS(contrast_info_groups, 1, 2) GROUPS(contrast_info_groups, 1, 3) GROUPS(contrast_info_groups, 1, 4)

// contrast_cosines: pairs [heads, rows] are the tempered cosines of the heads from
// number from on with all rows; they become the derivatives with respect to them,
// zero where a row is neither the tail nor a negative. runs begin with −1 or a number
// of rows (with 0 there are no negatives). A block for each head. parts are those of
// the head.
KERNEL_TOGETHER(contrast_cosines)(float *pairs, float *parts, const int *runs, const float *theta, int from, int rows, int b, int loss, int flags) {
  SHARED_ARRAY(float, scratch, 32);
  int head = from + block();
  negatives n = negatives_of(head, rows, b, 0, 0, runs);
  contrast k = contrast_of(loss, COSINE, flags, *theta, n.m, 8e37f, 1.f);
  float *x = pairs + (long)block() * rows;
  int tail = b + head;
  float positive = x[tail];
  barrier(); // before anything is overwritten
  totals t = no_totals();
  float trace = 0.f;
  for (int r = thread(); r < rows; r += threads()) {
    int in = n.kind < 0 ? r != head && r != tail : 0;
    if (n.kind > 0) {
      int after_heads = r >= n.lo + n.size, after_tails = r >= b + n.lo + n.size;
      int own = (r >= n.lo && !after_heads) || (r >= b + n.lo && !after_tails);
      int number = r - (after_heads ? n.size : 0) - (after_tails ? n.size : 0) - n.first;
      in = !own && (number < 0 ? number + n.outside : number) < n.m;
    }
    float v = x[r];
    if (in || r == tail) trace += 0.f * v;
    if (!in) {
      x[r] = loss == INFO ? -INFINITE : 0.f;
    } else if (loss == INFO) {
      add_similarity(&k, &t, v);
    } else {
      x[r] = add_pair(&k, v, 0);
    }
  }
  float slope;
  if (loss == INFO) {
    // The threads' sums are brought to one largest cosine.
    float top = warp_max(t.top);
    if (thread() % 32 == 0) scratch[thread() / 32] = top;
    barrier();
    top = thread() % 32 < threads() / 32 ? scratch[thread() % 32] : -INFINITE;
    barrier();
    top = warp_max(top);
    float total = block_sum(t.total == 0.f ? 0.f : t.total * exponential(t.top - top), scratch);
    t = (totals){total, top, 0.f};
    contrast own = k;
    slope = finish_total(&own, &t, positive, n.m);
    if (thread() == 0) k = own;
    for (int r = thread(); r < rows; r += threads()) x[r] = info_negative(&k, &t, x[r]);
  } else {
    contrast own = k;
    slope = add_pair(&own, positive, 1);
    if (thread() == 0) k = own;
  }
  barrier();
  if (thread() == 0) x[tail] = slope;
  leave(parts, k.sum + trace, k.d_theta, scratch);
}

// contrast_total adds up parts [count, 2] and writes the loss, and its derivative
// with respect to theta, times norm. One block of 1024 threads.
KERNEL_TOGETHER(contrast_total)(float *loss, float *d_theta, const float *parts, int count, number norm) {
  SHARED_ARRAY(double, sums, 2048);
  double sum = 0, derivative = 0;
  for (int i = thread(); i < count; i += threads()) {
    sum += (double)parts[2 * i];
    derivative += (double)parts[2 * i + 1];
  }
  sums[thread()] = sum;
  sums[1024 + thread()] = derivative;
  for (int half = 512; half > 0; half /= 2) {
    barrier();
    if (thread() < half) {
      sums[thread()] += sums[thread() + half];
      sums[1024 + thread()] += sums[1024 + thread() + half];
    }
  }
  if (thread() == 0) {
    *loss = (float)(sums[0] * (double)VALUE(norm));
    *d_theta = (float)(sums[1024] * (double)VALUE(norm));
  }
}

// contrast_gradient: dst = gradient·norm·incoming, of fixed-point numbers;
// contrast_gradient_f of others. A thread for each element.
KERNEL(contrast_gradient)(float *dst, const long *gradient, const float *incoming, number norm, long n) {
  long i = index_of_thread();
  if (i < n) dst[i] = from_fixed(gradient[i]) * (*incoming * VALUE(norm));
}
KERNEL(contrast_gradient_f)(float *dst, const float *gradient, const float *incoming, number norm, long n) {
  long i = index_of_thread();
  if (i < n) dst[i] = gradient[i] * (*incoming * VALUE(norm));
}

// contrast_theta: dst = derivative·incoming. One thread.
KERNEL(contrast_theta)(float *dst, const float *derivative, const float *incoming) {
  if (index_of_thread() == 0) *dst = *derivative * *incoming;
}
