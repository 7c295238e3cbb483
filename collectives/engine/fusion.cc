#include "collectives/engine/fusion.h"

#include <algorithm>
#include <utility>

namespace ringmaster::engine {
namespace {

// The place of a kind among the responses of one round. A step ends after everything else that the
// round has made ready. A join and the removal of a set come after what still needs the joined
// ranks or the set. A shutdown is the last of all.
int OrderInRound(Kind kind) {
  switch (kind) {
    case Kind::kStepEnd:
      return 1;
    case Kind::kJoin:
    case Kind::kRemoveSet:
      return 2;
    case Kind::kShutdown:
      return 3;
    default:
      return 0;
  }
}

bool MayShareABuffer(const Request& a, const Request& b) {
  return a.kind == Kind::kAllreduce && b.kind == Kind::kAllreduce && a.dtype == b.dtype &&
         a.op == b.op && a.on_gpu == b.on_gpu && a.process_set == b.process_set &&
         a.group == b.group && a.op != RM_ADASUM;
}

// Divides requests, which are sorted by priority, into batches.
class Batches {
 public:
  Batches(const std::vector<Request>& ready, const FusionRules& rules, ViewRanks* ranks)
      : ready_(ready), rules_(rules), ranks_(ranks), taken_(ready.size(), false) {}

  bool taken(size_t i) const { return taken_[i]; }
  // Adds request `at`, and those after it that are reduced in one buffer with it, as a batch.
  void Take(size_t at, Response* response);

 private:
  bool RunsAlone(const Request& request) const {
    return rules_.runs_alone && rules_.runs_alone(request);
  }
  void AddRanks(const Request& first, Response* response) const;

  const std::vector<Request>& ready_;
  const FusionRules& rules_;
  ViewRanks* const ranks_;
  std::vector<bool> taken_;
};

void Batches::Take(size_t at, Response* response) {
  const Request& first = ready_[at];
  uint64_t bytes = first.bytes();
  uint32_t batch = 0;
  const auto take = [&](size_t i) {
    taken_[i] = true;
    response->requests.push_back(ready_[i]);
    ++batch;
  };
  take(at);
  const bool alone = first.kind != Kind::kAllreduce || RunsAlone(first);
  for (size_t i = at + 1; !alone && i < ready_.size(); ++i) {
    const Request& other = ready_[i];
    // A group completes as a whole, so no request of it is more urgent than the others.
    const bool as_urgent = other.priority == first.priority || first.group.size > 0;
    const size_t most = as_urgent ? rules_.most_bytes : std::min(rules_.most_bytes, kUrgentBytes);
    if (taken_[i] || !MayShareABuffer(first, other) || bytes + other.bytes() > most ||
        RunsAlone(other)) {
      continue;
    }
    bytes += other.bytes();
    take(i);
  }
  response->batches.push_back(batch);
  AddRanks(first, response);
}

void Batches::AddRanks(const Request& first, Response* response) const {
  response->roots.push_back(ranks_->RankOf(first.root));
  if (!first.is_partial()) return;
  response->ranks = ranks_->Of(first);
  const auto root =
      std::find(response->ranks.begin(), response->ranks.end(), ranks_->RankOf(first.root));
  response->roots.back() =
      root == response->ranks.end() ? -1 : static_cast<int>(root - response->ranks.begin());
}

}  // namespace

std::vector<Response> Fuse(std::vector<Request> ready, const FusionRules& rules, bool armed,
                           ViewRanks* ranks) {
  std::stable_sort(ready.begin(), ready.end(),
                   [](const Request& a, const Request& b) { return a.priority < b.priority; });
  std::vector<Response> responses;
  Batches batches(ready, rules, ranks);
  for (size_t i = 0; i < ready.size(); ++i) {
    if (batches.taken(i)) continue;
    Response response;
    batches.Take(i, &response);
    for (size_t j = i + 1; ready[i].group.size > 0 && j < ready.size(); ++j) {
      if (!batches.taken(j) && ready[j].group == ready[i].group) batches.Take(j, &response);
    }
    response.armed = armed && ready[i].kind == Kind::kStepEnd;
    responses.push_back(std::move(response));
  }
  std::stable_sort(responses.begin(), responses.end(), [](const Response& a, const Response& b) {
    return OrderInRound(a.kind()) < OrderInRound(b.kind());
  });
  return responses;
}

}  // namespace ringmaster::engine
