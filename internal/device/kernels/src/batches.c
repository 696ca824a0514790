// The batches of a run: the order of an epoch's edges, the distinct points of its
// batches, their negatives, and what is kept of their losses. All of it is what
// package train makes on the CPU from the same seed. An edge is a word of 64 bits:
// its head, and above that its tail.
#include "kernel.h"

// block_prefix returns the sum of the values of the threads before this one in the
// block, and sets total to that of all. The threads are a multiple of 32; scratch
// has room for 32 numbers.
DEVICE int block_prefix(int v, int *total, SHARED int *scratch) {
  int lane = thread() % 32, warp = thread() / 32, before = 0;
  for (int mask = 1; mask < 32; mask *= 2) { // v is the sum of mask lanes
    int other = exchange_i(v, mask);
    if (lane & mask) before += other;
    v += other;
  }
  if (lane == 0) scratch[warp] = v;
  barrier();
  v = lane < threads() / 32 ? scratch[lane] : 0;
  *total = warp_sum_i(v);
  before += warp_sum_i(lane < warp ? v : 0);
  barrier();
  return before;
}

// The shuffle is that of train's shuffler: each edge goes to the bucket that a byte
// of the epoch's stream names, in the order of the list, and each bucket is shuffled
// by the stream of its own. The buckets are a power of two, 256 at most. Tiles are
// TILE consecutive edges, 8 for each of the 256 threads of a block, which is how many
// choices a word of the stream makes.
enum { TILE = 2048, TILE_THREADS = 256 };

// shuffle_count: counts [buckets, tiles] is how many edges of a tile go to a bucket.
// A block for each tile.
KERNEL_TOGETHER(shuffle_count)(int *counts, u64 key, long edges, int buckets, int tiles) {
  SHARED_ARRAY(int, count, TILE_THREADS);
  count[thread()] = 0;
  barrier();
  long first = (long)block() * TILE + thread() * 8;
  u64 word = word_of(key, (u64)first / 8);
  for (int k = 0; k < 8 && first + k < edges; k++) {
    __atomic_fetch_add(&count[word >> 8 * k & (u64)(buckets - 1)], 1, __ATOMIC_RELAXED);
  }
  barrier();
  if (thread() < buckets) counts[(long)thread() * tiles + block()] = count[thread()];
}

// shuffle_scan: totals [buckets] are the sums of the rows of counts, whose elements
// become the sums of those before them in their row. A block for each bucket.
KERNEL_TOGETHER_OF(1024, 1, shuffle_scan)(int *counts, int *totals, int tiles) {
  SHARED_ARRAY(int, scratch, 32);
  int *row = counts + (long)block() * tiles, before = 0;
  for (int from = 0; from < tiles; from += threads()) {
    int i = from + thread(), sum;
    int prefix = block_prefix(i < tiles ? row[i] : 0, &sum, scratch);
    if (i < tiles) row[i] = before + prefix;
    before += sum;
  }
  if (thread() == 0) totals[block()] = before;
}

// shuffle_scatter: order is the edges bucket after bucket, given what shuffle_scan
// has made of counts. A block for each tile. Each thread looks through the choices
// for those of one bucket, so that it meets them in order.
KERNEL_TOGETHER(shuffle_scatter)(u64 *order, const u64 *list, const int *counts, const int *totals, u64 key, long edges, int buckets, int tiles) {
  SHARED_ARRAY(int, scratch, 32);
  SHARED_ARRAY(u32, choices, TILE / 4); // four in each word
  SHARED_ARRAY(int, to, TILE);
  int mine = thread(), all;
  int at = block_prefix(mine < buckets ? totals[mine] : 0, &all, scratch);
  long first = (long)block() * TILE;
  u64 word = word_of(key, (u64)first / 8 + (u64)mine) & (u64)(buckets - 1) * 0x0101010101010101ul;
  choices[2 * mine] = (u32)word;
  choices[2 * mine + 1] = (u32)(word >> 32);
  barrier();
  if (mine < buckets) {
    at += counts[(long)mine * tiles + block()];
    u32 wanted = (u32)mine * 0x01010101u;
    for (int i = 0; i < TILE / 4; i++) {
      u32 x = choices[i] ^ wanted;
      if (!((x - 0x01010101u) & ~x & 0x80808080u)) continue; // no byte of x is 0
      for (int k = 0; k < 4; k++) {
        if (!(x >> 8 * k & 0xff)) to[4 * i + k] = at++;
      }
    }
  }
  barrier();
  for (int i = mine; i < TILE && first + i < edges; i += TILE_THREADS) order[to[i]] = list[first + i];
}

