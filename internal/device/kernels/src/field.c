// Steps of package train with all pairs of points as negatives, in the plane, as
// train/field.go and train/whole.go take them on the CPU.
//
// The points are in cells: cell 1 has all points, cells 2c and 2c+1 are the halves of cell c,
// and cells of at most 32 points are leaves. firsts, sizes and rights [cells] depend only on the
// number of points: a cell's first place and its number of points, 0 for a cell that there is
// not, and how many points the second halves of the cells before it on its level have. leaves
// [count] has the cells of the leaves; leaf l has the places from 32·l on. order [n] are the
// points, place by place. cells [cells, 4] are x, y and radius of a cell, and its number of
// points, which stays.
#include "kernel.h"

enum { leaf_points = 32, tile = 2048, digits = 16, coordinate_passes = 8 };

// The points are divided as kd-trees are. Two lists [2, n] have them in the order of each
// coordinate, cell by cell, at first with all of them in one cell. A cell is halved along the
// coordinate in which its points spread farther; then both lists are distributed, in their
// order, over the halves. Sorting is a distribution, too, by four bits of a coordinate at a
// time, in eight passes; with equal coordinates, the order is the points'.

// digit_of is what a pass distributes point p by: bits of a coordinate, or its half of its cell.
DEVICE int digit_of(const float *points, const int *halves, int p, int coordinate, int pass) {
  if (pass == coordinate_passes) return halves[p];
  u32 bits = as_bits(points[2l * p + coordinate]);
  return (bits >> 31 ? ~bits : bits | 1u << 31) >> 4 * pass & (digits - 1);
}

// cell_at is the cell of place i on a level, whose first cell has number level, or the leaf.
DEVICE int cell_at(const int *leaves, long i, int level) {
  int c = leaves[i / leaf_points];
  while (c >= 2 * level) c /= 2;
  return c;
}

// field_count: counts [2, digits, tiles], of tiles of a list, by digit. A block for each tile of
// each list. The first pass takes the points by their numbers.
KERNEL_SYNC(field_count)(int *counts, const int *lists, const float *points, const int *halves, int pass, int n) {
  SHARED_ARRAY(int, count, digits);
  int tiles = blocks() / 2, list = block() / tiles, t = block() % tiles;
  if (thread() < digits) count[thread()] = 0;
  barrier();
  for (int k = 0; k < tile; k += 256) {
    long i = (long)t * tile + k + thread();
    if (i < n) __atomic_fetch_add(&count[digit_of(points, halves, pass ? lists[(long)list * n + i] : (int)i, list, pass)], 1, __ATOMIC_RELAXED);
  }
  barrier();
  if (thread() < digits) counts[((long)list * digits + thread()) * tiles + t] = count[thread()];
}

// field_scatter: the lists to, distributed. counts are their exclusive prefix sums (shuffle_scan).
// The grid is field_count's.
KERNEL_SYNC(field_scatter)(int *to, const int *lists, const int *counts, const float *points, const int *halves, const int *firsts, const int *sizes, const int *rights, const int *leaves, int pass, int level, int n) {
  SHARED_ARRAY(int, next, digits);
  SHARED_ARRAY(int, warps, 8 * digits);
  int tiles = blocks() / 2, list = block() / tiles, t = block() % tiles, warp = thread() / 32, lane = thread() % 32;
  const int *row = counts + (long)list * digits * tiles;
  if (thread() < digits) next[thread()] = row[(long)thread() * tiles + t];
  if (thread() < 8 * digits) warps[thread()] = 0;
  for (int k = 0; k < tile; k += 256) {
    long i = (long)t * tile + k + thread();
    int p = i >= n ? 0 : pass ? lists[(long)list * n + i] : (int)i, d = i < n ? digit_of(points, halves, p, list, pass) : digits;
    u32 alike = match_any((u32)d);
    int before = __builtin_popcount(alike & ((1u << lane) - 1));
    barrier();
    if (i < n && before == 0) warps[warp * digits + d] = __builtin_popcount(alike);
    barrier();
    if (i < n) {
      long at = next[d] + before;
      for (int w = 0; w < warp; w++) at += warps[w * digits + d];
      if (pass == coordinate_passes) {
        int c = cell_at(leaves, i, level);
        if (sizes[c] <= leaf_points) at = i;
        else if (d == 0) at += rights[c];
        else at += firsts[2 * c + 1] - row[tiles] - rights[c]; // row[tiles] points are in first halves
      }
      to[(long)list * n + at] = p;
    }
    barrier();
    if (thread() < digits) {
      for (int w = 0; w < 8; w++) {
        next[thread()] += warps[w * digits + thread()];
        warps[w * digits + thread()] = 0;
      }
    }
  }
}

