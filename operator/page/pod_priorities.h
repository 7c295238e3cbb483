// The priorities of jobs: the API server fills in the number of a priority class when a pod is
// stored, and the job has only the name of the class. Of a job without pods the status says it,
// where the operator counts what is free.
//
// Thread rule: any thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/sync/mutex.h"

namespace ringmaster::page {

class PodPriorities {
 public:
  // Limits what is kept about jobs that are gone: beyond this number all priorities are learned
  // anew.
  static constexpr std::size_t kMostJobs = 10'000;

  void Remember(const nlohmann::json& pod);
  void Remember(const std::vector<nlohmann::json>& pods) {
    for (const nlohmann::json& pod : pods) Remember(pod);
  }
  // nullopt: none of the job's pods was seen, and the status says nothing.
  std::optional<int> Of(const nlohmann::json& job) const;

 private:
  mutable sync::Mutex mu_;
  std::map<std::string, int> by_job_ GUARDED_BY(mu_);  // by job uid
};

}  // namespace ringmaster::page
