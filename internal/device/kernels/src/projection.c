// New points in the plane and in space: see projection.h.
#include "projection.h"

PROJECT(2)
PROJECT(3)
