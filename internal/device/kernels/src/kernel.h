// What kernels are written with. Each file of kernels is compiled twice: by clang for
// NVIDIA's GPUs (nvptx64) into PTX, and for the CPU, where a stand-in for the driver
// runs them in tests.
//
// A kernel is
//
//	KERNEL(name)(float *y, const float *x, int n) { … }
//
// or, if its threads wait for each other (barrier, shuffle_xor_f, block_sum …),
// KERNEL_SYNC(name)(…). Its parameters are pointers to device memory, int, long,
// unsigned long or float_bits, which VALUE turns into a float: floats would be passed in
// other registers, and the stand-in calls all kernels with integers. There is no libm:
// use the functions here. Device memory must not hold pointers.
//
// A block has at most 256 threads. KERNEL_OF(threads, blocks, name) and
// KERNEL_SYNC_OF(threads, blocks, name) set another bound. It goes into the PTX, where
// it bounds the registers of a thread: a block has 65536, and a kernel that took more
// would compile but never launch. blocks is how many blocks a multiprocessor should
// have room for, or 0 to leave that to the compiler. It may cost registers that spill
// to memory, which internal/device/kernels/limits refuses.
//
// KERNEL_CLUSTER_OF(threads, blocks, name) is KERNEL_SYNC_OF for a grid of clusters with
// that many blocks each, at most 8. The blocks of a cluster run at the same time and can
// access each other's shared memory. It needs compute capability 9.0, which its file says
// in a line "// build: -march=sm_90".
//
// Sums are added in an order that depends only on sizes, or in fixed point (see
// add_fixed), so that results do not depend on timing.
#ifndef CNE_KERNEL_H
#define CNE_KERNEL_H

typedef unsigned int u32;
typedef unsigned long u64; // 64 bits on all machines that this is compiled for
typedef unsigned short u16;
typedef unsigned char u8;
typedef u32 float_bits;

#define DEVICE static inline __attribute__((always_inline, unused))

#ifdef __NVPTX__

