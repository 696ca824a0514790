// Embedding tables of 4 dimensions on a cluster: see table_cluster.h.
//
// Clusters came with compute capability 9.0.
// build: -march=sm_90
#include "table_cluster.h"

CLUSTER_BATCHES(table_cluster, 0, 4)
CLUSTER_BATCHES(table_info_cluster, 1, 4)
