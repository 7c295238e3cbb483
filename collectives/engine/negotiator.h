// Agrees between the ranks of a view on which named operations all of them have asked for, and in
// which order they run.
//
// A round is a collective. Its first part is one small allreduce (MIN) over a vector of bytes: "I
// announce nothing", "I have nothing new", "armed", and one byte for each request in the cache.
// Only when some rank has a request that is not in the cache, a second part exchanges those
// requests in full. docs/collectives.md tells the reasons.
//
// Thread rule: the engine's thread only.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/announcements.h"
#include "collectives/engine/fusion.h"
#include "collectives/engine/joined_ranks.h"
#include "collectives/engine/response.h"
#include "collectives/engine/response_cache.h"
#include "collectives/engine/round_vote.h"
#include "collectives/engine/set_table.h"
#include "collectives/engine/view_ranks.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

struct RoundResult {
  std::vector<Response> responses;  // numbers are not given yet
  bool anything_new =
      false;  // some rank asked for something that it had not asked for in the round before
  std::vector<Unanswered> unanswered;
};

class Negotiator {
 public:
  Negotiator(FusionRules fusion, const SetTable* sets)
      : fusion_(std::move(fusion)),
        sets_(sets),
        ranks_(sets),
        heard_(&ranks_, &joined_),
        vote_(sets, &ranks_, &cache_, &joined_) {}
  // Its parts know each other.
  Negotiator(const Negotiator&) = delete;
  Negotiator& operator=(const Negotiator&) = delete;

  // A new view of these workers, by rank: what was announced in the old one is void.
  void Reset(std::vector<std::string> workers);

  // What all ranks of the view have agreed on (FusionRules::most_bytes).
  void SetFusionBytes(size_t bytes) { fusion_.most_bytes = bytes; }
  // Forgets what was announced. All ranks do so between the same two operations.
  void Void();

  // Forgets what was announced in a process set that is removed.
  void ForgetSet(int32_t process_set);

  // `number`: of the next operation. `pending`: the operations that this rank has asked for and
  // that have not run, in the order of asking. `late`: those of them that have waited for a long
  // time, by key, and since when. They are announced in full, so that all ranks learn which ranks
  // ask for them: from the second round on they are in result->unanswered. On failure
  // (RM_ERR_EPOCH_MOVED) nothing has happened.
  Status Round(Communicator* communicator, uint64_t number,
               const std::vector<const Request*>& pending, const Late& late, bool armed,
               RoundResult* result);

 private:
  // These requests in full. A join also says when it was asked for.
  std::vector<std::byte> Announcement(const std::vector<const Request*>& requests, uint64_t number);
  // The requests that all ranks have voted for.
  std::vector<Request> TakeVoted(const Votes& agreed);
  void HearAnnouncements(const std::vector<std::vector<std::byte>>& by_rank);
  void HearJoin(int rank);
  // Requests of one name whose sets have two ranks in common wait for each other.
  void EvictRivals(const Request& request);
  // `voted`: requests that all ranks have voted for; what fails with a group is taken from them.
  std::vector<Response> FailWhatDiffers(std::vector<Request>* voted);
  std::vector<Response> FailSetsThatDiffer(std::vector<Request>* voted);
  // What has been announced under this key, and all that shares a group with it on any rank.
  std::vector<Request> TakeWithGroups(const std::string& key, std::vector<Request>* voted);
  std::vector<Request> TakeReady(std::vector<Request> voted, bool only_joins);
  void TakeJoin(std::vector<Request>* ready);

  FusionRules fusion_;
  const SetTable* const sets_;
  ViewRanks ranks_;
  ResponseCache cache_;
  JoinedRanks joined_;
  Announcements heard_;
  RoundVote vote_;
};

}  // namespace ringmaster::engine
