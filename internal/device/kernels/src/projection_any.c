// New points of any number of dimensions up to 4: see projection.h.
#define ANY_WIDTH
#include "projection.h"

PROJECT(any)
