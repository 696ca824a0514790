// A stand-in for the CUDA driver and cuBLAS on machines without a GPU (for cuDNN see
// fakecudnn.c). The memory of its one device is at addresses that the process cannot
// read; the kernels are package kernels', compiled for the CPU. Launches are checked
// against the PTX that the program embeds.
//
// Each allocation ends at the end of a page, which an unreadable page follows, so that
// a kernel that leaves its arrays ends the process. New allocations are full of NaN,
// and so is a block's shared memory. One thread runs at a time, block after block, in
// an order that can be chosen: see control. The blocks of a cluster take turns. When a
// kernel fails, its launch succeeds, as on a GPU, and what follows does not: at once or
// (hardware.c) from the next call that waits for the stream. Asynchronous copies
// (cp.async) are made when the kernel waits for them. A call fails if its thread has no
// current context, if its stream is invalid, or if a capture forbids it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fakecuda.h"

enum { ok = 0, invalid = 1, out_of_memory = 2, invalid_image = 200, no_context = 201, not_found = 500,
       forbidden = 900, broken = 901, not_capturing = 903, wrong_thread = 908, out_of_resources = 701, invalid_cluster = 912 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCKED __attribute__((cleanup(unlock), unused)) int locked = pthread_mutex_lock(&lock)
static void unlock(int *unused) {
  (void)unused;
  pthread_mutex_unlock(&lock);
}

// What a test can set or read: see fakecuda.go.
static struct {
  size_t memory;      // of the device
  long fails_after;   // this many launches; −1: never
  result fails_with;  //
  size_t used, count; // memory allocated
  long launches, ran; // kernels that were asked for singly, and all
  long up, down;      // copies from the program's memory, and to it
  // The order of the blocks of a grid and of the threads of a block: 0 forwards, the
  // threads of a block in step with each other; 1 backwards, each warp as far ahead
  // of the others as it can get; any other shuffled, with that seed.
  uint64_t order;
} control = {.memory = 4ul << 30, .fails_after = -1};
static result failed; // a kernel's failure: nothing is done any more
static result known;  // the same once the program may know it: every call returns it

static void *const the_context = (void *)1;
static __thread void *context; // the current one

// Streams are handles: what a stream is asked for is done at once.
enum { most_streams = 64 };
static void *streams[most_streams];
static void **find_stream(void *p) {
  for (int i = 0; p && i < most_streams; i++)
    if (streams[i] == p) return &streams[i];
  return 0;
}

struct task;
typedef struct { struct task *first, **last; } graph;
// A graph is the tasks that a stream was given during a capture.
static graph *capturing;
static void *captured; // the stream
static pthread_t capturer;
static int capture_failed; // by a call that a capture forbids

// check returns the status that every call fails with.
static result check(void) { return known ? known : context == the_context ? ok : no_context; }
// check_not_capturing is check for calls that a capturing thread must not make.
static result check_not_capturing(void) {
  result r = check();
  if (r || !capturing || !pthread_equal(capturer, pthread_self())) return r;
  capture_failed = 1;
  return forbidden;
}
// check_wait is check for calls that wait for a stream.
static result check_wait(void *on) {
  result r = check();
  if (r || !find_stream(on)) return r ? r : invalid;
  if (capturing) {
    capture_failed = 1;
    return forbidden;
  }
  return known = failed;
}

void fakecuda_memory(size_t bytes) { LOCKED; control.memory = bytes; }
void fakecuda_fail(long launches, int code) { LOCKED; control.fails_after = launches < 0 ? -1 : control.ran + launches; control.fails_with = code; failed = known = ok; }
void fakecuda_usage(size_t *bytes, size_t *count) { LOCKED; *bytes = control.used; *count = control.count; }
void fakecuda_transfers(long *up, long *down) { LOCKED; *up = control.up; *down = control.down; }
long fakecuda_launches(void) { LOCKED; return control.launches; }
static int retained;
static long contexts;
long fakecuda_contexts(void) { LOCKED; return contexts; }
int fakecuda_checked(void) { return hardware; }
static uint64_t shuffling; // state of the random numbers for shuffling
void fakecuda_order(uint64_t order) { LOCKED; control.order = shuffling = order; }
__attribute__((constructor)) static void first_order(void) {
  const char *order = getenv("FAKECUDA_ORDER");
  if (order) control.order = shuffling = strtoull(order, 0, 10);
}
static unsigned draw(unsigned n) { // of splitmix64
  uint64_t z = shuffling += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (unsigned)((z ^ z >> 31) % n);
}
// permute sets order to the numbers 0 … n−1 in the order that control says.
static void permute(unsigned *order, unsigned n) {
  for (unsigned i = 0; i < n; i++) order[i] = control.order == 1 ? n - 1 - i : i;
  if (control.order < 2) return;
  for (unsigned i = n; i > 1; i--) {
    unsigned j = draw(i), v = order[i - 1];
    order[i - 1] = order[j];
    order[j] = v;
  }
}

// The device's memory is mapped twice: at device, where nothing can be read, and at
// shadow.
static char *device, *shadow;
static const size_t size = 1ul << 38, page = 4096;
static size_t top = 1ul << 12;

typedef struct allocation {
  pointer at;
  size_t bytes, first, last; // pages of the shadow
  struct allocation *next;
} allocation;
static allocation *allocations[4096];
static allocation **find_allocation(pointer p) {
  allocation **a = &allocations[p / 256 % 4096];
  while (*a && (*a)->at != p) a = &(*a)->next;
  return a;
}

// host returns where the process can read an address of the device. It returns other
// addresses, which are the process's own, unchanged.
static char *host(pointer p) {
  pointer base = (pointer)(uintptr_t)device;
  return p >= base && p < base + size ? shadow + (p - base) : (char *)(uintptr_t)p;
}

// env_int returns the number in an environment variable, or a default. It is for settings
// that apply before a test can make a call.
static int env_int(const char *variable, int otherwise) {
  const char *number = getenv(variable);
  return number && *number ? atoi(number) : otherwise;
}

result cuInit(unsigned flags) {
  LOCKED;
  (void)flags;
  result r = env_int("FAKECUDA_INIT_STATUS", ok);
  if (r || device) return r;
  int file = memfd_create("fakecuda", 0);
  if (file < 0 || ftruncate(file, (off_t)size)) return out_of_memory;
  device = mmap(0, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  shadow = mmap(0, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  return device == MAP_FAILED || shadow == MAP_FAILED ? out_of_memory : ok;
}
result cuDriverGetVersion(int *v) { *v = env_int("FAKECUDA_DRIVER_VERSION", 13000); return ok; }
result cuDeviceGetCount(int *n) { *n = env_int("FAKECUDA_DEVICES", 1); return ok; }
result cuDeviceGet(int *d, int i) { *d = i; return i ? invalid : ok; }
result cuDeviceGetName(char *s, int n, int d) { (void)d; snprintf(s, (size_t)n, "stand-in"); return ok; }
result cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = control.memory; return ok; }
result cuDeviceGetAttribute(int *v, int attribute, int d) {
  (void)d;
  switch (attribute) {
  case 16: *v = 4; break;      // multiprocessors
  case 75: *v = 9; break;      // compute capability
  case 76: *v = 0; break;
  case 97: *v = shared_of_block; break; // of one that asks for it
  case 120: *v = env_int("FAKECUDA_CLUSTERS", 1); break; // whether there are any
  default: *v = 0;
  }
  return ok;
}
static void release(allocation **a);
result cuDevicePrimaryCtxRetain(void **c, int d) {
  LOCKED;
  (void)d;
  contexts += retained++ == 0;
  *c = the_context;
  return ok;
}
result cuDevicePrimaryCtxRelease_v2(int d) {
  LOCKED;
  (void)d;
  if (!retained) return no_context;
  if (--retained) return ok;
  // The memory goes with the context.
  for (unsigned i = 0; i < sizeof allocations / sizeof *allocations; i++)
    while (allocations[i]) release(&allocations[i]);
  return ok;
}
result cuCtxSetCurrent(void *c) { context = c; return ok; }
result cuStreamCreate(void **s, unsigned flags) {
  LOCKED;
  if (context != the_context) return no_context;
  int i = 0;
  while (i < most_streams && streams[i]) i++;
  if (i == most_streams || flags != 1) return invalid; // it would wait for others
  *s = streams[i] = malloc(1);
  return ok;
}
result cuStreamDestroy_v2(void *p) {
  LOCKED;
  void **s = find_stream(p);
  if (!s) return invalid;
  *s = 0;
  free(p);
  return ok;
}
result cuStreamSynchronize(void *s) { LOCKED; return check_wait(s); }
result cuMemGetInfo_v2(size_t *free, size_t *total) {
  LOCKED;
  *total = control.memory;
  *free = control.memory > control.used ? control.memory - control.used : 0;
  return check();
}

result cuMemAlloc_v2(pointer *p, size_t n) {
  LOCKED;
  result r = check_not_capturing();
  if (r) return r;
  if (!n) return invalid;
  if (control.used + n > control.memory) return out_of_memory;
  size_t pages = (n + page - 1) / page * page;
  if (top + pages + page > size) return out_of_memory;
  char *at = shadow + top;
  if (mprotect(at, pages, PROT_READ | PROT_WRITE)) return out_of_memory;
  memset(at, 0xff, pages);
  allocation *a = calloc(1, sizeof *a);
  *a = (allocation){.at = (pointer)(uintptr_t)device + top + (pages - n) / 256 * 256, .bytes = n, .first = top, .last = top + pages};
  *find_allocation(a->at) = a;
  top += pages + page;
  control.used += n;
  control.count++;
  *p = a->at;
  return ok;
}
result cuMemFree_v2(pointer p) {
  LOCKED;
  result r = check_not_capturing();
  if (r) return r;
  allocation **s = find_allocation(p), *a = *s;
  if (!a) return invalid;
  // Nothing may be written between the end of the allocation and the end of its page.
  for (char *c = host(p) + a->bytes; c < shadow + a->last; c++)
    if (*c != (char)0xff) {
      fprintf(stderr, "fakecuda: a kernel wrote beyond the end of an allocation of %zu bytes\n", a->bytes);
      abort();
    }
  release(s);
  return ok;
}
static void release(allocation **s) {
  allocation *a = *s;
  madvise(shadow + a->first, a->last - a->first, MADV_REMOVE);
  mprotect(shadow + a->first, a->last - a->first, PROT_NONE);
  fakecuda_forget(a->first, a->last - a->first);
  control.used -= a->bytes;
  control.count--;
  *s = a->next;
  free(a);
}

// A task is an operation on a stream: done at once, or recorded during a capture.
typedef struct task {
  void (*run)(struct task *);
  struct task *next;
  struct kernel *kernel;
  unsigned grid, block, shared;
  uint64_t args[32];
  pointer to, from;
  size_t n;
  unsigned word;
  product product;
} task;

static void append(graph *g, const task *t) {
  task *copy = malloc(sizeof *copy);
  *copy = *t;
  copy->next = 0;
  *g->last = copy;
  g->last = &copy->next;
}
static void run_task(task *t) {
  if (!failed) t->run(t);
}

static result submit(task *t, void *on) {
  result r = check();
  if (r || !find_stream(on)) return r ? r : invalid;
  if (capturing && on == captured) {
    if (capture_failed) return broken;
    append(capturing, t);
    return ok;
  }
  run_task(t);
  return ok;
}

static void run_function(task *t) { ((void (*)(const uint64_t *))t->kernel)(t->args); }
result fakecuda_submit(void *on, void (*run)(const uint64_t *args), const uint64_t *args, int count) {
  LOCKED;
  task t = {.run = run_function, .kernel = (struct kernel *)(uintptr_t)run};
  memcpy(t.args, args, sizeof *args * (size_t)count);
  return submit(&t, on);
}
void *fakecuda_host(pointer p) { return host(p); }

static void run_copy(task *t) { memcpy(host(t->to), host(t->from), t->n); }
static void run_fill(task *t) {
  unsigned *to = (unsigned *)host(t->to);
  for (size_t i = 0; i < t->n; i++) to[i] = t->word;
}
result cuMemcpyHtoDAsync_v2(pointer d, const void *s, size_t n, void *stream) {
  LOCKED;
  result r = check_wait(stream);
  control.up++;
  if (!r) memcpy(host(d), s, n);
  return r;
}
result cuMemcpyDtoHAsync_v2(void *d, pointer s, size_t n, void *stream) {
  LOCKED;
  result r = check_wait(stream);
  control.down++;
  if (!r) memcpy(d, host(s), n);
  return r;
}
result cuMemcpyDtoDAsync_v2(pointer d, pointer s, size_t n, void *stream) {
  LOCKED;
  return submit(&(task){.run = run_copy, .to = d, .from = s, .n = n}, stream);
}
result cuMemsetD32Async(pointer d, unsigned v, size_t n, void *stream) {
  LOCKED;
  return submit(&(task){.run = run_fill, .to = d, .word = v, .n = n}, stream);
}

// Kernels.
typedef struct kernel {
  char name[64];
  void (*run)(uint64_t, ...);
  int sync, count; // parameters
  size_t dynamic;      // bytes of dynamic shared memory that it may have
  size_t fixed;        // bytes of its static shared arrays
  unsigned threads;    // of a block at most, as its PTX has it
  unsigned cluster;    // blocks of a cluster, 1 without clusters
} kernel;
enum { shared_unasked = 48 << 10, registers_of_block = 65536 };

// How many registers a thread of a kernel has: what ptxas says, if it was there (see
// build), or what a test has set.
static const struct { const char *name; unsigned registers; } assembled[] = {
#define REGISTERS(name, n) {#name, n},
#include "registers.h"
#undef REGISTERS
  {0, 0},
};
static struct { char name[64]; unsigned registers; } given;
void fakecuda_registers(const char *name, unsigned registers) {
  LOCKED;
  snprintf(given.name, sizeof given.name, "%s", name);
  given.registers = registers;
}
static unsigned registers_of(const kernel *k) {
  if (!strcmp(given.name, k->name)) return given.registers;
  for (unsigned i = 0; assembled[i].name; i++)
    if (!strcmp(assembled[i].name, k->name)) return assembled[i].registers;
  return 0;
}
// fits reports whether a block gets its registers: each warp takes them for 32 threads,
// in units of 8.
static int fits(const kernel *k, unsigned block) {
  return (registers_of(k) + 7) / 8 * 8 * ((block + 31) / 32 * 32) <= registers_of_block;
}

// shared_of returns the size in bytes of the static shared arrays that a kernel refers
// to: its own and the module's. entry is where the kernel begins in the module.
static size_t shared_of(const char *module, const char *entry) {
  const char *end = strstr(entry, "\n}"), word[] = ".shared .align ";
  size_t bytes = 0;
  for (const char *q = module; (q = strstr(q, word)); q++) {
    if (q[-1] == ' ') continue; // .extern, which is dynamic
    char name[200];
    size_t n = 1;
    const char *type = strchr(q + strlen(word), ' ');
    int bits;
    if (!type || sscanf(type, " .%*c%d %199[^][;][%zu]", &bits, name, &n) < 2) continue;
    const char *used = q[-1] == '\n' ? strstr(entry, name) : q;
    if (used && used > entry && (!end || used < end)) bytes = (bytes + 15) / 16 * 16 + n * (size_t)bits / 8;
  }
  return bytes;
}

result cuModuleLoadData(void **m, const void *image) {
  LOCKED;
  result r = check_not_capturing();
  if (r) return r;
  if (!strstr(image, ".version")) return invalid_image;
  *m = strdup(image);
  return ok;
}
result cuModuleUnload(void *m) { free(m); return ok; }
result cuModuleGetFunction(void **f, void *m, const char *name) {
  char text[256];
  snprintf(text, sizeof text, ".entry %s(", name);
  const char *entry = strstr(m, text), *end = entry ? strchr(entry + strlen(text), ')') : 0;
  if (!end) return not_found;
  kernel *k = calloc(1, sizeof *k);
  snprintf(k->name, sizeof k->name, "%s", name);
  snprintf(text, sizeof text, "cne_kernel_%s", name);
  void *run = dlsym(RTLD_DEFAULT, text);
  if (!run) {
    snprintf(text, sizeof text, "cne_sync_%s", name);
    run = dlsym(RTLD_DEFAULT, text);
    k->sync = 1;
  }
  if (!run) return not_found;
  k->run = (void (*)(uint64_t, ...))run;
  for (const char *q = entry; (q = strstr(q, ".param .")) && q < end; q++) k->count++;
  k->fixed = shared_of(m, entry);
  const char *most_threads = strstr(end, ".maxntid "), *begins = strchr(end, '{');
  k->threads = most_threads && most_threads < begins ? (unsigned)atoi(most_threads + strlen(".maxntid ")) : 1024;
  const char *of_cluster = strstr(end, ".reqnctapercluster ");
  k->cluster = of_cluster && of_cluster < begins ? (unsigned)atoi(of_cluster + strlen(".reqnctapercluster ")) : 1;
  k->dynamic = k->fixed < shared_unasked ? shared_unasked - k->fixed : 0;
  *f = k;
  return ok;
}
result cuFuncSetAttribute(void *f, int attribute, int value) {
  kernel *k = f;
  if (attribute != 8) return invalid;
  if (value < 0 || (size_t)value + k->fixed > shared_of_block) return invalid;
  k->dynamic = (size_t)value;
  return ok;
}

_Alignas(16) uint64_t cne_dynamic[shared_of_block / 8];
int cne_thread, cne_threads, cne_block, cne_blocks;
extern char __start_cne_shared[], __stop_cne_shared[]; // the arrays of all kernels

// A fiber is a thread of a kernel with barriers.
enum { most = 1024, stack_size = 64 << 10 };
typedef struct { long number; int arrived; } meeting_point;
typedef struct {
  void *stack_pointer;
  char *stack;
  int done;
  const meeting_point *waits; // for the block's barrier, or for something of the warp's, to
  long number;          // have another number than this
  struct copy { uint32_t *to; const uint32_t *from; int words; } *copies;
  int pending, room; // the copies that have not landed, and the room for them
} fiber;
// The blocks of a cluster; without clusters there is one. here is the block that runs: its
// shared memory is where kernels look for it. The others' shared memory is in aside.
static struct block {
  fiber fibers[most];
  meeting_point barrier, warp_barrier[most / 32];
  long warp_barriers[most / 32]; // how many there were
  uint32_t exchanged[2][most];
} members[most_of_cluster], *here = members;
static meeting_point cluster_barrier;
static char *aside;
static int current;
static void *scheduler;
static task *running;

// fakecuda_switch saves the callee-saved registers on the stack, and continues on
// another stack.
void fakecuda_switch(void **save, void *to);
#if defined(__x86_64__)
__asm__(".text\n.globl fakecuda_switch\n.type fakecuda_switch,@function\nfakecuda_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
#else
#error "the stand-in can switch stacks only on x86-64"
#endif

static void die(const char *why) {
  fprintf(stderr, "fakecuda: kernel %s: %s\n", running->kernel->name, why);
  abort();
}
// cne_copy records an asynchronous copy. cne_copied returns the next one to be made,
// with its number of words, or 0 after the last.
void cne_copy(uint32_t *to, const uint32_t *from, int bytes) {
  fiber *f = &here->fibers[cne_thread];
  if (((uintptr_t)to | (uintptr_t)from) % (unsigned)bytes) die("what is copied to shared memory does not begin at a multiple of its size");
  if (f->pending == f->room) f->copies = realloc(f->copies, sizeof *f->copies * (size_t)(f->room = 2 * f->room + 8));
  f->copies[f->pending++] = (struct copy){to, from, bytes / 4};
}
int cne_copied(uint32_t **to, const uint32_t **from) {
  fiber *f = &here->fibers[cne_thread];
  if (!f->pending) return 0;
  const struct copy *c = &f->copies[--f->pending];
  *to = c->to;
  *from = c->from;
  return c->words;
}
// run_thread runs one thread.
static void run_thread(task *t) {
  uint64_t *v = t->args;
  t->kernel->run(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15],
                 v[16], v[17], v[18], v[19], v[20], v[21], v[22], v[23]);
  if (here->fibers[cne_thread].pending) die("a thread ends before what it copies to shared memory has landed");
}
static void fiber_main(void) {
  run_thread(running);
  here->fibers[current].done = 1;
  fakecuda_switch(&here->fibers[current].stack_pointer, scheduler);
  abort();
}
// arrive waits until the given number of threads have arrived, and reports whether this
// is the last.
static int arrive(meeting_point *m, int threads) {
  if (++m->arrived == threads) {
    m->arrived = 0;
    m->number++;
    return 1;
  }
  fiber *f = &here->fibers[current];
  f->waits = m;
  f->number = m->number;
  fakecuda_switch(&f->stack_pointer, scheduler);
  return 0;
}
static int waits_for_others(const fiber *f) { return f->waits && f->waits->number == f->number; }
void cne_barrier(void) { arrive(&here->barrier, cne_threads); }
uint32_t cne_exchange(uint32_t v, int mask) {
  int warp = current / 32, own = current;
  if (cne_threads % 32) die("threads of a block that is no multiple of 32 exchange values");
  long mine = here->warp_barrier[warp].number;
  // Two buffers in turn: the next exchange may begin while others still read this one.
  here->exchanged[mine & 1][own] = v;
  arrive(&here->warp_barrier[warp], 32);
  return here->exchanged[mine & 1][own ^ mask];
}
// cne_matching returns which lanes of the warp have the same value.
uint32_t cne_matching(uint32_t v) {
  int warp = current / 32, own = current;
  if (cne_threads % 32) die("threads of a block that is no multiple of 32 compare values");
  const uint32_t *lanes = &here->exchanged[here->warp_barrier[warp].number & 1][warp * 32];
  here->exchanged[here->warp_barrier[warp].number & 1][own] = v;
  arrive(&here->warp_barrier[warp], 32);
  uint32_t same = 0;
  for (int i = 0; i < 32; i++) same |= (uint32_t)(lanes[i] == v) << i;
  return same;
}
void cne_warp_barrier(void) {
  if (cne_threads % 32) die("threads of a block that is no multiple of 32 wait for their warp");
  int warp = current / 32;
  here->warp_barriers[warp] += arrive(&here->warp_barrier[warp], 32);
}
// run_fibers runs the threads of a part of the block that do not wait, once each, and
// returns their number.
static int run_fibers(int first, int count) {
  unsigned order[most];
  int ran = 0;
  permute(order, (unsigned)count);
  for (int i = 0; i < count; i++) {
    fiber *f = &here->fibers[first + (int)order[i]];
    if (f->done || waits_for_others(f)) continue;
    f->waits = 0;
    current = cne_thread = first + (int)order[i];
    fakecuda_switch(&scheduler, f->stack_pointer);
    ran++;
  }
  return ran;
}
// arrays_bytes is the size of the static shared arrays of all kernels.
static size_t arrays_bytes(void) { return (size_t)(__stop_cne_shared - __start_cne_shared); }
// aside_of returns where the shared memory of a block of the cluster lies while another
// one runs: its dynamic memory, then its arrays.
static size_t aside_bytes(void) { return shared_of_block + (arrays_bytes() + 15) / 16 * 16; }
static char *aside_of(int rank) { return aside + (size_t)rank * aside_bytes(); }
// turn lets another block of the cluster run.
static void turn(int rank) {
  int was = (int)(here - members);
  if (rank != was) {
    memcpy(aside_of(was), cne_dynamic, running->shared);
    memcpy(aside_of(was) + shared_of_block, __start_cne_shared, arrays_bytes());
    memcpy(cne_dynamic, aside_of(rank), running->shared);
    memcpy(__start_cne_shared, aside_of(rank) + shared_of_block, arrays_bytes());
  }
  here = &members[rank];
  cne_block += rank - was;
  fakecuda_current.barrier = &here->barrier.number;
  fakecuda_current.warp_barriers = here->warp_barriers;
}
int cne_rank(void) { return (int)(here - members); }
void cne_cluster_barrier(void) { arrive(&cluster_barrier, cne_threads * (int)running->kernel->cluster); }
// cne_shared_of returns where the process finds, in the shared memory of a block of the
// cluster, what the running block has at p.
uint32_t *cne_shared_of(const uint32_t *p, int rank) {
  const char *at = (const char *)p;
  if (rank < 0 || rank >= (int)running->kernel->cluster) die("it looks for a block that its cluster does not have");
  if (!cluster_barrier.number) die("it touches another block's shared memory before a barrier of the cluster: that block may not have begun");
  int there = 0;
  for (int i = 0; i < cne_threads && !there; i++) there = !members[rank].fibers[i].done;
  if (!there) die("it touches the shared memory of a block that has ended");
  if (&members[rank] == here) return (uint32_t *)(uintptr_t)p;
  if (at >= __start_cne_shared && at < __stop_cne_shared) return (uint32_t *)(void *)(aside_of(rank) + shared_of_block + (at - __start_cne_shared));
  if (at >= (char *)cne_dynamic && at < (char *)cne_dynamic + running->shared) return (uint32_t *)(void *)(aside_of(rank) + (at - (char *)cne_dynamic));
  die("it looks for another block's shared memory at an address that has none");
  abort();
}
static void begin_block(void) {
  if (running->shared) memset(cne_dynamic, 0xff, running->shared);
  if (running->kernel->fixed) memset(__start_cne_shared, 0xff, arrays_bytes());
  here->barrier.arrived = 0;
  memset(here->warp_barrier, 0, sizeof here->warp_barrier);
  for (int i = 0; i < cne_threads; i++) {
    fiber *f = &here->fibers[i];
    if (!f->stack) f->stack = malloc(stack_size);
    f->done = 0;
    f->waits = 0;
    uint64_t *top_of = (uint64_t *)((uintptr_t)(f->stack + stack_size) & ~15ul);
    *--top_of = 0; // so that the stack is aligned as after a call
    *--top_of = (uint64_t)(uintptr_t)fiber_main;
    top_of -= 6;
    memset(top_of, 0, 48);
    f->stack_pointer = top_of;
  }
}
// run_warps runs the threads of the block that do not wait, and returns their number.
static int run_warps(void) {
  if (!control.order) return run_fibers(0, cne_threads);
  int warps = (cne_threads + 31) / 32, ran = 0;
  unsigned order[most / 32];
  permute(order, (unsigned)warps);
  for (int w = 0; w < warps; w++) {
    int first = (int)order[w] * 32, count = cne_threads - first < 32 ? cne_threads - first : 32, now;
    do ran += now = run_fibers(first, count);
    while (now && (control.order == 1 || draw(8)));
  }
  return ran;
}
// run_blocks runs the blocks of a cluster, or one block, from number first on.
static void run_blocks(int first) {
  int cluster = (int)running->kernel->cluster;
  if (cluster > 1 && !aside) aside = malloc(most_of_cluster * aside_bytes());
  fakecuda_current.aside = aside;
  fakecuda_current.aside_bytes = aside_bytes();
  here = members;
  cne_block = first;
  cluster_barrier = (meeting_point){0, 0};
  for (int r = 0; r < cluster; r++) {
    turn(r);
    begin_block();
  }
  for (int ran = 1; ran;) {
    unsigned order[most_of_cluster];
    permute(order, (unsigned)cluster);
    ran = 0;
    for (int r = 0; r < cluster; r++) {
      int now;
      turn((int)order[r]);
      do ran += now = run_warps();
      while (now && (control.order < 2 || draw(8)));
    }
  }
  for (int r = 0; r < cluster; r++)
    for (int i = 0; i < cne_threads; i++)
      if (!members[r].fibers[i].done) die("the threads of a block wait for each other for ever");
}
static void run_kernel(task *t) {
  if (control.fails_after >= 0 && control.ran >= control.fails_after) {
    failed = control.fails_with;
    if (!hardware) known = failed;
    return;
  }
  control.ran++;
  running = t;
  cne_threads = (int)t->block;
  cne_blocks = (int)t->grid;
  static uint32_t launches;
  fakecuda_current = (struct fakecuda_current){t->kernel->name, ++launches, shadow, size, &cne_block, &cne_thread,
      &here->barrier.number, here->warp_barriers, &cluster_barrier.number, (int)t->kernel->cluster, 0, 0};
  unsigned clusters = t->grid / t->kernel->cluster, *order = malloc(sizeof *order * clusters), threads[most];
  permute(order, clusters);
  for (unsigned c = 0; c < clusters; c++) {
    cne_block = (int)order[c];
    if (t->kernel->sync) {
      run_blocks((int)(order[c] * t->kernel->cluster));
      continue;
    }
    permute(threads, t->block);
    for (unsigned i = 0; i < t->block; i++) {
      cne_thread = (int)threads[i];
      run_thread(t);
    }
  }
  free(order);
  fakecuda_current.kernel = 0;
}

static result launch(kernel *k, unsigned grid, unsigned block, unsigned shared, void *on, void **params) {
  LOCKED;
  result r = check();
  if (r) return r;
  if (!grid || !block || block > k->threads || grid > 0x7fffffff) return invalid;
  if (k->cluster > 1 && (!env_int("FAKECUDA_CLUSTERS", 1) || k->cluster > most_of_cluster || grid % k->cluster)) return invalid_cluster;
  if (!fits(k, block)) return out_of_resources;
  if (shared > k->dynamic) return invalid;
  task t = {.run = run_kernel, .kernel = k, .grid = grid, .block = block, .shared = shared};
  for (int i = 0; i < k->count; i++) {
    uint64_t v = *(uint64_t *)params[i];
    t.args[i] = (uint64_t)(uintptr_t)host(v);
  }
  control.launches += !capturing;
  return submit(&t, on);
}
result cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
  (void)extra;
  if (gy * gz * by * bz != 1) return invalid;
  return launch(f, gx, bx, shared, stream, params);
}
// Graphs.
result cuStreamBeginCapture_v2(void *on, int mode) {
  LOCKED;
  result r = check();
  if (r || capturing || !find_stream(on) || mode != 1) return r ? r : invalid; // of the thread
  captured = on;
  capturing = calloc(1, sizeof *capturing);
  capturing->last = &capturing->first;
  capturer = pthread_self();
  capture_failed = 0;
  return ok;
}
result cuGraphExecDestroy(void *e);
result cuStreamEndCapture(void *on, void **g) {
  LOCKED;
  *g = 0;
  if (!capturing || on != captured) return not_capturing;
  if (!pthread_equal(capturer, pthread_self())) return wrong_thread;
  graph *done = capturing;
  capturing = 0;
  result r = known ? known : capture_failed ? broken : ok;
  if (r) cuGraphExecDestroy(done);
  else *g = done;
  return r;
}
result cuGraphInstantiateWithFlags(void **e, void *g, unsigned long long flags) { (void)flags; *e = g; return ok; }
result cuGraphLaunch(void *e, void *on) {
  LOCKED;
  result r = check();
  if (r || capturing || !find_stream(on)) return r ? r : invalid;
  for (task *t = ((graph *)e)->first; t; t = t->next) run_task(t);
  return ok;
}
result cuGraphExecDestroy(void *e) {
  graph *g = e;
  for (task *t = g->first, *next; t; t = next) {
    next = t->next;
    free(t);
  }
  free(g);
  return ok;
}
result cuGraphDestroy(void *g) { (void)g; return ok; } // the executable graph is the graph itself

// cuBLAS: column-major, as it is there.
static float at(const float *x, int trans, int ld, int i, int j) { return trans ? x[(size_t)i * (size_t)ld + (size_t)j] : x[(size_t)j * (size_t)ld + (size_t)i]; }
static void multiply(const product *p, const float *a, const float *b, float *c) {
  if (hardware) {
    fakecuda_multiply(p, a, b, c);
    return;
  }
  float *column = malloc(sizeof *column * (size_t)(p->m ? p->m : 1));
  for (int j = 0; j < p->n; j++) {
    memset(column, 0, sizeof *column * (size_t)p->m);
    for (int l = 0; l < p->k; l++) {
      float v = at(b, p->trans_b, p->ldb, l, j);
      if (p->trans_a) {
        for (int i = 0; i < p->m; i++) column[i] += a[(size_t)i * (size_t)p->lda + (size_t)l] * v;
      } else {
        const float *x = a + (size_t)l * (size_t)p->lda;
        for (int i = 0; i < p->m; i++) column[i] += x[i] * v;
      }
    }
    float *to = c + (size_t)j * (size_t)p->ldc;
    for (int i = 0; i < p->m; i++) to[i] = p->alpha * column[i] + (p->beta == 0 ? 0 : p->beta * to[i]);
  }
  free(column);
}
// widened returns a copy of a matrix of bfloat16 as floats.
static float *widened(const uint16_t *x, int rows, int columns, int ld) {
  float *to = calloc((size_t)ld * (size_t)columns + 1, sizeof *to);
  for (size_t j = 0; j < (size_t)columns; j++)
    for (size_t i = 0; i < (size_t)rows; i++) to[j * (size_t)ld + i] = cne_wide(x[j * (size_t)ld + i]);
  return to;
}
static void multiply_bfloat16(const product *p, const uint16_t *a, const uint16_t *b, void *c) {
  float *x = widened(a, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->lda);
  float *y = widened(b, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->ldb);
  if (p->round_c) {
    uint16_t *to = c;
    float *sums = widened(to, p->m, p->n, p->ldc);
    multiply(p, x, y, sums);
    for (size_t j = 0; j < (size_t)p->n; j++)
      for (size_t i = 0; i < (size_t)p->m; i++) to[j * (size_t)p->ldc + i] = cne_bfloat16(sums[j * (size_t)p->ldc + i]);
    free(sums);
  } else {
    multiply(p, x, y, c);
  }
  free(y);
  free(x);
}
static void run_product(task *t) {
  const product *p = &t->product;
  const float *a = (const float *)host(t->from), *b = (const float *)host(t->to);
  float *c = (float *)host((pointer)t->args[0]);
  if (p->bfloat16) {
    multiply_bfloat16(p, (const uint16_t *)host(t->from), (const uint16_t *)host(t->to), (void *)c);
    return;
  }
  multiply(p, a, b, c);
}
typedef struct {
  void *stream, *workspace;
  int math;
} blas;
enum { tf32_math = 3, float_sums = 16 }; // else 0
result cublasCreate_v2(void **h) {
  result status = env_int("FAKECUDA_CUBLAS_STATUS", ok);
  if (status) return status;
  return context == the_context && (*h = calloc(1, sizeof(blas))) ? 0 : 1;
}
result cublasDestroy_v2(void *h) { free(h); return 0; }
result cublasSetStream_v2(void *h, void *s) {
  blas *b = h;
  b->stream = s;
  b->workspace = 0;
  return 0;
}
result cublasSetMathMode(void *h, int mode) {
  ((blas *)h)->math = mode;
  return mode == 0 || mode == tf32_math || mode == float_sums ? 0 : 7;
}
result cublasSetWorkspace_v2(void *h, void *p, size_t n) { ((blas *)h)->workspace = n ? p : 0; return 0; }
result cublasGetVersion_v2(void *h, int *v) { (void)h; *v = 130000; return 0; }
result cublasSgemm_v2(void *h, int ta, int tb, int m, int n, int k, const float *alpha, pointer a, int lda, pointer b, int ldb, const float *beta, pointer c, int ldc) {
  LOCKED;
  blas *with = h;
  if (!with->workspace) return 14; // it would allocate one of its own
  if (m < 0 || n < 0 || k < 0 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || lda < 1 || ldb < 1 || ldc < 1) return 7;
  task t = {.run = run_product, .from = a, .to = b};
  t.product = (product){ta, tb, m, n, k, lda, ldb, ldc, with->math == tf32_math, *alpha, *beta, 0, 0};
  t.args[0] = c;
  return submit(&t, with->stream) ? 13 : 0;
}
result cublasGemmEx(void *h, int ta, int tb, int m, int n, int k, const float *alpha, pointer a, int type_a, int lda, pointer b, int type_b, int ldb, const float *beta, pointer c, int type_c, int ldc,
                    int compute, int algorithm) {
  LOCKED;
  enum { r_32f = 0, r_16bf = 14, compute_32f = 68 };
  blas *with = h;
  if (!with->workspace || with->math != float_sums) return 14; // the latter would let sums be rounded
  if (m < 0 || n < 0 || k < 0 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || lda < 1 || ldb < 1 || ldc < 1) return 7;
  if (type_a != r_16bf || type_b != r_16bf || (type_c != r_16bf && type_c != r_32f) || compute != compute_32f || algorithm != -1) return 15; // not supported
  task t = {.run = run_product, .from = a, .to = b};
  t.product = (product){ta, tb, m, n, k, lda, ldb, ldc, 0, *alpha, *beta, 1, type_c == r_16bf};
  t.args[0] = c;
  return submit(&t, with->stream) ? 13 : 0;
}
