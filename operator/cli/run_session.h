// The loop of `ringmaster run` on a running cluster: it creates the jobs, follows them and shows
// their progress until all have ended. It knows the cluster only by KubeApi.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/cli/display.h"
#include "operator/cli/job_run.h"
#include "operator/cli/outcome.h"
#include "operator/cli/rank_zero_output.h"
#include "operator/cli/time_point.h"
#include "operator/cli/work_queue.h"
#include "operator/inspection/poller.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

struct SessionOptions {
  std::chrono::seconds timeout{0};  // 0: none
  std::chrono::milliseconds poll_period{150};
  std::string sidecar_token;   // for all jobs; empty: none
  std::filesystem::path logs;  // where logs are kept, also of pods that are gone; empty: nowhere
  // False: the run can't go on, because somebody has removed its directory. Asked again and again.
  std::function<bool()> directory_is_there = [] { return true; };
  bool other_machines = false;  // other machines send their pods' output
  // The workers' output above the progress line: all of it, or that of rank 0.
  enum class Output { kAll, kRankZero } output = Output::kRankZero;
};

enum class SessionEnd { kSucceeded, kFailed, kInterrupted, kTimeout, kDirectoryGone };

class RunSession {
 public:
  RunSession(std::shared_ptr<kube::KubeApi> api, Display* display, const SessionOptions& options);
  ~RunSession();

  // kUsage: the API server refuses a job; the message is the server's.
  Outcome<void> Create(const std::vector<kube::Json>& jobs);
  // Blocks until every job has ended, until Interrupt() or until the timeout.
  SessionEnd Follow();
  // Call it from any thread. Follow() then returns soon.
  void Interrupt(int signal);

  // After Follow(): summaries of the jobs for people and for programs, and why jobs failed.
  std::vector<std::string> SummaryLines(SessionEnd end) const;
  kube::Json Summary(SessionEnd end) const;
  std::vector<std::string> FailureLines();

 private:
  struct Watchers;
  struct Backlog;
  struct WaitingStatuses;

  Outcome<void> MakeNamespace(const std::string& ns);
  JobRun* Find(const std::string& ns, const std::string& name);
  void OnPod(const kube::Json& pod, bool gone);
  void Show(TimePoint now, bool last);
  void OnStatus(JobRun* job, const inspection::SidecarStatus& status);
  // From any thread. `key`: of the job.
  void QueueStatus(const std::string& key, const inspection::SidecarStatus& status);
  // From any thread but the loop's: the line is shown later. Waits where too much waits for that.
  void PostOutput(const std::string& ns, const std::string& pod, std::string line);
  void ShowOutput(const std::string& ns, const std::string& pod, const std::string& line);
  void FinishOutput();
  std::string Prefix(const JobRun& job) const;
  double Seconds() const;
  std::string ExitReason(const JobRun& job, SessionEnd end) const;

  const std::shared_ptr<kube::KubeApi> api_;
  Display* const display_;
  const SessionOptions options_;
  const TimePoint begun_;
  std::atomic<int> interrupted_{0};
  const std::unique_ptr<Backlog> backlog_;
  const std::unique_ptr<WaitingStatuses> waiting_;
  WorkQueue inbox_;
  // Used by the loop thread only:
  std::vector<std::unique_ptr<JobRun>> jobs_;
  std::map<const JobRun*, RankZeroOutput> rank_zero_;  // if rank 0's output is shown
  std::unique_ptr<Watchers> watchers_;
  bool output_cut_short_ = false;  // by a signal, after the jobs had ended
};

}  // namespace ringmaster::cli