// shuffle_buckets: order is that of the epoch, given the edges bucket after bucket.
// A block of 256 threads for each bucket, with 4 bytes of dynamic shared memory for
// each of capacity edges, 65536 at most; a bucket with more is shuffled in order
// itself, which takes longer.
KERNEL_TOGETHER(shuffle_buckets)(u64 *order, const u64 *scattered, const int *totals, u64 key, int capacity) {
  SHARED_ARRAY(int, scratch, 32);
  DYNAMIC(unsigned short, from); // which edge comes to each place
  SHARED unsigned short *target = from + capacity;
  int start, n = totals[block()], mine = thread();
  block_prefix(mine < block() ? totals[mine] : 0, &start, scratch);
  order += start;
  scattered += start;
  key = indexed(key, (u64)block());
  if (n > capacity) {
    for (int i = mine; i < n; i += threads()) order[i] = scattered[i];
    barrier();
    u64 word = 0;
    for (int left = n; mine == 0 && left > 1; left--) {
      int odd = (n - left) % 2;
      word = odd ? word >> 32 : next_word(&key);
      u32 j = bounded((u32)word, (u32)left);
      u64 last = order[left - 1];
      order[left - 1] = order[j];
      order[j] = last;
    }
    return;
  }
  for (int i = mine; i < n; i += threads()) from[i] = (unsigned short)i;
  for (int w = mine; n - 2 * w > 1; w += threads()) {
    int left = n - 2 * w;
    u64 word = word_of(key, (u64)w);
    target[left - 1] = (unsigned short)bounded((u32)word, (u32)left);
    target[left - 2] = (unsigned short)bounded((u32)(word >> 32), (u32)(left - 1));
  }
  barrier();
  if (mine == 0 && n > 1) {
    int j = target[n - 1];
    for (int i = n - 1; i > 0; i--) {
      int next = target[i - 1]; // ahead of the stores, so that they need not be waited for
      unsigned short last = from[i];
      from[i] = from[j];
      from[j] = last;
      j = next;
    }
  }
  barrier();
  for (int i = mine; i < n; i += threads()) order[i] = scattered[from[i]];
}

// The distinct points of a batch of b edges are numbered by their first appearance
// among its 2b ends, of which the first b are heads: rows are the points, and slots
// [2b] the number of each end's. Batches lie stride = 2·size ends apart in rows and
// slots, though the last one has fewer edges.

// A part is the edges of one batch.
typedef struct {
  const u64 *edges;
  int b;
} part;
DEVICE part batch_of(const u64 *order, long edges, int size, int batch) {
  long first = (long)batch * size, left = edges - first;
  return (part){order + first, left < size ? (int)left : size};
}
// end_of returns the point at end i.
DEVICE int end_of(part p, int i) { return i < p.b ? (int)(u32)p.edges[i] : (int)(p.edges[i - p.b] >> 32); }

