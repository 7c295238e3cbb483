// What nccl.h needs of CUDA's headers, where only NCCL's are there.
#pragma once
#include <stddef.h>
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
#define CUDART_VERSION 0
