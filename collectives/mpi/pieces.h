// How a collective is divided among calls of MPI, which count in an int.
//
// Thread rule: pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace ringmaster::mpi {

struct Piece {
  size_t begin = 0;
  size_t count = 0;
};

// Divides `count` elements into pieces of at most `most`.
inline std::vector<Piece> PiecesOf(size_t count, size_t most) {
  std::vector<Piece> pieces;
  for (size_t begin = 0; begin < count; begin += most)
    pieces.push_back({begin, std::min(most, count - begin)});
  return pieces;
}

// Where each block begins if they lie one after the other.
inline std::vector<size_t> Offsets(std::span<const size_t> blocks) {
  std::vector<size_t> at(blocks.size());
  std::exclusive_scan(blocks.begin(), blocks.end(), at.begin(), size_t{0});
  return at;
}
inline size_t Total(std::span<const size_t> blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), size_t{0});
}

// What MPI takes: all of it fits into ints, because their sum does.
inline std::vector<int> Ints(std::span<const size_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

// Blocks that are too large together move in rounds. In each round a block moves at most `most`
// of its elements: this is the block's part in that round.
inline Piece PartInRound(size_t block, size_t round, size_t most) {
  const size_t begin = std::min(block, round * most);
  return {begin, std::min(most, block - begin)};
}
inline size_t Rounds(std::span<const size_t> blocks, size_t most) {
  const size_t largest = blocks.empty() ? 0 : *std::max_element(blocks.begin(), blocks.end());
  return (largest + most - 1) / most;
}

}  // namespace ringmaster::mpi
