// The contrastive loss of rows of any width up to 4, with negatives that are not listed: see
// sweeps.h. contrast_heads_any of contrastive.c takes listed negatives.
#define ANY_WIDTH
#include "sweeps.h"

GROUPS(contrast_groups, loss == INFO, any)
