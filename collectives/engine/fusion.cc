#include "collectives/engine/fusion.h"

#include <algorithm>
#include <utility>

namespace ringmaster::engine {
namespace {

// A step ends after all else that the same round has made ready; ranks count as joined, and sets
// are there, until all that needs them is done.
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

// Adds request `at`, and those after it that can be reduced in one buffer with it, as a batch.
void TakeBatch(const std::vector<Request>& ready, size_t at, size_t most_bytes, ViewRanks* ranks,
               std::vector<bool>* taken, Response* response) {
  const Request& first = ready[at];
  uint64_t bytes = first.bytes();
  uint32_t batch = 0;
  const auto take = [&](size_t i) {
    (*taken)[i] = true;
    response->requests.push_back(ready[i]);
    ++batch;
  };
  take(at);
  for (size_t i = at + 1; first.kind == Kind::kAllreduce && i < ready.size(); ++i) {
    const Request& other = ready[i];
    if ((*taken)[i] || other.kind != Kind::kAllreduce || other.dtype != first.dtype ||
        other.op != first.op || other.on_gpu != first.on_gpu ||
        other.process_set != first.process_set || bytes + other.bytes() > most_bytes ||
        other.group != first.group || first.op == RM_ADASUM) {
      continue;
    }
    bytes += other.bytes();
    take(i);
  }
  response->batches.push_back(batch);
  response->roots.push_back(ranks->RankOf(first.root));
  if (!first.is_partial()) return;
  response->ranks = ranks->Of(first);
  const auto root =
      std::find(response->ranks.begin(), response->ranks.end(), ranks->RankOf(first.root));
  response->roots.back() =
      root == response->ranks.end() ? -1 : static_cast<int>(root - response->ranks.begin());
}

}  // namespace

std::vector<Response> Fuse(std::vector<Request> ready, size_t most_bytes, bool armed,
                           ViewRanks* ranks) {
  std::stable_sort(ready.begin(), ready.end(),
                   [](const Request& a, const Request& b) { return a.priority < b.priority; });
  std::vector<Response> responses;
  std::vector<bool> taken(ready.size(), false);
  for (size_t i = 0; i < ready.size(); ++i) {
    if (taken[i]) continue;
    Response response;
    TakeBatch(ready, i, most_bytes, ranks, &taken, &response);
    for (size_t j = i + 1; ready[i].group.size > 0 && j < ready.size(); ++j) {
      if (!taken[j] && ready[j].group == ready[i].group)
        TakeBatch(ready, j, most_bytes, ranks, &taken, &response);
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
