#include "operator/controllers/sidecar_registry.h"

#include <iterator>
#include <set>
#include <variant>

#include "operator/api/object_key.h"
#include "operator/controllers/metrics.h"

namespace ringmaster::controllers {
namespace {

constexpr std::chrono::milliseconds kAtOnce{0};
constexpr std::chrono::milliseconds kGather{50};

// All pods report a rebuild, a step that is waited for, or that all leave, within a moment: one
// reconcile is enough for all reports.
std::chrono::milliseconds DelayFor(const SidecarReport& report) {
  const bool from_all = std::holds_alternative<ViewReport>(report) ||
                        std::holds_alternative<StepAwaitedReport>(report) ||
                        std::holds_alternative<AllLeaveReport>(report);
  return from_all ? kGather : kAtOnce;
}

std::string JobKeyOf(const job::Registration& registration) {
  return api::KeyText(registration.job_namespace, registration.job_name);
}

// A list that has all of `pods`: the one that was told before, where that does. A list of who is
// left would be another notice for all with each that ends.
planner::Uids ListWith(const std::vector<std::string>& pods, const planner::Uids& told) {
  std::set<std::string> all(pods.begin(), pods.end());
  if (told != nullptr) {
    all.insert(told->begin(), told->end());
    if (all.size() == told->size()) return told;
  }
  return planner::UidsOf({all.begin(), all.end()});
}

}  // namespace

void SidecarRegistry::SetChangeHandler(ChangeHandler handler) {
  const sync::MutexLock lock(&mu_);
  handler_ = std::move(handler);
}

void SidecarRegistry::SetPodLookup(PodLookup lookup) {
  const sync::MutexLock lock(&mu_);
  pod_lookup_ = std::move(lookup);
}

void SidecarRegistry::SetJobLookup(JobLookup lookup) {
  const sync::MutexLock lock(&mu_);
  job_lookup_ = std::move(lookup);
}

bool SidecarRegistry::KnowsPodOf(const job::Registration& registration) const {
  PodLookup lookup;
  {
    const sync::MutexLock lock(&mu_);
    lookup = pod_lookup_;
  }
  return lookup && lookup(registration);
}

bool SidecarRegistry::KnowsJob(const std::string& job_key, const std::string& job_uid) const {
  JobLookup lookup;
  {
    const sync::MutexLock lock(&mu_);
    lookup = job_lookup_;
  }
  return lookup && lookup(job_key, job_uid);
}

void SidecarRegistry::Report(const std::string& key, std::chrono::milliseconds delay) {
  ChangeHandler handler;
  {
    const sync::MutexLock lock(&mu_);
    handler = handler_;
  }
  if (handler) handler(key, delay);
}

std::string SidecarRegistry::WhyNotConnect(const job::Registration& registration) const {
  const std::string key = JobKeyOf(registration);
  const sync::MutexLock lock(&mu_);
  const auto job = jobs_.find(registration.job_uid);
  if (job == jobs_.end()) return "";
  if (job->second.key_is_known && job->second.key != key) {
    return "job_name is \"" + key + "\", the job of uid " + registration.job_uid + " is " +
           job->second.key;
  }
  if (job->second.reports.IsFullFor(registration.pod_uid)) {
    return "job " + key + " has " + std::to_string(JobReports::kMostSidecars) + " sidecars already";
  }
  return "";
}

SidecarRegistry::ConnectionId SidecarRegistry::Connect(const job::Registration& registration,
                                                       std::shared_ptr<NoticeSink> sink) {
  const std::string key = JobKeyOf(registration);
  ConnectionId id;
  std::shared_ptr<NoticeSink> former;
  {
    const sync::MutexLock lock(&mu_);
    id = ++last_id_;
    Job& job = JobOf(registration.job_uid);
    if (!job.key_is_known) SetKey(registration.job_uid, key, &job);
    job.reports.Connected(registration, clock_.wall());
    Stream& stream = job.streams[registration.pod_uid];
    places_.erase(stream.id);
    former = std::exchange(stream, {.id = id, .sink = std::move(sink), .sent = {}}).sink;
    places_[id] = {registration.job_uid, registration.pod_uid};
  }
  if (former != nullptr) former->Replaced();
  Report(key, kAtOnce);
  return id;
}

SidecarRegistry::Job& SidecarRegistry::JobOf(const std::string& job_uid) {
  return jobs_.try_emplace(job_uid, forgets_.old_reports).first->second;
}

void SidecarRegistry::SetKey(const std::string& job_uid, const std::string& job_key, Job* job) {
  if (job->key == job_key) return;
  DropKey(job_uid, job->key);
  job->key = job_key;
  uids_[job_key].insert(job_uid);
}

void SidecarRegistry::DropKey(const std::string& job_uid, const std::string& job_key) {
  const auto uids = uids_.find(job_key);
  if (uids == uids_.end()) return;
  uids->second.erase(job_uid);
  if (uids->second.empty()) uids_.erase(uids);
}

void SidecarRegistry::Erase(const std::string& job_uid) {
  const auto job = jobs_.find(job_uid);
  if (job == jobs_.end()) return;
  DropKey(job_uid, job->second.key);
  jobs_.erase(job);
}

void SidecarRegistry::Disconnect(ConnectionId id) {
  std::string key;
  {
    const sync::MutexLock lock(&mu_);
    const auto place = places_.find(id);
    if (place == places_.end()) return;
    Job& job = JobOf(place->second.job_uid);
    job.reports.Disconnected(place->second.pod_uid, clock_.wall());
    job.streams.erase(place->second.pod_uid);
    key = job.key;
    places_.erase(place);
  }
  Report(key, kAtOnce);
}

void SidecarRegistry::Take(ConnectionId id, SidecarReport report) {
  const std::chrono::milliseconds delay = DelayFor(report);
  std::string key;
  {
    const sync::MutexLock lock(&mu_);
    const auto place = places_.find(id);
    if (place == places_.end()) return;
    const auto* of_view = std::get_if<ViewReport>(&report);
    if (metrics_ != nullptr && of_view != nullptr && of_view->rebuild) {
      metrics_->Rebuilt(place->second.job_uid, *of_view->rebuild);
    }
    Job& job = JobOf(place->second.job_uid);
    if (!job.reports.Take(place->second.pod_uid, std::move(report), clock_.wall())) return;
    key = job.key;
  }
  Report(key, delay);
}

api::Time SidecarRegistry::FirstSeen(const std::string& job_key, const std::string& job_uid,
                                     std::uint64_t epoch) {
  const sync::MutexLock lock(&mu_);
  Job& job = JobOf(job_uid);
  SetKey(job_uid, job_key, &job);
  job.key_is_known = true;
  if (job.seen_epoch != epoch) job.seen_at = clock_.wall();
  job.seen_epoch = epoch;
  return job.seen_at;
}

api::Time SidecarRegistry::TakenOver(const std::string& job_key, const std::string& job_uid,
                                     bool begun) {
  const sync::MutexLock lock(&mu_);
  Job& job = JobOf(job_uid);
  SetKey(job_uid, job_key, &job);
  job.key_is_known = true;
  if (!job.taken_over) {
    job.taken_over = begun ? clock_.wall() : api::Time();
  }
  return *job.taken_over;
}

JobFacts SidecarRegistry::Facts(const std::string& job_uid) const {
  const sync::MutexLock lock(&mu_);
  const auto job = jobs_.find(job_uid);
  return job == jobs_.end() ? JobFacts() : job->second.reports.Facts();
}

void SidecarRegistry::Notify(const std::string& job_uid, std::vector<planner::PodNotice> all) {
  std::map<std::string, std::vector<planner::Notice>> by_pod;
  std::vector<std::pair<std::shared_ptr<NoticeSink>, std::vector<planner::Notice>>> unsent;
  {
    const sync::MutexLock lock(&mu_);
    const auto job = jobs_.find(job_uid);
    if (job == jobs_.end()) return;
    job->second.lists.Share(&all);
    for (auto& [pod_uid, notice] : all) by_pod[pod_uid].push_back(std::move(notice));
    for (auto& [pod_uid, stream] : job->second.streams) {
      if (stream.sink != nullptr)
        unsent.emplace_back(stream.sink, stream.sent.New(by_pod[pod_uid]));
    }
  }
  for (const auto& [sink, notices] : unsent) {
    for (const planner::Notice& notice : notices) sink->Send(notice);
  }
}

void SidecarRegistry::ExitsCounted(const std::string& job_uid, std::size_t count) {
  const sync::MutexLock lock(&mu_);
  const auto job = jobs_.find(job_uid);
  if (job != jobs_.end()) job->second.reports.ExitsCounted(count);
}

void SidecarRegistry::Retain(const std::string& job_uid, const std::set<std::string>& pod_uids) {
  const sync::MutexLock lock(&mu_);
  const auto job = jobs_.find(job_uid);
  if (job != jobs_.end()) job->second.reports.Retain(pod_uids);
}

void SidecarRegistry::Dismiss(const std::string& job_uid) {
  std::vector<std::string> pods;
  planner::Uids uids;
  {
    const sync::MutexLock lock(&mu_);
    const auto job = jobs_.find(job_uid);
    if (job == jobs_.end()) return;
    for (const auto& [pod_uid, stream] : job->second.streams) pods.push_back(pod_uid);
    uids = job->second.dismissed = ListWith(pods, job->second.dismissed);
  }
  std::vector<planner::PodNotice> all;
  for (const std::string& pod : pods)
    all.push_back({pod, planner::DrainNotice{uids, "JobDeleted", 0, /*all_leave=*/true}});
  Notify(job_uid, std::move(all));
}

void SidecarRegistry::DismissAll() {
  std::vector<std::string> jobs;
  {
    const sync::MutexLock lock(&mu_);
    for (const auto& [uid, job] : jobs_) jobs.push_back(uid);
  }
  for (const std::string& uid : jobs) Dismiss(uid);
}

void SidecarRegistry::Forget(const std::string& job_key, const std::string& job_uid_to_keep) {
  std::vector<std::string> forgotten;
  {
    const sync::MutexLock lock(&mu_);
    const auto uids = uids_.find(job_key);
    if (uids == uids_.end()) return;
    for (const std::string& uid : uids->second) {
      if (uid != job_uid_to_keep) forgotten.push_back(uid);
    }
  }
  if (forgotten.empty()) return;
  for (const std::string& uid : forgotten) Dismiss(uid);
  {
    const sync::MutexLock lock(&mu_);
    for (const std::string& uid : forgotten) Erase(uid);
    for (auto place = places_.begin(); place != places_.end();) {
      place = jobs_.count(place->second.job_uid) == 0 ? places_.erase(place) : std::next(place);
    }
  }
  if (metrics_ == nullptr) return;
  for (const std::string& uid : forgotten) metrics_->ForgetRebuilds(uid);
}

std::size_t SidecarRegistry::connected() const {
  const sync::MutexLock lock(&mu_);
  return places_.size();
}

}  // namespace ringmaster::controllers
