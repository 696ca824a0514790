// What a library that is built to look for races does at each access of a kernel to
// memory: clang's -fsanitize=thread calls the functions below. Two accesses to the same
// memory in one launch, one of them a write and not both atomic (or volatile), race
// unless they are of one thread, or a barrier of the block lies between them, or they
// are of one warp and a barrier of the warp does. What values a warp exchanges orders
// nothing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fakecuda.h"

struct fakecuda_moment fakecuda_now;

// An access is the last of its kind to some bytes; a trace is what they have seen.
typedef struct { uint32_t launch, atomic; int block, thread; long barrier, warp_barrier; } access;
typedef struct { access write, read, other_read; } trace; // the reads are of two threads

enum { grain_of_device = 4, grain_of_shared = 2 };
extern char __start_cne_shared[] __attribute__((weak)), __stop_cne_shared[] __attribute__((weak));
extern uint64_t cne_dynamic[];

static trace *of_device, *of_arrays, *of_dynamic;
static size_t device_bytes;
static const size_t dynamic_bytes = 227 << 10;

static trace *reserve(size_t bytes, size_t grain) {
  trace *t = mmap(0, bytes / grain * sizeof(trace), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (t == MAP_FAILED) {
    perror("fakecuda: no room to look for races");
    abort();
  }
  return t;
}
void fakecuda_forget(size_t offset, size_t bytes) {
  if (of_device) madvise((char *)of_device + offset / grain_of_device * sizeof(trace), bytes / grain_of_device * sizeof(trace), MADV_DONTNEED);
}

// trace_of returns the trace of an address, if it is of the device.
static trace *trace_of(const char *p, size_t *grain) {
  size_t arrays = (size_t)(__stop_cne_shared - __start_cne_shared);
  if (!of_device) {
    device_bytes = fakecuda_now.bytes;
    of_device = reserve(device_bytes, grain_of_device);
    of_arrays = reserve(arrays + 64, grain_of_shared);
    of_dynamic = reserve(dynamic_bytes, grain_of_shared);
  }
  *grain = grain_of_device;
  if (p >= fakecuda_now.memory && p < fakecuda_now.memory + device_bytes) return of_device + (size_t)(p - fakecuda_now.memory) / grain_of_device;
  *grain = grain_of_shared;
  if (p >= __start_cne_shared && p < __stop_cne_shared) return of_arrays + (size_t)(p - __start_cne_shared) / grain_of_shared;
  if (p >= (char *)cne_dynamic && p < (char *)cne_dynamic + dynamic_bytes) return of_dynamic + (size_t)(p - (char *)cne_dynamic) / grain_of_shared;
  return 0;
}

static int ordered(const access *a, const access *b, int shared) {
  if (a->launch != b->launch || (a->atomic && b->atomic)) return 1;
  if (a->block != b->block) return shared; // a block's shared memory is new
  if (a->thread == b->thread || a->barrier != b->barrier) return 1;
  return a->thread / 32 == b->thread / 32 && a->warp_barrier != b->warp_barrier;
}
static void raced(const access *a, const access *b, const char *did, const char *does, const void *at) {
  Dl_info where = {0};
  dladdr(at, &where);
  fprintf(stderr, "fakecuda: a race in kernel %s: thread %d of block %d %s what thread %d of block %d %s (at %#zx of the library)\n", fakecuda_now.kernel,
          b->thread, b->block, does, a->thread, a->block, did, (size_t)((const char *)at - (const char *)where.dli_fbase));
  const char *on = getenv("FAKECUDA_RACES");
  if (!on || strcmp(on, "report")) abort();
}
static void touch(const void *p, size_t bytes, int writes, int atomic, const void *at) {
  if (!fakecuda_now.kernel) return;
  size_t grain;
  trace *t = trace_of(p, &grain);
  if (!t) return;
  const access now = {fakecuda_now.launch, (uint32_t)atomic, *fakecuda_now.block, *fakecuda_now.thread, *fakecuda_now.barrier,
                      fakecuda_now.warp_barriers[*fakecuda_now.thread / 32]};
  int shared = grain == grain_of_shared;
  for (size_t n = (bytes + grain - 1) / grain; n > 0; n--, t++) {
    if (!ordered(&t->write, &now, shared)) raced(&t->write, &now, "wrote", writes ? "writes" : "reads", at);
    if (!writes) {
      if (t->read.launch != now.launch || t->read.block != now.block || t->read.thread != now.thread) t->other_read = t->read;
      t->read = now;
      continue;
    }
    if (!ordered(&t->read, &now, shared)) raced(&t->read, &now, "read", "writes", at);
    if (!ordered(&t->other_read, &now, shared)) raced(&t->other_read, &now, "read", "writes", at);
    t->write = now;
  }
}

#define AT __builtin_return_address(0)
void __tsan_init(void) {}
void __tsan_func_entry(void *at) { (void)at; }
void __tsan_func_exit(void) {}
#define PLAIN(bytes) \
  void __tsan_read##bytes(void *p) { touch(p, bytes, 0, 0, AT); } \
  void __tsan_write##bytes(void *p) { touch(p, bytes, 1, 0, AT); } \
  void __tsan_read_write##bytes(void *p) { touch(p, bytes, 1, 0, AT); } \
  void __tsan_unaligned_read##bytes(void *p) { touch(p, bytes, 0, 0, AT); } \
  void __tsan_unaligned_write##bytes(void *p) { touch(p, bytes, 1, 0, AT); } \
  void __tsan_unaligned_read_write##bytes(void *p) { touch(p, bytes, 1, 0, AT); } \
  void __tsan_volatile_read##bytes(void *p) { touch(p, bytes, 0, 1, AT); } \
  void __tsan_volatile_write##bytes(void *p) { touch(p, bytes, 1, 1, AT); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
void *__tsan_memset(void *p, int c, size_t n) {
  touch(p, n, 1, 0, AT);
  return memset(p, c, n);
}
void *__tsan_memcpy(void *to, const void *from, size_t n) {
  touch(from, n, 0, 0, AT);
  touch(to, n, 1, 0, AT);
  return memcpy(to, from, n);
}
#define ATOMIC(bits) \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *p, int order) { \
    (void)order; \
    touch((const void *)p, bits / 8, 0, 1, AT); \
    return *p; \
  } \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t *p, uint##bits##_t v, int order) { \
    (void)order; \
    touch((const void *)p, bits / 8, 1, 1, AT); \
    *p = v; \
  } \
  uint##bits##_t __tsan_atomic##bits##_fetch_add(volatile uint##bits##_t *p, uint##bits##_t v, int order) { \
    (void)order; \
    touch((const void *)p, bits / 8, 1, 1, AT); \
    uint##bits##_t before = *p; \
    *p = before + v; \
    return before; \
  } \
  uint##bits##_t __tsan_atomic##bits##_fetch_or(volatile uint##bits##_t *p, uint##bits##_t v, int order) { \
    (void)order; \
    touch((const void *)p, bits / 8, 1, 1, AT); \
    uint##bits##_t before = *p; \
    *p = before | v; \
    return before; \
  } \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t *p, uint##bits##_t *wanted, uint##bits##_t v, int order, int failed) { \
    (void)order, (void)failed; \
    touch((const void *)p, bits / 8, 1, 1, AT); \
    if (*p != *wanted) { \
      *wanted = *p; \
      return 0; \
    } \
    *p = v; \
    return 1; \
  } \
  uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile uint##bits##_t *p, uint##bits##_t wanted, uint##bits##_t v, int order, int failed) { \
    (void)order, (void)failed; \
    touch((const void *)p, bits / 8, 1, 1, AT); \
    uint##bits##_t before = *p; \
    if (before == wanted) *p = v; \
    return before; \
  }
ATOMIC(32)
ATOMIC(64)
