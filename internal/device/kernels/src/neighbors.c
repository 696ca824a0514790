// Exact nearest neighbours and ranks of package data/neighbors, whose blocks.go says
// what z, h and s are and bounds the error of s.
#include "kernel.h"

typedef float four __attribute__((vector_size(16)));

// A query's candidates: a list of keys, each the bits of s above the number of a base
// point, which a warp keeps in shared memory. Points with s ≥ limit are not candidates.
// There is room for a power of two of keys, at least 32 more than are kept.
typedef struct {
  SHARED u64 *keys;
  int filled, keep, room;
  float limit;
} candidates;

// prune sorts the keys (Batcher's bitonic sort), keeps the smallest, and lowers the
// limit to the largest of these.
DEVICE void prune(candidates *c) {
  int lane = thread() % 32;
  for (int i = c->filled + lane; i < c->room; i += 32) c->keys[i] = ~0ul;
  for (int size = 2; size <= c->room; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      warp_barrier();
      for (int p = lane; p < c->room / 2; p += 32) {
        int i = 2 * p - (p & (step - 1));
        u64 a = c->keys[i], b = c->keys[i + step];
        if ((a > b) == !(i & size)) {
          c->keys[i] = b;
          c->keys[i + step] = a;
        }
      }
    }
  }
  warp_barrier();
  c->filled = c->keep;
  c->limit = as_float((u32)(c->keys[c->keep - 1] >> 32));
  warp_barrier();
}

// offer adds the points of a warp's threads, each with its s, that are candidates.
DEVICE void offer(candidates *c, float s, int j, int self) {
  u32 wanted = ballot(s < c->limit && j != self);
  if (c->filled + __builtin_popcount(wanted) > c->room) {
    prune(c);
    wanted = ballot(s < c->limit && j != self);
  }
  int lane = thread() % 32;
  if (wanted >> lane & 1)
    c->keys[c->filled + __builtin_popcount(wanted & ((1u << lane) - 1))] = (u64)as_bits(s) << 32 | (u32)j;
  c->filled += __builtin_popcount(wanted);
}

// load_candidates reads the candidates that store_candidates has left, or begins with
// none. lists is [queries, keep], filled and limits are [queries].
DEVICE candidates load_candidates(SHARED u64 *keys, const u64 *lists, const int *filled, const float *limits, long query, int keep,
                         int room, int begin) {
  candidates c = {keys, 0, keep, room, as_float(0x71800000u)}; // 2¹⁰⁰: see aboveAll in search.go
  if (!begin) {
    c.filled = filled[query];
    c.limit = limits[query];
    for (int i = thread() % 32; i < c.filled; i += 32) c.keys[i] = lists[query * keep + i];
  }
  warp_barrier();
  return c;
}

DEVICE void store_candidates(candidates *c, u64 *lists, int *filled, float *limits, long query) {
  warp_barrier();
  if (c->filled > c->keep) prune(c);
  for (int i = thread() % 32; i < c->filled; i += 32) lists[query * c->keep + i] = c->keys[i];
  if (thread() % 32 == 0) {
    filled[query] = c->filled;
    limits[query] = c->limit;
  }
}

// neighbors_round: x with ten digits after the point, in to: roundTF32 in blocks.go. A thread
// for each of n.
KERNEL(neighbors_round)(float *to, const float *x, long n) {
  long i = index_of_thread();
  if (i < n) to[i] = as_float((as_bits(x[i]) + 0x1000u) & ~0x1fffu);
}

