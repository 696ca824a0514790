//go:build cu

#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int library_open(const char *name, const library_function *wanted, size_t count, char *why, size_t size) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(why, size, "%s", dlerror());
    return 0;
  }
  for (size_t i = 0; i < count; i++) {
    void *f = dlsym(library, wanted[i].name);
    if (!f) {
      snprintf(why, size, "it has no %s", wanted[i].name);
      dlclose(library);
      return 0;
    }
    memcpy(wanted[i].at, &f, sizeof f);
  }
  return 1;
}
