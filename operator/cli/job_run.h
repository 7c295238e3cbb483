// One job of a `ringmaster run`, from what the API server and the sidecars tell: lines for people,
// its end, its summary. No I/O.
//
// Thread rule: the loop thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/cli/progress.h"

namespace ringmaster::cli {

// How a job ended.
struct JobEnd {
  bool succeeded = false;
  std::string reason;   // of the condition: "BackoffLimitExceeded", ...
  std::string message;  // for people
};

// status.conditions[type] is True; null otherwise.
const nlohmann::json* TrueCondition(const nlohmann::json& object, const std::string& type);

class JobRun {
 public:
  using Json = nlohmann::json;
  JobRun(std::string ns, std::string name) : ns_(std::move(ns)), name_(std::move(name)) {}

  void OnJob(const Json& job, bool gone);
  void OnPod(const Json& pod, bool gone);
  void OnStatus(const SidecarStatus& status, TimePoint now) { progress_.Observe(status, now); }

  // What has happened since the last call; `last`: the run is over.
  std::vector<std::string> TakeLines(TimePoint now, bool last = false);
  // The one line that says how it goes, with a bar of up to `bar` characters.
  std::string ProgressLine(int bar) const;

  std::optional<JobEnd> end() const { return end_; }
  const std::string& name() const { return name_; }
  const std::string& ns() const { return ns_; }
  const Json& object() const { return job_; }
  const JobProgress& progress() const { return progress_; }
  // Where the sidecars of the pods that live answer, by pod.
  std::map<std::string, std::string> SidecarAddresses() const;
  // Of the pods that failed, or of all if none did: whose logs say why.
  std::vector<std::string> PodsToBlame() const;

  int64_t StepsLost() const;
  Json Summary(const std::string& exit_reason, double seconds) const;
  std::vector<std::string> SummaryLines(const std::string& exit_reason, double seconds) const;

 private:
  std::string StartingText() const;

  const std::string ns_;
  const std::string name_;
  Json job_ = Json::object();
  std::map<std::string, Json> pods_;
  std::vector<std::string> lines_;
  JobProgress progress_;
  std::optional<JobEnd> end_;
};

}  // namespace ringmaster::cli
