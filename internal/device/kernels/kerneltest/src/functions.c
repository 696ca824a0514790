// Kernels that test the functions of kernel.h: see functions_cuda_test.go.
#include "../../src/kernel.h"

// test_function: y = f(x), a thread for each of n elements, where f, from 0, is exp,
// log, sqrt, 1/x, and x clipped to ±bound.
KERNEL(test_function)(float *y, const float *x, int f, float_bits bound, long n) {
  long i = index_of_thread();
  if (i >= n) return;
  switch (f) {
  case 0: y[i] = exp_f(x[i]); break;
  case 1: y[i] = log_f(x[i]); break;
  case 2: y[i] = sqrt_f(x[i]); break;
  case 3: y[i] = 1.f / x[i]; break;
  default: y[i] = clip(x[i], VALUE(bound));
  }
}

// test_random: words[i] is the i-th word of the stream with that key, streams[i] the
// key of its i-th substream, and below[i] a number below bound from the word's upper
// half.
KERNEL(test_random)(u64 *words, u64 *streams, u32 *below, u64 key, int bound, long n) {
  long i = index_of_thread();
  if (i >= n) return;
  words[i] = word_of(key, (u64)i);
  streams[i] = indexed(key, (u64)i);
  below[i] = bounded((u32)(words[i] >> 32), (u32)bound);
}

// test_sums: what each thread gets of the sum of its block, and of the maximum and the
// integer sum of its warp.
KERNEL_SYNC_OF(1024, 1, test_sums)(float *sums, float *greatest, int *counts, const float *x, const int *k) {
  SHARED_ARRAY(float, scratch, 32);
  long i = index_of_thread();
  sums[i] = block_sum(x[i], scratch);
  greatest[i] = warp_max(x[i]);
  counts[i] = warp_sum_i(k[i]);
}

// test_fixed adds numbers up in any order, in fixed point: *sum is 0 before.
KERNEL(test_fixed)(long *sum, const float *x, long n) {
  long i = index_of_thread();
  if (i < n) add_fixed(sum, x[i]);
}

// test_from_fixed: y = the value of a fixed-point sum.
KERNEL(test_from_fixed)(float *y, const long *sum) {
  if (index_of_thread() == 0) *y = from_fixed(*sum);
}

// test_dynamic reverses n numbers in dynamic shared memory, except for the last, which
// goes through a static shared array of 1 KiB. One block.
KERNEL_SYNC(test_dynamic)(float *y, const float *x, int n) {
  SHARED_ARRAY(float, apart, 256);
  DYNAMIC(float, all);
  for (int i = thread(); i < n; i += threads()) *(i == n - 1 ? &apart[i % 256] : &all[i]) = x[i];
  barrier();
  for (int i = thread(); i < n; i += threads()) y[i] = i == 0 ? apart[(n - 1) % 256] : all[n - 1 - i];
}

// test_order: order [n] are the numbers of n threads in the order of their start, and
// met [n] in the order of leaving a barrier of their warp; count [2] is 0 before.
KERNEL_SYNC(test_order)(int *order, int *met, int *count, int n) {
  int i = (int)index_of_thread();
  if (i < n) order[__atomic_fetch_add(&count[0], 1, __ATOMIC_RELAXED)] = i;
  warp_barrier();
  if (i < n) met[__atomic_fetch_add(&count[1], 1, __ATOMIC_RELAXED)] = i;
  barrier();
}
