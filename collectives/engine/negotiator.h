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

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/engine/response_cache.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

struct RoundResult {
  std::vector<Response> responses;  // numbers are not given yet
  bool anything_new =
      false;  // some rank asked for something that it had not asked for in the round before
};

class Negotiator {
 public:
  explicit Negotiator(size_t fusion_bytes) : fusion_bytes_(fusion_bytes) {}

  // A new view: what was announced in the old one is void.
  void Reset();

  // `pending`: all that this rank has asked for and that has not run, in the order of asking.
  // On failure (RM_ERR_EPOCH_MOVED) nothing has happened.
  Status Round(Communicator* communicator, const std::vector<const Request*>& pending, bool armed,
               RoundResult* result);

 private:
  struct Vote {
    std::vector<uint8_t> bytes;
    std::vector<const Request*> announce;
  };

  Vote MakeVote(const std::vector<const Request*>& pending, bool armed) const;
  void HearAnnouncements(const std::vector<std::vector<std::byte>>& by_rank);
  void TakeComplete(int size, std::vector<Request>* ready, std::vector<Response>* failed);
  std::vector<Response> Fuse(const std::vector<Request>& ready, bool armed) const;

  const size_t fusion_bytes_;
  ResponseCache cache_;
  std::set<std::string> voted_;      // names this rank has voted for or announced before
  std::set<std::string> announced_;  // names this rank has announced in full, not run yet
  // What the ranks have announced: by name, then by rank. The same on all ranks.
  std::map<std::string, std::map<int, Request>> heard_;
  std::vector<std::string> heard_order_;
};

}  // namespace ringmaster::engine
