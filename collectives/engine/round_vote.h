// What this rank says in the first part of a round: a byte for each fact, of which the ranks' MIN
// is agreed on. And what it has said before, so that it doesn't repeat it.
//
// Owner: the negotiator. Thread rule: the engine's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/announcements.h"
#include "collectives/engine/joined_ranks.h"
#include "collectives/engine/response_cache.h"
#include "collectives/engine/set_table.h"
#include "collectives/engine/view_ranks.h"

namespace ringmaster::engine {

// The bytes of one rank, or the MIN of all ranks' bytes: then a byte is set if all ranks have set
// it.
class Votes {
 public:
  explicit Votes(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}
  // The vote of a rank that has announced nothing yet. `slots`: how many the cache has.
  static Votes Empty(size_t slots) {
    return Votes(std::vector<uint8_t>(static_cast<size_t>(kHeaderSize) + slots, 0));
  }

  bool announces_nothing() const { return bytes_[kAnnouncesNothing] != 0; }
  bool nothing_new() const { return bytes_[kNothingNew] != 0; }
  bool armed() const { return bytes_[kArmed] != 0; }
  bool only_joins() const { return bytes_[kOnlyJoins] != 0; }
  // Exactly the request in this slot of the cache is pending.
  bool has(size_t slot) const { return bytes_[kHeaderSize + slot] != 0; }
  size_t slots() const { return bytes_.size() - kHeaderSize; }

  void set_announces_nothing(bool value) { bytes_[kAnnouncesNothing] = value; }
  void set_nothing_new(bool value) { bytes_[kNothingNew] = value; }
  void set_armed(bool value) { bytes_[kArmed] = value; }
  void set_only_joins(bool value) { bytes_[kOnlyJoins] = value; }
  void Add(size_t slot) { bytes_[kHeaderSize + slot] = 1; }

  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  enum Header { kAnnouncesNothing, kNothingNew, kArmed, kOnlyJoins, kHeaderSize };

  std::vector<uint8_t> bytes_;
};

class RoundVote {
 public:
  // All of them outlive this.
  RoundVote(const SetTable* sets, ViewRanks* ranks, const ResponseCache* cache,
            const JoinedRanks* joined)
      : sets_(sets), ranks_(ranks), cache_(cache), joined_(joined) {}

  // The vote of rank `self`, with `pending` and `late` as in Negotiator::Round. *announce: the
  // operations that it has to announce in full.
  Votes Vote(int self, const std::vector<const Request*>& pending, const Late& late, bool armed,
             std::vector<const Request*>* announce) const;
  // The other ranks have received what this one has announced.
  void Heard(const std::vector<const Request*>& pending,
             const std::vector<const Request*>& announced);
  // The operations of `late` that were announced. Other ranks that wait for them, too, have said so
  // by the next round.
  Late Announced(const Late& late) const;

  // The priority with which this rank has announced it; of what it has not announced the request's.
  int32_t SaidPriority(const Request& request) const;

  // The ranks have agreed on this operation.
  void Forget(const Request& request);
  void ForgetSet(int32_t process_set);
  void Clear();

 private:
  // Votes as a rank that has joined: for all operations that the other ranks may want to run.
  void VoteAsJoined(Votes* votes) const;
  // Votes for operations in which `self` has no part and which others may want to run.
  void VoteAsOutsider(int self, Votes* votes) const;
  // Whether some rank that takes part hasn't joined.
  bool IsActive(const Request& request) const { return !joined_->HasAll(ranks_->Of(request)); }

  const SetTable* const sets_;
  ViewRanks* const ranks_;
  const ResponseCache* const cache_;
  const JoinedRanks* const joined_;

  std::set<std::string> voted_;  // keys this rank has voted for or announced before
  // Priorities, by key, of what this rank has announced in full and has not run yet.
  std::map<std::string, int32_t> announced_;
};

}  // namespace ringmaster::engine
