#include "collectives/elastic/rank_timeline.h"

#include <cstdio>

#include "collectives/elastic/first_view.h"

namespace ringmaster::elastic {

void RankTimeline::Entered(const engine::EngineInfo& info) {
  std::call_once(begun_, [&] { Begin(info, false); });
}

void RankTimeline::Begin(const engine::EngineInfo& info, bool again) {
  if (from_the_beginning_.empty()) return;
  // A timeline that can't be written doesn't stop the training.
  if (Status s = Start(from_the_beginning_, info, again); !s.ok())
    std::fprintf(stderr, "ringmaster: HOROVOD_TIMELINE: %s\n", s.message().c_str());
}

Status RankTimeline::Start(const std::string& path, const engine::EngineInfo& info, bool again) {
  const int rank = info.membership().rank;
  if (rank < 0 || timeline_ == nullptr)
    return {RM_ERR_INVALID,
            "this worker is in no view yet: it has no rank to write a timeline for"};
  // Ranks change with views: an existing file of this rank may belong to a worker that had the rank
  // before.
  const bool later = again || info.membership().epoch != kFirstEpoch;
  return timeline_->Start(path, later, {rank, info.WorkerAt(rank), job_});
}

}  // namespace ringmaster::elastic
