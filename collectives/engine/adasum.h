// Adasum: adds gradients so that what two of them have in common counts once. The gradients of
// neighbouring ranks are combined in pairs, then the results of the pairs, and so on; a gradient
// without a partner moves to the next level unchanged:
//
//   a (+) b = (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b
//
// Vectors at right angles are added, equal ones are averaged. (Maleki et al., "Scaling distributed
// training with adaptive summation", MLSys 2021.)
//
// The result is a weighted sum of the ranks' vectors, and the weights follow from the vectors' dot
// products with each other. So no rank needs the whole vectors: each rank has a slice of all of
// them, the ranks add up the dot products of their slices, and each computes its slice of the
// result. That moves no more bytes than a ring, for any number of ranks.
//
// Thread rule: pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ringmaster/types.h"

namespace ringmaster::engine {

inline bool HasAdasum(rm_dtype dtype) {
  return dtype == RM_FLOAT16 || dtype == RM_BFLOAT16 || dtype == RM_FLOAT32 || dtype == RM_FLOAT64;
}

// The dot products of `slices`, by rank, of `count` elements each: entry i * n + j, of n ranks, is
// that of the slices of ranks i and j.
std::vector<double> AdasumProducts(std::span<const void* const> slices, size_t count,
                                   rm_dtype dtype);
// The weights of the ranks' vectors in the result, from the dot products of whole vectors (laid out
// as above).
std::vector<double> AdasumWeights(std::span<const double> products, size_t ranks);
// out[k] = the sum over i of weights[i] * slices[i][k]
void AddWeighted(std::span<const void* const> slices, std::span<const double> weights, size_t count,
                 rm_dtype dtype, void* out);

}  // namespace ringmaster::engine