// neighbors_select: offers the base points first … first+columns−1 to queries as
// candidates, by s = (hq + h) − z·z', where products [queries, stride] holds z·z'.
// Query q is base point which[q] and not its own candidate, or none if which is 0.
// h [columns] and hq [queries] begin at these points and queries. columns and stride are
// multiples of 512, and h is infinite beyond the last point. A warp for each query, with
// shared memory for room keys. Four loads of 16 bytes are in flight at a time.
KERNEL_SYNC(neighbors_select)(u64 *lists, int *filled, float *limits, const float *products, const float *h, const float *hq,
                                   int queries, const int *which, int first, int columns, int stride, int keep, int room, int begin) {
  DYNAMIC(u64, keys);
  int warp = thread() / 32, lane = thread() % 32;
  long query = (long)block() * (threads() / 32) + warp;
  if (query >= queries) return;
  candidates c = load_candidates(keys + warp * room, lists, filled, limits, query, keep, room, begin);
  int own = which ? which[query] : -1;
  float norm = hq[query];
  const float *row = products + query * stride;
  for (int at = lane * 4; at < columns; at += 512) {
    four s[4];
    for (int g = 0; g < 4; g++) s[g] = *(const four *)(row + at + g * 128);
    for (int g = 0; g < 4; g++) {
      four far = *(const four *)(h + at + g * 128);
      for (int e = 0; e < 4; e++) s[g][e] = __builtin_fabsf((norm + far[e]) - s[g][e]);
    }
#pragma unroll
    for (int g = 0; g < 4; g++) {
      // Padding is infinite or NaN, and neither is below the limit.
      if (!ballot(s[g][0] < c.limit || s[g][1] < c.limit || s[g][2] < c.limit || s[g][3] < c.limit)) continue;
#pragma unroll 1 // so that there are not 16 copies of prune
      for (int e = 0; e < 4; e++)
        offer(&c, e == 0 ? s[g][0] : e == 1 ? s[g][1] : e == 2 ? s[g][2] : s[g][3], first + at + g * 128 + e, own);
    }
  }
  store_candidates(&c, lists, filled, limits, query);
}

// neighbors_differences: offers n base points, from origin on, to queries in few dimensions,
// by s = Σ (zq − z)²/2. z [n, width] and zq [queries, width] have width 4 or 8. which is as
// in neighbors_select. A warp for each query; shared memory holds 1024·width floats for all
// of them, then room keys for each.
KERNEL_SYNC(neighbors_differences)(u64 *lists, int *filled, float *limits, const float *z, const float *zq, int n, int width,
                                 int queries, const int *which, int origin, int keep, int room) {
  DYNAMIC(float, tile);
  SHARED u64 *keys = (SHARED u64 *)(tile + 1024 * width);
  int warp = thread() / 32, lane = thread() % 32;
  long query = (long)block() * (threads() / 32) + warp;
  int here = query < queries; // the other warps help to fill the tile
  candidates c = load_candidates(keys + warp * room, lists, filled, limits, query, keep, room, origin == 0 || !here);
  int own = here && which ? which[query] : -1;
  four near[2] = {{0}, {0}};
  if (here) {
    near[0] = *(const four *)(zq + query * width);
    if (width == 8) near[1] = *(const four *)(zq + query * width + 4);
  }
  for (int first = origin; first < origin + n; first += 1024, z += 1024 * width) {
    int points = min_i(1024, origin + n - first);
    for (int i = thread() * 4; i < points * width; i += threads() * 4) *(SHARED four *)(tile + i) = *(const four *)(z + i);
    barrier();
    for (int i = 0; here && i < points; i += 32) {
      int p = min_i(i + lane, points - 1);
      four d = near[0] - *(const SHARED four *)(tile + p * width);
      float s = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + d[3] * d[3];
      if (width == 8) {
        d = near[1] - *(const SHARED four *)(tile + p * width + 4);
        s += d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + d[3] * d[3];
      }
      s = i + lane < points ? s / 2 : INFINITE;
      if (ballot(s < c.limit)) offer(&c, s, first + i + lane, own);
    }
    barrier();
  }
  if (here) store_candidates(&c, lists, filled, limits, query);
}

// distance2 is dist2 in knn.go, bit for bit: the same sums in the same order,
// each operation rounded.
DEVICE double distance2(const float *a, const float *b, int d) {
#pragma clang fp contract(off)
  double s[4] = {0, 0, 0, 0};
  int i = 0;
  for (; i + 4 <= d; i += 4)
    for (int e = 0; e < 4; e++) {
      double v = (double)a[i + e] - (double)b[i + e];
      s[e] += v * v;
    }
  for (int e = 0; e < 3; e++)
    if (i + e < d) {
      double v = (double)a[i + e] - (double)b[i + e];
      s[e] += v * v;
    }
  return (s[0] + s[1]) + (s[2] + s[3]);
}

