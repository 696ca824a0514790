// The batches of a run: the order of an epoch's edges, the distinct points of its
// batches, their negatives, and their losses. All is as in package train on the CPU with
// the same seed. An edge is a word of 64 bits, with its head in the lower half and its
// tail in the upper.
#include "kernel.h"

// block_prefix returns the exclusive prefix sum of the values of a block's threads, and
// sets total to the sum of all. The threads are a multiple of 32; scratch has room for
// 32 numbers.
DEVICE int block_prefix(int v, int *total, SHARED int *scratch) {
  int lane = thread() % 32, warp = thread() / 32, before = 0;
  for (int mask = 1; mask < 32; mask *= 2) { // v is the sum of mask lanes
    int other = shuffle_xor_i(v, mask);
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

// The shuffle does what train's shuffler does, on one level or two. On the first level each
// edge goes to the bucket that a byte of the epoch's random stream names; on the
// second, the edges of each bucket are distributed again, by a stream of its own. Order
// within a bucket is kept; then each bucket is shuffled. The input of a level are
// lists: all edges, or the buckets of the first level. There are at most 256 lists, and
// at most 256 buckets of each, a power of two; and less than 2³¹ edges.
//
// A list is worked on in tiles of TILE edges, 8 for each of a block's 256 threads: as
// many as the choices in a word of a stream. Each list begins a new tile. The grid has
// as many blocks as all edges have tiles and one more for each list, so that at least
// one is idle. lists [2, 257] holds where each list begins and how many tiles precede
// it, and ends with the totals. It is null for the one list of all edges.
enum { TILE = 2048, TILE_THREADS = 256, LISTS = TILE_THREADS + 1 };

// A span is a list: its first edge, its number of edges, the tiles before it, its own
// tiles, and the key of its stream.
typedef struct {
  int first, edges, before, tiles;
  u64 key;
} span;

DEVICE int tiles_of(int edges) { return edges / TILE + (edges % TILE > 0); }

// shuffle_lists: lists from their sizes [count]. One block of 256 threads.
KERNEL_SYNC(shuffle_lists)(int *lists, const int *sizes, int count) {
  SHARED_ARRAY(int, scratch, 32);
  int mine = thread(), size = mine < count ? sizes[mine] : 0, edges, tiles;
  int first = block_prefix(size, &edges, scratch), before = block_prefix(tiles_of(size), &tiles, scratch);
  lists[mine] = first;
  lists[LISTS + mine] = before;
  if (mine == 0) {
    lists[LISTS - 1] = edges;
    lists[2 * LISTS - 1] = tiles;
  }
}

// span_of returns list number `number`.
DEVICE span span_of(const int *lists, int number, u64 key) {
  const int *first = lists + number, *before = first + LISTS;
  return (span){first[0], first[1] - first[0], before[0], before[1] - before[0], indexed(key, (u64)number)};
}

// span_here returns the list of the block's tile, or one without edges for an idle
// block. All 256 threads must call it.
DEVICE span span_here(const int *lists, int edges, u64 key) {
  SHARED_ARRAY(int, found, 1);
  int tiles = lists ? lists[2 * LISTS - 1] : tiles_of(edges);
  if (block() >= tiles) return (span){0, 0, 0, 0, 0};
  if (!lists) return (span){0, edges, 0, tiles, key};
  const int *before = lists + LISTS + thread();
  if (before[0] <= block() && block() < before[1]) found[0] = thread();
  barrier();
  return span_of(lists, found[0], key);
}

// shuffle_count: counts [buckets, blocks] is how many edges of each tile go to each
// bucket. A block for each tile.
KERNEL_SYNC(shuffle_count)(int *counts, const int *lists, u64 key, int edges, int buckets) {
  SHARED_ARRAY(int, count, TILE_THREADS);
  span s = span_here(lists, edges, key);
  count[thread()] = 0;
  barrier();
  long first = (long)(block() - s.before) * TILE + thread() * 8;
  u64 word = word_of(s.key, (u64)first / 8);
  for (int k = 0; k < 8 && first + k < s.edges; k++) {
    __atomic_fetch_add(&count[word >> 8 * k & (u64)(buckets - 1)], 1, __ATOMIC_RELAXED);
  }
  barrier();
  if (thread() < buckets) counts[(long)thread() * blocks() + block()] = count[thread()];
}

// shuffle_scan: replaces the rows of counts [buckets, tiles] by their exclusive prefix
// sums, and sets totals [buckets], unless it is null, to their sums. A block for each
// bucket.
KERNEL_SYNC_OF(1024, 1, shuffle_scan)(int *counts, int *totals, int tiles) {
  SHARED_ARRAY(int, scratch, 32);
  int *row = counts + (long)block() * tiles, before = 0;
  for (int from = 0; from < tiles; from += threads()) {
    int i = from + thread(), sum;
    int prefix = block_prefix(i < tiles ? row[i] : 0, &sum, scratch);
    if (i < tiles) row[i] = before + prefix;
    before += sum;
  }
  if (totals && thread() == 0) totals[block()] = before;
}

// bucket_of returns the number of a list's edges in a bucket, from counts after
// shuffle_scan: the idle tile after the last list makes row[s.tiles] its end.
DEVICE int bucket_of(span s, const int *counts, int bucket, int stride) {
  const int *row = counts + (long)bucket * stride + s.before;
  return row[s.tiles] - row[0];
}

// shuffle_scatter: order holds the buckets of list one after the other, from counts
// after shuffle_scan. A block for each tile. Each thread searches the choices for one
// bucket, and so finds its edges in order.
KERNEL_SYNC(shuffle_scatter)(u64 *order, const u64 *list, const int *counts, const int *lists, u64 key, int edges, int buckets) {
  SHARED_ARRAY(int, scratch, 32);
  SHARED_ARRAY(u32, choices, TILE / 4); // four in each word
  SHARED_ARRAY(int, to, TILE);
  span s = span_here(lists, edges, key);
  if (s.edges == 0) return;
  int mine = thread(), all;
  int at = s.first + block_prefix(mine < buckets ? bucket_of(s, counts, mine, blocks()) : 0, &all, scratch);
  long first = (long)(block() - s.before) * TILE;
  u64 word = word_of(s.key, (u64)first / 8 + (u64)mine) & (u64)(buckets - 1) * 0x0101010101010101ul;
  choices[2 * mine] = (u32)word;
  choices[2 * mine + 1] = (u32)(word >> 32);
  barrier();
  if (mine < buckets) {
    const int *row = counts + (long)mine * blocks();
    at += row[block()] - row[s.before];
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
  list += s.first;
  for (int i = mine; i < TILE && first + i < s.edges; i += TILE_THREADS) order[to[i]] = list[first + i];
}

// A bucket is shuffled by Fisher and Yates' method: step s of n−1 swaps edge i = n−1−s
// with edge j ≤ i, which the stream draws. One by one, each step would take the latency
// of shared memory, 30 or 40 cycles. But most of 32 consecutive steps swap different
// edges, and a warp takes these at once: of steps a before b, b must wait only if both
// have the same j, or if j of a is i of b. The first warp takes the steps of a chunk;
// meanwhile the others draw the next chunk, 64 steps each, and find which of them must
// wait. For a bucket of 8000 edges, that leaves some 430 rounds of swaps.
enum { DRAWERS = TILE_THREADS / 32 - 1, CHUNK = DRAWERS * 64, STEPS = 32 };

// draw_steps draws steps step … step+63 of a bucket of n edges, with the 32 lanes of a
// warp: targets [64] are their j, and waits [2] have a bit for each that must wait for
// an earlier one of its 32. A step beyond the last has a j of its own.
DEVICE void draw_steps(SHARED u32 *targets, SHARED u32 *waits, u64 key, int step, int n) {
  int lane = thread() % 32, own = step + 2 * lane, i = n - 1 - own;
  u64 word = word_of(key, (u64)own / 2);
  targets[2 * lane] = i > 0 ? bounded((u32)word, (u32)i + 1) : (u32)(-1 - own);
  targets[2 * lane + 1] = i > 1 ? bounded((u32)(word >> 32), (u32)i) : (u32)(-2 - own);
  if (lane < 2) waits[lane] = 0;
  warp_barrier();
  for (int half = 0; half < 2; half++) {
    u32 j = targets[STEPS * half + lane];
    if (match_any(j) & ((1u << lane) - 1)) __atomic_fetch_or(&waits[half], 1u << lane, __ATOMIC_RELAXED);
    // The step whose edge i is this one's j.
    u32 other = (u32)(n - 1 - step - STEPS * half) - j;
    if (other > (u32)lane && other < STEPS) __atomic_fetch_or(&waits[half], 1u << other, __ATOMIC_RELAXED);
  }
}

// exchange_steps takes the steps of a chunk, beginning with number step, with the lanes
// of a warp: on the n places in from or, if not staged, in order itself.
DEVICE void exchange_steps(SHARED unsigned short *from, u64 *order, int staged, const SHARED u32 *targets, const SHARED u32 *waits, int step, int n) {
  int lane = thread() % 32;
  u32 j = targets[lane], wait = waits[0];
  for (int s = 0; s < CHUNK && step + s < n - 1; s += STEPS) {
    int i = n - 1 - step - s - lane;
    int turns = __builtin_popcount(wait), own = __builtin_popcount(wait & ((2u << lane) - 1));
    u32 with = j;
    if (s + STEPS < CHUNK) { // loaded before the exchanges, so that nothing waits for it
      j = targets[s + STEPS + lane];
      wait = waits[s / STEPS + 1];
    }
    for (int turn = 0; turn <= turns; turn++) {
      if (turn == own && i > 0) {
        if (staged) {
          unsigned short last = from[i];
          from[i] = from[with];
          from[with] = last;
        } else {
          u64 last = order[i];
          order[i] = order[with];
          order[with] = last;
        }
      }
      warp_barrier();
    }
  }
}

// shuffle_buckets: order is the epoch's order, from the scattered edges. The lists are
// the buckets of the first level. With second = 1 there is no other level; else each
// list was distributed over second buckets, with counts [second, stride]. A block of
// 256 threads for each bucket, with 2 bytes of dynamic shared memory for each of
// capacity edges, at most 65536; a larger bucket is shuffled in order itself, which is
// slower.
KERNEL_SYNC_OF(256, 5, shuffle_buckets)(u64 *order, const u64 *scattered, const int *lists, const int *counts, u64 key, int second, int stride, int capacity) {
  SHARED_ARRAY(int, scratch, 32);
  SHARED_ARRAY(u32, targets, 2 * CHUNK);
  SHARED_ARRAY(u32, waits, 2 * CHUNK / STEPS);
  DYNAMIC(unsigned short, from); // which edge comes to each place
  int mine = thread(), warp = mine / 32, bucket = block() % second;
  span s = span_of(lists, block() / second, key);
  if (second > 1) {
    int before, size = mine < second ? bucket_of(s, counts, mine, stride) : 0;
    block_prefix(mine < bucket ? size : 0, &before, scratch);
    s.edges = bucket_of(s, counts, bucket, stride);
    s.first += before;
    s.key = indexed(s.key, (u64)bucket);
  }
  int n = s.edges, staged = n <= capacity;
  order += s.first;
  scattered += s.first;
  for (int i = mine; i < n; i += threads()) {
    if (staged) from[i] = (unsigned short)i;
    else order[i] = scattered[i];
  }
  barrier();
  for (int step = 0; step < n - 1 + CHUNK; step += CHUNK) {
    int now = step / CHUNK % 2; // which half the chunk is drawn into
    if (warp > 0) {
      draw_steps(targets + now * CHUNK + (warp - 1) * 64, waits + now * (CHUNK / STEPS) + (warp - 1) * 2, s.key, step + (warp - 1) * 64, n);
    } else if (step > 0) {
      exchange_steps(from, order, staged, targets + !now * CHUNK, waits + !now * (CHUNK / STEPS), step - CHUNK, n);
    }
    barrier();
  }
  if (!staged) return;
  for (int i = mine; i < n; i += threads()) order[i] = scattered[from[i]];
}

// The distinct points of a batch of b edges are numbered in the order of their first
// appearance among its 2b ends; the first b ends are heads. rows are the points, and
// local [2b] is the number of each end's point. Batches lie stride = 2·size ends apart
// in rows and local, though the last one has fewer edges.

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

// distinct_small: a block for each batch from number first on, with 8 bytes of dynamic
// shared memory for each of the 2^bits places of a hash table, more than there are
// ends.
KERNEL_SYNC_OF(1024, 1, distinct_small)(int *rows, int *local, int *counts, const u64 *order, long edges, int size, int first, int bits) {
  SHARED_ARRAY(int, scratch, 32);
  DYNAMIC(u32, points); // then their local numbers
  SHARED u32 *seen = points + (1 << bits); // the first end of each
  part p = batch_of(order, edges, size, first + block());
  rows += (long)block() * 2 * size;
  local += (long)block() * 2 * size;
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
    local[i] = (int)at; // until the numbers are known
  }
  barrier();
  int used = 0;
  for (int from = 0; from < 2 * p.b; from += threads()) {
    int i = from + thread(), at = i < 2 * p.b ? local[i] : 0, sum;
    int fresh = i < 2 * p.b && seen[at] == (u32)i;
    int number = used + block_prefix(fresh, &sum, scratch);
    if (fresh) {
      rows[number] = (int)points[at];
      points[at] = (u32)number;
    }
    used += sum;
  }
  barrier();
  for (int i = thread(); i < 2 * p.b; i += threads()) local[i] = (int)points[local[i]];
  if (thread() == 0) counts[block()] = used;
}

// The same for one large batch, with tables of all points: seen, all ones before and
// after, and local_of. A thread for each end; distinct_count and distinct_number have a
// block of 256 threads for each tile of 2048 ends.
KERNEL(distinct_see)(u32 *seen, const u64 *order, long edges, int size, int batch) {
  part p = batch_of(order, edges, size, batch);
  long i = index_of_thread();
  if (i < 2l * p.b) __atomic_fetch_min(&seen[end_of(p, (int)i)], (u32)i, __ATOMIC_RELAXED);
}
// distinct_count: how many ends of each tile are the first one of their point.
KERNEL_SYNC(distinct_count)(int *fresh, const u32 *seen, const u64 *order, long edges, int size, int batch) {
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
KERNEL_SYNC(distinct_number)(int *rows, int *local_of, const u32 *seen, const int *before, const u64 *order, long edges, int size, int batch) {
  SHARED_ARRAY(int, scratch, 32);
  part p = batch_of(order, edges, size, batch);
  int used = before[block()];
  for (int k = 0; k < TILE; k += TILE_THREADS) {
    long i = (long)block() * TILE + k + thread();
    int point = i < 2l * p.b ? end_of(p, (int)i) : -1, sum;
    int fresh = point >= 0 && seen[point] == (u32)i;
    int number = used + block_prefix(fresh, &sum, scratch);
    if (fresh) {
      rows[number] = point;
      local_of[point] = number;
    }
    used += sum;
  }
}
KERNEL(distinct_local)(int *local, u32 *seen, const int *local_of, const u64 *order, long edges, int size, int batch) {
  part p = batch_of(order, edges, size, batch);
  long i = index_of_thread();
  if (i >= 2l * p.b) return;
  int point = end_of(p, (int)i);
  local[i] = local_of[point];
  __atomic_store_n(&seen[point], 0xffffffffu, __ATOMIC_RELAXED); // many do
}

// A batch's control block begins with the state of its stream of negatives.

// negatives_per_head: tails [m, b], where each head i draws m of the 2b−1 other ends;
// runs [1] is 0, which says so. A thread for each word of the stream, which serves two
// heads: m·⌈b/2⌉.
KERNEL(negatives_per_head)(int *tails, int *runs, const u64 *control, int m, int b) {
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

// negatives_runs: runs [1 + ⌈b/16⌉] are m and, for each group of 16 heads, the first row
// of its run. One block. A number is redrawn where it would not be uniform, about once in
// 10¹⁴ draws; all later ones then take other words of the stream.
enum { GROUP = 16 };
KERNEL_SYNC_OF(1024, 1, negatives_runs)(int *runs, const u64 *control, int m, int b) {
  SHARED_ARRAY(int, again, 1);
  int groups = (b + GROUP - 1) / GROUP;
  if (thread() == 0) {
    again[0] = 0;
    runs[0] = m;
  }
  barrier();
  for (int g = thread(); g < groups; g += threads()) {
    u64 state = control[0] + (u64)g * GAMMA, after = state + GAMMA;
    runs[1 + g] = (int)next_below(&state, 2 * (u64)b);
    if (state != after) again[0] = 1;
  }
  barrier();
  if (again[0] && thread() == 0) {
    u64 state = control[0];
    for (int g = 0; g < groups; g++) runs[1 + g] = (int)next_below(&state, 2 * (u64)b);
  }
}

// end_batch sets losses[batch] to factor times the loss. For the first loss that is not
// finite, status becomes 1 + batch.
DEVICE void end_batch(float *losses, int *status, float loss, int batch, float factor) {
  losses[batch] = loss * factor;
  if (!(loss - loss == 0.f) && *status == 0) *status = 1 + batch;
}

// batch_ended is end_batch. One thread.
KERNEL(batch_ended)(float *losses, int *status, const float *loss, int batch, float_bits factor) {
  end_batch(losses, status, *loss, batch, VALUE(factor));
}

// replay_begin: copies what belongs to batch *at of a chunk, whose batches are `ends`
// apart, to where a replay reads it: local [ends]; rows [ends], with point 0 beyond the
// distinct points; and the control block [16]. A thread for each end, at least 16.
KERNEL(replay_begin)(int *rows, int *local, u32 *control, const int *at, const int *all_rows, const int *all_local, const int *counts, const u32 *controls, int ends) {
  long i = index_of_thread(), batch = *at;
  if (i < ends) {
    local[i] = all_local[batch * ends + i];
    rows[i] = i < counts[batch] ? all_rows[batch * ends + i] : 0;
  }
  if (i < 16) control[i] = controls[batch * 16 + i];
}

// replay_end is end_batch for batch *at, and increments that. One thread.
KERNEL(replay_end)(float *losses, int *status, const float *loss, int *at, float_bits factor) {
  end_batch(losses, status, *loss, *at, VALUE(factor));
  ++*at;
}
