// The contrastive loss of rows of width 3: see sweeps.h.
#include "sweeps.h"

HEADS(3)
GROUPS(contrast_groups, 0, 3)
GROUPS(contrast_info_groups, 1, 3)
