//go:build cu

#define _GNU_SOURCE
#include "dnn.h"

#include <dlfcn.h>
#include <link.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

// What is used of cuDNN's headers. Versions 8 and 9 differ only in the numbers of
// statuses; only success is checked.
typedef int status;
enum { format_nhwc = 1, data_float = 0, data_bfloat16 = 9, cross_correlation = 1, deterministic = 1 };
enum { default_math = 0, tensor_math = 1, fma_math = 3 }; // the first allows TF32
// cuDNN's three performance types have this layout.
typedef struct {
  int algorithm;
  status status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
} performance;

struct dnn {
  void *handle;
  status (*create)(void **handle);
  status (*destroy)(void *handle);
  status (*set_stream)(void *handle, void *stream);
  size_t (*version)(void);
  status (*create_tensor)(void **descriptor);
  status (*destroy_tensor)(void *descriptor);
  status (*set_tensor)(void *descriptor, int format, int type, int n, int c, int h, int w);
  status (*create_filter)(void **descriptor);
  status (*destroy_filter)(void *descriptor);
  status (*set_filter)(void *descriptor, int type, int format, int k, int c, int h, int w);
  status (*create_convolution)(void **descriptor);
  status (*destroy_convolution)(void *descriptor);
  status (*set_convolution)(void *descriptor, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int mode, int type);
  status (*set_math)(void *descriptor, int math);
  status (*find_forward)(void *handle, void *x, void *w, void *convolution, void *y, int requested, int *returned, performance *p);
  status (*find_backward_data)(void *handle, void *w, void *dy, void *convolution, void *dx, int requested, int *returned, performance *p);
  status (*find_backward_filter)(void *handle, void *x, void *dy, void *convolution, void *dw, int requested, int *returned, performance *p);
  status (*forward)(void *handle, const void *alpha, void *x_of, const void *x, void *w_of, const void *w, void *convolution, int algorithm,
                    void *workspace, size_t bytes, const void *beta, void *y_of, void *y);
  status (*backward_data)(void *handle, const void *alpha, void *w_of, const void *w, void *dy_of, const void *dy, void *convolution, int algorithm,
                          void *workspace, size_t bytes, const void *beta, void *dx_of, void *dx);
  status (*backward_filter)(void *handle, const void *alpha, void *x_of, const void *x, void *dy_of, const void *dy, void *convolution, int algorithm,
                            void *workspace, size_t bytes, const void *beta, void *dw_of, void *dw);
};

// name_of returns a library's soname, or 0.
static const char *name_of(const struct link_map *library) {
  const char *strings = 0;
  const ElfW(Dyn) *name = 0;
  for (const ElfW(Dyn) *d = library->l_ld; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_STRTAB) strings = (const char *)d->d_un.d_ptr;
    if (d->d_tag == DT_SONAME) name = d;
  }
  return strings && name ? strings + name->d_un.d_val : 0;
}

// open_parts opens the parts of cuDNN 9 that convolutions need. cuDNN's functions,
// perhaps even cudnnGetVersion, open these parts when they are called, and abort the
// process if one is missing. (What the parts open themselves is optional.) A library
// in one piece has another soname. The parts stay open for the library.
static int open_parts(void *function, char *why, size_t size) {
  static const char *const parts[] = {"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9"};
  Dl_info info;
  struct link_map *library;
  if (!dladdr1(function, &info, (void **)&library, RTLD_DL_LINKMAP)) return 1;
  const char *name = name_of(library), *slash = strrchr(library->l_name, '/');
  if (!name || strcmp(name, "libcudnn.so.9")) return 1;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    char beside[PATH_MAX];
    snprintf(beside, sizeof beside, "%.*s%s", slash ? (int)(slash - library->l_name) + 1 : 0, library->l_name, parts[i]);
    if (dlopen(access(beside, F_OK) ? parts[i] : beside, RTLD_NOW | RTLD_LOCAL)) continue;
    snprintf(why, size, "its part %s cannot be opened (%s)", parts[i], dlerror());
    return 0;
  }
  return 1;
}

