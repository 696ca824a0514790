// Quality measures of package train/quality that run over all pairs of points.
#include "kernel.h"

enum { rows = 256, step = 128 }; // of a block; columns in shared memory at a time
SHARED_ARRAY(float, metrics_columns, 2 * step);
SHARED_ARRAY(double, metrics_sums, rows);

// sum_block adds up the totals of the block's threads.
DEVICE void sum_block(double *sum, double total) {
  metrics_sums[thread()] = total;
  for (int half = rows / 2; half > 0; half /= 2) {
    barrier();
    if (thread() < half) metrics_sums[thread()] += metrics_sums[thread() + half];
  }
  if (thread() == 0) *sum = metrics_sums[0];
}

// metrics_partition: Σ 1/(1+x) of the squared distances x of the pairs i < j of points, in
// parts [blocks]; coords [d, n] are the points' coordinates. A block of 256 threads for
// each 256 rows and each strip of columns; the strips of a row lie next to each other. A
// thread for each i adds 32 terms at a time in single precision, and these sums in double.
KERNEL_SYNC(metrics_partition)(double *parts, const float *coords, int n, int d, int strip) {
  int strips = (n + strip - 1) / strip, top = block() / strips * rows, i = top + thread();
  int first = max_i(block() % strips * strip, top), last = min_i(n, block() % strips * strip + strip);
  double total = 0;
  float x = i < n ? coords[i] : 0.f, y = i < n && d > 1 ? coords[n + i] : 0.f;
  for (int from = first; from < last; from += step) {
    int columns = min_i(step, last - from);
    if (thread() < columns) {
      metrics_columns[thread()] = coords[from + thread()];
      metrics_columns[step + thread()] = d > 1 ? coords[n + from + thread()] : 0.f;
    }
    barrier();
    int begin = i < n ? max_i(0, i + 1 - from) : columns;
    while (begin < columns) {
      int end = min_i(columns, begin / 32 * 32 + 32);
      float part = 0.f;
      for (; begin < end; begin++) {
        float dx = metrics_columns[begin] - x, dy = metrics_columns[step + begin] - y, x2 = dx * dx + dy * dy;
        for (int l = 2; l < d; l++) {
          float v = coords[(long)l * n + from + begin] - coords[(long)l * n + i];
          x2 += v * v;
        }
        part += 1.f / (1.f + x2);
      }
      total += (double)part;
    }
    barrier();
  }
  sum_block(parts + block(), total);
}

// squared_of is the squared distance of points i and j.
DEVICE float squared_of(const float *coords, int n, int d, long i, long j) {
  float sum = 0.f;
  for (int l = 0; l < d; l++) {
    float v = coords[(long)l * n + i] - coords[(long)l * n + j];
    sum = fma_f(v, v, sum);
  }
  return sum;
}

// metrics_edges: Σ log(1+x) over the squared distances x of edges, in parts [blocks]. A
// block of 256 threads for each 4096 edges; a thread adds its 16 up in double precision.
KERNEL_SYNC(metrics_edges)(double *parts, const float *coords, const int *heads, const int *tails, int n, int d, long edges) {
  double total = 0;
  long first = (long)block() * 16 * rows;
  for (int k = 0; k < 16; k++) {
    long e = first + k * rows + thread();
    if (e >= edges) break;
    total += (double)log1p_f(squared_of(coords, n, d, heads[e], tails[e]));
  }
  sum_block(parts + block(), total);
}
