// What kernels are written with. Each file of kernels is compiled twice: for
// NVIDIA's GPUs (clang, nvptx64) into PTX, and for this machine, where a stand-in
// for the driver runs them in tests.
//
// A kernel is
//
//	KERNEL(name)(float *y, const float *x, int n) { … }
//
// or, if its threads wait for each other (barrier, exchange, block_sum …),
// KERNEL_SYNC(name)(…). Its parameters are pointers to the device's memory,
// int, long, unsigned long, or number (a float, which VALUE turns into one): what
// goes through registers of integers on any machine, so that the stand-in can call
// a kernel without knowing its type. There is no libm: use what is here. Device
// memory must not hold pointers.
//
// A kernel has blocks of at most 256 threads. KERNEL_OF(threads, blocks, name) and
// KERNEL_SYNC_OF(threads, blocks, name) are for others: the number goes into the PTX,
// and tells the driver's compiler how many registers a thread can have. A block has
// 65536; a kernel that took more would compile, and every launch of it would fail. blocks
// is how many of them a multiprocessor is to have room for, or 0: as many as the compiler
// thinks good, even if some registers then go to memory, which internal/device/kernels/limits
// does not let pass.
//
// Sums are added up in an order that depends on sizes alone, or as fixed-point
// integers (see add_fixed), so that results do not depend on timing.
#ifndef CNE_KERNEL_H
#define CNE_KERNEL_H

typedef unsigned int u32;
typedef unsigned long u64; // of 64 bits on all machines for which this is compiled
typedef unsigned char u8;
typedef u32 float_bits;

#define DEVICE static inline __attribute__((always_inline, unused))

#ifdef __NVPTX__