dnn *dnn_open(const char *name, char *why, size_t size) {
  dnn *d = calloc(1, sizeof *d);
  if (!d) {
    snprintf(why, size, "the process has no memory");
    return 0;
  }
  library_function wanted[] = {
      {&d->create, "cudnnCreate"}, {&d->destroy, "cudnnDestroy"}, {&d->set_stream, "cudnnSetStream"}, {&d->version, "cudnnGetVersion"},
      {&d->create_tensor, "cudnnCreateTensorDescriptor"}, {&d->destroy_tensor, "cudnnDestroyTensorDescriptor"}, {&d->set_tensor, "cudnnSetTensor4dDescriptor"},
      {&d->create_filter, "cudnnCreateFilterDescriptor"}, {&d->destroy_filter, "cudnnDestroyFilterDescriptor"}, {&d->set_filter, "cudnnSetFilter4dDescriptor"},
      {&d->create_convolution, "cudnnCreateConvolutionDescriptor"}, {&d->destroy_convolution, "cudnnDestroyConvolutionDescriptor"},
      {&d->set_convolution, "cudnnSetConvolution2dDescriptor"}, {&d->set_math, "cudnnSetConvolutionMathType"},
      {&d->find_forward, "cudnnGetConvolutionForwardAlgorithm_v7"},
      {&d->find_backward_data, "cudnnGetConvolutionBackwardDataAlgorithm_v7"},
      {&d->find_backward_filter, "cudnnGetConvolutionBackwardFilterAlgorithm_v7"},
      {&d->forward, "cudnnConvolutionForward"}, {&d->backward_data, "cudnnConvolutionBackwardData"}, {&d->backward_filter, "cudnnConvolutionBackwardFilter"},
  };
  if (library_open(name, wanted, sizeof wanted / sizeof *wanted, why, size) && open_parts((void *)d->create, why, size)) return d;
  free(d);
  return 0;
}

int dnn_create(dnn *d, void *stream) {
  status s = d->create(&d->handle);
  if (s) {
    d->handle = 0; // a failed call leaves no valid handle there
    return s;
  }
  return d->set_stream(d->handle, stream);
}

int dnn_destroy(dnn *d) {
  status s = d->handle ? d->destroy(d->handle) : 0;
  free(d);
  return s;
}

size_t dnn_version(dnn *d) { return d->version(); }

int dnn_make(dnn *d, dnn_plan *p, const dnn_shape *s, int numbers) {
  const int type = numbers == dnn_bfloat16 ? data_bfloat16 : data_float;
  *p = (dnn_plan){.part = s->part};
  status e;
  if ((e = d->create_tensor(&p->images)) || (e = d->create_filter(&p->weights)) || (e = d->create_tensor(&p->result)) || (e = d->create_convolution(&p->convolution)) ||
      (e = d->set_tensor(p->images, format_nhwc, type, s->n, s->c, s->h, s->w)) ||
      (e = d->set_filter(p->weights, type, format_nhwc, s->k, s->c, s->kh, s->kw)) ||
      (e = d->set_tensor(p->result, format_nhwc, type, s->n, s->k, s->oh, s->ow)) ||
      (e = d->set_convolution(p->convolution, s->pad, s->pad, s->stride, s->stride, 1, 1, cross_correlation, data_float)) ||
      (e = d->set_math(p->convolution, numbers == dnn_bfloat16 ? tensor_math : numbers == dnn_tf32 ? default_math : fma_math)))
    return e;
  performance all[dnn_most_ways];
  int count = 0;
  switch (s->part) {
  case dnn_result: e = d->find_forward(d->handle, p->images, p->weights, p->convolution, p->result, dnn_most_ways, &count, all); break;
  case dnn_images: e = d->find_backward_data(d->handle, p->weights, p->result, p->convolution, p->images, dnn_most_ways, &count, all); break;
  default: e = d->find_backward_filter(d->handle, p->images, p->result, p->convolution, p->weights, dnn_most_ways, &count, all);
  }
  if (e) return e;
  for (int i = 0; i < count; i++)
    if (!all[i].status && all[i].determinism == deterministic)
      p->ways[p->count++] = (dnn_way){all[i].algorithm, numbers == dnn_float32 ? fma_math : all[i].math, all[i].memory};
  return 0;
}

void dnn_free(dnn *d, dnn_plan *p) {
  if (p->images) d->destroy_tensor(p->images);
  if (p->weights) d->destroy_filter(p->weights);
  if (p->result) d->destroy_tensor(p->result);
  if (p->convolution) d->destroy_convolution(p->convolution);
}

int dnn_run(dnn *d, const dnn_plan *p, int way, uintptr_t images, uintptr_t weights, uintptr_t result, uintptr_t workspace) {
  const float one = 1, zero = 0;
  const dnn_way *w = &p->ways[way];
  void *x = (void *)images, *k = (void *)weights, *y = (void *)result, *space = w->workspace ? (void *)workspace : 0;
  status e = d->set_math(p->convolution, w->math);
  if (e) return e;
  switch (p->part) {
  case dnn_result: return d->forward(d->handle, &one, p->images, x, p->weights, k, p->convolution, w->algorithm, space, w->workspace, &zero, p->result, y);
  case dnn_images: return d->backward_data(d->handle, &one, p->weights, k, p->result, y, p->convolution, w->algorithm, space, w->workspace, &zero, p->images, x);
  default: return d->backward_filter(d->handle, &one, p->images, x, p->result, y, p->convolution, w->algorithm, space, w->workspace, &zero, p->weights, k);
  }
}
