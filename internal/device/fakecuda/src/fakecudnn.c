// A stand-in for cuDNN: convolutions by their definition, only of images and filters of
// float32 or bfloat16 in NHWC. Arguments are checked as cuDNN checks them, and
// some things are as awkward as they can be: the fastest algorithm is not deterministic
// (and computes nothing), the second does not support five output channels, all need a
// workspace, which they overwrite, and none supports filters with two columns. A handle
// allocates memory on the device.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda.h"

enum { fma_math = 3 }; // the others allow TF32
enum { single = 0, bfloat16 = 9 }; // types of numbers
enum { success = 0, bad_param = 2000, not_supported = 3000, no_device_memory = 4004, execution_failed = 5000 };

size_t cudnnGetVersion(void) { return 90501; }
typedef struct { pointer memory; void *stream; } handle;
result cudnnCreate(void **h) {
  const char *status = getenv("FAKECUDNN_STATUS");
  if (status && *status) return atoi(status);
  handle *made = calloc(1, sizeof *made);
  result r = cuMemAlloc_v2(&made->memory, 1 << 20);
  if (r) {
    free(made);
    return r == 2 ? no_device_memory : execution_failed;
  }
  *h = made;
  return success;
}
result cudnnDestroy(void *h) {
  handle *of = h;
  result r = of ? cuMemFree_v2(of->memory) : bad_param;
  free(of);
  return r ? bad_param : success;
}
result cudnnSetStream(void *h, void *s) {
  if (!h || !s) return bad_param;
  ((handle *)h)->stream = s;
  return success;
}

// A descriptor is of a tensor [n, c, h, w], of a filter, with k for n, or of a
// convolution.
typedef struct {
  enum { tensor = 0x7e, filter = 0xf1, convolution = 0xc0 } kind;
  int set, type;
  int n, c, h, w;
  int pad, stride, math;
} descriptor;
static result create(void **to, int kind) {
  descriptor *d = calloc(1, sizeof *d);
  d->kind = kind;
  *to = d;
  return success;
}
static result destroy(descriptor *d, int kind) {
  if (!d || (int)d->kind != kind) return bad_param;
  d->kind = 0;
  free(d);
  return success;
}
result cudnnCreateTensorDescriptor(void **d) { return create(d, tensor); }
result cudnnDestroyTensorDescriptor(void *d) { return destroy(d, tensor); }
result cudnnCreateFilterDescriptor(void **d) { return create(d, filter); }
result cudnnDestroyFilterDescriptor(void *d) { return destroy(d, filter); }
result cudnnCreateConvolutionDescriptor(void **d) { return create(d, convolution); }
result cudnnDestroyConvolutionDescriptor(void *d) { return destroy(d, convolution); }

static result set(descriptor *d, int kind, int format, int type, int n, int c, int h, int w) {
  if (!d || (int)d->kind != kind || n < 1 || c < 1 || h < 1 || w < 1) return bad_param;
  if (format != 1 || (type != single && type != bfloat16)) return not_supported;
  d->set = 1;
  d->type = type;
  d->n = n, d->c = c, d->h = h, d->w = w;
  return success;
}
result cudnnSetTensor4dDescriptor(void *d, int format, int type, int n, int c, int h, int w) { return set(d, tensor, format, type, n, c, h, w); }
result cudnnSetFilter4dDescriptor(void *d, int type, int format, int k, int c, int h, int w) { return set(d, filter, format, type, k, c, h, w); }
result cudnnSetConvolution2dDescriptor(void *v, int pad_h, int pad_w, int u, int w, int dilation_h, int dilation_w, int mode, int type) {
  descriptor *d = v;
  if (!d || d->kind != convolution || pad_h < 0 || u < 1) return bad_param;
  if (pad_h != pad_w || u != w || dilation_h != 1 || dilation_w != 1 || mode != 1 || type != 0) return not_supported;
  d->set = 1;
  d->pad = pad_h, d->stride = u;
  return success;
}
result cudnnSetConvolutionMathType(void *v, int math) {
  descriptor *d = v;
  if (!d || d->kind != convolution || math < 0 || math > 3) return bad_param;
  d->math = math;
  return success;
}

