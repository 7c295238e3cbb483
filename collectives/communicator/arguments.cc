#include "collectives/communicator/arguments.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>

#include "collectives/element/element.h"

namespace ringmaster::communicator {
namespace {

Status Invalid(const std::string& message) { return Status(RM_ERR_INVALID, message); }

Status CheckEntries(const char* what, size_t entries, size_t expected, int size) {
  if (entries == expected) return Status();
  return Invalid(std::string(what) + " has " + std::to_string(entries) + " entries, the view has " +
                 std::to_string(size) + " ranks");
}

Status CheckReduction(size_t count, rm_dtype dtype, rm_op op) {
  const size_t element_bytes = element::Size(dtype);
  if (element_bytes == 0)
    return Invalid("dtype " + std::to_string(dtype) + " is unknown: 0 to " +
                   std::to_string(element::kTypes - 1) + " are known");
  if (!element::IsKnownOp(op))
    return Invalid("op " + std::to_string(op) + " is unknown: 0 to 4 are known");
  if (op == RM_AVERAGE && dtype == RM_BOOL) return Invalid("bool has no average");
  if (count > SIZE_MAX / element_bytes / 4)
    return Invalid("count " + std::to_string(count) + " is too large");
  return Status();
}

// Checks the buffers of a collective that has a block for each rank. `needs_send`, `needs_recv`:
// there is at least one byte to read or to write.
Status CheckSendAndRecv(bool needs_send, const void* send, bool needs_recv, const void* recv) {
  if ((needs_recv && recv == nullptr) || (needs_send && send == nullptr)) {
    return Invalid("send and recv must not be null");
  }
  return Status();
}

}  // namespace

Status CheckAllreduce(const void* in, const void* out, size_t count, rm_dtype dtype, rm_op op) {
  Status status = CheckReduction(count, dtype, op);
  if (status.ok() && count > 0 && (in == nullptr || out == nullptr))
    status = Invalid("in and out must not be null");
  return status;
}

Status CheckAllgatherv(RankAndSize place, const void* send, const void* recv,
                       std::span<const size_t> bytes_by_rank) {
  if (Status s = CheckEntries("bytes_by_rank", bytes_by_rank.size(),
                              static_cast<size_t>(place.size), place.size);
      !s.ok())
    return s;
  const size_t total = std::accumulate(bytes_by_rank.begin(), bytes_by_rank.end(), size_t{0});
  const size_t own = bytes_by_rank[static_cast<size_t>(place.rank)];
  return CheckSendAndRecv(own > 0, send, total > 0, recv);
}

Status CheckBroadcast(RankAndSize place, const void* data, size_t bytes, int root) {
  if (root < 0 || root >= place.size) {
    return Invalid("root " + std::to_string(root) + " is no rank: the view has 0 to " +
                   std::to_string(place.size - 1));
  }
  if (bytes > 0 && data == nullptr) return Invalid("data must not be null");
  return Status();
}

Status CheckReduceScatter(RankAndSize place, const void* in, const void* out,
                          std::span<const size_t> counts, rm_dtype dtype, rm_op op) {
  if (Status s = CheckEntries("counts", counts.size(), static_cast<size_t>(place.size), place.size);
      !s.ok())
    return s;
  const size_t count = std::accumulate(counts.begin(), counts.end(), size_t{0});
  if (Status s = CheckReduction(count, dtype, op); !s.ok()) return s;
  const size_t own = counts[static_cast<size_t>(place.rank)];
  if ((count > 0 && in == nullptr) || (own > 0 && out == nullptr)) {
    return Invalid("in and out must not be null");
  }
  return Status();
}

Status CheckAlltoallv(RankAndSize place, const void* send, const void* recv,
                      std::span<const size_t> bytes) {
  const size_t n = static_cast<size_t>(place.size);
  const size_t self = static_cast<size_t>(place.rank);
  if (Status s = CheckEntries("bytes", bytes.size(), n * n, place.size); !s.ok()) return s;
  size_t sent = 0, received = 0;
  for (size_t k = 0; k < n; ++k) {
    sent += bytes[self * n + k];
    received += bytes[k * n + self];
  }
  return CheckSendAndRecv(sent > 0, send, received > 0, recv);
}

Status CheckSubset(RankAndSize place, bool is_subset, std::span<const int> ranks, int channel) {
  if (channel < 0 || channel > kSubsetChannels) {
    return Invalid("channel " + std::to_string(channel) + " of a subset is none: 0 to " +
                   std::to_string(kSubsetChannels) + " are");
  }
  const bool ascending =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  const bool has_self = std::find(ranks.begin(), ranks.end(), place.rank) != ranks.end();
  if (is_subset || !ascending || !has_self || ranks.front() < 0 || ranks.back() >= place.size) {
    return Invalid("a subset must be ascending ranks of the view, rank " +
                   std::to_string(place.rank) + " among them");
  }
  return Status();
}

Status CheckView(const Endpoint* endpoint, const CommunicatorOptions& options) {
  const int size = static_cast<int>(options.peers.size());
  if (options.rank < 0 || options.rank >= size) {
    return Invalid("rank " + std::to_string(options.rank) + " is not among " +
                   std::to_string(size) + " peers");
  }
  if (endpoint == nullptr && size > 1) {
    return Invalid("a view of " + std::to_string(size) + " ranks needs an endpoint");
  }
  return Status();
}

}  // namespace ringmaster::communicator
