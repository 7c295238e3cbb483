// The timeline file of this worker, named by its rank: the one of HOROVOD_TIMELINE, from the first
// view on, and those that the script starts.
//
// Thread rule: any thread.
#pragma once

#include <mutex>
#include <string>

#include "collectives/elastic/options.h"
#include "collectives/engine/engine_info.h"
#include "collectives/timeline/timeline.h"

namespace ringmaster::elastic {

class RankTimeline {
 public:
  explicit RankTimeline(const WorkerOptions& options)
      : timeline_(options.timeline),
        from_the_beginning_(options.timeline_file),
        job_(options.job) {}

  // The worker is in a view, for the first time or again.
  void Entered(const engine::EngineInfo& info);
  // The script begins again. The shutdown has ended the file that was written until then.
  void Woken(const engine::EngineInfo& info) { Begin(info, /*again=*/true); }
  // RM_ERR_INVALID: a timeline is being written already, or there can be no such file.
  Status Start(const std::string& path, const engine::EngineInfo& info) {
    return Start(path, info, false);
  }

 private:
  void Begin(const engine::EngineInfo& info, bool again);
  // `again`: a file of this name that exists is this worker's own.
  Status Start(const std::string& path, const engine::EngineInfo& info, bool again);

  timeline::Timeline* const timeline_;    // null: there is none
  const std::string from_the_beginning_;  // a path, or empty
  const std::string job_;
  std::once_flag begun_;
};

}  // namespace ringmaster::elastic
