// The contrastive loss of rows of any width, and the kernels that turn a sweep's sums
// into results: see sweeps.h.
#include "sweeps.h"

// pair_value_warp is pair_value, computed by the 32 lanes of a warp, for rows of any
// width.
DEVICE float pair_value_warp(const loss_state *k, const float *x, const float *y, int d) {
  float sum = 0.f;
  for (int i = thread() % 32; i < d; i += 32) {
    float a = x[i] - y[i];
    sum = k->metric == EUCLIDEAN ? fma_f(a, a, sum) : fma_f(x[i], y[i], sum);
  }
  sum = warp_sum(sum);
  return k->metric == EUCLIDEAN ? sum : sum * k->inv_tau;
}

// contrast_heads_any: a warp for each head, for any number d of coordinates; b warps in
// blocks of at most 32. It works on 128 coordinates at a time, four for each lane, and
// computes a pair's derivative anew for each 128.
KERNEL_SYNC(contrast_heads_any)(long *gradient, float *parts, const float *features, const int *listed, const int *runs, const float *theta,
                                int rows, int b, int m, int loss, int metric, int flags, float_bits limit, float_bits inv_tau, int d) {
  SHARED_ARRAY(float, scratch, 32);
  int head = (int)(index_of_thread() / 32), lane = thread() % 32;
  loss_state k = loss_state_of(loss, metric, flags, *theta, 0, VALUE(limit), VALUE(inv_tau));
  if (head < b) {
    negatives n = negatives_of(head, rows, b, listed, m, runs);
    m = n.m;
    k = loss_state_of(loss, metric, flags, *theta, m, VALUE(limit), VALUE(inv_tau));
    const float *x = features + (long)head * d;
    float positive = pair_value_warp(&k, x, features + (b + (long)head) * d, d), slope;
    totals t = no_totals();
    if (loss == INFO) {
      for (int j = 0; j < n.count; j++) add_similarity(&k, &t, pair_value_warp(&k, x, features + (long)negative(&n, head, j) * d, d));
      slope = finish_total(&k, &t, positive);
    } else {
      slope = add_pair(&k, positive, 1);
    }
    loss_state after = k;
    float traces = 0.f;
    for (int from = 0; from < d; from += 128) {
      after = k;
      float own[4] = {0.f, 0.f, 0.f, 0.f};
      for (int j = -1; j < n.count; j++) {
        long row = j < 0 ? b + (long)head : negative(&n, head, j);
        const float *y = features + row * d;
        float w = slope;
        if (j >= 0) {
          float p = pair_value_warp(&k, x, y, d);
          w = loss == INFO ? info_negative(&k, &t, p) : add_pair(&after, p, 0);
        }
        for (int i = 0; i < 4; i++) {
          int at = from + 32 * i + lane;
          if (at >= d) break;
          float g = metric == EUCLIDEAN ? 2.f * w * (x[at] - y[at]) : k.inv_tau * w * y[at];
          own[i] += g;
          if (flags & WITH_GRADIENT) add_fixed(gradient + row * d + at, metric == EUCLIDEAN ? -g : k.inv_tau * w * x[at]);
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
  store_parts(parts, k.sum, k.d_theta, scratch);
}

// contrast_gemm: pairs [heads, rows] are the cosines over τ of the heads from number
// `from` on with all rows; their derivatives replace them, zero where a row is neither
// tail nor negative. runs begins with −1 or a number of rows (0: there are no
// negatives). A block for each head. parts begins at the first of these heads.
KERNEL_SYNC(contrast_gemm)(float *pairs, float *parts, const int *runs, const float *theta, int from, int rows, int b, int loss, int flags) {
  SHARED_ARRAY(float, scratch, 32);
  int head = from + block();
  negatives n = negatives_of(head, rows, b, 0, 0, runs);
  loss_state k = loss_state_of(loss, COSINE, flags, *theta, n.m, 8e37f, 1.f);
  float *x = pairs + (long)block() * rows;
  int tail = b + head;
  float positive = x[tail];
  barrier(); // before anything is overwritten
  totals t = no_totals();
  float trace = 0.f;
  for (int r = thread(); r < rows; r += threads()) {
    int in = n.kind < 0 ? r != head && r != tail : 0;
    if (n.kind > 0) in = r != head && r - n.first + (r < n.first ? rows : 0) < n.m;
    float v = x[r];
    trace += 0.f * v; // of all rows: the products that follow include them, times 0
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
    // The threads' sums are rescaled to the block's largest cosine.
    float top = warp_max(t.top);
    if (thread() % 32 == 0) scratch[thread() / 32] = top;
    barrier();
    top = thread() % 32 < threads() / 32 ? scratch[thread() % 32] : -INFINITE;
    barrier();
    top = warp_max(top);
    float total = block_sum(t.total == 0.f ? 0.f : t.total * exp_f(t.top - top), scratch);
    t = (totals){total, top, 0.f};
    loss_state own = k;
    slope = finish_total(&own, &t, positive);
    if (thread() == 0) k = own;
    for (int r = thread(); r < rows; r += threads()) x[r] = info_negative(&k, &t, x[r]);
  } else {
    loss_state own = k;
    slope = add_pair(&own, positive, 1);
    if (thread() == 0) k = own;
  }
  barrier();
  if (thread() == 0) x[tail] += slope; // to the derivative as a negative
  store_parts(parts, k.sum + trace, k.d_theta, scratch);
}

// contrast_total adds up the parts [count, 2] and writes the loss and its derivative
// with respect to theta, times norm. One block of 1024 threads.
KERNEL_SYNC_OF(1024, 1, contrast_total)(float *loss, float *d_theta, const float *parts, int count, float_bits norm) {
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

// contrast_gradient: dst = gradient·norm·incoming, from fixed point;
// contrast_gradient_f from floats. A thread for each element.
KERNEL(contrast_gradient)(float *dst, const long *gradient, const float *incoming, float_bits norm, long n) {
  long i = index_of_thread();
  if (i < n) dst[i] = from_fixed(gradient[i]) * (*incoming * VALUE(norm));
}
KERNEL(contrast_gradient_f)(float *dst, const float *gradient, const float *incoming, float_bits norm, long n) {
  long i = index_of_thread();
  if (i < n) dst[i] = gradient[i] * (*incoming * VALUE(norm));
}

// contrast_theta: dst = derivative·incoming. One thread.
KERNEL(contrast_theta)(float *dst, const float *derivative, const float *incoming) {
  if (index_of_thread() == 0) *dst = *derivative * *incoming;
}
