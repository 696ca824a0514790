// Embedding tables of 4 dimensions: see table.h.
//
// Strength reduction of loops would keep a pointer in registers for each array, for
// which 64 are too few.
// build: -mllvm -disable-lsr
#include "table.h"

BATCHES(table_batches, 0, 4)
BATCHES(table_info_batches, 1, 4)
PAIRS(4, 4)
