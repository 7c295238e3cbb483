#include "collectives/engine/pieces.h"

#include <algorithm>
#include <cstdlib>

#include "collectives/element/element.h"

namespace ringmaster::engine {

std::vector<std::string> ShapesOfPieces(const std::string& pieces) {
  std::vector<std::string> shapes;
  for (size_t begin = 0; begin < pieces.size();) {
    const size_t end = std::min(pieces.find(']', begin), pieces.size() - 1) + 1;
    shapes.push_back(pieces.substr(begin, end - begin));
    begin = end;
  }
  return shapes;
}

std::vector<uint64_t> CountsOfPieces(const std::string& pieces) {
  std::vector<uint64_t> counts;
  for (const std::string& shape : ShapesOfPieces(pieces)) {
    uint64_t count = 1;
    for (size_t at = 1; at < shape.size();) {  // behind "[" or ", "
      count *= std::strtoull(shape.c_str() + at, nullptr, 10);
      at = shape.find(' ', at);
      if (at != std::string::npos) ++at;
    }
    counts.push_back(count);
  }
  return counts;
}

void Pack(const Pieces& pieces, std::byte* to, rm_dtype dtype, double factor) {
  const size_t element = element::Size(dtype);
  for (const Piece& piece : pieces) {
    element::CopyScaled(piece.in, to, piece.count, dtype, factor);
    to += piece.count * element;
  }
}

void Unpack(const std::byte* from, const Pieces& pieces, rm_dtype dtype, double factor) {
  const size_t element = element::Size(dtype);
  for (const Piece& piece : pieces) {
    element::CopyScaled(from, piece.out, piece.count, dtype, factor);
    from += piece.count * element;
  }
}

}  // namespace ringmaster::engine