// Outside CUDA, clang has no attribute for launch bounds: build reads them from the comment.
#define KERNEL_OF(threads, blocks, name) \
  __asm__("// " #name " has blocks of at most " #threads " threads, " #blocks " together"); __attribute__((nvptx_kernel)) void name
#define KERNEL_SYNC_OF(threads, blocks, name) KERNEL_OF(threads, blocks, name)
#define KERNEL_CLUSTER_OF(threads, blocks, name) \
  __asm__("// " #name " has blocks of at most " #threads " threads, in clusters of " #blocks); __attribute__((nvptx_kernel)) void name
// SHARED is memory that the threads of a block share. Its contents are undefined at
// first, and clang must know that: it takes static variables for zero otherwise.
#define SHARED __attribute__((address_space(3)))
#define SHARED_ARRAY(type, name, n) static SHARED __attribute__((loader_uninitialized)) type name[n]
// DYNAMIC is a block's dynamic shared memory, aligned to 16 bytes.
#define DYNAMIC(type, name) SHARED type *name = (SHARED type *)cne_dynamic
extern SHARED u64 cne_dynamic[] __attribute__((aligned(16)));

DEVICE int thread(void) { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int threads(void) { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE int block(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE int blocks(void) { return __nvvm_read_ptx_sreg_nctaid_x(); }
// barrier waits for all threads of the block, and orders their memory accesses.
DEVICE void barrier(void) { __syncthreads(); }
DEVICE void fence(void) { __nvvm_membar_gl(); }
// shuffle_xor_f returns the value of lane number lane^mask of the warp. All 32 lanes must
// call it.
DEVICE float shuffle_xor_f(float v, int mask) { return __nvvm_shfl_sync_bfly_f32(0xffffffffu, v, mask, 0x1f); }
DEVICE int shuffle_xor_i(int v, int mask) { return __nvvm_shfl_sync_bfly_i32(0xffffffffu, v, mask, 0x1f); }
// warp_barrier waits for the 32 threads of a warp, and orders their memory accesses. All
// must call it.
DEVICE void warp_barrier(void) { __nvvm_bar_warp_sync(0xffffffffu); }
// ballot returns to all 32 threads of a warp a bit for each whose argument is not 0.
DEVICE u32 ballot(int yes) { return __nvvm_vote_ballot_sync(0xffffffffu, yes != 0); }
// match_any returns a bit for each of the 32 lanes of a warp that has the same value;
// all must call it.
DEVICE u32 match_any(u32 v) { return __nvvm_match_any_sync_i32(0xffffffffu, v); }
DEVICE float sqrt_f(float x) { return __nvvm_sqrt_rn_f(x); }
DEVICE double sqrt_d(double x) { return __nvvm_sqrt_rn_d(x); }
DEVICE float fma_f(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
// two_halves returns a and b as bfloat16, a in the lower half: rounded to nearest, ties
// to even. A NaN is 0x7fff.
DEVICE u32 two_halves(float a, float b) {
  u32 v;
  __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(b), "f"(a));
  return v;
}
DEVICE float max_f(float a, float b) { return __nvvm_fmax_f(a, b); }
DEVICE float min_f(float a, float b) { return __nvvm_fmin_f(a, b); }
// div_approx is a/b to within 2 ulp, for |b| between 2⁻¹²⁶ and 2¹²⁶. inverse_approx is 1/b to
// within 1 ulp, for such b, and takes fewer instructions; above it may be 0. log2_approx has an
// absolute error of 2⁻²² between ½ and 2, and a relative one of 2⁻²² elsewhere; it
// takes numbers below 2⁻¹²⁶ for 0.
DEVICE float div_approx(float a, float b) { return __nvvm_div_approx_f(a, b); }
DEVICE float inverse_approx(float b) { return __nvvm_rcp_approx_ftz_f(b); }
DEVICE float log2_approx(float x) { return __nvvm_lg2_approx_ftz_f(x); }
// async_copy_8 and async_copy_4 begin to copy 8 or 4 bytes to shared memory, between
// addresses aligned to that. async_wait waits for all copies that the thread has begun.
DEVICE void async_copy_8(SHARED void *to, const void *from) { __nvvm_cp_async_ca_shared_global_8(to, (const __attribute__((address_space(1))) void *)from); }
DEVICE void async_copy_4(SHARED void *to, const void *from) { __nvvm_cp_async_ca_shared_global_4(to, (const __attribute__((address_space(1))) void *)from); }
DEVICE void async_wait(void) { __nvvm_cp_async_wait_all(); }
// cluster_rank is the block's number in its cluster. cluster_barrier waits for all
// threads of the cluster, and orders their memory accesses; a block must not touch
// another's shared memory before the first barrier, nor after the other's last.
DEVICE int cluster_rank(void) {
  int rank;
  __asm__("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
DEVICE void cluster_barrier(void) { __asm__ volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory"); }
// load_of and store_of load and store what another block of the cluster has at p in its
// shared memory. Stores of several threads are atomic.
DEVICE u32 address_of(const SHARED u32 *p, int rank) {
  u32 at;
  __asm__("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((u32)(u64)p), "r"(rank));
  return at;
}
DEVICE u32 load_of(const SHARED u32 *p, int rank) {
  u32 v;
  __asm__ volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(address_of(p, rank)) : "memory");
  return v;
}
DEVICE void store_of(SHARED u32 *p, int rank, u32 v) {
  __asm__ volatile("st.relaxed.cluster.shared::cluster.u32 [%0], %1;" ::"r"(address_of(p, rank)), "r"(v) : "memory");
}

#else

#define KERNEL_OF(threads, blocks, name) void cne_kernel_##name
#define KERNEL_SYNC_OF(threads, blocks, name) void cne_sync_##name
#define KERNEL_CLUSTER_OF(threads, blocks, name) KERNEL_SYNC_OF(threads, 1, name)
#define SHARED
#define SHARED_ARRAY(type, name, n) static __attribute__((section("cne_shared"))) type name[n]
#define DYNAMIC(type, name) type *name = (type *)cne_dynamic
extern u64 cne_dynamic[];
extern int cne_thread, cne_threads, cne_block, cne_blocks;
void cne_barrier(void);
void cne_warp_barrier(void);
u32 cne_exchange(u32 v, int mask);
u32 cne_matching(u32 v);
int cne_rank(void);
void cne_cluster_barrier(void);
u32 *cne_shared_of(const u32 *p, int rank);

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
DEVICE int cluster_rank(void) { return cne_rank(); }
DEVICE void cluster_barrier(void) { cne_cluster_barrier(); }
DEVICE u32 load_of(const u32 *p, int rank) { return *cne_shared_of(p, rank); }
DEVICE void store_of(u32 *p, int rank, u32 v) { __atomic_store_n(cne_shared_of(p, rank), v, __ATOMIC_RELAXED); }
DEVICE float sqrt_f(float x) { return __builtin_sqrtf(x); }
DEVICE double sqrt_d(double x) { return __builtin_sqrt(x); }
DEVICE float fma_f(float a, float b, float c) { return a * b + c; } // fused or not as build tells clang
DEVICE u32 half_of(float v) {
  union { float f; u32 u; } x = {v};
  return v != v ? 0x7fff : (x.u + 0x7fff + (x.u >> 16 & 1)) >> 16;
}
DEVICE u32 two_halves(float a, float b) { return half_of(a) | half_of(b) << 16; }
DEVICE float max_f(float a, float b) { return a > b || b != b ? a : b; }
DEVICE float min_f(float a, float b) { return a < b || b != b ? a : b; }
#ifdef CNE_HARDWARE // see hardware.c of the stand-in
float cne_div_approx(float a, float b), cne_log2_approx(float x);
DEVICE float div_approx(float a, float b) { return cne_div_approx(a, b); }
DEVICE float inverse_approx(float b) { return cne_div_approx(1.f, b); }
DEVICE float log2_approx(float x) { return cne_log2_approx(x); }
#else
DEVICE float log_f(float x);
DEVICE float div_approx(float a, float b) { return a / b; }
DEVICE float inverse_approx(float b) { return 1.f / b; }
DEVICE float log2_approx(float x) { return log_f(x) * 1.44269504f; }
#endif
// Copies are made by async_wait; until then the destination is NaN. They are made here,
// not by the stand-in, so that their races are detected, too.
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

// index_of_thread numbers the threads of all blocks, for kernels with a
// thread for each item.
DEVICE long index_of_thread(void) { return (long)block() * threads() + thread(); }

// A quad is four floats, moved by one access. Many kernels exist twice: one whose name
// ends with _4 takes elements by fours, where their number is a multiple of four and
// all arrays are aligned to 16 bytes; the other takes them one by one, in a quad's
// first place (width is 4 or 1).
typedef float quad __attribute__((ext_vector_type(4), may_alias));
DEVICE quad load(const float *p, int width) {
  if (width == 4) return *(const quad *)p;
  return (quad){*p, 0.f, 0.f, 0.f};
}
DEVICE void store(float *p, quad v, int width) {
  if (width == 4) *(quad *)p = v;
  else *p = v.x;
}
// Arrays of some kernels are of bfloat16, the upper halves of floats, if half is not 0,
// and else of floats: load_at and store_at load and store the element, or the four, from
// index i on. Four halves are aligned to 8 bytes. Kernels whose names end with _h4 and
// _h1 are for bfloat16.
typedef u32 halves __attribute__((ext_vector_type(2), may_alias));
typedef u16 half_alias __attribute__((may_alias));
DEVICE quad load_at(const void *p, long i, int width, int half) {
  if (!half) return load((const float *)p + i, width);
  const half_alias *at = (const half_alias *)p + i;
  if (width != 4) return (quad){as_float((u32)*at << 16), 0.f, 0.f, 0.f};
  halves v = *(const halves *)at;
  return (quad){as_float(v.x << 16), as_float(v.x & 0xffff0000u), as_float(v.y << 16), as_float(v.y & 0xffff0000u)};
}
DEVICE void store_at(void *p, long i, quad v, int width, int half) {
  if (!half) {
    store((float *)p + i, v, width);
    return;
  }
  half_alias *at = (half_alias *)p + i;
  if (width != 4) *at = (u16)two_halves(v.x, 0.f);
  else *(halves *)at = (halves){two_halves(v.x, v.y), two_halves(v.z, v.w)};
}

// clamp_below is max(y, floor); NaN stays.
DEVICE quad clamp_below(quad y, float floor, int width) {
  for (int k = 0; k < width; k++) y[k] = y[k] < floor ? floor : y[k];
  return y;
}

DEVICE int min_i(int a, int b) { return a < b ? a : b; }
DEVICE int max_i(int a, int b) { return a > b ? a : b; }
DEVICE float clip(float v, float bound) { return v > bound ? bound : v < -bound ? -bound : v; } // NaN stays

// exp_f and log_f have a relative error below 2e-7. exp_f is 0 below −87 and infinite
// above 88.7; log_f is −∞ of 0 and NaN below. Both are NaN of NaN.
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
// log1p_f is log(1 + v), v ≥ 0, accurate for small v.
DEVICE float log1p_f(float v) {
  float u = 1.f + v;
  return u == 1.f || u == INFINITE ? log_f(u) + v : log_f(u) * (v / (u - 1.f));
}

// The random numbers of package internal/rng: word number i, from 0, of the stream with
// a key.
DEVICE u64 mix(u64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ul;
  z = (z ^ z >> 27) * 0x94d049bb133111ebul;
  return z ^ z >> 31;
}
#define GAMMA 0x9e3779b97f4a7c15ul
DEVICE u64 word_of(u64 key, u64 i) { return mix(key + (i + 1) * GAMMA); }
// indexed is the key of a stream's i-th substream: rng.New's key with one more index.
DEVICE u64 indexed(u64 key, u64 i) { return mix((key + GAMMA) ^ mix(i + GAMMA)); }
DEVICE u32 bounded(u32 random, u32 n) { return (u32)((u64)random * n >> 32); }
// next_word draws the next word of a stream, and next_below a number 0 … n−1, as rng's
// IntN does.
DEVICE u64 next_word(u64 *state) { return mix(*state += GAMMA); }
DEVICE u64 next_below(u64 *state, u64 n) {
  unsigned __int128 p = (unsigned __int128)next_word(state) * n;
  if ((u64)p < n) {
    u64 limit = -n % n;
    while ((u64)p < limit) p = (unsigned __int128)next_word(state) * n;
  }
  return (u64)(p >> 64);
}

// Sums in fixed point do not depend on the order of addition: integers of 64 bits in
// units of 2⁻³⁶. A summand is clipped to ±2²⁶.
#define FIXED_UNIT 68719476736.f
DEVICE long to_fixed(float v) {
  v = v != v ? INFINITE : v; // so that the sum of a NaN shows
  return (long)(clip(v, 67108864.f) * FIXED_UNIT);
}
DEVICE float from_fixed(long v) { return (float)((double)v * (1. / 68719476736.)); }
DEVICE void add_fixed(long *to, float v) { __atomic_fetch_add(to, to_fixed(v), __ATOMIC_RELAXED); }

// warp_sum and warp_max return the sum and the maximum over a warp to all of its
// threads.
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

// block_sum returns the sum over a block, of a multiple of 32 threads, to all of them.
// scratch has room for 32 numbers.
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
