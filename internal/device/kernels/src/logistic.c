// Multinomial logistic regression of package simclr: losses and derivatives.
#include "kernel.h"

enum { block_size = 256, classes_at_a_time = 8 };
SHARED_ARRAY(double, logistic_sums, block_size);

// logistic_losses: the losses −log p of n images, added up by block in losses [blocks].
// Their derivatives with respect to the logits replace z: p, minus 1 for the image's own
// class. The logits are z [n, k] + bias [k]. A thread for each image, in blocks of 256.
KERNEL_SYNC(logistic_losses)(double *losses, float *z, const double *bias, const int *class, int n, int k) {
  long i = index_of_thread();
  double loss = 0;
  if (i < n) {
    float *row = z + i * k;
    int first = 0, own = class[i]; // of the largest
    for (int c = 1; c < k; c++)
      if ((double)row[c] + bias[c] > (double)row[first] + bias[first]) first = c;
    double highest = (double)row[first] + bias[first];
    loss = highest - ((double)row[own] + bias[own]);
    // Relative to the largest, the sum of the other exponentials is kept apart from 1,
    // so that small losses keep all their digits.
    float others = 0.f;
    for (int c = 0; c < k; c++) {
      float e = c == first ? 1.f : exp_f((float)((double)row[c] + bias[c] - highest));
      if (c != first) others += e;
      row[c] = e;
    }
    loss += (double)log1p_f(others);
    for (int c = 0; c < k; c++) {
      float p = row[c] / (1.f + others);
      row[c] = c != own ? p : c == first ? -others / (1.f + others) : p - 1.f;
    }
  }
  logistic_sums[thread()] = loss;
  for (int half = block_size / 2; half > 0; half /= 2) {
    barrier();
    if (thread() < half) logistic_sums[thread()] += logistic_sums[thread() + half];
  }
  if (thread() == 0) losses[block()] = logistic_sums[0];
}

// logistic_products: Σᵢ r[i, c]·x[i, l] over the images of each piece, for all classes
// c and features l, in parts [pieces, k, d]. r is [n, k] and x [n, d], whose feature
// d−1 is always 1. A thread for each feature and 8 classes; a block has 128 features,
// and blocks go by features, then classes, then pieces. 32 products at a time are added
// in single precision, and these sums in double.
KERNEL_OF(128, 6, logistic_products)(double *parts, const float *r, const float *x, int n, int d, int k, int piece) {
  int across = (d + threads() - 1) / threads(), chunks = (k + classes_at_a_time - 1) / classes_at_a_time;
  int l = block() % across * threads() + thread(), c0 = block() / across % chunks * classes_at_a_time;
  int p = block() / across / chunks, last = min_i(n, (p + 1) * piece);
  if (l >= d) return;
  double sums[classes_at_a_time] = {0};
  for (int first = p * piece; first < last; first += 32) {
    float part[classes_at_a_time] = {0};
    for (int i = first; i < min_i(last, first + 32); i++) {
      float v = x[(long)i * d + l];
#pragma unroll
      for (int c = 0; c < classes_at_a_time; c++) part[c] += v * r[(long)i * k + min_i(c0 + c, k - 1)];
    }
#pragma unroll
    for (int c = 0; c < classes_at_a_time; c++) sums[c] += (double)part[c];
  }
#pragma unroll
  for (int c = 0; c < classes_at_a_time; c++)
    if (c0 + c < k) parts[((long)p * k + c0 + c) * d + l] = sums[c];
}

// logistic_gradient: adds the parts [pieces, n] up in order. A thread for each of n.
KERNEL(logistic_gradient)(double *gradient, const double *parts, int pieces, int n) {
  long i = index_of_thread();
  if (i >= n) return;
  double sum = 0;
  for (int p = 0; p < pieces; p++) sum += parts[(long)p * n + i];
  gradient[i] = sum;
}
