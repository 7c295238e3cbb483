// One job of a `ringmaster run`, from the reports of API server and sidecars: the job's object and
// end, its pods, its progress, and the lines for people that follow from them. No I/O. What is said
// when the run is over is job_summary.h.
//
// Thread rule: the loop thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/cli/job_pods.h"
#include "operator/cli/progress.h"
#include "operator/cli/time_point.h"
#include "operator/inspection/sidecar_status.h"

namespace ringmaster::cli {

// How a job ended.
struct JobEnd {
  bool succeeded = false;
  std::string reason;   // reason of the condition: "BackoffLimitExceeded", ...
  std::string message;  // for people
};

class JobRun {
 public:
  using Json = nlohmann::json;
  JobRun(std::string ns, std::string name) : ns_(std::move(ns)), name_(std::move(name)) {}

  void OnJob(const Json& job, bool gone);
  void OnPod(const Json& pod, bool gone);
  void OnStatus(const inspection::SidecarStatus& status, TimePoint now) {
    progress_.Observe(status, now);
  }

  // The changes of the members that have settled since the last call; `last`: the run is over.
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
  const JobPods& pods() const { return pods_; }
  // The job has had a view, according to the sidecars or its status.
  bool HadView() const;
  // The worker that has rank 0 in the newest view.
  std::optional<inspection::RankHolder> RankZero() const { return progress_.views().RankZero(); }
  // A line of a pod's log as it is shown if this worker printed it, with its number in front
  // (HOROVOD_RANK, which it keeps).
  std::optional<std::string> OutputOf(const inspection::RankHolder& worker, const std::string& pod,
                                      const std::string& line) const;
  // Taken for the one with rank 0 before the first view: the first worker of the first pod, so that
  // a job that hangs before init() is not silent.
  inspection::RankHolder FirstWorker() const { return {pods_.First(), 0, 0}; }
  // The same as OutputOf, for the worker with rank 0.
  std::optional<std::string> OutputOfRankZero(const std::string& pod,
                                              const std::string& line) const;
  // The pod whose log explains the failure: the one that the condition names, else the first with a
  // failed container; empty if none is known.
  std::string PodToBlame() const;
  // The number of a pod's first worker.
  int FirstNumberOf(const std::string& pod) const;

 private:
  const std::string ns_;
  const std::string name_;
  Json job_ = Json::object();
  JobPods pods_;
  JobProgress progress_;
  std::optional<JobEnd> end_;
};

}  // namespace ringmaster::cli
