// The loop of `ringmaster run` over a cluster that stands: creates the jobs, follows them, shows
// them, until all have ended. Knows the cluster by KubeApi alone.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/cli/display.h"
#include "operator/cli/inbox.h"
#include "operator/cli/job_run.h"
#include "operator/cli/outcome.h"
#include "operator/cli/rank_zero_output.h"
#include "operator/inspection/poller.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

struct SessionOptions {
  std::chrono::seconds timeout{0};  // 0: none
  std::chrono::milliseconds poll_period{150};
  std::string sidecar_token;    // of all jobs; empty: none
  std::filesystem::path logs;   // of pods that are gone, too; empty: nowhere
  bool other_machines = false;  // send what their pods print
  // Of the workers, above the progress line: all, or what rank 0 prints.
  enum class Output { kAll, kRankZero } output = Output::kRankZero;
};

enum class SessionEnd { kSucceeded, kFailed, kInterrupted, kTimeout };

class RunSession {
 public:
  RunSession(std::shared_ptr<kube::KubeApi> api, Display* display, const SessionOptions& options);
  ~RunSession();

  // kUsage: the API server refuses a job; the message is its own.
  Outcome<void> Create(const std::vector<kube::Json>& jobs);
  // Blocks until every job has ended, Interrupt() or the timeout.
  SessionEnd Follow();
  // From any thread. Follow() returns soon.
  void Interrupt(int signal);

  // After Follow(): the jobs as people and programs read them, and why they failed.
  std::vector<std::string> SummaryLines(SessionEnd end) const;
  kube::Json Summary(SessionEnd end) const;
  std::vector<std::string> FailureLines();

 private:
  struct Watchers;

  JobRun* Find(const std::string& ns, const std::string& name);
  void OnPod(const kube::Json& pod, bool gone);
  void Show(TimePoint now, bool last);
  void OnStatus(JobRun* job, const inspection::SidecarStatus& status);
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
  Inbox inbox_;
  // Loop thread only:
  std::vector<std::unique_ptr<JobRun>> jobs_;
  std::map<const JobRun*, RankZeroOutput> rank_zero_;  // where that is what is shown
  std::unique_ptr<Watchers> watchers_;
};

}  // namespace ringmaster::cli
