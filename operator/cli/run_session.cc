#include "operator/cli/run_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "common/fields/fields.h"
#include "common/sync/mutex.h"
#include "operator/api/horovod_job.h"
#include "operator/api/labels.h"
#include "operator/api/object_key.h"
#include "operator/cli/job_summary.h"
#include "operator/cli/log_lines.h"
#include "operator/cli/observer.h"
#include "operator/cli/pod_log.h"
#include "operator/cli/pod_outputs.h"
#include "operator/inspection/text_format.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr std::chrono::milliseconds kTick{100};
// How long reading the logs of an ended job may take.
constexpr std::chrono::milliseconds kLastWords{1000};
// Logs from other machines may still be on their way. A complete log is not waited for. If a
// machine is silent for longer than one call and the pause after a failed call may take, no more of
// its logs is expected.
constexpr std::chrono::milliseconds kSilentMachine{10'000};
constexpr std::chrono::milliseconds kLongestLastWords{600'000};

// Also true for a pod that ended before it was seen running.
bool HasBegun(const Json& pod) {
  const std::string phase = fields::TextAt(pod, "/status/phase");
  return phase == "Running" || phase == "Succeeded" || phase == "Failed";
}

std::string TimeoutText(std::chrono::seconds timeout, const std::string& held_by) {
  return fmt::format("not done after {} s (--timeout){}{}", timeout.count(),
                     held_by.empty() ? "" : ": ", held_by);
}

}  // namespace

struct RunSession::Watchers {
  std::unique_ptr<inspection::StatusPoller> poller;
  std::map<std::string, std::string> uids;  // of the pods that there are, by name
  std::unique_ptr<PodOutputs> outputs;
  std::vector<std::unique_ptr<Observer>> observers;
};

// The output that waits until the display takes it. Who has more waits for room: logs are files,
// and can be read later.
struct RunSession::Backlog {
  static constexpr size_t kMostBytes = 8u << 20;

  // False: nobody takes it any more.
  bool Take(size_t more) {
    const sync::MutexLock lock(&mu);
    while (bytes > 0 && bytes + more > kMostBytes && !closed) changed.Wait(&mu);
    if (closed) ++lost;
    if (!closed) bytes += more;
    return !closed;
  }
  void Shown(size_t less) {
    const sync::MutexLock lock(&mu);
    bytes -= less;
    changed.NotifyAll();
  }
  void Close() {
    const sync::MutexLock lock(&mu);
    closed = true;
    changed.NotifyAll();
  }
  size_t TakeLost() {
    const sync::MutexLock lock(&mu);
    return std::exchange(lost, 0);
  }

  sync::Mutex mu;
  sync::CondVar changed;
  size_t bytes GUARDED_BY(mu) = 0;
  size_t lost GUARDED_BY(mu) = 0;  // lines, since it was told
  bool closed GUARDED_BY(mu) = false;
};

// The statuses that wait for the loop, which may itself wait for the display: of each pod one in
// the loop's queue, and the newest since then.
struct RunSession::WaitingStatuses {
  using Status = inspection::SidecarStatus;

  // False: one of this pod is queued already.
  bool Queue(const std::string& pod, const Status& status) {
    const sync::MutexLock lock(&mu);
    const auto [queued, is_first] = newest.try_emplace(pod);
    if (!is_first) Replace(status, &queued->second);
    return is_first;
  }
  // The queued one of this pod is taken. Returns the newest since then, to be queued behind the
  // lines that came before it; nullopt: there is none.
  std::optional<Status> Taken(const std::string& pod) {
    const sync::MutexLock lock(&mu);
    auto next = std::exchange(newest.at(pod), std::nullopt);
    if (!next) newest.erase(pod);
    return next;
  }
  // A sidecar tells each change of the members a few times only.
  static void Replace(const Status& status, std::optional<Status>* kept) {
    std::vector<job::Rebuild> older;
    if (*kept) {
      for (job::Rebuild& rebuild : (*kept)->rebuilds) {
        const bool told = std::any_of(status.rebuilds.begin(), status.rebuilds.end(),
                                      [&](const auto& one) { return one.epoch == rebuild.epoch; });
        if (!told) older.push_back(std::move(rebuild));
      }
    }
    *kept = status;
    (*kept)->rebuilds.insert((*kept)->rebuilds.begin(), older.begin(), older.end());
  }

  sync::Mutex mu;
  std::map<std::string, std::optional<Status>> newest GUARDED_BY(mu);  // by pod
};

RunSession::RunSession(std::shared_ptr<kube::KubeApi> api, Display* display,
                       const SessionOptions& options)
    : api_(std::move(api)),
      display_(display),
      options_(options),
      begun_(std::chrono::steady_clock::now()),
      backlog_(std::make_unique<Backlog>()),
      waiting_(std::make_unique<WaitingStatuses>()),
      watchers_(std::make_unique<Watchers>()) {}

RunSession::~RunSession() {
  backlog_->Close();
  watchers_.reset();
}

// On a cluster somebody has made it.
Outcome<void> RunSession::MakeNamespace(const std::string& ns) {
  const auto made =
      api_->Create(kube::Namespaces(), "",
                   {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}});
  if (made || made.error().code == kube::ErrorCode::kAlreadyExists) return {};
  return Fail(ExitCode::kUsage,
              fmt::format("metadata.namespace \"{}\": {}", ns, made.error().message));
}

