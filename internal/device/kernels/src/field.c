// Steps of package train with all pairs of points as negatives, in the plane, as
// train/field.go and train/whole.go take them on the CPU.
//
// The CPU divides the points into cells: cell 1 has all points, cells 2c and 2c+1 are the
// halves of cell c, and cells of at most 32 points are leaves. order [n] are the points, leaf
// by leaf: leaf l has those from number 32·l on. leaves has the number of each leaf's cell.
// cells [cells, 4] are x, y and radius of a cell, and its number of points, which stays: 0 for
// a cell that there is not. firsts has the number in order of each leaf's first point.
#include "kernel.h"

enum { leaf_points = 32 };

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
// (attracted − repulsion·repelled)/own, and own [n] is 0 for points that stay. A thread for each
// coordinate.
KERNEL(field_move)(float *points, float *velocity, const float *attracted, const float *repelled, const float *own, float_bits momentum, float_bits lr, float_bits bound, float_bits repulsion, long n) {
  long i = index_of_thread();
  if (i >= n || own[i / 2] == 0.f) return;
  float g = (attracted[i] - VALUE(repulsion) * repelled[i]) / own[i / 2];
  float v = VALUE(momentum) * velocity[i] - VALUE(lr) * clip(g, VALUE(bound));
  velocity[i] = v;
  points[i] += v;
}

// field_scale: x [n] times a factor. A thread for each element.
KERNEL(field_scale)(float *x, float_bits factor, long n) {
  long i = index_of_thread();
  if (i < n) x[i] *= VALUE(factor);
}