// field_halve: which half of its cell, on a level, each point is in. A thread for each place.
KERNEL(field_halve)(int *halves, const int *lists, const float *points, const int *firsts, const int *sizes, const int *leaves, int level, int n) {
  long i = index_of_thread();
  if (i >= n) return;
  int c = cell_at(leaves, i, level);
  if (sizes[c] <= leaf_points) {
    halves[lists[i]] = 0;
    return;
  }
  long first = firsts[c], last = first + sizes[c] - 1;
  float across = points[2l * lists[last]] - points[2l * lists[first]];
  float up = points[2l * lists[n + last] + 1] - points[2l * lists[n + first] + 1];
  halves[lists[up > across ? n + i : i]] = i >= firsts[2 * c + 1];
}

// field_order: the order of the points, with the points of a leaf by their numbers. A warp for
// each leaf.
KERNEL_SYNC(field_order)(int *order, const int *list, int n) {
  long first = index_of_thread() / 32 * 32, i = first + thread() % 32;
  if (first >= n) return;
  int p = i < n ? list[i] : 0x7fffffff, before = 0;
  for (int mask = 1; mask < 32; mask++) before += shuffle_xor_i(p, mask) < p;
  if (i < n) order[first + before] = p;
}

DEVICE float distance(float x, float y) { return sqrt_f(x * x + y * y); }

// far is where places has no point: its similarity to others is 0.
static const float far = 1e15f;

// field_leaves: centres and radii of the leaves; the points' coordinates in order, places
// [count, 32, 2]; and the radii once more, by leaf. A warp for each leaf.
KERNEL_SYNC(field_leaves)(float *cells, float *places, float *radii, const float *points, const int *order, const int *leaves, int n, int count) {
  long leaf = index_of_thread() / 32;
  if (leaf >= count) return;
  long first = leaf * leaf_points, i = first + thread() % 32;
  const float *at = points + 2l * order[first]; // for equal points this is exactly the mean
  float x0 = at[0], y0 = at[1], x = x0, y = y0;
  if (i < n) {
    x = points[2l * order[i]];
    y = points[2l * order[i] + 1];
  }
  places[2 * i] = i < n ? x : far;
  places[2 * i + 1] = i < n ? y : far;
  float size = (float)min_i(leaf_points, n - (int)first);
  float cx = x0 + warp_sum(x - x0) / size, cy = y0 + warp_sum(y - y0) / size;
  float radius = warp_max(distance(x - cx, y - cy));
  if (thread() % 32 > 0) return;
  float *c = cells + 4l * leaves[leaf];
  c[0] = cx;
  c[1] = cy;
  c[2] = radii[leaf] = radius;
}

// field_cells: centres and radii of the cells low to 2·high−1 that are not leaves, from those
// of their halves. low and high are powers of two. If they differ, all in one block.
KERNEL_SYNC_OF(1024, 0, field_cells)(float *cells, int low, int high) {
  for (int level = high; level >= low; level /= 2) {
    for (long c = level + index_of_thread(); c < 2l * level; c += (long)blocks() * threads()) {
      float *at = cells + 4 * c;
      if (at[3] <= leaf_points) continue;
      quad a = load(at + 4 * c, 4), b = load(at + 4 * c + 4, 4); // cells 2c and 2c+1
      float share = b.w / at[3], x = a.x + share * (b.x - a.x), y = a.y + share * (b.y - a.y);
      at[0] = x;
      at[1] = y;
      at[2] = max_f(a.z + distance(x - a.x, y - a.y), b.z + distance(x - b.x, y - b.y)) * (1 + 1e-6f);
    }
    barrier();
  }
}

DEVICE float similarity(float dx, float dy) { return inverse_approx(1.f + dx * dx + dy * dy); }

