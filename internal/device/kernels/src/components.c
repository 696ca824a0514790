// Principal components of package data/pca, in double precision, which small eigenvalues
// of the covariance need.
//
// Products are computed in tiles of 64×64 by blocks of 256 threads. Each thread sums 4×4
// elements: two pairs of rows and of columns, 32 apart, so that the threads of a warp
// read neighbouring shared memory.
#include "kernel.h"

typedef double two __attribute__((vector_size(16)));

enum { tile = 64, depth = 16, line = tile + 2 };
SHARED_ARRAY(two, components_left, depth *line / 2); // [depth, line] numbers each
SHARED_ARRAY(two, components_right, depth *line / 2);

typedef struct { double of[4][4]; } sums;

DEVICE SHARED double *left_at(int l, int c) { return (SHARED double *)components_left + l * line + c; }
DEVICE SHARED double *right_at(int l, int c) { return (SHARED double *)components_right + l * line + c; }

// row_of and column_of are the place in the tile of a thread's element (i, j).
DEVICE int row_of(int i) { return i / 2 * 32 + thread() / 16 * 2 + i % 2; }
DEVICE int column_of(int j) { return j / 2 * 32 + thread() % 16 * 2 + j % 2; }

// add_products adds the products of the strips in shared memory.
DEVICE void add_products(sums *s) {
  int row = thread() / 16 * 2, column = thread() % 16 * 2;
#pragma unroll 4
  for (int l = 0; l < depth; l++) {
    two a[2], b[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      a[h] = *(const SHARED two *)left_at(l, h * 32 + row);
      b[h] = *(const SHARED two *)right_at(l, h * 32 + column);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) s->of[i][j] += a[i / 2][i % 2] * b[j / 2][j % 2];
  }
}

// element is an element of the matrix A: x without its constant columns, minus the shift,
// or (across) the transpose. It is 0 outside.
DEVICE double element(const float *x, const int *columns, const double *shift, int stride, int across, int row, int column,
                      int rows, int width) {
  if (row >= rows || column >= width) return 0;
  int point = across ? column : row, c = across ? row : column;
  return (double)x[(long)point * stride + columns[c]] - shift[c];
}

// components_products: the upper triangle of AᵀA, in to [slices, width, width], one
// slice for each `each` rows of A; if more is set, it is added to what is there. A
// [rows, width] consists of columns of x [rows, stride] minus shift; across, it is the
// transpose, with x [width, stride]. columns names the columns of x; shift has a number
// for each. A block for each slice and each tile on or right of the diagonal, slice by
// slice.
KERNEL_SYNC(components_products)(double *to, const float *x, const int *columns, const double *shift, int stride, int across,
                                     int rows, int width, int each, int more) {
  int tiles = (width + tile - 1) / tile, t = block() % (tiles * (tiles + 1) / 2), slice = block() / (tiles * (tiles + 1) / 2);
  int a = 0;
  for (; t >= tiles - a; a++) t -= tiles - a;
  int top = a * tile, left = (a + t) * tile;
  sums s = {0};
  int last = min_i(rows, (slice + 1) * each);
  for (int first = slice * each; first < last; first += depth) {
    for (int i = 0; i < depth * tile / 256; i++) {
      // Threads read along the rows of x.
      int at = thread() + 256 * i, l = across ? at % depth : at / tile, c = across ? at / depth : at % tile;
      *left_at(l, c) = element(x, columns, shift, stride, across, first + l, top + c, last, width);
      *right_at(l, c) = element(x, columns, shift, stride, across, first + l, left + c, last, width);
    }
    barrier();
    add_products(&s);
    barrier();
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      long row = top + row_of(i), column = left + column_of(j);
      if (row >= width || column >= width) continue;
      double *c = to + ((long)slice * width + row) * width + column;
      *c = more ? *c + s.of[i][j] : s.of[i][j];
    }
}

// components_add_slices: adds slices of n elements each, in order, to the first. A
// thread for each element.
KERNEL(components_add_slices)(double *to, int slices, long n) {
  long i = index_of_thread();
  if (i >= n) return;
  double sum = to[i];
  for (int s = 1; s < slices; s++) sum += to[s * n + i];
  to[i] = sum;
}

// components_multiply: the products of a symmetric matrix [n, n] with x [n, width], in to
// [slices, n, width]: slice s sums over the s-th part of n. A block for each slice and tile,
// slice by slice, row of tiles by row of tiles.
KERNEL_SYNC(components_multiply)(double *to, const double *matrix, const double *x, int n, int width, int slices) {
  int across = (width + tile - 1) / tile, tiles = (n + tile - 1) / tile * across;
  int slice = block() / tiles, top = block() % tiles / across * tile, left = block() % tiles % across * tile;
  int each = (n + slices - 1) / slices, last = min_i(n, (slice + 1) * each);
  sums s = {0};
  for (int first = slice * each; first < last; first += depth) {
    for (int i = 0; i < depth * tile / 256; i++) {
      // Threads read along the rows; the symmetric matrix's rows are its columns, too.
      int at = thread() + 256 * i, l = at / tile, c = at % tile;
      int here = first + l < last;
      *left_at(l, c) = here && top + c < n ? matrix[(long)(first + l) * n + top + c] : 0;
      *right_at(l, c) = here && left + c < width ? x[(long)(first + l) * width + left + c] : 0;
    }
    barrier();
    add_products(&s);
    barrier();
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      long row = top + row_of(i), column = left + column_of(j);
      if (row < n && column < width) to[((long)slice * n + row) * width + column] = s.of[i][j];
    }
}

// components_project: to [rows, k] = x·axesᵀ − origin, for x [rows, d] and axes [k, d].
// A block for each tile, row of tiles by row of tiles.
KERNEL_SYNC(components_project)(float *to, const float *x, const double *axes, const double *origin, int rows, int d, int k) {
  int across = (k + tile - 1) / tile, top = block() / across * tile, left = block() % across * tile;
  sums s = {0};
  for (int first = 0; first < d; first += depth) {
    for (int i = 0; i < depth * tile / 256; i++) {
      int at = thread() + 256 * i, l = at % depth, c = at / depth;
      int here = first + l < d;
      *left_at(l, c) = here && top + c < rows ? (double)x[(long)(top + c) * d + first + l] : 0;
      *right_at(l, c) = here && left + c < k ? axes[(long)(left + c) * d + first + l] : 0;
    }
    barrier();
    add_products(&s);
    barrier();
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      long row = top + row_of(i), column = left + column_of(j);
      if (row < rows && column < k) to[row * k + column] = (float)(s.of[i][j] - origin[column]);
    }
}