// fits reports whether the descriptors belong to one convolution.
static int fits(const descriptor *x, const descriptor *w, const descriptor *y, const descriptor *c) {
  return x && w && y && c && x->kind == tensor && w->kind == filter && y->kind == tensor && c->kind == convolution && x->set && w->set && y->set && c->set &&
         x->type == w->type && x->type == y->type && x->c == w->c && y->c == w->n && x->n == y->n && x->h + 2 * c->pad >= w->h && x->w + 2 * c->pad >= w->w &&
         y->h == (x->h + 2 * c->pad - w->h) / c->stride + 1 && y->w == (x->w + 2 * c->pad - w->w) / c->stride + 1;
}

typedef struct {
  int algorithm;
  result status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
} performance;
_Static_assert(sizeof(performance) == 48 && offsetof(performance, memory) == 16 && offsetof(performance, math) == 28, "laid out as in cuDNN's headers");

enum { space = 1000 };
static result find(const descriptor *x, const descriptor *w, const descriptor *y, const descriptor *c, int requested, int *returned, performance *p) {
  if (!fits(x, w, y, c) || requested < 1) return bad_param;
  const performance all[] = {
      {0, success, -1, space, 0, c->math, {0}},
      {1, success, -1, 2 * space, 1, c->math, {0}},
      {2, not_supported, -1, 0, 1, c->math, {0}},
      {3, success, -1, space, 1, c->math, {0}},
  };
  for (*returned = 0; *returned < requested && *returned < 4; ++*returned) {
    p[*returned] = all[*returned];
    if (w->w == 2) p[*returned].status = not_supported;
  }
  return success;
}
result cudnnGetConvolutionForwardAlgorithm_v7(void *h, void *x, void *w, void *c, void *y, int n, int *returned, performance *p) {
  return h ? find(x, w, y, c, n, returned, p) : bad_param;
}
result cudnnGetConvolutionBackwardDataAlgorithm_v7(void *h, void *w, void *dy, void *c, void *dx, int n, int *returned, performance *p) {
  return h ? find(dx, w, dy, c, n, returned, p) : bad_param;
}
result cudnnGetConvolutionBackwardFilterAlgorithm_v7(void *h, void *x, void *dy, void *c, void *dw, int n, int *returned, performance *p) {
  return h ? find(x, dw, dy, c, n, returned, p) : bad_param;
}