// field_repel: for each point the sums over all others of q²·(x−x′), in forces [n, 2], and of q,
// in sums [n], where cells that are small from afar count as one mass: see train/field.go, whose
// opening angle and linear distance are angle and linear. A thread for each point, a warp for
// each leaf: its threads go the same way.
KERNEL(field_repel)(float *forces, float *sums, const float *cells, const int *firsts, const float *places, const int *order, const int *leaves, float_bits angle, float_bits linear, int n) {
  long i = index_of_thread();
  if (i >= n) return;
  quad own = load(cells + 4l * leaves[i / leaf_points], 4);
  float x = places[2 * i], y = places[2 * i + 1], sum = -1.f, fx = 0.f, fy = 0.f; // without the point itself
  int c = 1;
  do {
    quad at = load(cells + 4l * c, 4);
    float apart = distance(at.x - own.x, at.y - own.y), reach = at.z + own.z;
    if (at.z == 0.f || reach < VALUE(angle) * apart || reach + apart < VALUE(linear)) {
      float dx = x - at.x, dy = y - at.y, q = similarity(dx, dy), w = q * at.w;
      sum += w;
      w *= q;
      fx += w * dx;
      fy += w * dy;
    } else if (at.w <= leaf_points) {
      const float *place = places + 2l * firsts[c];
#pragma unroll 4
      for (int k = 0; k < leaf_points; k += 2) {
        quad two = load(place + 2 * k, 4);
        float dx = x - two.x, dy = y - two.y, ex = x - two.z, ey = y - two.w, q = similarity(dx, dy), r = similarity(ex, ey);
        sum += q + r;
        q *= q;
        r *= r;
        fx += q * dx + r * ex;
        fy += q * dy + r * ey;
      }
    } else {
      c *= 2; // its first half
      continue;
    }
    c++; // the next cell that is not in this one
    while (c % 2 == 0) c /= 2;
  } while (c > 1);
  float *force = forces + 2l * order[i];
  force[0] = fx;
  force[1] = fy;
  sums[i] = sum;
}

// field_attract: for each point the sums over its edges of w·q·(x−x′), in forces [n, 2], and of
// w·log(1+‖x−x′‖²), in sums [n]. Point i has the edges starts[i] to starts[i+1]−1. A warp for each
// point.
KERNEL_SYNC(field_attract)(float *forces, float *sums, const float *points, const int *starts, const int *tails, const float *weights, int n) {
  long i = index_of_thread() / 32;
  if (i >= n) return;
  float x = points[2 * i], y = points[2 * i + 1], sum = 0.f, fx = 0.f, fy = 0.f;
  for (long k = starts[i] + thread() % 32; k < starts[i + 1]; k += 32) {
    const float *to = points + 2l * tails[k];
    float dx = x - to[0], dy = y - to[1], u = 1.f + dx * dx + dy * dy, w = weights[k];
    sum += w * log_f(u);
    w *= inverse_approx(u);
    fx += w * dx;
    fy += w * dy;
  }
  sum = warp_sum(sum);
  fx = warp_sum(fx);
  fy = warp_sum(fy);
  if (thread() % 32 > 0) return;
  forces[2 * i] = fx;
  forces[2 * i + 1] = fy;
  sums[i] = sum;
}

SHARED_ARRAY(double, field_sums, 1024);

// field_totals: the sums of the rows of x [rows, n]. A block of 1024 threads for each row.
KERNEL_SYNC_OF(1024, 0, field_totals)(double *to, const float *x, int n) {
  double total = 0;
  for (long i = thread(); i < n; i += 1024) total += (double)x[(long)block() * n + i];
  field_sums[thread()] = total;
  for (int half = 512; half > 0; half /= 2) {
    barrier();
    if (thread() < half) field_sums[thread()] += field_sums[thread() + half];
  }
  if (thread() == 0) to[block()] = field_sums[0];
}

// field_move: a step of gradient descent with momentum. The gradient of a coordinate is
// (attracted − repulsion·repelled)/own, and own [n] is 0 for points that stay. ahead is the
// momentum again for Nesterov's method, or 0. A thread for each coordinate.
KERNEL(field_move)(float *points, float *velocity, const float *attracted, const float *repelled, const float *own, float_bits momentum, float_bits ahead, float_bits lr, float_bits bound, float_bits repulsion, long n) {
  long i = index_of_thread();
  if (i >= n || own[i / 2] == 0.f) return;
  float g = (attracted[i] - VALUE(repulsion) * repelled[i]) / own[i / 2];
  float step = VALUE(lr) * clip(g, VALUE(bound)), v = VALUE(momentum) * velocity[i] - step;
  velocity[i] = v;
  points[i] += VALUE(ahead) != 0.f ? VALUE(ahead) * v - step : v;
}

// field_scale: x [n] times a factor. A thread for each element.
KERNEL(field_scale)(float *x, float_bits factor, long n) {
  long i = index_of_thread();
  if (i < n) x[i] *= VALUE(factor);
}
