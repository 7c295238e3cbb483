// What a rank says about an operation when it asks for it. The ranks compare it; operation.h has
// what concerns one rank only, such as its buffers.
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
// Whether each rank gets a result of its own, which no other rank has.
inline bool HasOwnResults(Kind kind) {
  return kind == Kind::kReducescatter || kind == Kind::kAlltoall;
}
// Whether an operation of this kind can run without a request of the ranks that have joined. They
// take part in it with nothing of their own.
inline bool GoesOnWithoutJoined(Kind kind) {
  return kind != Kind::kJoin && kind != Kind::kShutdown && kind != Kind::kAddSet &&
         kind != Kind::kRemoveSet;
}
// Whether ranks may differ in how many rows they give.
inline bool IsRagged(Kind kind) { return kind == Kind::kAllgather || kind == Kind::kAlltoall; }

// Requests that were submitted together. They are agreed on and executed as one, and all of them
// succeed or all of them fail.
struct Group {
  std::string first;    // name of its first request
  uint32_t size = 0;    // 0: the request stands alone
  uint64_t digest = 0;  // hash of all names, in their order, and of the process set

  bool operator==(const Group&) const = default;
  auto operator<=>(const Group&) const = default;
};
Group GroupOf(const std::vector<std::string>& names, int32_t process_set = 0);

// Separates the parts of Request::key(). No user's name may contain it.
constexpr char kSetSeparator = '\x02';

struct Request {
  std::string name;
  Kind kind = Kind::kBarrier;
  rm_dtype dtype = RM_UINT8;
  rm_op op = RM_SUM;
  std::string root;  // the worker that sends (WorkerView::workers); empty: every rank does
  // The number of elements; if IsRagged(kind), of one row. For a join: the number of the next
  // operation when this rank joined or, once the join is agreed on, the rank that joined last.
  uint64_t count = 0;
  double prescale = 1.0;
  double postscale = 1.0;
  // The extents, if there are at least two; otherwise empty. If IsRagged(kind), those of one row.
  std::vector<uint64_t> shape;
  Group group;
  int32_t priority = 0;  // what is ready together runs in rising order; ranks may differ
  // Why this rank can't take part; empty: it can. If it is set, all ranks fail the operation with
  // this message.
  std::string problem;
  int32_t process_set = 0;  // the set that takes part; 0: all ranks
  // Of a set that is added: its workers, by rank. Of a transfer: the sender, then the receiver.
  std::vector<std::string> members;
  int32_t removed_set = 0;  // of a set that is removed: its number
  bool on_gpu = false;      // input and result lie in a GPU's memory
  // Of the allreduce of a prepared group: the shapes of its tensors, one after the other, as in
  // "[2, 3][4]" (pieces.h); `count` is the sum of their elements. Empty: it is of one tensor.
  std::string pieces;

  bool operator==(const Request&) const = default;
  // The key of the request: one name may be in use in several sets, and between several pairs of
  // workers. The reference is valid until the calling thread's next call. For requests of all
  // ranks, which the hot paths ask for, no copy is made.
  const std::string& key() const;
  // Whether some ranks of the job may have no part in the operation.
  bool is_partial() const { return process_set != 0 || kind == Kind::kTransfer; }
  uint64_t bytes() const;                                             // of `count` elements
  uint64_t rows() const { return shape.empty() ? count : shape[0]; }  // of a reducescatter
};

// The process set in a Request::key().
int32_t SetOfKey(const std::string& key);

void Write(ByteWriter* out, const Request& request);
Request ReadRequest(ByteReader* in);

// The first byte of the names of the library's own operations. No user's name may begin with it.
constexpr char kReservedPrefix = '\x01';
inline const std::string kStepEndName = "\x01step_end";
inline const std::string kAddSetName = "\x01process_set_add";
inline const std::string kRemoveSetName = "\x01process_set_remove";
inline const std::string kJoinName = "\x01join";
inline const std::string kShutdownName = "\x01shutdown";
inline const std::string kWakeName = "\x01wake";

// "[2, 3]"
std::string ShapeText(const Request& request);

// Empty if the requests agree; otherwise one sentence that names the tensor, the field that
// differs, its values and their ranks. Ranks that are not in the process set, or have joined, have
// no request.
std::string DescribeMismatch(const std::map<int, Request>& by_rank);

}  // namespace ringmaster::engine