// clang has no attribute for the threads of a block outside CUDA: build reads the comment.
#define KERNEL_OF(threads, blocks, name) \
  __asm__("// " #name " has blocks of at most " #threads " threads, " #blocks " together"); __attribute__((nvptx_kernel)) void name
#define KERNEL_SYNC_OF(threads, blocks, name) KERNEL_OF(threads, blocks, name)
// SHARED is memory that the threads of a block share; its contents are undefined
// at first, which clang must know: it takes what is static for zero otherwise.
#define SHARED __attribute__((address_space(3)))
#define SHARED_ARRAY(type, name, n) static SHARED __attribute__((loader_uninitialized)) type name[n]
// DYNAMIC is the dynamic shared memory of a block, which begins at a multiple of 16
// bytes.
#define DYNAMIC(type, name) SHARED type *name = (SHARED type *)cne_dynamic
extern SHARED u64 cne_dynamic[] __attribute__((aligned(16)));

DEVICE int thread(void) { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int threads(void) { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE int block(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE int blocks(void) { return __nvvm_read_ptx_sreg_nctaid_x(); }
// barrier waits for all threads of the block, and orders what they did to memory.
DEVICE void barrier(void) { __syncthreads(); }
DEVICE void fence(void) { __nvvm_membar_gl(); }
// exchange_f returns the value that the lane with number lane^mask has, of the 32
// threads of a warp, all of which must come here.
DEVICE float shuffle_xor_f(float v, int mask) { return __nvvm_shfl_sync_bfly_f32(0xffffffffu, v, mask, 0x1f); }
DEVICE int shuffle_xor_i(int v, int mask) { return __nvvm_shfl_sync_bfly_i32(0xffffffffu, v, mask, 0x1f); }
// warp_barrier waits for the 32 threads of a warp, all of which must come here, and
// orders what they did to memory.
DEVICE void warp_barrier(void) { __nvvm_bar_warp_sync(0xffffffffu); }
// ballot returns, to all 32 threads of a warp, a bit for each that says yes.
DEVICE u32 ballot(int yes) { return __nvvm_vote_ballot_sync(0xffffffffu, yes != 0); }
// matching returns a bit for each of the 32 lanes of a warp, all of which must come
// here, that has the same value.
DEVICE u32 match_any(u32 v) { return __nvvm_match_any_sync_i32(0xffffffffu, v); }
DEVICE float sqrt_f(float x) { return __nvvm_sqrt_rn_f(x); }
DEVICE double sqrt_d(double x) { return __nvvm_sqrt_rn_d(x); }
DEVICE float fma_f(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
DEVICE float max_f(float a, float b) { return __nvvm_fmax_f(a, b); }
DEVICE float min_f(float a, float b) { return __nvvm_fmin_f(a, b); }
// quotient is a/b to within 2 units of the last place, for |b| between 2⁻¹²⁶ and 2¹²⁶;
// log2_of has an error of 2⁻²² between ½ and 2, and a relative one of 2⁻²² elsewhere.
// For it, numbers below 2⁻¹²⁶ are 0.
DEVICE float div_approx(float a, float b) { return __nvvm_div_approx_f(a, b); }
DEVICE float log2_approx(float x) { return __nvvm_lg2_approx_ftz_f(x); }
// copy_8 and copy_4 begin to copy so many bytes to shared memory, where both begin at a
// multiple of that; land waits for what the thread has begun.
DEVICE void async_copy_8(SHARED void *to, const void *from) { __nvvm_cp_async_ca_shared_global_8(to, (const __attribute__((address_space(1))) void *)from); }
DEVICE void async_copy_4(SHARED void *to, const void *from) { __nvvm_cp_async_ca_shared_global_4(to, (const __attribute__((address_space(1))) void *)from); }
DEVICE void async_wait(void) { __nvvm_cp_async_wait_all(); }

#else

#define KERNEL_OF(threads, blocks, name) void cne_kernel_##name
#define KERNEL_SYNC_OF(threads, blocks, name) void cne_sync_##name
#define SHARED
#define SHARED_ARRAY(type, name, n) static __attribute__((section("cne_shared"))) type name[n]
#define DYNAMIC(type, name) type *name = (type *)cne_dynamic
extern u64 cne_dynamic[];
extern int cne_thread, cne_threads, cne_block, cne_blocks;
void cne_barrier(void);
void cne_warp_barrier(void);
u32 cne_exchange(u32 v, int mask);
u32 cne_matching(u32 v);

DEVICE int thread(void) { return cne_thread; }
DEVICE int threads(void) { return cne_threads; }
DEVICE int block(void) { return cne_block; }
DEVICE int blocks(void) { return cne_blocks; }
DEVICE void barrier(void) { cne_barrier(); }
DEVICE void fence(void) {}
DEVICE float shuffle_xor_f(float v, int mask) {
  union { float f; u32 u; } x = {v};
  x.u = cne_exchange(x.u, mask);
  return x.f;
}
DEVICE int shuffle_xor_i(int v, int mask) { return (int)cne_exchange((u32)v, mask); }
DEVICE void warp_barrier(void) { cne_warp_barrier(); }
DEVICE u32 ballot(int yes) {
  u32 bits = (u32)(yes != 0) << cne_thread % 32;
  for (int mask = 16; mask > 0; mask /= 2) bits |= cne_exchange(bits, mask);
  return bits;
}
DEVICE u32 match_any(u32 v) { return cne_matching(v); }
DEVICE float sqrt_f(float x) { return __builtin_sqrtf(x); }
DEVICE double sqrt_d(double x) { return __builtin_sqrt(x); }
DEVICE float fma_f(float a, float b, float c) { return a * b + c; } // as clang is told: see the stand-in's build
DEVICE float max_f(float a, float b) { return a > b || b != b ? a : b; }
DEVICE float min_f(float a, float b) { return a < b || b != b ? a : b; }
#ifdef CNE_HARDWARE // see hardware.c of the stand-in
float cne_quotient(float a, float b), cne_log2(float x);
DEVICE float div_approx(float a, float b) { return cne_quotient(a, b); }
DEVICE float log2_approx(float x) { return cne_log2(x); }
#else
DEVICE float log_f(float x);
DEVICE float div_approx(float a, float b) { return a / b; }
DEVICE float log2_approx(float x) { return log_f(x) * 1.44269504f; }
#endif
// What is copied is read and written when it lands; until then it is no number. That
// is done here, rather than by the stand-in, so that it looks for races there, too.
void cne_copy(u32 *to, const u32 *from, int bytes);
int cne_copied(u32 **to, const u32 **from);
DEVICE void async_copy_4(void *to, const void *from) {
  *(u32 *)to = ~0u;
  cne_copy(to, from, 4);
}
DEVICE void async_copy_8(void *to, const void *from) {
  ((u32 *)to)[0] = ((u32 *)to)[1] = ~0u;
  cne_copy(to, from, 8);
}
DEVICE void async_wait(void) {
  u32 *to;
  const u32 *from;
  for (int words; (words = cne_copied(&to, &from)) > 0;)
    for (int i = 0; i < words; i++) to[i] = from[i];
}

#endif

#define KERNEL(name) KERNEL_OF(256, 0, name)
#define KERNEL_SYNC(name) KERNEL_SYNC_OF(256, 0, name)

DEVICE float as_float(u32 bits) {
  union { u32 u; float f; } x = {bits};
  return x.f;
}
DEVICE u32 as_bits(float v) {
  union { float f; u32 u; } x = {v};
  return x.u;
}
#define VALUE(parameter) as_float(parameter)
#define INFINITE as_float(0x7f800000u)

// index is the number of the thread among those of all blocks, for KERNELs with a
// thread for each item.
DEVICE long index_of_thread(void) { return (long)block() * threads() + thread(); }

// A quad is four numbers that one access moves. Kernels are often there twice: one
// whose name ends with _4 takes elements by fours, where their number is a multiple of
// four and all arrays begin at a multiple of 16 bytes; another takes them one by one,
// in the first place of a quad.
typedef float quad __attribute__((ext_vector_type(4), may_alias));
DEVICE quad load(const float *p, int width) {
  if (width == 4) return *(const quad *)p;
  return (quad){*p, 0.f, 0.f, 0.f};
}
DEVICE void store(float *p, quad v, int width) {
  if (width == 4) *(quad *)p = v;
  else *p = v.x;
}
// floored is y, but floor where it is less; a NaN stays one.
DEVICE quad clamp_below(quad y, float floor, int width) {
  for (int k = 0; k < width; k++) y[k] = y[k] < floor ? floor : y[k];
  return y;
}

DEVICE int min_i(int a, int b) { return a < b ? a : b; }
DEVICE int max_i(int a, int b) { return a > b ? a : b; }
DEVICE float clip(float v, float bound) { return v > bound ? bound : v < -bound ? -bound : v; } // NaN stays

// exponential and logarithm have a relative error below 2e-7. exponential is 0
// below −87 and infinite above 88.7; the logarithm of 0 is −∞, below 0 NaN. Of a NaN
// both are one.
DEVICE float exp_f(float x) {
  if (x < -87.f) return 0.f;
  if (!(x <= 88.72f)) return x != x ? x : INFINITE; // a NaN has no integer
  float k = (float)(int)(x * 1.44269504f + (x < 0 ? -0.5f : 0.5f));
  float r = fma_f(k, -0.693359375f, x); // ln 2 in two parts
  r = fma_f(k, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = fma_f(p, r, 1.3981999507e-3f);
  p = fma_f(p, r, 8.3334519073e-3f);
  p = fma_f(p, r, 4.1665795894e-2f);
  p = fma_f(p, r, 1.6666665459e-1f);
  p = fma_f(p, r, 5.0000001201e-1f);
  p = fma_f(p, r * r, r) + 1.f;
  int half = (int)k / 2, rest = (int)k - half; // 2^k may lie outside the range of floats
  return p * as_float((u32)(half + 127) << 23) * as_float((u32)(rest + 127) << 23);
}
DEVICE float log_f(float x) {
  if (!(x > 0.f)) return x == 0.f ? -INFINITE : as_float(0x7fc00000u);
  if (x == INFINITE) return x;
  int e = 0;
  if (x < 1.17549435e-38f) { x *= 8388608.f; e = -23; }
  u32 bits = as_bits(x);
  e += (int)(bits >> 23) - 126;
  float m = as_float((bits & 0x7fffffu) | 0x3f000000u); // in [½, 1)
  if (m < 0.707106781f) { m += m; e--; }
  m -= 1.f;
  float z = m * m, p = 7.0376836292e-2f;
  p = fma_f(p, m, -1.1514610310e-1f);
  p = fma_f(p, m, 1.1676998740e-1f);
  p = fma_f(p, m, -1.2420140846e-1f);
  p = fma_f(p, m, 1.4249322787e-1f);
  p = fma_f(p, m, -1.6668057665e-1f);
  p = fma_f(p, m, 2.0000714765e-1f);
  p = fma_f(p, m, -2.4999993993e-1f);
  p = fma_f(p, m, 3.3333331174e-1f);
  p = p * m * z;
  p = fma_f((float)e, -2.12194440e-4f, p);
  p = fma_f(-0.5f, z, p);
  return fma_f((float)e, 0.693359375f, m + p);
}
// logarithm_1p is log(1 + v) with all digits where v, not negative, is small.
DEVICE float log1p_f(float v) {
  float u = 1.f + v;
  return u == 1.f || u == INFINITE ? log_f(u) + v : log_f(u) * (v / (u - 1.f));
}

// The random numbers of package internal/rng: the i-th word, from 0, of the stream
// whose state is key.
DEVICE u64 mix(u64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ul;
  z = (z ^ z >> 27) * 0x94d049bb133111ebul;
  return z ^ z >> 31;
}
#define GAMMA 0x9e3779b97f4a7c15ul
DEVICE u64 word_of(u64 key, u64 i) { return mix(key + (i + 1) * GAMMA); }
// indexed is the key of the stream that rng.New gives for one more index.
DEVICE u64 indexed(u64 key, u64 i) { return mix((key + GAMMA) ^ mix(i + GAMMA)); }
DEVICE u32 bounded(u32 random, u32 n) { return (u32)((u64)random * n >> 32); }
// next_word draws from a stream, and next_below as its IntN does: a number from
// 0 … n−1.
DEVICE u64 next_word(u64 *state) { return mix(*state += GAMMA); }
DEVICE u64 next_below(u64 *state, u64 n) {
  unsigned __int128 p = (unsigned __int128)next_word(state) * n;
  if ((u64)p < n) {
    u64 limit = -n % n;
    while ((u64)p < limit) p = (unsigned __int128)next_word(state) * n;
  }
  return (u64)(p >> 64);
}

// Sums that do not depend on the order in which they are added up are kept as
// integers of 64 bits in units of 2⁻³⁶; a summand counts for 2²⁶ at most.
#define FIXED_UNIT 68719476736.f
DEVICE long to_fixed(float v) {
  v = v != v ? INFINITE : v; // so that the sum of a NaN shows
  return (long)(clip(v, 67108864.f) * FIXED_UNIT);
}
DEVICE float from_fixed(long v) { return (float)((double)v * (1. / 68719476736.)); }
DEVICE void add_fixed(long *to, float v) { __atomic_fetch_add(to, to_fixed(v), __ATOMIC_RELAXED); }

// warp_sum and warp_max return the sum and the largest of the values of a warp's
// threads to all of them.
DEVICE float warp_sum(float v) {
  for (int mask = 16; mask > 0; mask /= 2) v += shuffle_xor_f(v, mask);
  return v;
}
DEVICE float warp_max(float v) {
  for (int mask = 16; mask > 0; mask /= 2) v = max_f(v, shuffle_xor_f(v, mask));
  return v;
}
DEVICE int warp_sum_i(int v) {
  for (int mask = 16; mask > 0; mask /= 2) v += shuffle_xor_i(v, mask);
  return v;
}

// block_sum returns the sum of the values of a block's threads, which are a
// multiple of 32, to all of them. scratch has room for 32 numbers.
DEVICE float block_sum(float v, SHARED float *scratch) {
  v = warp_sum(v);
  if (thread() % 32 == 0) scratch[thread() / 32] = v;
  barrier();
  v = thread() % 32 < threads() / 32 ? scratch[thread() % 32] : 0.f;
  v = warp_sum(v);
  barrier();
  return v;
}

#endif
