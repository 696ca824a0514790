// Views of images: their random choices and their pixels, as in package simclr.
#include "kernel.h"

#pragma STDC FP_CONTRACT OFF // so that choices are the CPU's, bit for bit

// A choice is everything that is random about a view, in CHOICE words: left, top, width
// and height of the crop, the marks below, the factors of brightness, contrast and
// saturation, the shift of the hue, and the image.
enum { CHOICE = 12 };
enum { FLIP = 1, JITTER = 2, GRAY = 4 };
// From bit ORDER on the marks hold the order of the colour steps (brightness 0,
// contrast 1, saturation 2, hue 3), two bits each; STEPS is 0, 1, 2, 3.
enum { ORDER = 8, STEPS = 0xe4 };

DEVICE double unit_d(u64 *state) { return (double)(next_word(state) >> 11) * 0x1p-53; }
DEVICE double between(double lo, double hi, u64 *state) { return lo + (hi - lo) * unit_d(state); }

// to_even rounds a number ≥ 0 to an integer, ties to even.
DEVICE double to_even(double x) { return (x + 0x1p52) - 0x1p52; }

// power_of_2 returns 2^k for −1022 ≤ k ≤ 1023.
DEVICE double power_of_2(int k) {
  union { u64 u; double d; } x = {(u64)(k + 1023) << 52};
  return x.d;
}

// exp_d has an error below one ulp for −745 < x < 709.8 (fdlibm's method).
DEVICE double exp_d(double x) {
  if (x < -745.) return 0.;
  if (!(x <= 709.79)) return x != x ? x : __builtin_inf(); // a NaN has no integer
  int k = (int)(x * 1.44269504088896338700 + (x < 0 ? -0.5 : 0.5));
  double hi = x - k * 6.93147180369123816490e-1, lo = k * 1.90821492927058770002e-10, r = hi - lo, t = r * r;
  double c = r - t * (1.66666666666666657415e-1 + t * (-2.77777777770155933842e-3 + t * (6.61375632143793436117e-5 + t * (-1.65339022054652515390e-6 + t * 4.13813679705723846039e-8))));
  double y = 1. - ((lo - (r * c) / (2. - c)) - hi);
  return y * power_of_2(k / 2) * power_of_2(k - k / 2);
}

// views_draw: choices [count, CHOICE] of the views of points. Point p < n is the first
// view of image rows[p], and point n+p its second. key is the key of the epoch's stream;
// how are the settings that simclr/views.go lists. A thread for each view.
KERNEL(views_draw)(u32 *choices, const int *points, const int *rows, const double *how, int count, int n, u64 key, int height, int width) {
  long i = index_of_thread();
  if (i >= count) return;
  int point = points[i], view = point >= n, image = rows[point - view * n];
  u64 state = indexed(indexed(key, (u64)image), (u64)view);
  double h = height, w = width;
  int cw = 0, ch = 0, x = 0, y = 0;
  for (int k = 0; k < 10 && cw == 0; k++) {
    double area = h * w * between(how[0], how[1], &state), place = between(how[2], how[3], &state);
    double ratio = how[4] > 0 ? how[4] : exp_d(place);
    double a = to_even(sqrt_d(area * ratio)), b = to_even(sqrt_d(area / ratio));
    if (a >= 1 && a <= w && b >= 1 && b <= h) {
      cw = (int)a;
      ch = (int)b;
      y = (int)next_below(&state, (u64)(height - ch + 1));
      x = (int)next_below(&state, (u64)(width - cw + 1));
    }
  }
  if (cw == 0) {
    double ratio = w / h;
    cw = width;
    ch = height;
    if (ratio < how[5]) {
      ch = max_i(1, (int)to_even(w / how[5]));
    } else if (ratio > how[6]) {
      cw = max_i(1, (int)to_even(h * how[6]));
    }
    x = (width - cw) / 2;
    y = (height - ch) / 2;
  }
  u32 *c = choices + i * CHOICE, marks = 0;
  c[0] = (u32)x;
  c[1] = (u32)y;
  c[2] = (u32)cw;
  c[3] = (u32)ch;
  if (unit_d(&state) < how[7]) marks |= FLIP;
  if (unit_d(&state) < how[8]) marks |= JITTER;
  for (int k = 0; k < 4; k++) c[5 + k] = as_bits((float)between(how[10 + 2 * k], how[11 + 2 * k], &state));
  if (unit_d(&state) < how[9]) marks |= GRAY;
  u32 order = STEPS;
  for (u32 k = 3; k > 0; k--) {
    u32 j = (u32)next_below(&state, k + 1), differ = (order >> 2 * k ^ order >> 2 * j) & 3;
    order ^= differ << 2 * k | differ << 2 * j;
  }
  c[4] = marks | order << ORDER;
  c[9] = (u32)image;
}

