// Embedding tables of 3 dimensions on a cluster: see table_cluster.h.
//
// Clusters came with compute capability 9.0.
// build: -march=sm_90
#include "table_cluster.h"

CLUSTER_BATCHES(table_cluster, 0, 3)
CLUSTER_BATCHES(table_info_cluster, 1, 3)
