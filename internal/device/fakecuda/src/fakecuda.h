// What the files of the stand-in share.
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int result;
typedef unsigned long long pointer;

result cuMemAlloc_v2(pointer *p, size_t n);
result cuMemFree_v2(pointer p);
// hardware is 1 in the checked build, which differs from the CPU as a GPU does: see hardware.c.
#ifdef CNE_HARDWARE
enum { hardware = 1 };
#else
enum { hardware = 0 };
#endif

// cne_wide turns a bfloat16, the upper half of a float, into a float. cne_bfloat16 turns a
// float into the nearest bfloat16, ties to even.
static inline float cne_wide(uint16_t half) {
  union { uint32_t u; float f; } x = {(uint32_t)half << 16};
  return x.f;
}
static inline uint16_t cne_bfloat16(float v) {
  union { float f; uint32_t u; } x = {v};
  return v != v ? 0x7fff : (uint16_t)((x.u + 0x7fff + (x.u >> 16 & 1)) >> 16);
}

// fakecuda_operand returns a copy, to be freed, of the n elements of an operand,
// rounded to TF32 if tf32.
float *fakecuda_operand(const float *from, size_t n, int tf32);

// A product is a cuBLAS product of column-major matrices. fakecuda_multiply computes it,
// each sum in several parts.
typedef struct {
  int trans_a, trans_b, m, n, k, lda, ldb, ldc, tf32;
  float alpha, beta;
  int bfloat16, round_c; // whether a and b, and c, are of bfloat16
} product;
void fakecuda_multiply(const product *p, const float *a, const float *b, float *c);

// fakecuda_host returns where the process can read an address of the device.
void *fakecuda_host(pointer p);

// fakecuda_submit adds a call with at most 32 arguments to a stream, or to what is
// captured of it. It returns the driver's status.
result fakecuda_submit(void *stream, void (*run)(const uint64_t *args), const uint64_t *args, int count);

// fakecuda_current is what is running, for the detection of races: the kernel and its
// launch (0 if none); the device's memory; the block and thread; and the number of barriers
// so far, of the block, of each warp and of the cluster. cluster is the number of its
// blocks, 1 without clusters. The shared memory of the blocks that do not run is in aside,
// aside_bytes for each: dynamic memory and, shared_of_block further, arrays.
extern struct fakecuda_current {
  const char *kernel;
  uint32_t launch;
  const char *memory;
  size_t bytes;
  const int *block, *thread;
  const long *barrier, *warp_barriers, *cluster_barrier;
  int cluster;
  const char *aside;
  size_t aside_bytes;
} fakecuda_current;

// most_of_cluster is the number of blocks that a cluster can have on every GPU, and
// shared_of_block the bytes of shared memory that a block can have.
enum { most_of_cluster = 8, shared_of_block = 227 << 10 };

// fakecuda_forget drops the recorded accesses to memory that was freed.
void fakecuda_forget(size_t offset, size_t bytes);

#endif