// distinct_small: a block for each of the batches from number first on, with 8 bytes
// of dynamic shared memory for each of the 2^bits places of a hash table, which are
// more than ends.
KERNEL_TOGETHER_OF(1024, 1, distinct_small)(int *rows, int *slots, int *counts, const u64 *order, long edges, int size, int first, int bits) {
  SHARED_ARRAY(int, scratch, 32);
  DYNAMIC(u32, points); // at first, and then their slots
  SHARED u32 *seen = points + (1 << bits); // at which end first
  part p = batch_of(order, edges, size, first + block());
  rows += (long)block() * 2 * size;
  slots += (long)block() * 2 * size;
  const u32 none = 0xffffffffu, last = (1u << bits) - 1;
  for (u32 i = (u32)thread(); i <= last; i += (u32)threads()) points[i] = seen[i] = none;
  barrier();
  for (int i = thread(); i < 2 * p.b; i += threads()) {
    u32 point = (u32)end_of(p, i), at = point * 0x9e3779b1u >> (32 - bits);
    for (;; at = (at + 1) & last) {
      u32 found = none;
      if (__atomic_compare_exchange_n(&points[at], &found, point, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || found == point) break;
    }
    __atomic_fetch_min(&seen[at], (u32)i, __ATOMIC_RELAXED);
    slots[i] = (int)at; // until the slots are known
  }
  barrier();
  int used = 0;
  for (int from = 0; from < 2 * p.b; from += threads()) {
    int i = from + thread(), at = i < 2 * p.b ? slots[i] : 0, sum;
    int fresh = i < 2 * p.b && seen[at] == (u32)i;
    int slot = used + block_prefix(fresh, &sum, scratch);
    if (fresh) {
      rows[slot] = (int)points[at];
      points[at] = (u32)slot;
    }
    used += sum;
  }
  barrier();
  for (int i = thread(); i < 2 * p.b; i += threads()) slots[i] = (int)points[slots[i]];
  if (thread() == 0) counts[block()] = used;
}

// The same for one large batch, with tables of all points: seen, which is all ones
// before and after, and slot_of. A thread for each end; in distinct_count and
// distinct_number a block of 256 for each 2048 ends, of which there are tiles.
KERNEL(distinct_see)(u32 *seen, const u64 *order, long edges, int size, int batch) {
  part p = batch_of(order, edges, size, batch);
  long i = index_of_thread();
  if (i < 2l * p.b) __atomic_fetch_min(&seen[end_of(p, (int)i)], (u32)i, __ATOMIC_RELAXED);
}
// distinct_count: how many ends of each tile are the first of their point.
KERNEL_TOGETHER(distinct_count)(int *fresh, const u32 *seen, const u64 *order, long edges, int size, int batch) {
  SHARED_ARRAY(int, scratch, 32);
  part p = batch_of(order, edges, size, batch);
  int sum = 0, count = 0;
  for (int k = 0; k < TILE; k += TILE_THREADS) {
    long i = (long)block() * TILE + k + thread();
    count += i < 2l * p.b && seen[end_of(p, (int)i)] == (u32)i;
  }
  block_prefix(count, &sum, scratch);
  if (thread() == 0) fresh[block()] = sum;
}
KERNEL_TOGETHER(distinct_number)(int *rows, int *slot_of, const u32 *seen, const int *before, const u64 *order, long edges, int size, int batch) {
  SHARED_ARRAY(int, scratch, 32);
  part p = batch_of(order, edges, size, batch);
  int used = before[block()];
  for (int k = 0; k < TILE; k += TILE_THREADS) {
    long i = (long)block() * TILE + k + thread();
    int point = i < 2l * p.b ? end_of(p, (int)i) : -1, sum;
    int fresh = point >= 0 && seen[point] == (u32)i;
    int slot = used + block_prefix(fresh, &sum, scratch);
    if (fresh) {
      rows[slot] = point;
      slot_of[point] = slot;
    }
    used += sum;
  }
}
KERNEL(distinct_slots)(int *slots, u32 *seen, const int *slot_of, const u64 *order, long edges, int size, int batch) {
  part p = batch_of(order, edges, size, batch);
  long i = index_of_thread();
  if (i >= 2l * p.b) return;
  int point = end_of(p, (int)i);
  slots[i] = slot_of[point];
  __atomic_store_n(&seen[point], 0xffffffffu, __ATOMIC_RELAXED); // many do
}

// A batch's control block begins with the state of its stream of negatives.

// negatives_singly: tails [m, b], of which each head i draws m of the 2b−1 other ends;
// runs [1] say that there are none. A thread for each word of the stream, which serves
// two heads: m·⌈b/2⌉.
KERNEL(negatives_singly)(int *tails, int *runs, const u64 *control, int m, int b) {
  u32 words = ((u32)b + 1) / 2, others = 2 * (u32)b - 1;
  long index = index_of_thread();
  if (index == 0) runs[0] = 0;
  if (index >= (long)m * words) return;
  u64 word = word_of(control[0], (u64)index);
  u32 j = (u32)index / words, i = 2 * ((u32)index - j * words);
  int *to = tails + (long)j * b + i;
  u32 v = bounded((u32)word, others);
  to[0] = (int)(v + (v >= i));
  if (++i < (u32)b) {
    v = bounded((u32)(word >> 32), others);
    to[1] = (int)(v + (v >= i));
  }
}

// negatives_runs: runs [1 + ⌈b/16⌉] are m and for each 16 heads the first of their
// negatives among the ends but theirs. One block. A number is drawn again where it
// would not be uniform, some once in 10¹⁴ numbers, and all after it are then other
// words of the stream.
enum { GROUP = 16 };
DEVICE u64 ends_but_group(int b, int group) { return 2 * (u64)(b - min_i(GROUP, b - group * GROUP)); }
KERNEL_TOGETHER_OF(1024, 1, negatives_runs)(int *runs, const u64 *control, int m, int b) {
  SHARED_ARRAY(int, again, 1);
  int groups = (b + GROUP - 1) / GROUP;
  if (thread() == 0) {
    again[0] = 0;
    runs[0] = m;
  }
  barrier();
  for (int g = thread(); g < groups; g += threads()) {
    u64 state = control[0] + (u64)g * GAMMA, after = state + GAMMA;
    runs[1 + g] = (int)next_below(&state, ends_but_group(b, g));
    if (state != after) again[0] = 1;
  }
  barrier();
  if (again[0] && thread() == 0) {
    u64 state = control[0];
    for (int g = 0; g < groups; g++) runs[1 + g] = (int)next_below(&state, ends_but_group(b, g));
  }
}

// end_batch sets losses[batch] to factor times the loss, and status to 1 + batch if the
// loss is not finite and status is 0.
DEVICE void end_batch(float *losses, int *status, float loss, int batch, float factor) {
  losses[batch] = loss * factor;
  if (!(loss - loss == 0.f) && *status == 0) *status = 1 + batch;
}

// batch_ended is end_batch. One thread.
KERNEL(batch_ended)(float *losses, int *status, const float *loss, int batch, number factor) {
  end_batch(losses, status, *loss, batch, VALUE(factor));
}

// replay_begin: batch *at of a layout of batches that are ends apart becomes the
// one at hand: its slots [ends], its rows [ends], of which those beyond the distinct
// points are point 0, and its control block [16]. A thread for each end, 16 at least.
KERNEL(replay_begin)(int *rows, int *slots, u32 *control, const int *at, const int *all_rows, const int *all_slots, const int *counts, const u32 *controls, int ends) {
  long i = index_of_thread(), batch = *at;
  if (i < ends) {
    slots[i] = all_slots[batch * ends + i];
    rows[i] = i < counts[batch] ? all_rows[batch * ends + i] : 0;
  }
  if (i < 16) control[i] = controls[batch * 16 + i];
}

// replay_end is end_batch for batch *at, which becomes one more. One thread.
KERNEL(replay_end)(float *losses, int *status, const float *loss, int *at, number factor) {
  end_batch(losses, status, *loss, *at, VALUE(factor));
  ++*at;
}
