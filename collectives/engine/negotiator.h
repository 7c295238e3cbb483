// The ranks of a view agree, in rounds, on which named operations all of them have asked for, and
// in which order these run.
//
// A round is a collective. Its first part is one small allreduce (MIN) over a vector of bytes: "I
// announce nothing", "I have nothing new", "armed", "I wait for nothing but a join", and one byte
// for each request in the cache. A second part follows only if some rank announces requests, mostly
// because they are not in the cache: it exchanges these in full. docs/collectives.md gives the
// reasons.
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
  std::vector<Response> responses;  // in the order in which they run; without numbers yet
  // Some rank has asked for something that it had not asked for in an earlier round.
  bool anything_new = false;
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
  // Not copied, because its parts point to each other.
  Negotiator(const Negotiator&) = delete;
  Negotiator& operator=(const Negotiator&) = delete;

  // A new view of these workers, by rank. Forgets what was announced in the old one.
  void Reset(std::vector<std::string> workers);

  // Sets FusionRules::most_bytes to the value on which all ranks of the view have agreed.
  void SetFusionBytes(size_t bytes) { fusion_.most_bytes = bytes; }
  // Forgets what was announced. All ranks must call it between the same two operations.
  void Void();

  // Forgets what was announced in a process set that is removed.
  void ForgetSet(int32_t process_set);

  // Runs one round with all ranks. `number`: of the next operation. `pending`: the operations that
  // this rank has asked for and that have not run, in the order of asking. `late`: those of them
  // that have waited for a long time. They are announced in full, so that all ranks learn which
  // ranks ask for them; from the next round on they are in result->unanswered. `armed`: the next
  // boundary is to be that of a planned change. On failure (RM_ERR_EPOCH_MOVED) nothing has been
  // agreed on.
  Status Round(Communicator* communicator, uint64_t number,
               const std::vector<const Request*>& pending, const Late& late, bool armed,
               RoundResult* result);

 private:
  // The message that announces these requests in full. A join also says when it was asked for.
  std::vector<std::byte> Announcement(const std::vector<const Request*>& requests, uint64_t number);
  // The requests that all ranks have voted for.
  std::vector<Request> TakeVoted(const Votes& agreed);
  void HearAnnouncements(const std::vector<std::vector<std::byte>>& by_rank);
  void HearJoin(int rank);
  // Takes the requests of this name out of the cache whose sets have two or more ranks in common
  // with this request's set. The two may wait for each other for ever, which the ranks find out
  // only if both are announced in full.
  void EvictRivals(const Request& request);
  // The operations that can't run: as responses with an error. `voted`: the requests that all ranks
  // have voted for; those that fail because their group does are taken from it.
  std::vector<Response> FailWhatDiffers(std::vector<Request>* voted);
  // Of these, the operations that wait for each other in different sets (DescribeRivals).
  std::vector<Response> FailSetsThatDiffer(std::vector<Request>* voted);
  // If what was announced under these two keys waits for each other, it fails.
  void FailRivals(const std::string& key, const std::string& other_key, std::vector<Request>* voted,
                  std::vector<Response>* failed);
  // Takes what has been announced under this key, and everything that shares a group with it on any
  // rank: announced, in the cache or in *voted.
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
