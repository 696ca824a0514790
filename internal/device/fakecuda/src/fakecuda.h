// What the stand-ins for the driver's libraries share.
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include <stdint.h>

typedef int result;
typedef unsigned long long pointer;

// fakecuda_host returns where the process finds an address of the device.
void *fakecuda_host(pointer p);

// fakecuda_submit asks the stream for a call with at most 32 arguments: it is made at
// once, or noted while the stream is captured. It returns the driver's status.
result fakecuda_submit(void (*run)(const uint64_t *args), const uint64_t *args, int count);

#endif
