#include "collectives/engine/exchange.h"

namespace ringmaster::engine {

Status ExchangeMessages(Communicator* communicator, std::span<const std::byte> mine,
                        std::vector<std::vector<std::byte>>* by_rank) {
  const size_t size = communicator->size();
  const uint64_t length = mine.size();
  std::vector<uint64_t> lengths(size);
  const std::vector<size_t> eight(size, sizeof(uint64_t));
  if (Status s = communicator->Allgatherv(&length, lengths.data(), eight); !s.ok()) return s;

  std::vector<size_t> bytes(lengths.begin(), lengths.end());
  size_t total = 0;
  for (size_t b : bytes) total += b;
  std::vector<std::byte> all(total);
  if (Status s = communicator->Allgatherv(mine.data(), all.data(), bytes); !s.ok()) return s;
  by_rank->clear();
  const std::byte* at = all.data();
  for (size_t b : bytes) {
    by_rank->emplace_back(at, at + b);
    at += b;
  }
  return {};
}

}  // namespace ringmaster::engine
