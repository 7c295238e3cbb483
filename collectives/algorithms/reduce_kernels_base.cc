#define RM_KERNELS kernels_base
#include "collectives/algorithms/reduce_kernels.h"