// views_plain: choices that leave images unchanged but for size. A thread for each.
KERNEL(views_plain)(u32 *choices, const int *images, int count, int height, int width) {
  long i = index_of_thread();
  if (i >= count) return;
  u32 *c = choices + i * CHOICE;
  c[0] = c[1] = 0;
  c[2] = (u32)width;
  c[3] = (u32)height;
  c[4] = STEPS << ORDER;
  c[9] = (u32)images[i];
}

typedef struct { float r, g, b; } color;

DEVICE float unit(float x) { return min_f(max_f(x, 0.f), 1.f); }
DEVICE float gray_of(color c) { return 0.2989f * c.r + 0.587f * c.g + 0.114f * c.b; }
DEVICE color blended(color c, float f, float rest) { return (color){unit(f * c.r + rest), unit(f * c.g + rest), unit(f * c.b + rest)}; }

// shifted shifts the hue by a share of the colour circle: see shiftHue.
DEVICE color shifted(color c, float share) {
  if (share == 0.f) return c;
  float most = max_f(max_f(c.r, c.g), c.b), least = min_f(min_f(c.r, c.g), c.b), chroma = most - least;
  float numerator = c.r - c.g, origin = 4.f;
  if (c.g == most) {
    numerator = c.b - c.r;
    origin = 2.f;
  }
  if (c.r == most) {
    numerator = c.g - c.b;
    origin = 0.f;
  }
  float h = numerator / max_f(chroma, 1e-20f) + origin + (6.f * share + 6.f);
  h -= 6.f * (float)(int)(h * (1.f / 6));
  return (color){least + chroma * unit(max_f(2.f - h, h - 4.f)), least + chroma * unit(min_f(h, 4.f - h)), least + chroma * unit(min_f(h - 2.f, 6.f - h))};
}

// adjusted applies the steps from … to−1 of an order, which do not include the contrast.
DEVICE color adjusted(color c, u32 order, int from, int to, const u32 *factors) {
  for (int k = from; k < to; k++) {
    u32 step = order >> 2 * k & 3;
    float f = as_float(factors[step]);
    if (step == 0) c = blended(c, f, 0.f);
    else if (step == 2) c = blended(c, f, (1.f - f) * gray_of(c));
    else c = shifted(c, f);
  }
  return c;
}

// A tap says how to resample one output along one axis: from n inputs, beginning with
// first, the k-th with weight max(0, 1 − |offset + k/reach|)·scale, as simclr's taps
// are.
typedef struct { int first, n; float offset, scale; } tap;
DEVICE tap tap_of(int in, int out, int o, double whole) {
  double scale = (double)in / (double)out, reach = scale > 1 ? scale : 1;
  double center = scale * (o + 0.5);
  int lo = max_i(0, (int)(center - reach + 0.5)), hi = min_i(in, (int)(center + reach + 0.5));
  double sum = 0;
  for (int i = lo; i < hi; i++) {
    double d = (i + 0.5 - center) / reach;
    d = d < 0 ? -d : d;
    if (d < 1) sum += 1 - d;
  }
  return (tap){lo, hi - lo, (float)((lo + 0.5 - center) / reach), (float)(1 / (sum * whole))};
}
DEVICE float weight_of(tap t, int k, float step) {
  float d = t.offset + (float)k * step;
  return max_f(0.f, 1.f - (d < 0 ? -d : d)) * t.scale;
}

