// What the ranks of a view have announced in full and what has not run yet: the same on all ranks.
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

// What a rank has waited for long, by Request::key(), and since when.
using Late = std::map<std::string, std::chrono::steady_clock::time_point>;

// What this rank has waited for, since before a moment that it was asked about, and still does.
struct Unanswered {
  std::string tensor;  // for people
  int32_t process_set = 0;
  std::vector<int> asked, missing;  // ranks, ascending
  std::chrono::steady_clock::time_point since;
};

class Announcements {
 public:
  using ByRank = std::map<int, Request>;

  // Both outlive this.
  Announcements(ViewRanks* ranks, const JoinedRanks* joined) : ranks_(ranks), joined_(joined) {}

  void Clear();
  void ForgetSet(int32_t process_set);
  void Hear(int rank, Request request);

  // In the order in which they were heard.
  const std::vector<std::string>& keys() const { return order_; }
  // Null: nothing has been announced under this key, or it was taken.
  const ByRank* Find(const std::string& key) const;
  // All ranks have announced it that must.
  bool IsComplete(const ByRank& by_rank) const;

  // What was announced under this key, and all that shares a group with it on any rank; *groups
  // grows by those groups.
  std::vector<Request> TakeWithGroups(const std::string& key, std::set<Group>* groups);
  // All that is complete, but for joins. Of a group nothing is ready before all of it is, with what
  // ranks have *voted for: of that, what has to wait is taken out.
  std::vector<Request> TakeReady(std::vector<Request>* voted);
  // What all have announced that must; nothing: some have not.
  std::optional<ByRank> TakeComplete(const std::string& key);

  // Of `late` what others have not asked for, and who they are.
  std::vector<Unanswered> FindUnanswered(const Late& late) const;

 private:
  ViewRanks* const ranks_;
  const JoinedRanks* const joined_;

  std::map<std::string, ByRank> by_key_;
  std::vector<std::string> order_;  // keys
};

}  // namespace ringmaster::engine
