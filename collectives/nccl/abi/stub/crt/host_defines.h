// The marks of CUDA's compiler, which driver_types.h uses and other compilers ignore.
#pragma once
#define __device_builtin__
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n) __attribute__((aligned(n)))
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
#define __host__
#define __device__
#define CUDARTAPI
