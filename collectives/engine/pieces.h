// The tensors of a prepared group: they lie apart, and one allreduce reduces all of them.
//
// A request says their shapes as text (Request::pieces), because the ranks compare them, and a
// person reads where they differ. An operation has their addresses.
//
// Thread rule: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ringmaster/types.h"

namespace ringmaster::engine {

struct Piece {
  const void* in = nullptr;
  void* out = nullptr;
  uint64_t count = 0;  // elements
};
using Pieces = std::vector<Piece>;

// "[2, 3][4]" -> "[2, 3]", "[4]"
std::vector<std::string> ShapesOfPieces(const std::string& pieces);
// "[2, 3][4]" -> 6, 4
std::vector<uint64_t> CountsOfPieces(const std::string& pieces);

// Copies the inputs to `to`, one after the other, multiplied by `factor`.
void Pack(const Pieces& pieces, std::byte* to, rm_dtype dtype, double factor);
// Copies what follows each other at `from` to the outputs, multiplied by `factor`.
void Unpack(const std::byte* from, const Pieces& pieces, rm_dtype dtype, double factor);

}  // namespace ringmaster::engine
