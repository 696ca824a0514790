// New points beside a table that stays as it is: package train's Projector.
#ifndef CNE_PROJECTION_H
#define CNE_PROJECTION_H

#include "sweeps.h"

// project_D moves points y [q, D] against the gradient of the loss on their edges to k
// training points each, near [q, k], whose positions are table [n, D]. Each of `epochs`
// passes over a point's edges, `at` of them at a time, with m negatives from all n training
// points and the step size of lrs [epochs]. The negatives are the next numbers of the
// point's own stream, whose states are keys [q], or, where at > 1, the first of a stream
// that all points share in the step: keys [epochs, ⌈k/at⌉]. A thread for each point, which
// keeps its position in registers.
//
// The negatives' part of InfoNC's gradient is a sum times the edge's share, so that they
// are gone through once.
DEVICE void project(float *y, const float *table, const int *near, const u64 *keys, const float *lrs, int q, int n, int k, int m, int epochs, int at,
                    float theta, int loss, int flags, float limit, float scale, float bound, const int d) {
  long i = index_of_thread();
  if (i >= q) return;
  loss_state s = loss_state_of(loss, EUCLIDEAN, flags, theta, m, limit, 1.f);
  float x[4], other[4];
  EACH(c, d) x[c] = y[i * d + c];
  u64 state = at > 1 ? 0 : keys[i];
  near += i * k;
  for (int epoch = 0; epoch < epochs; epoch++) {
    float lr = lrs[epoch];
    for (int edge = 0; edge < k; edge += at) {
      int edges = min_i(at, k - edge);
      if (at > 1) state = keys[(long)epoch * ((k + at - 1) / at) + edge / at];
      float away[4] = {0.f, 0.f, 0.f, 0.f}, own[4] = {0.f, 0.f, 0.f, 0.f}, sum = 0.f;
      for (int j = 0; j < m; j++) {
        long row = (long)next_below(&state, (u64)n);
        float d2 = pair_value(&s, x, other, table + row * d, d), slope;
        if (loss == INFO) {
          float similar = similarity(d2, s.clamp);
          sum += similar;
          slope = similar <= s.clamp ? 0.f : -similar * similar;
        } else {
          slope = add_pair(&s, d2, 0);
        }
        EACH(c, d) away[c] += 2.f * slope * (x[c] - other[c]);
      }
      for (int e = edge; e < edge + edges; e++) {
        float d2 = pair_value(&s, x, other, table + (long)near[e] * d, d), slope;
        totals t = {sum, 0.f, 1.f};
        if (loss == INFO) slope = finish_total(&s, &t, d2, m);
        else slope = add_pair(&s, d2, 1);
        EACH(c, d) own[c] += 2.f * slope * (x[c] - other[c]) + t.share * away[c];
      }
      EACH(c, d) x[c] -= lr * clip(scale * own[c], bound);
    }
  }
  EACH(c, d) y[i * d + c] = x[c];
}
#define PROJECT(d) \
  KERNEL(project_##d)(float *y, const float *table, const int *near, const u64 *keys, const float *lrs, int q, int n, int k, int m, int epochs, int at, \
                      float_bits theta, int loss, int flags, float_bits limit, float_bits scale, float_bits bound WIDTH_PARAMETER) { \
    project(y, table, near, keys, lrs, q, n, k, m, epochs, at, VALUE(theta), loss, flags, VALUE(limit), VALUE(scale), VALUE(bound), WIDTH(d)); \
  }

#endif
