// Adasum: adds gradients so that what two of them have in common counts once. Neighbours by rank
// are combined in pairs, then the pairs' results, and so on; where one is left over it goes up as
// it is:
//
//   a (+) b = (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b
//
// Vectors at right angles are added, equal ones are averaged. (Maleki et al., "Scaling distributed
// training with adaptive summation", MLSys 2021.)
//
// Each result is a sum of the ranks' vectors with weights, and the weights follow from the vectors'
// products with each other. So no rank needs whole vectors: each has a slice of all of them, the
// ranks add up their parts of the products, and each makes its slice of the result. That moves no
// more bytes than a ring, for any number of ranks.
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

// products[i * n + j]: of the slices of ranks i and j, `count` elements each.
std::vector<double> AdasumProducts(std::span<const void* const> slices, size_t count,
                                   rm_dtype dtype);
// By rank, from the products of whole vectors.
std::vector<double> AdasumWeights(std::span<const double> products, size_t ranks);
// out[k] = the sum over i of weights[i] * slices[i][k]
void AddWeighted(std::span<const void* const> slices, std::span<const double> weights, size_t count,
                 rm_dtype dtype, void* out);

}  // namespace ringmaster::engine
