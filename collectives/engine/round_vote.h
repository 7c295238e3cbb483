// What this rank says in the first part of a round: a byte for each fact, of which the minimum over
// all ranks is agreed on. RoundVote also keeps what this rank has said in earlier rounds, so that
// it doesn't repeat an announcement.
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

  // The rank announces no request in this round.
  bool announces_nothing() const { return bytes_[kAnnouncesNothing] != 0; }
  // The rank has asked for nothing that it had not asked for in an earlier round.
  bool nothing_new() const { return bytes_[kNothingNew] != 0; }
  // The rank is ready for a planned change at the next boundary.
  bool armed() const { return bytes_[kArmed] != 0; }
  // The rank has nothing pending but perhaps a join.
  bool only_joins() const { return bytes_[kOnlyJoins] != 0; }
  // The rank wants the request in this slot of the cache, or has no objection to it.
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

  // The vote of rank `self`; `pending`, `late` and `armed` as in Negotiator::Round. *announce: the
  // operations that it has to announce in full.
  Votes Vote(int self, const std::vector<const Request*>& pending, const Late& late, bool armed,
             std::vector<const Request*>* announce) const;
  // The other ranks have received the vote and the announcements of this rank.
  void Heard(const std::vector<const Request*>& pending,
             const std::vector<const Request*>& announced);
  // The operations of `late` that this rank has announced in an earlier round. Other ranks that
  // have asked for them, too, announce them in this round at the latest, so the ranks that don't
  // are missing.
  Late Announced(const Late& late) const;

  // The priority with which this rank has announced the request; if it has not announced it, the
  // priority that `request` has.
  int32_t SaidPriority(const Request& request) const;

  // The ranks have agreed on this operation.
  void Forget(const Request& request);
  void ForgetSet(int32_t process_set);
  void Clear();

 private:
  // Votes, as a rank that has joined, for all operations that the other ranks may want to run,
  // except those that this rank announces.
  void VoteAsJoined(const std::vector<const Request*>& announced, Votes* votes) const;
  // Votes for operations in which `self` has no part and which others may want to run.
  void VoteAsOutsider(int self, Votes* votes) const;
  // Whether some rank that takes part hasn't joined.
  bool IsActive(const Request& request) const { return !joined_->HasAll(ranks_->Of(request)); }

  const SetTable* const sets_;
  ViewRanks* const ranks_;
  const ResponseCache* const cache_;
  const JoinedRanks* const joined_;

  std::set<std::string> voted_;  // keys that this rank has voted for or announced before
  // Priorities, by key, of what this rank has announced in full and has not run yet.
  std::map<std::string, int32_t> announced_;
};

}  // namespace ringmaster::engine
