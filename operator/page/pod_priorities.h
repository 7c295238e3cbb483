// The priorities of jobs, which stand in their pods alone: a class' number is filled in as a pod is
// stored, and a job has the name of the class.
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
  // What is kept of jobs that have gone does not grow: of more jobs all are learned anew.
  static constexpr std::size_t kMostJobs = 10'000;

  void Remember(const nlohmann::json& pod);
  void Remember(const std::vector<nlohmann::json>& pods) {
    for (const nlohmann::json& pod : pods) Remember(pod);
  }
  // nullopt: no pod of it has been seen.
  std::optional<int> Of(const nlohmann::json& job) const;

 private:
  mutable sync::Mutex mu_;
  std::map<std::string, int> by_job_ GUARDED_BY(mu_);  // its uid
};

}  // namespace ringmaster::page