// neighbors_exact: the squared distances, in to [queries, keep], from queries to their
// candidates, filled[q] of query q in lists [queries, keep], as store_candidates has left
// them. x [·, d] are the base points, and query q is point which[q] or, if which is 0, row q of
// xq [queries, d]. A thread for each place in the lists.
KERNEL(neighbors_exact)(double *to, const float *x, const float *xq, const int *which, const u64 *lists, const int *filled,
                        int queries, int keep, int d) {
  long e = index_of_thread(), q = e / keep;
  if (q >= queries || e % keep >= filled[q]) return;
  to[e] = distance2(which ? x + (long)which[q] * d : xq + q * d, x + (long)(u32)lists[e] * d, d);
}

// neighbors_distances: the squared distances in x [·, d] from point self+q to the k
// points in row q of index [queries, k]. A thread for each.
KERNEL(neighbors_distances)(double *to, const float *x, const int *index, int self, int d, int k, int queries) {
  long e = index_of_thread();
  if (e < (long)queries * k) to[e] = distance2(x + (self + e / k) * d, x + (long)index[e] * d, d);
}

// neighbors_count: adds to ranks [queries, k] how many of the base points first …
// first+columns−1 are nearer to query q, which is base point self+q, than the points in
// row q of index, whose squared distances are dist2. products, h, hq, columns and
// stride are as in neighbors_select; norms [·] are ‖z‖ of the base points, at most
// bound[0] in these columns. Where s cannot decide, the distance is computed:
// errorBound.between in blocks.go has the limits, and the rest of bound are gamma,
// shift, product, distance and the scale. A warp for each query, with 512 bytes of
// shared memory.
//
// A lane takes one of the k points; if these are few, several lanes share one and
// divide the columns.
KERNEL_SYNC_OF(256, 3, neighbors_count)(int *ranks, const float *products, const float *h, const float *hq, const double *norms,
                                  const double *bound, const float *x, int d, const int *index, const double *dist2, int queries,
                                  int self, int first, int columns, int stride, int k) {
  DYNAMIC(float, tiles);
  int warp = thread() / 32, lane = thread() % 32;
  long query = (long)block() * (threads() / 32) + warp;
  if (query >= queries) return;
  SHARED float *tile = tiles + warp * 128;
  const float *row = products + query * stride, *point = x + (self + query) * d;
  int own = self + (int)query, width = 32;
  while (width > 1 && width / 2 >= k) width /= 2;
  for (int l0 = 0; l0 < k; l0 += width) {
    int l = l0 + lane % width, part = lane / width, parts = 32 / width, nearer = 0, asked = 0;
    float lo = -INFINITE, hi = -INFINITE; // of lanes with nothing to do
    double limit = 0;
    if (l < k) {
      limit = dist2[query * k + l];
      asked = index[query * k + l];
      double r = bound[5] * sqrt_d(limit), w = norms[own] + bound[0];
      double slack = bound[1] * w * w / 2 + bound[3] + 0x1p-126, shift = bound[2] * w + bound[4];
      double least = r * (1 - 1e-9) - shift, most = r * (1 + 1e-9) + shift;
      least = least > 0 ? least : 0;
      double below = least * least / 2 - slack, above = most * most / 2 + slack;
      lo = (float)(below - 0x1p-22 * (below < 0 ? -below : below));
      hi = (float)(above + 0x1p-22 * above);
    }
    for (int at = 0; at < columns; at += 128) {
      four s = *(const four *)(row + at + lane * 4), far = *(const four *)(h + at + lane * 4);
      for (int e = 0; e < 4; e++) {
        s[e] = (hq[query] + far[e]) - s[e];
        if (first + at + lane * 4 + e == own) s[e] = INFINITE; // no point is nearer to itself
      }
      *(SHARED four *)(tile + lane * 4) = s;
      warp_barrier();
      for (int i = part * 4; i < 128; i += parts * 4) {
        s = *(const SHARED four *)(tile + i);
#pragma unroll
        for (int e = 0; e < 4; e++) {
          nearer += s[e] < lo;
          if (s[e] >= lo && s[e] < hi) {
            int j = first + at + i + e;
            double to = distance2(point, x + (long)j * d, d);
            nearer += to < limit || (to == limit && j < asked);
          }
        }
      }
      warp_barrier();
    }
    for (int mask = width; mask < 32; mask *= 2) nearer += shuffle_xor_i(nearer, mask);
    if (l < k && part == 0) ranks[query * k + l] += nearer;
  }
}
