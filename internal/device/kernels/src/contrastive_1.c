// The contrastive loss of rows of width 1: see sweeps.h.
#include "sweeps.h"

HEADS(1)
GROUPS(contrast_groups, 0, 1)
GROUPS(contrast_info_groups, 1, 1)