// finished makes a colour grey if the marks say so, and normalises it with means and
// reciprocals of standard deviations.
DEVICE color finished(color c, u32 marks, const float *normal) {
  if (marks & GRAY) c.r = c.g = c.b = gray_of(c);
  return (color){(c.r - normal[0]) * normal[3], (c.g - normal[1]) * normal[4], (c.b - normal[2]) * normal[5]};
}
DEVICE void put(float *plane, int n, color c) {
  plane[0] = c.r;
  plane[n] = c.g;
  plane[2 * n] = c.b;
}

// views_make: dst [count, 3, size, size] from images, bytes [·, height, width, 3], as
// choices [count, CHOICE] say. A block of up to 256 threads for each view, with 32
// bytes of dynamic shared memory for each pixel of a side. A thread always works on the
// same pixels; where the contrast changes, which needs the mean over all, they wait in
// dst.
KERNEL_SYNC(views_make)(float *dst, const u32 *choices, const u8 *images, const float *normal, int height, int width, int size) {
  SHARED_ARRAY(float, scratch, 32);
  DYNAMIC(tap, taps); // horizontal, then vertical
  const u32 *c = choices + (long)block() * CHOICE;
  int w = (int)c[2], h = (int)c[3], n = size * size;
  u32 marks = c[4], order = marks >> ORDER;
  for (int i = thread(); i < 2 * size; i += threads()) {
    taps[i] = i < size ? tap_of(w, size, i, 255.) : tap_of(h, size, i - size, 1.); // bytes are at most 255
  }
  barrier();
  const u8 *crop = images + 3 * ((long)c[9] * height * width + (long)c[1] * width + c[0]);
  dst += (long)block() * 3 * n;
  int contrast = 0; // which step it is
  while ((order >> 2 * contrast & 3) != 1) contrast++;
  float across = w > size ? (float)size / (float)w : 1.f, down = h > size ? (float)size / (float)h : 1.f, gray = 0.f;
  for (int i = thread(); i < n; i += threads()) {
    int y = i / size, x = i - y * size;
    tap a = taps[marks & FLIP ? size - 1 - x : x], b = taps[size + y];
    color v = {0.f, 0.f, 0.f};
    for (int k = 0; k < b.n; k++) {
      const u8 *row = crop + 3 * ((long)(b.first + k) * width + a.first);
      color sum = {0.f, 0.f, 0.f};
      for (int j = 0; j < a.n; j++, row += 3) {
        float weight = weight_of(a, j, across);
        sum.r += weight * row[0];
        sum.g += weight * row[1];
        sum.b += weight * row[2];
      }
      float weight = weight_of(b, k, down);
      v.r += weight * sum.r;
      v.g += weight * sum.g;
      v.b += weight * sum.b;
    }
    if (marks & JITTER) {
      v = adjusted(v, order, 0, contrast, c + 5);
      gray += gray_of(v);
    } else {
      v = finished(v, marks, normal);
    }
    put(dst + i, n, v);
  }
  if (!(marks & JITTER)) return; // the same for all threads
  float f = as_float(c[6]), rest = (1.f - f) * (block_sum(gray, scratch) / (float)n);
  for (int i = thread(); i < n; i += threads()) {
    color v = blended((color){dst[i], dst[i + n], dst[i + 2 * n]}, f, rest);
    put(dst + i, n, finished(adjusted(v, order, contrast + 1, 4, c + 5), marks, normal));
  }
}
