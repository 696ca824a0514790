// Undefined behaviour, in the checked build: clang's -fsanitize=undefined calls the
// functions below where it finds any. Their first argument begins with the place in the
// source.
#include <stdio.h>
#include <stdlib.h>

#include "fakecuda.h"

typedef struct { const char *file; uint32_t line, column; } place;

static _Noreturn void found(const place *at, const char *what) {
  const char *kernel = fakecuda_current.kernel;
  fprintf(stderr, "fakecuda: undefined behaviour in %s%s: %s, at %s:%u:%u", kernel ? "kernel " : "the stand-in", kernel ? kernel : "", what, at->file, at->line, at->column);
  if (kernel) fprintf(stderr, ", in thread %d of block %d", *fakecuda_current.thread, *fakecuda_current.block);
  fputc('\n', stderr);
  abort();
}

#define FINDS(name, what) \
  _Noreturn void __ubsan_handle_##name(const place *at) { found(at, what); }
FINDS(add_overflow_abort, "a sum of integers overflows")
FINDS(sub_overflow_abort, "a difference of integers overflows")
FINDS(mul_overflow_abort, "a product of integers overflows")
FINDS(negate_overflow_abort, "the negative of an integer overflows")
FINDS(divrem_overflow_abort, "an integer is divided by 0, or the quotient overflows")
FINDS(shift_out_of_bounds_abort, "a shift by as many bits as there are, or more, or of a negative number")
FINDS(out_of_bounds_abort, "an index lies outside its array")
FINDS(builtin_unreachable, "a place is reached that should not be")
FINDS(pointer_overflow_abort, "a pointer overflows, or is one to nothing and a number")
FINDS(float_cast_overflow_abort, "a number does not fit the integer that it is converted to")
FINDS(load_invalid_value_abort, "a value is none of its type's")
FINDS(invalid_builtin_abort, "bits are counted of 0")
FINDS(nonnull_arg_abort, "an argument is a pointer to nothing")

// An access through a pointer that is misaligned or null, or that ends outside its
// object.
typedef struct { place at; const void *type; unsigned char log_alignment, kind; } mismatch;
_Noreturn void __ubsan_handle_type_mismatch_v1_abort(const mismatch *m, uintptr_t address) {
  uintptr_t alignment = (uintptr_t)1 << m->log_alignment;
  found(&m->at, !address ? "an access through a pointer to nothing" : address % alignment ? "an access that is not aligned" : "an access to more than there is");
}
