// The library that a program is linked to instead of the CUDA driver's, so that it
// starts on machines without a driver. The functions that gorgonia.org/cu uses
// (symbols.txt) are jumps through a table (table.S, made by build), which is filled
// from libcuda.so.1 when the program starts. Without a driver they return
// CUDA_ERROR_NO_DEVICE, except that cuInit succeeds and there are 0 devices:
// gorgonia.org/cu would end the process if cuInit failed.
//
// CNE_LIBCUDA names another library to open.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "names.h" // names: the names in symbols.txt, in order; count

void *cneshim_table[count];

static void *library;
static char missing[512]; // why the library could not be opened
static int state = 100; // cuInit's status; at first CUDA_ERROR_NO_DEVICE

static int no_device(void) { return 100; }

static int (*initialize)(unsigned);
static int (*device_count)(int *);
static int (*driver_version)(int *);

__attribute__((constructor)) static void load(void) {
  const char *path = getenv("CNE_LIBCUDA");
  library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) snprintf(missing, sizeof missing, "%s", dlerror());
  for (unsigned i = 0; i < count; i++) {
    void *f = library ? dlsym(library, names[i]) : 0;
    cneshim_table[i] = f ? f : (void *)no_device;
  }
  if (library) {
    initialize = (int (*)(unsigned))dlsym(library, "cuInit");
    device_count = (int (*)(int *))dlsym(library, "cuDeviceGetCount");
    driver_version = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
  }
}

// cneshim_symbol returns a function of the driver that symbols.txt lacks, or 0.
void *cneshim_symbol(const char *name) { return library ? dlsym(library, name) : 0; }

// cneshim_missing returns 0 if there is a driver, else the dynamic linker's message;
// cneshim_state returns cuInit's status.
const char *cneshim_missing(void) { return library ? 0 : missing; }
int cneshim_state(void) { return state; }

int cuInit(unsigned flags) {
  if (initialize) state = initialize(flags);
  return 0;
}

int cuDeviceGetCount(int *n) {
  *n = 0;
  return state || !device_count ? 0 : device_count(n);
}

int cuDriverGetVersion(int *version) {
  *version = 0;
  return driver_version ? driver_version(version) : 0;
}
