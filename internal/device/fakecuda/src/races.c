// Races, in the checked build: clang's -fsanitize=thread calls the functions below for
// each of a kernel's accesses to memory. Two accesses to the same memory in one launch
// race if one is a write and not both are atomic (or volatile), unless they are of one
// thread, or a barrier lies between them: of the block, of the warp if they are of one
// warp, or of the cluster if they are of one cluster. Exchanging values within a warp
// orders nothing. Launches come one after the other.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fakecuda.h"

struct fakecuda_current fakecuda_current;

// An access is the last of its kind to a granule of bytes, or to its marked halves: numbers
// of two bytes may be neighbours. A trace holds the accesses to a granule.
typedef struct { uint32_t launch; uint8_t atomic, halves; int block, thread; long barrier, warp_barrier, cluster_barrier; } access;
typedef struct { access write, read, other_read; } trace; // the reads are of two threads

enum { granule_of_device = 4, granule_of_shared = 2 };
extern char __start_cne_shared[] __attribute__((weak)), __stop_cne_shared[] __attribute__((weak));
extern uint64_t cne_dynamic[];

static trace *of_device, *of_arrays, *of_dynamic;
static size_t device_bytes;
static const size_t dynamic_bytes = shared_of_block;

static trace *reserve(size_t bytes, size_t granule) {
  trace *t = mmap(0, bytes / granule * sizeof(trace), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (t == MAP_FAILED) {
    perror("fakecuda: no room to look for races");
    abort();
  }
  return t;
}
void fakecuda_forget(size_t offset, size_t bytes) {
  if (of_device) madvise((char *)of_device + offset / granule_of_device * sizeof(trace), bytes / granule_of_device * sizeof(trace), MADV_DONTNEED);
}

// trace_of returns the trace of an address, or 0 if it is not the device's.
static trace *trace_of(const char *p, size_t *granule) {
  size_t arrays = (size_t)(__stop_cne_shared - __start_cne_shared);
  if (!of_device) {
    device_bytes = fakecuda_current.bytes;
    of_device = reserve(device_bytes, granule_of_device);
    of_arrays = reserve(most_of_cluster * (arrays + 2 * granule_of_shared), granule_of_shared);
    of_dynamic = reserve(most_of_cluster * dynamic_bytes, granule_of_shared);
  }
  size_t rank = (size_t)(*fakecuda_current.block % fakecuda_current.cluster), each = fakecuda_current.aside_bytes;
  if (fakecuda_current.aside && p >= fakecuda_current.aside && p < fakecuda_current.aside + most_of_cluster * each) { // of another block of the cluster
    size_t offset = (size_t)(p - fakecuda_current.aside) % each;
    rank = (size_t)(p - fakecuda_current.aside) / each;
    p = offset < dynamic_bytes ? (char *)cne_dynamic + offset : __start_cne_shared + (offset - dynamic_bytes);
  }
  *granule = granule_of_device;
  if (p >= fakecuda_current.memory && p < fakecuda_current.memory + device_bytes) return of_device + (size_t)(p - fakecuda_current.memory) / granule_of_device;
  *granule = granule_of_shared;
  if (p >= __start_cne_shared && p < __stop_cne_shared) return of_arrays + rank * (arrays / granule_of_shared + 1) + (size_t)(p - __start_cne_shared) / granule_of_shared;
  if (p >= (char *)cne_dynamic && p < (char *)cne_dynamic + dynamic_bytes) return of_dynamic + (rank * dynamic_bytes + (size_t)(p - (char *)cne_dynamic)) / granule_of_shared;
  return 0;
}

static int ordered(const access *a, const access *b, int shared) {
  if (!(a->halves & b->halves)) return 1;
  if (a->launch != b->launch) return 1;
  if (a->atomic && b->atomic) return 1;
  int cluster = fakecuda_current.cluster;
  if (a->block / cluster != b->block / cluster) return shared; // shared memory is not the same then
  if (a->cluster_barrier != b->cluster_barrier) return 1;
  if (a->block != b->block) return 0;
  if (a->thread == b->thread || a->barrier != b->barrier) return 1;
  return a->thread / 32 == b->thread / 32 && a->warp_barrier != b->warp_barrier;
}
static void report_race(const access *a, const access *b, const char *did, const char *does, const void *at) {
  Dl_info where = {0};
  dladdr(at, &where);
  fprintf(stderr, "fakecuda: a race in kernel %s: thread %d of block %d %s what thread %d of block %d %s (at %#zx of the library)\n", fakecuda_current.kernel,
          b->thread, b->block, does, a->thread, a->block, did, (size_t)((const char *)at - (const char *)where.dli_fbase));
  const char *on = getenv("FAKECUDA_RACES");
  if (!on || strcmp(on, "report")) abort();
}
static void access_memory(const void *p, size_t bytes, int writes, int atomic, const void *at) {
  if (!fakecuda_current.kernel) return;
  size_t granule;
  trace *t = trace_of(p, &granule);
  if (!t) return;
  const uint8_t halves = bytes > 2 ? 3 : granule == granule_of_shared || !((uintptr_t)p & 2) ? 1 : 2;
  const access now = {fakecuda_current.launch, (uint8_t)atomic, halves, *fakecuda_current.block, *fakecuda_current.thread, *fakecuda_current.barrier,
                      fakecuda_current.warp_barriers[*fakecuda_current.thread / 32], *fakecuda_current.cluster_barrier};
  int shared = granule == granule_of_shared;
  for (size_t n = (bytes + granule - 1) / granule; n > 0; n--, t++) {
    if (!ordered(&t->write, &now, shared)) report_race(&t->write, &now, "wrote", writes ? "writes" : "reads", at);
    if (!writes) {
      if (t->read.launch != now.launch || t->read.block != now.block || t->read.thread != now.thread) t->other_read = t->read;
      t->read = now;
      continue;
    }
    if (!ordered(&t->read, &now, shared)) report_race(&t->read, &now, "read", "writes", at);
    if (!ordered(&t->other_read, &now, shared)) report_race(&t->other_read, &now, "read", "writes", at);
    t->write = now;
  }
}

#define AT __builtin_return_address(0)
void __tsan_init(void) {}
void __tsan_func_entry(void *at) { (void)at; }
void __tsan_func_exit(void) {}
#define PLAIN(bytes) \
  void __tsan_read##bytes(void *p) { access_memory(p, bytes, 0, 0, AT); } \
  void __tsan_write##bytes(void *p) { access_memory(p, bytes, 1, 0, AT); } \
  void __tsan_read_write##bytes(void *p) { access_memory(p, bytes, 1, 0, AT); } \
  void __tsan_unaligned_read##bytes(void *p) { access_memory(p, bytes, 0, 0, AT); } \
  void __tsan_unaligned_write##bytes(void *p) { access_memory(p, bytes, 1, 0, AT); } \
  void __tsan_unaligned_read_write##bytes(void *p) { access_memory(p, bytes, 1, 0, AT); } \
  void __tsan_volatile_read##bytes(void *p) { access_memory(p, bytes, 0, 1, AT); } \
  void __tsan_volatile_write##bytes(void *p) { access_memory(p, bytes, 1, 1, AT); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
void *__tsan_memset(void *p, int c, size_t n) {
  access_memory(p, n, 1, 0, AT);
  return memset(p, c, n);
}
void *__tsan_memcpy(void *to, const void *from, size_t n) {
  access_memory(from, n, 0, 0, AT);
  access_memory(to, n, 1, 0, AT);
  return memcpy(to, from, n);
}
#define ATOMIC(bits) \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *p, int order) { \
    (void)order; \
    access_memory((const void *)p, bits / 8, 0, 1, AT); \
    return *p; \
  } \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t *p, uint##bits##_t v, int order) { \
    (void)order; \
    access_memory((const void *)p, bits / 8, 1, 1, AT); \
    *p = v; \
  } \
  uint##bits##_t __tsan_atomic##bits##_fetch_add(volatile uint##bits##_t *p, uint##bits##_t v, int order) { \
    (void)order; \
    access_memory((const void *)p, bits / 8, 1, 1, AT); \
    uint##bits##_t before = *p; \
    *p = before + v; \
    return before; \
  } \
  uint##bits##_t __tsan_atomic##bits##_fetch_or(volatile uint##bits##_t *p, uint##bits##_t v, int order) { \
    (void)order; \
    access_memory((const void *)p, bits / 8, 1, 1, AT); \
    uint##bits##_t before = *p; \
    *p = before | v; \
    return before; \
  } \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t *p, uint##bits##_t *wanted, uint##bits##_t v, int order, int failed) { \
    (void)order, (void)failed; \
    access_memory((const void *)p, bits / 8, 1, 1, AT); \
    if (*p != *wanted) { \
      *wanted = *p; \
      return 0; \
    } \
    *p = v; \
    return 1; \
  } \
  uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile uint##bits##_t *p, uint##bits##_t wanted, uint##bits##_t v, int order, int failed) { \
    (void)order, (void)failed; \
    access_memory((const void *)p, bits / 8, 1, 1, AT); \
    uint##bits##_t before = *p; \
    if (before == wanted) *p = v; \
    return before; \
  }
ATOMIC(32)
ATOMIC(64)
