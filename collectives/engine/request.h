// What a rank says about a tensor when it asks for a collective: the part that must agree between
// ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collectives/engine/wire.h"
#include "ringmaster/types.h"

namespace ringmaster::engine {

enum class Kind : uint8_t {
  kAllreduce,
  kAllgather,
  kBroadcast,
  kBarrier,
  kStepEnd,
  kShutdown,
  kReducescatter,
  kAlltoall,
  kJoin,
  kAddSet,
  kRemoveSet,
  kTransfer  // one worker sends, another receives
};
const char* KindName(Kind kind);
// Each rank gets a result of its own, which no other rank has.
inline bool HasOwnResults(Kind kind) {
  return kind == Kind::kReducescatter || kind == Kind::kAlltoall;
}
// A rank that has joined takes part in what the others ask for, with nothing of its own.
inline bool GoesOnWithoutJoined(Kind kind) {
  return kind != Kind::kJoin && kind != Kind::kShutdown && kind != Kind::kAddSet &&
         kind != Kind::kRemoveSet;
}
// Ranks may differ in how many rows they give.
inline bool IsRagged(Kind kind) { return kind == Kind::kAllgather || kind == Kind::kAlltoall; }

// Requests that were submitted together: agreed on and executed as one, and all or none of them
// completes.
struct Group {
  std::string first;    // name of its first request
  uint32_t size = 0;    // 0: the request stands alone
  uint64_t digest = 0;  // of all names, in their order, and of the process set

  bool operator==(const Group&) const = default;
  auto operator<=>(const Group&) const = default;
};
Group GroupOf(const std::vector<std::string>& names, int32_t process_set = 0);

constexpr char kSetSeparator = '\x02';

struct Request {
  std::string name;
  Kind kind = Kind::kBarrier;
  rm_dtype dtype = RM_UINT8;
  rm_op op = RM_SUM;
  std::string root;  // the worker that sends (View::workers); empty: every rank does
  // Elements; where ranks may differ in their rows: elements in a row. Of a join: the number of the
  // next operation when the rank joined; once agreed, the last rank that did.
  uint64_t count = 0;
  double prescale = 1.0;
  double postscale = 1.0;
  // Of more than one dimension, else empty; where ranks may differ in their rows: of a row.
  std::vector<uint64_t> shape;
  Group group;
  int32_t priority = 0;  // what is ready together runs in rising order; ranks may differ
  // Why this rank can't take part as it should. Then all ranks fail the operation with this
  // message.
  std::string problem;
  int32_t process_set = 0;  // the set that takes part; 0: all ranks
  // Of a set that is added: its workers, by rank. Of a transfer: who sends and who receives.
  std::vector<std::string> members;
  int32_t removed_set = 0;  // of a set that is removed: its number
  bool on_gpu = false;      // input and result lie in a GPU's memory

  bool operator==(const Request&) const = default;
  // The key of the request: one name may be in use in several sets, and between several pairs of
  // workers. The reference is valid until the calling thread's next call. For requests of all
  // ranks, which the hot paths ask for, no copy is made.
  const std::string& key() const;
  // Whether some ranks of the job may have no part in the operation.
  bool is_partial() const { return process_set != 0 || kind == Kind::kTransfer; }
  uint64_t bytes() const;
  uint64_t rows() const { return shape.empty() ? count : shape[0]; }  // of a reducescatter
};

// The process set in a Request::key().
int32_t SetOfKey(const std::string& key);

void Write(ByteWriter* out, const Request& request);
Request ReadRequest(ByteReader* in);

// Names of operations that the library makes itself can't be given by users.
constexpr char kReservedPrefix = '\x01';
inline const std::string kStepEndName = "\x01step_end";
inline const std::string kAddSetName = "\x01process_set_add";
inline const std::string kRemoveSetName = "\x01process_set_remove";
inline const std::string kJoinName = "\x01join";
inline const std::string kShutdownName = "\x01shutdown";
inline const std::string kWakeName = "\x01wake";

// "[2, 3]"
std::string ShapeText(const Request& request);

// Empty if the requests agree; otherwise one sentence that names tensor, field, ranks (of the view)
// and values. Not all ranks need have a request: only those of the process set have one, and ranks
// that have joined have none.
std::string DescribeMismatch(const std::map<int, Request>& by_rank);

}  // namespace ringmaster::engine
