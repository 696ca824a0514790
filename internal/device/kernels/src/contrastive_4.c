// The contrastive loss of rows of width 4: see sweeps.h.
#include "sweeps.h"

HEADS(4)
GROUPS(contrast_groups, 0, 4)
GROUPS(contrast_info_groups, 1, 4)
