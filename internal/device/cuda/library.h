// Libraries that are opened while the program runs.
#ifndef CNE_LIBRARY_H
#define CNE_LIBRARY_H

#include <stddef.h>

// A function of a library, by name, and the function pointer that is set to it.
typedef struct { void *at; const char *name; } library_function;

// library_open opens a library and looks its functions up. It returns 1, or 0 and
// says why that was not possible: in the dynamic linker's words if it cannot be opened.
// One that lacks a function is closed again. What library_open sets stays valid for
// the rest of the process.
int library_open(const char *name, const library_function *wanted, size_t count, char *why, size_t size);

#endif