Outcome<void> RunSession::Create(const std::vector<Json>& jobs) {
  for (const Json& job : jobs) {
    std::string ns = fields::TextAt(job, "/metadata/namespace");
    std::string name = fields::TextAt(job, "/metadata/name");
    if (auto made = MakeNamespace(ns); !made) return made;
    if (auto created = api_->Create(kube::HorovodJobs(), ns, job); !created) {
      bool wrong = created.error().code == kube::ErrorCode::kInvalid;
      return Fail(wrong ? ExitCode::kUsage : ExitCode::kJobFailed, created.error().message);
    }
    jobs_.push_back(std::make_unique<JobRun>(ns, name));
  }
  return {};
}

JobRun* RunSession::Find(const std::string& ns, const std::string& name) {
  for (auto& job : jobs_)
    if (job->ns() == ns && job->name() == name) return job.get();
  return nullptr;
}

void RunSession::OnPod(const Json& pod, bool gone) {
  JobRun* job = Find(fields::TextAt(pod, "/metadata/namespace"),
                     fields::Text(fields::At(pod, "/metadata/labels"), api::kJobNameLabel));
  if (!job) return;
  job->OnPod(pod, gone);
  std::string name = fields::TextAt(pod, "/metadata/name");
  const std::string uid = fields::TextAt(pod, "/metadata/uid");
  // All pods are followed even if only rank 0 is shown, because any of them may have it next.
  if (!gone && HasBegun(pod) && watchers_->outputs &&
      watchers_->outputs->Follow(job->ns(), name, uid))
    rank_zero_[job].OnNewPod(name);
  watchers_->uids[name] = uid;
  if (gone) watchers_->uids.erase(name);

  std::map<std::string, inspection::StatusPoller::Pod> polled;
  for (const auto& one : jobs_) {
    for (const auto& [pod_name, address] : one->pods().SidecarAddresses())
      polled[api::KeyText(one->ns(), pod_name)] = {api::KeyText(one->ns(), one->name()), address};
  }
  // The last events are handled after the threads have ended.
  if (watchers_->poller) watchers_->poller->SetPods(std::move(polled));
}

void RunSession::OnStatus(JobRun* job, const inspection::SidecarStatus& status) {
  job->OnStatus(status, std::chrono::steady_clock::now());
  if (options_.output != SessionOptions::Output::kRankZero) return;
  for (const std::string& line : rank_zero_[job].OnStatus(*job, status.pod))
    display_->Line(Prefix(*job) + line);
}

