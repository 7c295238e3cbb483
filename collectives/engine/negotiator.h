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

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/engine/response_cache.h"
#include "collectives/engine/set_table.h"
#include "collectives/engine/view_ranks.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

// What this rank has waited for, since before a moment that it was asked about, and still does.
struct Unanswered {
  std::string tensor;  // for people
  int32_t process_set = 0;
  std::vector<int> asked, missing;  // ranks, ascending
  std::chrono::steady_clock::time_point since;
};

struct RoundResult {
  std::vector<Response> responses;  // numbers are not given yet
  bool anything_new =
      false;  // some rank asked for something that it had not asked for in the round before
  std::vector<Unanswered> unanswered;
};

class Negotiator {
 public:
  Negotiator(size_t fusion_bytes, const SetTable* sets)
      : fusion_bytes_(fusion_bytes), sets_(sets), ranks_(sets) {}

  // A new view of these workers, by rank: what was announced in the old one is void.
  void Reset(std::vector<std::string> workers);

  // The set is removed: what was announced in it is void.
  void ForgetSet(int32_t process_set);

  // `number`: of the next operation. `pending`: all that this rank has asked for and that has not
  // run, in the order of asking. `late`: what of it has waited for long, by key, since when. It is
  // announced in full, so that all hear who asks for it: result->unanswered, from the second round
  // on. On failure (RM_ERR_EPOCH_MOVED) nothing has happened.
  using Late = std::map<std::string, std::chrono::steady_clock::time_point>;
  Status Round(Communicator* communicator, uint64_t number,
               const std::vector<const Request*>& pending, const Late& late, bool armed,
               RoundResult* result);

 private:
  struct Vote {
    std::vector<uint8_t> bytes;
    std::vector<const Request*> announce;
  };

  Vote MakeVote(const std::vector<const Request*>& pending, const Late& late, bool armed);
  // Of `late` what had been announced before this round: whoever waits for it has said so by now.
  Late AnnouncedBefore(const Late& late) const;
  std::vector<Unanswered> FindUnanswered(const Late& known);
  // As a rank that has joined: for all that the others may want to run.
  void VoteAsJoined(Vote* vote);
  // For what other sets may want to run.
  void VoteAsOutsider(Vote* vote);
  // The request that is announced in full: a join says when it was asked for.
  Request Announced(const Request& request, uint64_t number);
  bool HasJoined(int rank) const;
  // The last rank that joined, when all have.
  int LastJoined(const std::map<int, Request>& joins) const;
  void HearJoin(int rank);
  void HearAnnouncements(const std::vector<std::vector<std::byte>>& by_rank);
  // Some rank of the set hasn't joined.
  bool IsActive(int32_t process_set);
  // Requests of one name whose sets have two ranks in common wait for each other.
  void EvictRivals(const Request& request);
  std::vector<Response> FailSetsThatDiffer(std::vector<Request>* voted);
  // Empty, or a sentence: these two, of one name and different sets, wait for each other for ever.
  std::string DescribeRivals(const std::map<int, Request>& one,
                             const std::map<int, Request>& other);
  // All ranks have announced it that must.
  bool Complete(const std::map<int, Request>& by_rank);
  // Why the operation can't run; RM_OK: it can.
  Status Check(const std::map<int, Request>& by_rank);
  // `voted`: requests that all ranks have voted for; what fails with a group is taken from them.
  std::vector<Response> FailWhatDiffers(std::vector<Request>* voted);
  // What has been announced under this name, and all that shares a group with it on any rank.
  std::vector<Request> TakeWithGroups(const std::string& name, std::vector<Request>* voted);
  std::vector<Request> TakeReady(std::vector<Request> voted, bool only_joins);
  void TakeJoin(std::vector<Request>* ready);

  const size_t fusion_bytes_;
  const SetTable* const sets_;
  ViewRanks ranks_;
  ResponseCache cache_;
  std::set<std::string> voted_;      // names this rank has voted for or announced before
  std::set<std::string> announced_;  // names this rank has announced in full, not run yet
  // What the ranks have announced: by name, then by rank. The same on all ranks.
  std::map<std::string, std::map<int, Request>> heard_;
  std::vector<std::string> heard_order_;
  std::vector<int> joined_;              // ranks, in the order in which they were heard to join
  std::optional<uint64_t> join_number_;  // when this rank joined, also if views have changed since
  int self_ = -1;                        // rank
};

}  // namespace ringmaster::engine
