// The kernels that follow table_pairs_D in a large batch: see table.h.
#include "table.h"

// table_finish adds up the parts [count, 2] of a batch into its loss, times scale;
// takes NC's step of log Z; and sets status to number_of if the loss is not finite. One
// block of 256 threads.
KERNEL_SYNC(table_finish)(float *loss_of, float *log_z, int *status, const float *parts, const u32 *control, int count, int number_of, int loss,
                              float_bits scale, float_bits norm) {
  SHARED_ARRAY(double, both, 512);
  if (*status != 0) return;
  double sum = 0, derivative = 0;
  for (int i = thread(); i < count; i += threads()) {
    sum += (double)parts[2 * i];
    derivative += (double)parts[2 * i + 1];
  }
  both[thread()] = sum;
  both[256 + thread()] = derivative;
  for (int half = 128; half > 0; half /= 2) {
    barrier();
    if (thread() < half) {
      both[thread()] += both[thread() + half];
      both[256 + thread()] += both[256 + thread() + half];
    }
  }
  if (thread() != 0) return;
  float total = (float)both[0] * (0.693147181f * VALUE(scale));
  *loss_of = total;
  int stop = !finite(total);
  if (loss == NC && !stop) {
    float z = *log_z - as_float(control[LR_Z]) * clip(VALUE(norm) * (float)both[256], as_float(control[CLIP_Z]));
    *log_z = z;
    stop = !(z <= LARGEST_LOG_Z && z >= -LARGEST_LOG_Z);
  }
  if (stop) *status = number_of;
}

// table_update takes the step of the table's n elements against the gradient, and
// zeroes the gradient. A thread for each element.
KERNEL(table_update)(float *table, long *gradient, const int *status, const u32 *control, float_bits norm, long n) {
  long i = index_of_thread();
  if (i >= n) return;
  long g = gradient[i];
  if (g == 0) return;
  gradient[i] = 0;
  if (*status == 0) table[i] -= as_float(control[LR]) * clip(from_fixed(g) * VALUE(norm), as_float(control[CLIP]));
}
