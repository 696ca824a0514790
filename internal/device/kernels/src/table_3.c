// Embedding tables of 3 dimensions: see table.h.
//
// Loop strength reduction would keep a pointer to each array in registers; 64 registers
// are too few for that.
// build: -mllvm -disable-lsr
#include "table.h"

BATCHES(table_batches, 0, 3)
BATCHES(table_info_batches, 1, 3)
PAIRS(3, 4)
