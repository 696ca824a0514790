// What the stand-ins for the driver's libraries share.
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int result;
typedef unsigned long long pointer;

result cuMemAlloc_v2(pointer *p, size_t n);
result cuMemFree_v2(pointer p);
// hardware is 1 where the stand-in is to differ from the CPU as a GPU does: see
// hardware.c.
#ifdef CNE_HARDWARE
enum { hardware = 1 };
#else
enum { hardware = 0 };
#endif

// fakecuda_operand returns a copy of n numbers, to be freed, that a product or a
// convolution takes: as TF32 if so.
float *fakecuda_operand(const float *from, size_t n, int tf32);

// A product is one of cuBLAS's, of matrices that lie column after column.
// fakecuda_multiply computes it with its sums split.
typedef struct {
  int trans_a, trans_b, m, n, k, lda, ldb, ldc, tf32;
  float alpha, beta;
} product;
void fakecuda_multiply(const product *p, const float *a, const float *b, float *c);

// fakecuda_host returns where the process finds an address of the device.
void *fakecuda_host(pointer p);

// fakecuda_submit asks the stream for a call with at most 32 arguments: it is made at
// once, or noted while the stream is captured. It returns the driver's status.
result fakecuda_submit(void (*run)(const uint64_t *args), const uint64_t *args, int count);

// fakecuda_now is what runs, for who looks for races: which launch of a kernel, 0 if
// none; the device's memory; which block and thread; and how many barriers of the
// block, and of each warp, it has seen.
extern struct fakecuda_moment {
  const char *kernel;
  uint32_t launch;
  const char *memory;
  size_t bytes;
  const int *block, *thread;
  const long *barrier, *warp_barriers;
} fakecuda_now;

// fakecuda_forget says that so many bytes of memory are no more.
void fakecuda_forget(size_t offset, size_t bytes);

#endif
