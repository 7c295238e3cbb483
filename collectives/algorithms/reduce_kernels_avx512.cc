#define RM_KERNELS kernels_avx512
#include "collectives/algorithms/reduce_kernels.h"