void RunSession::QueueStatus(const std::string& key, const inspection::SidecarStatus& status) {
  inbox_.Post([this, key, status] {
    if (const auto next = waiting_->Taken(key + "/" + status.pod)) QueueStatus(key, *next);
    const api::ObjectKey named = api::ParseKey(key);
    JobRun* job = Find(named.ns, named.name);
    if (job) OnStatus(job, status);
  });
}

void RunSession::PostOutput(const std::string& ns, const std::string& pod, std::string line) {
  const size_t bytes = line.size() + ns.size() + pod.size();
  if (!backlog_->Take(bytes)) return;
  inbox_.Post([this, ns, pod, bytes, line = std::move(line)] {
    ShowOutput(ns, pod, line);
    backlog_->Shown(bytes);
  });
}

void RunSession::ShowOutput(const std::string& ns, const std::string& pod,
                            const std::string& line) {
  for (const auto& job : jobs_) {
    if (job->ns() != ns || !job->pods().Had(pod)) continue;
    if (options_.output == SessionOptions::Output::kAll) {
      // The launcher adds no number if the pod has only one process.
      if (!IsLaunchersAccount(line))
        display_->Line(LabelsLines(job->object())
                           ? line
                           : fmt::format("[{}] {}", job->FirstNumberOf(pod), line));
      return;
    }
    for (const std::string& shown : rank_zero_[job.get()].OnLine(*job, pod, line))
      display_->Line(Prefix(*job) + shown);
  }
}

// If the job was over before a pod was seen running, the output of its first pod is shown.
void RunSession::FinishOutput() {
  for (const auto& job : jobs_) {
    const auto first = watchers_->uids.find(job->pods().First());
    if (first != watchers_->uids.end() && !job->RankZero())
      watchers_->outputs->Follow(job->ns(), first->first, first->second);
  }
  const bool far = options_.other_machines;
  std::atomic<bool> finished{false};
  const std::jthread waits([&, outputs = watchers_->outputs.get()] {
    outputs->Finish(far ? kSilentMachine : kLastWords, far ? kLongestLastWords : kLastWords);
    finished = true;
    inbox_.Post([] {});
  });
  // Who reads the logs waits for room meanwhile.
  while (!finished) {
    if (interrupted_) {
      output_cut_short_ = true;
      backlog_->Close();
      watchers_->outputs->GiveUp();
    }
    inbox_.RunUntil(std::chrono::steady_clock::now() + kTick);
  }
}

SessionEnd RunSession::Follow() {
  watchers_->outputs = std::make_unique<PodOutputs>(
      api_, [this](const std::string& ns, const std::string& pod, std::string line) {
        PostOutput(ns, pod, std::move(line));
      });
  watchers_->poller = std::make_unique<inspection::StatusPoller>(
      options_.poll_period, options_.sidecar_token,
      [this](const std::string& key, const inspection::SidecarStatus& status) {
        if (waiting_->Queue(key + "/" + status.pod, status)) QueueStatus(key, status);
      });
  watchers_->observers.push_back(std::make_unique<Observer>(
      api_, kube::HorovodJobs(), "", [this](const Json& object, bool gone) {
        inbox_.Post([this, object, gone] {
          JobRun* job = Find(fields::TextAt(object, "/metadata/namespace"),
                             fields::TextAt(object, "/metadata/name"));
          if (job) job->OnJob(object, gone);
        });
      }));
  watchers_->observers.push_back(
      std::make_unique<Observer>(api_, kube::Pods(), "", [this](const Json& object, bool gone) {
        inbox_.Post([this, object, gone] { OnPod(object, gone); });
      }));

  SessionEnd end = SessionEnd::kSucceeded;
  while (true) {
    TimePoint now = std::chrono::steady_clock::now();
    inbox_.RunUntil(now + kTick);
    now = std::chrono::steady_clock::now();
    if (std::all_of(jobs_.begin(), jobs_.end(), [](auto& job) { return job->end().has_value(); }))
      break;
    if (interrupted_) {
      display_->Line(inspection::Clock(Seconds()) +
                     "  interrupted: ending the job; once more ends at once");
      end = SessionEnd::kInterrupted;
    } else if (options_.timeout.count() && now - begun_ >= options_.timeout)
      end = SessionEnd::kTimeout;
    if (end == SessionEnd::kSucceeded && !options_.directory_is_there())
      end = SessionEnd::kDirectoryGone;
    if (end != SessionEnd::kSucceeded) break;
    Show(now, false);
  }
  if (end == SessionEnd::kSucceeded) FinishOutput();
  for (const std::string& pod : watchers_->outputs->TakeCut())
    display_->Line(fmt::format("{}  the log of pod {} was cut, and its last lines are not shown",
                               inspection::Clock(Seconds()), pod));
  // The threads end before the last output, so that nothing is posted after it.
  auto watchers = std::exchange(watchers_, std::make_unique<Watchers>());
  watchers->observers.clear();
  watchers->poller.reset();
  backlog_->Close();
  watchers->outputs.reset();
  TimePoint now = std::chrono::steady_clock::now();
  inbox_.RunUntil(now);
  Show(now, true);
  display_->Finish();
  bool failed = std::any_of(jobs_.begin(), jobs_.end(),
                            [](auto& job) { return job->end() && !job->end()->succeeded; });
  if (end == SessionEnd::kSucceeded && failed) return SessionEnd::kFailed;
  // What was not shown is in the logs, which an interrupted run keeps.
  if (end == SessionEnd::kSucceeded && output_cut_short_) return SessionEnd::kInterrupted;
  return end;
}

