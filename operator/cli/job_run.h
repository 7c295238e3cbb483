// One job of a `ringmaster run`, from the reports of API server and sidecars: it produces lines for
// people, the end, and the summary. No I/O.
//
// Thread rule: the loop thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/cli/progress.h"

namespace ringmaster::cli {

// How a job ended.
struct JobEnd {
  bool succeeded = false;
  std::string reason;   // reason of the condition: "BackoffLimitExceeded", ...
  std::string message;  // for people
};

// A line that the launcher has written of its own doing: for who looks into a log, not for who
// looks at what workers print. Its errors are for both.
bool IsLaunchersAccount(std::string_view line);

class JobRun {
 public:
  using Json = nlohmann::json;
  JobRun(std::string ns, std::string name) : ns_(std::move(ns)), name_(std::move(name)) {}

  void OnJob(const Json& job, bool gone);
  void OnPod(const Json& pod, bool gone);
  void OnStatus(const inspection::SidecarStatus& status, TimePoint now) {
    progress_.Observe(status, now);
  }

  // The messages since the last call; `last`: the run is over.
  std::vector<std::string> TakeLines(TimePoint now, bool last = false);
  // One line about the progress, with a bar of up to `bar` characters.
  std::string ProgressLine(int bar) const;

  std::optional<JobEnd> end() const { return end_; }
  // What keeps the job from training, in the words of its condition; empty if no condition says so.
  std::string HeldUpBy() const;
  const std::string& name() const { return name_; }
  const std::string& ns() const { return ns_; }
  const Json& object() const { return job_; }
  const JobProgress& progress() const { return progress_; }
  // Addresses of the sidecars of living pods, by pod.
  std::map<std::string, std::string> SidecarAddresses() const;
  // Also true for a pod that is gone, because its output may be read later.
  bool HadPod(const std::string& pod) const { return indexes_.count(pod) > 0; }
  // The pod with the lowest index that ever existed; empty if there was none.
  std::string FirstPod() const;
  // The job has had a view, according to the sidecars or its status.
  bool HadView() const;
  // The worker that has rank 0 in the newest view.
  std::optional<inspection::RankStatus> RankZero() const { return progress_.RankZero(); }
  // A line of a pod's log as it is shown if this worker printed it, with its number in front
  // (HOROVOD_RANK, which it keeps).
  std::optional<std::string> OutputOf(const inspection::RankStatus& worker, const std::string& pod,
                                      const std::string& line) const;
  // The same for the worker with rank 0. Before the first view it is the first worker of the first
  // pod, so that a job that hangs before init() is not silent.
  std::optional<std::string> OutputOfRankZero(const std::string& pod,
                                              const std::string& line) const;
  // The pod whose log explains the failure: the one that the condition names, else the first with a
  // failed container; empty if none is known.
  std::string PodToBlame() const;
  // The number of a pod's first worker, and whether the pod's log contains such numbers.
  int FirstNumberOf(const std::string& pod) const;
  bool LabelsLines() const;

  int64_t StepsLost() const;
  int64_t RestartsFromCheckpoint() const;
  Json Summary(const std::string& exit_reason, double seconds) const;
  std::vector<std::string> SummaryLines(const std::string& exit_reason, double seconds) const;

 private:
  std::string StartingText() const;

  const std::string ns_;
  const std::string name_;
  Json job_ = Json::object();
  std::map<std::string, Json> pods_;
  std::map<std::string, int> indexes_;  // of all pods that ever existed
  std::vector<std::string> lines_;
  JobProgress progress_;
  std::optional<JobEnd> end_;
};

}  // namespace ringmaster::cli
