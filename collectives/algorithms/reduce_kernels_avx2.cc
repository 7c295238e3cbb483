#define RM_KERNELS kernels_avx2
#include "collectives/algorithms/reduce_kernels.h"
