// Small batches of an embedding table on a cluster: what table_batches_D of table.h does
// in one block, bit for bit, in eight blocks that share their memory.
//
// All blocks have the local numbers and rows of a batch. Head i belongs to warp i/32 % 32
// of 32, as in one block. Block r of the cluster has warps r, r+8, r+16 and r+24. Their
// threads take a head each, load the points that they need, and add the gradient up in
// their own block. The block's other four warps meanwhile fetch the next batch and clear
// the sums that it will use. After a barrier of the cluster, each block adds up all
// blocks' sums for an eighth of the points, and moves these points; after another barrier,
// all see the table. Sums of integers do not depend on their order. Sums of floats
// (losses, and a head's own gradient) are made as in one block, so the results are the
// same.
//
// The sums are twice in shared memory, for one batch and the next, so no thread waits for
// them to be cleared.
#ifndef CNE_TABLE_CLUSTER_H
#define CNE_TABLE_CLUSTER_H

#include "table.h"

enum { BLOCKS = 8, MEMBERS = 256, PAIRING = 128 }; // blocks of a cluster, their threads, and those that take heads

DEVICE void cluster_batches(const int info, float *table, float *log_z, float *losses, int *status, const u32 *control, const int *rows, const int *local,
                            const int *counts, int stride, int b, int m, int count, int number_of, int loss, float limit, float scale,
                            float norm, const int d, SHARED u32 *halves, SHARED u32 *words, SHARED u32 *parts, SHARED u32 *carried) {
  if (*status != 0) return;
  const int most = 2 * b, t = thread(), lane = t % 32, rank = cluster_rank(), warp = rank + t / 32 * BLOCKS;
  const int many = AT_ONCE(d), helper = t - PAIRING;
  SHARED int *local_here = (SHARED int *)(halves + 4 * most * d), *row = local_here + 2 * most; // [2, 2b]: of this batch and the next
  fetch_async(local_here, local, most);
  fetch_async(row, rows, most);
  if (t <= WORDS) async_copy_4(words + t, t < WORDS ? (const void *)(control + t) : counts);
  // For each of two batches: the lower halves [d, 2b] of the sums, then the upper.
  for (int i = t; i < 4 * most * d; i += threads()) halves[i] = i / (most * d) % 2 == 0 ? MIDDLE : 0;
  if (t < 2) carried[t] = 0;
  float z = loss == NC ? *log_z : 0.f;
  async_wait();
  cluster_barrier();
  for (int k = 0; k < count; k++) {
    const SHARED u32 *word = words + (k & 1) * (WORDS + 1);
    const SHARED int *own_local = local_here + (k & 1) * most, *own_row = row + (k & 1) * most;
    SHARED u32 *low = halves + (k & 1) * 2 * most * d;
    SHARED int *high = (SHARED int *)(low + most * d);
    // The points that the block moves, the first of each thread loaded ahead.
    const int points = (int)word[WORDS], share_of = (points + BLOCKS - 1) / BLOCKS;
    const int first = rank * share_of + t, end = min_i(points, (rank + 1) * share_of);
    float ahead[4];
    if (first < end) LOAD(ahead, table + (long)own_row[first] * d, d);

    if (helper >= 0) {
      SHARED u32 *next = halves + (~k & 1) * 2 * most * d;
      for (int i = helper; i < most * d; i += MEMBERS - PAIRING) next[i] = MIDDLE, next[most * d + i] = 0;
      if (helper == 0) carried[~k & 1] = 0;
      if (k + 1 < count) {
        for (int i = 2 * helper; i < most; i += 2 * (MEMBERS - PAIRING)) {
          async_copy_8(local_here + (~k & 1) * most + i, local + (long)(k + 1) * stride + i);
          async_copy_8(row + (~k & 1) * most + i, rows + (long)(k + 1) * stride + i);
        }
        if (helper <= WORDS)
          async_copy_4(words + (~k & 1) * (WORDS + 1) + helper, helper < WORDS ? (const void *)(control + (long)(k + 1) * WORDS + helper) : counts + k + 1);
      }
      async_wait();
    } else {
      const constants con = constants_of(loss, loss == NC ? z : as_float(word[THETA]), m, limit);
      float loss_of_warp = 0.f, theta_of_warp = 0.f;
      int over = 0; // a sum's lower half has overflowed
      for (int base = 0; base < b; base += 32 * 32) {
        int i = base + warp * 32 + lane, in = i < b, at[6];
        draw_negatives(at, many, state_of(word), 0, m, i, b);
        float x[4], y[4], diff[4], own[4] = {0.f, 0.f, 0.f, 0.f}, o[6][4];
        int head = own_local[in ? i : 0], tail = own_local[in ? b + i : b];
        LOAD(x, table + (long)own_row[head] * d, d);
        LOAD(y, table + (long)own_row[tail] * d, d);
// All negatives that were drawn are loaded before the first is needed.
#define LOAD_NEGATIVES(from) \
  _Pragma("clang loop unroll(full)") for (int u = 0; u < many; u++) if ((from) + u < m) { \
    at[u] = own_local[at[u]]; \
    LOAD(o[u], table + (long)own_row[at[u]] * d, d); \
  }
        LOAD_NEGATIVES(0);
        float share = 0.f, slope;
        if (info) {
          for (int from = 0; from < m; from += many) {
            if (from > 0) {
              draw_negatives(at, many, state_of(word), from, m, i, b);
              LOAD_NEGATIVES(from);
            }
#pragma clang loop unroll(full)
            for (int u = 0; u < many; u++)
              if (from + u < m) share += similarity(squared_distance(diff, x, o[u], d), con.clamp);
          }
          if (m > many) {
            draw_negatives(at, many, state_of(word), 0, m, i, b);
            LOAD_NEGATIVES(0);
          }
        }
        sums mine = {0.f, 0.f};
        float apart = squared_distance(diff, x, y, d);
        slope = info ? info_positive(&con, apart, &share, &mine) : positive_pair(&con, apart, &mine);
        for (int l = 0; l < d; l++) own[l] = diff[l] *= 2.f * slope;
        if (in) over |= add_point(low + tail, high + tail, most, diff, -1.f, d);
        for (int from = 0; from < m; from += many) {
          if (from > 0) {
            draw_negatives(at, many, state_of(word), from, m, i, b);
            LOAD_NEGATIVES(from);
          }
#pragma clang loop unroll(full)
          for (int u = 0; u < many; u++) {
            if (from + u < m) {
              apart = squared_distance(diff, x, o[u], d);
              slope = info ? info_negative(&con, apart, share) : negative_pair(&con, apart, &mine);
              for (int l = 0; l < d; l++) own[l] += diff[l] *= 2.f * slope;
              if (in) over |= add_point(low + at[u], high + at[u], most, diff, -1.f, d);
            }
          }
        }
        for (int l = 0; l < d; l++) mine.loss += 0.f * own[l]; // so that the loss shows a gradient that is not finite
        if (in) over |= add_point(low + head, high + head, most, own, 1.f, d);
        // From the second 1024 heads on, the warp's earlier sum is added.
        loss_of_warp = warp_sum(in ? mine.loss : 0.f) + loss_of_warp;
        if (loss == NC) theta_of_warp = warp_sum(in ? mine.d_theta : 0.f) + theta_of_warp;
      }
      // Every block gets every warp's sums and, rarely, that there are upper halves.
      if (lane < BLOCKS) {
        store_of(parts + warp, lane, as_bits(loss_of_warp));
        if (loss == NC) store_of(parts + 32 + warp, lane, as_bits(theta_of_warp));
      }
      if (ballot(over) != 0 && lane < BLOCKS) store_of(carried + (k & 1), lane, 1);
    }
    cluster_barrier();

    // Every warp of every block adds up all parts, so that all know whether to continue.
    float total = warp_sum(as_float(parts[lane])) * (0.693147181f * scale);
    if (loss == NC) z -= as_float(word[LR_Z]) * clip(norm * warp_sum(as_float(parts[32 + lane])), as_float(word[CLIP_Z]));
    int stop = !finite(total) || !(z <= LARGEST_LOG_Z && z >= -LARGEST_LOG_Z);
    if (rank == 0 && t == 0) {
      losses[k] = total;
      if (loss == NC && finite(total)) *log_z = z;
      if (stop) *status = number_of + k + 1;
    }
    if (!finite(total)) return;
    const float lr = as_float(word[LR]), bound = as_float(word[CLIP]);
    const int with_high = carried[k & 1] != 0;
    for (int s = first; s < end; s += threads()) {
      float w[4];
      float *to = table + (long)own_row[s] * d;
      if (s == first) for (int l = 0; l < d; l++) w[l] = ahead[l];
      else LOAD(w, to, d);
      u32 part[4][BLOCKS];
#pragma clang loop unroll(full)
      for (int r = 0; r < BLOCKS; r++)
#pragma clang loop unroll(full)
        for (int l = 0; l < d; l++) part[l][r] = load_of(low + l * most + s, (rank + r) % BLOCKS);
#pragma clang loop unroll(full)
      for (int l = 0; l < d; l++) {
        u64 sum = 0;
#pragma clang loop unroll(full)
        for (int r = 0; r < BLOCKS; r++) sum += (u64)part[l][r] - (u64)MIDDLE;
        if (with_high)
          for (int r = 0; r < BLOCKS; r++) sum += (u64)load_of((SHARED u32 *)high + l * most + s, r) << 32;
        w[l] -= lr * clip((float)(long)sum * (norm / UNIT), bound);
      }
      if (d == 2) *(two *)to = (two){w[0], w[1]};
      else for (int l = 0; l < d; l++) to[l] = w[l];
    }
    cluster_barrier(); // nor does a block end before the others have read its sums
    if (stop) return;
  }
}
// table_cluster_dD and table_info_cluster_dD take what table_batches_dD does, with one
// cluster of blocks of 256 threads. Dynamic shared memory: b·(32·D+32) bytes.
#define CLUSTER_BATCHES(name, info, d) \
  KERNEL_CLUSTER_OF(256, 8, name##_d##d)(float *table, float *log_z, float *losses, int *status, const u32 *control, const int *rows, const int *local, \
                                         const int *counts, int stride, int b, int m, int count, int number_of, int loss, \
                                         float_bits limit, float_bits scale, float_bits norm) { \
    DYNAMIC(u32, halves); \
    SHARED_ARRAY(u32, words, 2 * (WORDS + 1)); \
    SHARED_ARRAY(u32, parts, 64); \
    SHARED_ARRAY(u32, carried, 2); \
    cluster_batches(info, table, log_z, losses, status, control, rows, local, counts, stride, b, m, count, number_of, info ? INFO : loss, \
                    VALUE(limit), VALUE(scale), VALUE(norm), d, halves, words, parts, carried); \
  }

#endif
