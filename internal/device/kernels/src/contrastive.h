// The four contrastive losses as functions of one pair, in the stable forms of package
// model/op and internal/simd. q = 1/(1+d2) is the similarity of two points at the
// squared distance d2. Where the argument of a logarithm is below the clamp, 1/limit, a
// pair has the loss of the clamp and no derivative.
#ifndef CNE_CONTRASTIVE_H
#define CNE_CONTRASTIVE_H

#include "kernel.h"

// Kernels for points in the plane and in space have files of their own, where the number d
// of coordinates is a constant, so a driver compiles only what is used. A file that defines
// ANY_WIDTH has kernels for any number up to 4, their last parameter; their code is small
// instead of fast. EACH loops over the coordinates. SLOTS is the number of values kept for a
// head, one more than its coordinates. UNROLLED begins a loop that is unrolled where the
// code may be long.
#ifdef ANY_WIDTH
enum { any = 4 };
#define WIDTH_PARAMETER , int width
#define WIDTH(d) width
#define EACH(i, d) _Pragma("clang loop unroll(full)") for (int i = 0; i < any; i++) if (i < d)
#define SLOTS(d) (any + 1)
#define UNROLLED _Pragma("clang loop unroll(disable)")
#else
#define WIDTH_PARAMETER
#define WIDTH(d) d
#define EACH(i, d) for (int i = 0; i < d; i++)
#define SLOTS(d) (d + 1)
#define UNROLLED _Pragma("clang loop unroll(full)")
#endif

// The losses, numbered as in package op.
enum { NEG, NC, INFO, UMAP };

// A term is what a pair adds: its loss is log(1+r), whose derivative with respect to
// log c is ± share, and with respect to d2 slope.
typedef struct { float r, share, slope; } term;

// neg_positive: −log(q/(q+c)) = log(1 + c(1+d2)), of Neg-t-SNE and NC-t-SNE.
DEVICE term neg_positive(float d2, float c, float limit) {
  float r = c * (1.f + d2), v = 1.f + r;
  if (v > limit) return (term){limit, 0.f, 0.f};
  return (term){r, div_approx(r, v), div_approx(c, v)};
}
// neg_negative: −log(1 − q/(q+c)) = log(1 + q/c), with inverse = 1/c.
DEVICE term neg_negative(float d2, float inverse, float limit) {
  float q = div_approx(1.f, 1.f + d2), r = q * inverse, v = 1.f + r;
  if (v > limit) return (term){limit, 0.f, 0.f};
  float share = div_approx(r, v);
  return (term){r, -share, -q * share};
}
// umap_positive: −log q = log(1 + d2).
DEVICE term umap_positive(float d2, float limit) {
  float v = 1.f + d2;
  if (v > limit) return (term){limit, 0.f, 0.f};
  return (term){d2, 0.f, div_approx(1.f, v)};
}
// umap_negative: −log(1 − q) = log(1 + 1/d2).
DEVICE term umap_negative(float d2, float limit) {
  float r = div_approx(1.f, d2);
  if (1.f + r > limit) return (term){limit, 0.f, 0.f};
  return (term){r, 0.f, -div_approx(r, 1.f + d2)};
}
// similarity is max(q, clamp); NaN stays.
DEVICE float similarity(float d2, float clamp) {
  float q = div_approx(1.f, 1.f + d2);
  return q < clamp ? clamp : q;
}

// log1p_approx is log(1+x) for x ≥ 0 below 2¹²⁶, with a relative error of a few
// millionths.
DEVICE float log1p_approx(float x) {
  float series = x * (1.f - x * (0.5f - x * (0.333333333f - x * (0.25f - x * 0.2f))));
  return x < 0.0625f ? series : log2_approx(1.f + x) * 0.693147181f;
}

#endif
