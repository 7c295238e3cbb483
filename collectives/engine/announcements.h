// The requests that the ranks of a view have announced in full and that have not run yet. They are
// the same on all ranks.
//
// Owner: the negotiator. Thread rule: the engine's thread only.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectives/engine/joined_ranks.h"
#include "collectives/engine/request.h"
#include "collectives/engine/view_ranks.h"

namespace ringmaster::engine {

// The operations that a rank has waited for longer than StallLimits::tell, by Request::key(), and
// since when it has waited.
using Late = std::map<std::string, std::chrono::steady_clock::time_point>;

// An operation that this rank has waited for a long time (it is in Late), because other ranks have
// not asked for it.
struct Unanswered {
  std::string tensor;  // its name, as people know it
  int32_t process_set = 0;
  std::vector<int> asked, missing;  // the ranks that have asked, and those that have not; ascending
  std::vector<int> in_shutdown;     // those of `missing` that have called shutdown() instead
  std::chrono::steady_clock::time_point since;
  bool is_shutdown = false;  // it may wait for as long as it takes
};

class Announcements {
 public:
  using ByRank = std::map<int, Request>;

  // Both outlive this.
  Announcements(ViewRanks* ranks, const JoinedRanks* joined) : ranks_(ranks), joined_(joined) {}

  void Clear();
  void ForgetSet(int32_t process_set);
  // Rank `rank` has announced this request.
  void Hear(int rank, Request request);

  // The keys of what was announced, in the order in which they were first heard.
  const std::vector<std::string>& keys() const { return order_; }
  // What was announced under this key, by rank. Null: nothing was, or it was taken.
  const ByRank* Find(const std::string& key) const;
  // All ranks that must announce this operation have announced it.
  bool IsComplete(const ByRank& by_rank) const;

  // Takes what was announced under this key, and everything that shares a group with it on any
  // rank. Adds those groups to *groups.
  std::vector<Request> TakeWithGroups(const std::string& key, std::set<Group>* groups);
  // Takes all operations that are complete, except joins. No operation of a group is ready before
  // the whole group is; operations in *voted count as ready, and those of them that have to wait
  // for their group are removed from *voted.
  std::vector<Request> TakeReady(std::vector<Request>* voted);
  // Takes what was announced under this key, by rank; nothing if some rank that must announce it
  // has not.
  std::optional<ByRank> TakeComplete(const std::string& key);

  // The operations of `late` that some other rank has not asked for.
  std::vector<Unanswered> FindUnanswered(const Late& late) const;

 private:
  ViewRanks* const ranks_;
  const JoinedRanks* const joined_;

  std::map<std::string, ByRank> by_key_;
  std::vector<std::string> order_;  // the keys of by_key_, in the order of keys()
};

}  // namespace ringmaster::engine
