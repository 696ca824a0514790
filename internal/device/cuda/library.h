// Libraries that are opened while the program runs.
#ifndef CNE_LIBRARY_H
#define CNE_LIBRARY_H

#include <stddef.h>

// A library function's name, and the address of the function pointer to set.
typedef struct { void *at; const char *name; } library_function;

// library_open opens a library and looks its functions up. It returns 1, or 0 and why:
// the dynamic linker's message if it cannot be opened. A library that lacks a function
// is closed again. Function pointers stay valid for the rest of the process.
int library_open(const char *name, const library_function *wanted, size_t count, char *why, size_t size);

#endif
