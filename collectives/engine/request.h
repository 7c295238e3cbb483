// What a rank says about a tensor when it asks for a collective: the part that must agree between
// ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/engine/wire.h"
#include "ringmaster/types.h"

namespace ringmaster::engine {

enum class Kind : uint8_t { kAllreduce, kAllgather, kBroadcast, kBarrier, kStepEnd, kShutdown };
const char* KindName(Kind kind);

struct Request {
  std::string name;
  Kind kind = Kind::kBarrier;
  rm_dtype dtype = RM_UINT8;
  rm_op op = RM_SUM;
  int32_t root = 0;
  uint64_t count = 0;  // elements; of an allgather: elements in a row
  double prescale = 1.0;
  double postscale = 1.0;

  bool operator==(const Request&) const = default;
  uint64_t bytes() const;
};

void Write(ByteWriter* out, const Request& request);
Request ReadRequest(ByteReader* in);

// Names of operations that the library makes itself can't be given by users.
constexpr char kReservedPrefix = '\x01';
inline const std::string kStepEndName = "\x01step_end";
inline const std::string kShutdownName = "\x01shutdown";

// Empty if the requests of all ranks (by rank) agree; else one sentence that names tensor, field,
// ranks and values.
std::string DescribeMismatch(const std::vector<Request>& by_rank);

}  // namespace ringmaster::engine
