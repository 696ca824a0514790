// How a GPU's results differ from the CPU's in the checked build, apart from fused
// multiply-adds, which build takes care of.
//
// Approximate instructions have an error as large as NVIDIA's PTX ISA allows, whose
// size and sign depend on their operands. Products are summed in another order, of
// operands with TF32's precision where that is allowed. And failures show when the
// program waits for the stream, not before.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda.h"

static uint32_t bits_of(float v) {
  uint32_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}

// error_of returns a number between -1 and 1 that depends only on the bits of an
// instruction's operands (the finalizer of splitmix64).
static double error_of(uint64_t operands) {
  uint64_t z = operands + 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

// cne_div_approx is div.approx.f32: a·(1/b), off by up to 2 ulp, including half an ulp of
// rounding. For |b| > 2¹²⁶ the quotient is 0.
float cne_div_approx(float a, float b) {
  if (fabsf(b) > 0x1p126f && !isinf(b)) return isfinite(a) ? copysignf(0.f, a) * copysignf(1.f, b) : NAN;
  double q = (double)a / (double)b;
  if (!isfinite(q) || q == 0) return (float)q;
  int e;
  frexp(q, &e);
  double unit = ldexp(1, e - 24 > -149 ? e - 24 : -149);
  return (float)(q + 1.5 * error_of((uint64_t)bits_of(a) << 32 | bits_of(b)) * unit);
}

// cne_log2_approx is lg2.approx.ftz.f32: off by up to 2⁻²² between ½ and 2, and by a
// relative 2⁻²² elsewhere. Denormal numbers count as 0.
float cne_log2_approx(float x) {
  if (fabsf(x) < 0x1p-126f) x = 0;
  double l = log2((double)x);
  if (!isfinite(l)) return (float)l;
  double most = x > 0.5f && x < 2 ? 0x1p-22 : 0x1p-22 * fabs(l);
  return (float)(l + (most - 0x1p-24 * fabs(l)) * error_of(bits_of(x))); // rounding takes the rest
}

// truncates reports whether operands of TF32 are truncated to 10 bits of mantissa
// instead of being rounded, as hardware may do with operands that nothing has
// converted.
static int truncates(void) {
  const char *how = getenv("FAKECUDA_TF32");
  return how && !strcmp(how, "cut");
}

// to_tf32 leaves a number 10 bits of mantissa: truncated, or rounded, ties away from
// zero, as by cvt.rna.tf32.
static float to_tf32(float v, int cut) {
  if (!isfinite(v)) return v;
  uint32_t u = (bits_of(v) + (cut ? 0 : 0x1000u)) & ~0x1fffu;
  memcpy(&v, &u, sizeof v);
  return v;
}

float *fakecuda_operand(const float *from, size_t n, int tf32) {
  float *to = malloc(sizeof *to * (n ? n : 1));
  int cut = truncates();
  for (size_t i = 0; i < n; i++) to[i] = tf32 ? to_tf32(from[i], cut) : from[i];
  return to;
}

// packed returns a column-major copy [columns, rows] of a matrix that may be transposed
// in memory.
static float *packed(const float *x, int trans, int rows, int columns, int ld, int tf32) {
  float *to = malloc(sizeof *to * ((size_t)rows * (size_t)columns + 1));
  int cut = truncates();
  for (size_t j = 0; j < (size_t)columns; j++)
    for (size_t i = 0; i < (size_t)rows; i++) {
      float v = trans ? x[i * (size_t)ld + j] : x[j * (size_t)ld + i];
      to[j * (size_t)rows + i] = tf32 ? to_tf32(v, cut) : v;
    }
  return to;
}

// Each sum is computed in four parts: cuBLAS may split the inner dimension.
enum { slices = 4 };
void fakecuda_multiply(const product *p, const float *a, const float *b, float *c) {
  size_t m = (size_t)p->m;
  float *x = packed(a, p->trans_a, p->m, p->k, p->lda, p->tf32), *y = packed(b, p->trans_b, p->k, p->n, p->ldb, p->tf32);
  float *sums = malloc(sizeof *sums * (slices * m + 1));
  for (int j = 0; j < p->n; j++) {
    memset(sums, 0, sizeof *sums * slices * m);
    for (int s = 0; s < slices; s++)
      for (int l = (int)((long)p->k * s / slices); l < (int)((long)p->k * (s + 1) / slices); l++) {
        const float *column = x + (size_t)l * m, v = y[(size_t)j * (size_t)p->k + (size_t)l];
        float *to = sums + (size_t)s * m;
        for (size_t i = 0; i < m; i++) to[i] += column[i] * v;
      }
    float *to = c + (size_t)j * (size_t)p->ldc;
    for (size_t i = 0; i < m; i++) {
      float sum = (sums[i] + sums[m + i]) + (sums[2 * m + i] + sums[3 * m + i]);
      to[i] = p->alpha * sum + (p->beta == 0 ? 0 : p->beta * to[i]);
    }
  }
  free(sums);
  free(y);
  free(x);
}
