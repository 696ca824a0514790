// im2col and col2im, for convolutions of images x [n, h, w, c] as matrix products. The
// matrix has a row for each position of the window: the patch [kh, kw, c] that the
// window sees there. A launch takes some images of a batch, so that the patches stay in
// the cache, with fewer than 2³¹ elements.
#include "kernel.h"

typedef struct { u32 h, w, c, kh, kw, oh, ow, stride, pad; } windows;

// im2col: patches [n·oh·ow, kh·kw·c] of images; a thread for each of count groups of
// width channels.
DEVICE void im2col(void *patches, const void *x, u32 count, windows g, u32 width, int half) {
  long index = index_of_thread();
  if (index >= (long)count) return;
  u32 i = (u32)index, groups = g.c / width, rest = i / groups, k = i % groups;
  u32 taps = g.kh * g.kw, tap = rest % taps, at = rest / taps;
  u32 row = at / g.ow, image = row / g.oh;
  // Places left of or above the image are, as u32, far right of or below it.
  u32 px = at % g.ow * g.stride + tap % g.kw - g.pad, py = row % g.oh * g.stride + tap / g.kw - g.pad;
  int inside = px < g.w && py < g.h;
  long from = (((long)image * g.h + py) * g.w + px) * g.c + k * width;
  store_at(patches, (long)i * width, inside ? load_at(x, from, (int)width, half) : (quad)0.f, (int)width, half);
}
#define WINDOWS_KERNEL(name, f, width, half) \
  KERNEL(name)(void *to, const void *from, int count, int h, int w, int c, int kh, int kw, int oh, int ow, int stride, int pad) { \
    f(to, from, (u32)count, (windows){(u32)h, (u32)w, (u32)c, (u32)kh, (u32)kw, (u32)oh, (u32)ow, (u32)stride, (u32)pad}, width, half); \
  }
WINDOWS_KERNEL(im2col_4, im2col, 4, 0)
WINDOWS_KERNEL(im2col_1, im2col, 1, 0)
WINDOWS_KERNEL(im2col_h4, im2col, 4, 1)
WINDOWS_KERNEL(im2col_h1, im2col, 1, 1)

// col2im: each pixel of dx is the sum, over the windows that see it, of its elements in
// their patches, in the order of the windows' elements; a thread for each of count
// groups of width channels. dx of col2im_h4 and col2im_h1 is of bfloat16; patches are
// floats in any case.
DEVICE void col2im(void *dx, const float *patches, u32 count, windows g, u32 width, int half) {
  long index = index_of_thread();
  if (index >= (long)count) return;
  u32 i = (u32)index, groups = g.c / width, pixel = i / groups, k = i % groups;
  u32 px = pixel % g.w, row = pixel / g.w, py = row % g.h, image = row / g.h;
  quad sum = 0.f;
  for (u32 r = 0; r < g.kh; r++) {
    u32 y = py + g.pad - r, oy = y / g.stride;
    if (py + g.pad < r || oy * g.stride != y || oy >= g.oh) continue;
    for (u32 s = 0; s < g.kw; s++) {
      u32 x = px + g.pad - s, ox = x / g.stride;
      if (px + g.pad < s || ox * g.stride != x || ox >= g.ow) continue;
      const float *from = patches + ((((long)image * g.oh + oy) * g.ow + ox) * g.kh * g.kw + r * g.kw + s) * g.c + k * width;
      sum += load(from, (int)width);
    }
  }
  store_at(dx, (long)i * width, sum, (int)width, half);
}
WINDOWS_KERNEL(col2im_4, col2im, 4, 0)
WINDOWS_KERNEL(col2im_1, col2im, 1, 0)
WINDOWS_KERNEL(col2im_h4, col2im, 4, 1)
WINDOWS_KERNEL(col2im_h1, col2im, 1, 1)
