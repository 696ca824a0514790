// Embedding tables of any number of dimensions up to 4, with batches of any size: see table.h.
//
// As for table_2, there are too few registers for a pointer to each array.
// build: -mllvm -disable-lsr
#define ANY_WIDTH
#include "table.h"

PAIRS(any, 0)