void RunSession::Interrupt(int signal) {
  interrupted_ = signal;
  inbox_.Post([] {});
}

double RunSession::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

std::string RunSession::Prefix(const JobRun& job) const {
  return jobs_.size() > 1 ? job.name() + ": " : "";
}

void RunSession::Show(TimePoint now, bool last) {
  std::string clock = inspection::Clock(Seconds()) + "  ";
  if (const size_t lost = backlog_->TakeLost(); lost > 0)
    display_->Line(
        fmt::format("{}at least {} lines of output were not taken in time and are not shown; the "
                    "logs have them",
                    clock, lost));
  ProgressNews progress;
  for (auto& job : jobs_) {
    for (const std::string& line : job->TakeLines(now, last))
      display_->Line(clock + Prefix(*job) + line);
    if (job->end()) continue;
    int bar = jobs_.size() > 1 ? 0 : std::max(0, display_->width() - 90);
    if (!progress.text.empty()) progress.text += " | ";
    progress.text += Prefix(*job) + job->ProgressLine(bar);
    if (const std::string why = job->HeldUpBy(); !why.empty())
      progress.held_up.push_back({Prefix(*job), why});
  }
  if (!last) display_->Progress(clock, progress, now);
}

std::string RunSession::ExitReason(const JobRun& job, SessionEnd end) const {
  if (job.end()) return job.end()->succeeded ? "Succeeded" : "Failed";
  if (end == SessionEnd::kDirectoryGone) return "Failed";
  return end == SessionEnd::kTimeout ? "Timeout" : "Interrupted";
}

std::vector<std::string> RunSession::SummaryLines(SessionEnd end) const {
  std::vector<std::string> lines;
  for (const auto& job : jobs_)
    for (std::string& line : JobSummaryLines(*job, ExitReason(*job, end), Seconds()))
      lines.push_back(std::move(line));
  return lines;
}

Json RunSession::Summary(SessionEnd end) const {
  Json all = Json::array();
  for (const auto& job : jobs_) all.push_back(JobSummary(*job, ExitReason(*job, end), Seconds()));
  if (all.size() == 1) return all[0];
  return {{"jobs", all}};
}

std::vector<std::string> RunSession::FailureLines() {
  std::vector<std::string> lines;
  for (const auto& job : jobs_) {
    if (job->end() && job->end()->succeeded) continue;
    const std::string why =
        job->end() ? job->end()->message : TimeoutText(options_.timeout, job->HeldUpBy());
    const bool shown = options_.output == SessionOptions::Output::kAll;
    for (std::string& line : FailureLinesOf(api_.get(), *job, why, shown, options_.logs))
      lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ringmaster::cli