// A job computes a part of a convolution: images (0), weights (1) or result (2).
typedef struct { uint64_t part, x, w, y, workspace, n, h, wide, c, k, kh, kw, oh, ow, stride, pad, tf32, bfloat16; } job;
// widened returns a copy, to be freed, of n numbers of bfloat16 as floats, or with room
// for as many.
static float *widened(const void *halves, uint64_t n, int copied) {
  float *to = calloc(n + 1, sizeof *to);
  for (uint64_t i = 0; copied && i < n; i++) to[i] = cne_wide(((const uint16_t *)halves)[i]);
  return to;
}
static void run(const uint64_t *args) {
  job j;
  memcpy(&j, args, sizeof j);
  const uint64_t images = j.n * j.h * j.wide * j.c, filters = j.k * j.kh * j.kw * j.c, results = j.n * j.oh * j.ow * j.k;
  float *x = fakecuda_host(j.x), *w = fakecuda_host(j.w), *y = fakecuda_host(j.y), *rounded[2] = {0}, *wide[3] = {0};
  if (j.bfloat16) {
    x = wide[0] = widened(x, images, j.part != 0);
    w = wide[1] = widened(w, filters, j.part != 1);
    y = wide[2] = widened(y, results, j.part != 2);
  }
  float *to = j.part == 0 ? x : w;
  memset(fakecuda_host(j.workspace), 0xff, space);
  if (j.part < 2) memset(to, 0, sizeof *to * (j.part ? filters : images));
  if (hardware) {
    if (j.part != 0) x = rounded[0] = fakecuda_operand(x, images, (int)j.tf32);
    if (j.part != 1) w = rounded[1] = fakecuda_operand(w, filters, (int)j.tf32);
    if (j.part != 2) y = rounded[j.part] = fakecuda_operand(y, results, (int)j.tf32);
  }
  // A GPU sums in another order: here backwards, and each tap of a window on its own.
  for (uint64_t forwards = 0; forwards < results; forwards++) {
    uint64_t place = hardware ? results - 1 - forwards : forwards, i = place / j.k, k = place % j.k;
    float sum = 0, *at = y + place;
    for (uint64_t tap = 0; tap < j.kh * j.kw; tap++) {
      uint64_t py = i / j.ow % j.oh * j.stride + tap / j.kw - j.pad, px = i % j.ow * j.stride + tap % j.kw - j.pad;
      if (py >= j.h || px >= j.wide) continue;
      float *pixel = x + ((i / j.ow / j.oh * j.h + py) * j.wide + px) * j.c, *weights = w + (k * j.kh * j.kw + tap) * j.c, of_tap = 0;
      for (uint64_t c = 0; c < j.c; c++) switch (j.part) {
        case 0: pixel[c] += *at * weights[c]; break;
        case 1: weights[c] += *at * pixel[c]; break;
        default:
          if (hardware) of_tap += pixel[c] * weights[c];
          else sum += pixel[c] * weights[c];
        }
      if (hardware) sum += of_tap;
    }
    if (j.part == 2) *at = sum;
  }
  free(rounded[0]);
  free(rounded[1]);
  if (!j.bfloat16) return;
  const uint64_t sizes[] = {images, filters, results}, places[] = {j.x, j.w, j.y};
  uint16_t *halves = fakecuda_host(places[j.part]);
  for (uint64_t i = 0; i < sizes[j.part]; i++) halves[i] = cne_bfloat16(wide[j.part][i]);
  for (int k = 0; k < 3; k++) free(wide[k]);
}
static result convolve(int part, void *h, const float *alpha, const descriptor *x, pointer ax, const descriptor *w, pointer aw, const descriptor *y, pointer ay, const descriptor *c,
                       int algorithm, pointer workspace, size_t bytes, const float *beta) {
  if (!h || !fits(x, w, y, c) || *alpha != 1 || *beta != 0 || !ax || !aw || !ay || !workspace) return bad_param;
  if (algorithm == 0) return success;
  if ((algorithm != 1 && algorithm != 3) || (algorithm == 1 && w->n == 5) || w->w == 2) return not_supported;
  if (bytes < (algorithm == 1 ? 2 * space : space)) return bad_param;
  job j = {(uint64_t)part, ax, aw, ay, workspace, (uint64_t)x->n, (uint64_t)x->h, (uint64_t)x->w, (uint64_t)x->c, (uint64_t)w->n,
           (uint64_t)w->h, (uint64_t)w->w, (uint64_t)y->h, (uint64_t)y->w, (uint64_t)c->stride, (uint64_t)c->pad, x->type == single && c->math != fma_math,
           x->type == bfloat16};
  return fakecuda_submit(((handle *)h)->stream, run, (const uint64_t *)&j, sizeof j / sizeof(uint64_t)) ? execution_failed : success;
}
result cudnnConvolutionForward(void *h, const void *alpha, void *xd, pointer x, void *wd, pointer w, void *c, int algorithm, pointer workspace, size_t bytes, const void *beta, void *yd, pointer y) {
  return convolve(2, h, alpha, xd, x, wd, w, yd, y, c, algorithm, workspace, bytes, beta);
}
result cudnnConvolutionBackwardData(void *h, const void *alpha, void *wd, pointer w, void *yd, pointer y, void *c, int algorithm, pointer workspace, size_t bytes, const void *beta, void *xd, pointer x) {
  return convolve(0, h, alpha, xd, x, wd, w, yd, y, c, algorithm, workspace, bytes, beta);
}
result cudnnConvolutionBackwardFilter(void *h, const void *alpha, void *xd, pointer x, void *yd, pointer y, void *c, int algorithm, pointer workspace, size_t bytes, const void *beta, void *wd, pointer w) {
  return convolve(1, h, alpha, xd, x, wd, w, yd, y, c, algorithm, workspace, bytes, beta);
}
