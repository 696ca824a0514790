// The contrastive loss of rows of width 2: see sweeps.h.
#include "sweeps.h"

HEADS(2)
GROUPS(contrast_groups, 0, 2)
GROUPS(contrast_info_groups, 1, 2)
