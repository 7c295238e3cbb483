#include "operator/controllers/sidecar_registry.h"

#include <algorithm>
#include <iterator>

#include "operator/controllers/metrics.h"

namespace ringmaster::controllers {
namespace {

using planner::Notice;

// All pods report a rebuild within a moment: one reconcile is enough for all reports.
constexpr std::chrono::milliseconds kGather{50};
constexpr std::chrono::milliseconds kAtOnce{0};
constexpr std::size_t kMaxRebuilds = 64;
// More than any job has. Reports of a job's sidecars are kept only up to these limits, whatever
// they send.
constexpr std::size_t kMaxSidecars = 16'384;
constexpr std::size_t kMaxUncountedExits = 4'096;
constexpr int kMaxSlots = 1'024;

// A later notice on the same topic replaces the earlier one.
bool SameTopic(const Notice& a, const Notice& b) {
  if (a.index() != b.index()) return false;
  if (const auto* gone = std::get_if<planner::PodGoneNotice>(&a)) {
    return gone->pod_uid == std::get<planner::PodGoneNotice>(b).pod_uid;
  }
  if (const auto* drain = std::get_if<planner::DrainNotice>(&a)) {
    return drain->pod_uids == std::get<planner::DrainNotice>(b).pod_uids;
  }
  return true;
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

bool SidecarRegistry::KnowsPodOf(const job::Registration& registration) const {
  PodLookup lookup;
  {
    const sync::MutexLock lock(&mu_);
    lookup = pod_lookup_;
  }
  return lookup && lookup(registration);
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
  const std::string key = registration.job_namespace + "/" + registration.job_name;
  const sync::MutexLock lock(&mu_);
  const auto job = jobs_.find(registration.job_uid);
  if (job == jobs_.end()) return "";
  if (job->second.key_is_known && job->second.key != key) {
    return "job_name is \"" + key + "\", the job of uid " + registration.job_uid + " is " +
           job->second.key;
  }
  if (job->second.sidecars.size() >= kMaxSidecars &&
      job->second.sidecars.count(registration.pod_uid) == 0) {
    return "job " + key + " has " + std::to_string(kMaxSidecars) + " sidecars already";
  }
  return "";
}

SidecarRegistry::ConnectionId SidecarRegistry::Connect(const job::Registration& registration,
                                                       std::shared_ptr<NoticeSink> sink) {
  const std::string key = registration.job_namespace + "/" + registration.job_name;
  ConnectionId id;
  std::shared_ptr<NoticeSink> former;
  {
    const sync::MutexLock lock(&mu_);
    id = ++last_id_;
    Job& job = jobs_[registration.job_uid];
    if (!job.key_is_known) job.key = key;
    job.uid = registration.job_uid;
    Sidecar& sidecar = job.sidecars[registration.pod_uid];
    places_.erase(sidecar.connection);
    former = std::move(sidecar.sink);
    const planner::SidecarFacts before = std::move(sidecar.facts);
    sidecar = Sidecar{.facts = {registration}, .connection = id, .sink = std::move(sink)};
    sidecar.facts.connected = true;
    sidecar.facts.finished_epoch = before.finished_epoch;
    sidecar.facts.last_exit = before.last_exit;
    if (forgets_.old_reports) sidecar.facts.report = before.report;
    sidecar.facts.unable_since = clock_.wall();
    places_[id] = {registration.job_uid, registration.pod_uid};
  }
  if (former != nullptr) former->Replaced();
  Report(key, kAtOnce);
  return id;
}

void SidecarRegistry::Change(ConnectionId id, std::chrono::milliseconds delay,
                             const std::function<void(Job&, Sidecar&)>& change) {
  std::string key;
  {
    const sync::MutexLock lock(&mu_);
    const auto place = places_.find(id);
    if (place == places_.end()) return;
    Job& job = jobs_[place->second.job_uid];
    change(job, job.sidecars[place->second.pod_uid]);
    key = job.key;
  }
  Report(key, delay);
}

void SidecarRegistry::Disconnect(ConnectionId id) {
  Change(id, kAtOnce, [this](Job&, Sidecar& sidecar) {
    sidecar.facts.connected = false;
    sidecar.facts.ready = false;
    sidecar.facts.ready_since.reset();
    sidecar.facts.able = false;
    sidecar.facts.stalls.clear();
    sidecar.facts.step_awaited_since.reset();
    sidecar.facts.unable_since = clock_.wall();
    // The sidecar may come back without its file, and so without its promise: it is asked again.
    if (!forgets_.old_reports) sidecar.facts.report.reset();
    sidecar.sink.reset();
  });
  const sync::MutexLock lock(&mu_);
  places_.erase(id);
}

void SidecarRegistry::OnReadiness(ConnectionId id, bool ready,
                                  std::vector<std::uint32_t> missing_slots,
                                  membership::Candidate candidate) {
  Change(id, kAtOnce, [&](Job&, Sidecar& sidecar) {
    if (ready && !sidecar.facts.ready) sidecar.facts.ready_since = clock_.wall();
    if (!ready) sidecar.facts.ready_since.reset();
    sidecar.facts.ready = ready;
    sidecar.facts.missing_slots = std::move(missing_slots);
    sidecar.facts.candidate = std::move(candidate);
  });
}

void SidecarRegistry::OnView(ConnectionId id, membership::ViewPtr view,
                             std::optional<job::Rebuild> rebuild) {
  Change(id, kGather, [&](Job& job, Sidecar& sidecar) {
    if (view != nullptr) {
      sidecar.facts.epoch = std::max(sidecar.facts.epoch, view->epoch);
      if (view->epoch > membership::EpochOf(job.view)) job.view = std::move(view);
    }
    if (!rebuild) return;
    if (metrics_ != nullptr) metrics_->Rebuilt(job.uid, *rebuild);
    job::Rebuild& known = job.rebuilds[rebuild->epoch];
    // The ring is complete again when the slowest member has finished.
    known.epoch = rebuild->epoch;
    if (known.reason.empty()) known.reason = rebuild->reason;
    if (job::TotalSeconds(rebuild->seconds) > job::TotalSeconds(known.seconds)) {
      known.seconds = std::move(rebuild->seconds);
    }
    known.steps_lost = std::max(known.steps_lost, rebuild->steps_lost);
    while (job.rebuilds.size() > kMaxRebuilds) job.rebuilds.erase(job.rebuilds.begin());
  });
}

void SidecarRegistry::OnWorkerExit(ConnectionId id, job::WorkerExit exit) {
  if (exit.slot < 0 || exit.slot >= kMaxSlots) return;
  Change(id, kAtOnce, [&](Job& job, Sidecar& sidecar) {
    if (job.exits.size() >= kMaxUncountedExits) return;
    const auto [newest, is_first] =
        job.known_exits.try_emplace({sidecar.facts.pod_uid, exit.slot}, exit.incarnation);
    if (!is_first && exit.incarnation <= newest->second) return;
    newest->second = exit.incarnation;
    exit.pod_name = sidecar.facts.pod_name;
    if (!exit.by_us) sidecar.facts.last_exit = exit.exit_code;
    job.exits.push_back(std::move(exit));
  });
}

void SidecarRegistry::OnFinished(ConnectionId id, std::uint64_t epoch) {
  Change(id, kAtOnce, [&](Job&, Sidecar& sidecar) {
    sidecar.facts.finished_epoch = std::max(sidecar.facts.finished_epoch, epoch);
  });
}

void SidecarRegistry::OnHealth(ConnectionId id, bool able, std::chrono::milliseconds unable) {
  Change(id, kAtOnce, [&](Job&, Sidecar& sidecar) {
    sidecar.facts.able = able;
    sidecar.facts.unable_since = clock_.wall() - unable;
  });
}

void SidecarRegistry::OnStalls(ConnectionId id, std::vector<job::Stall> stalls) {
  Change(id, kAtOnce, [&](Job&, Sidecar& sidecar) {
    sidecar.facts.stalls = std::move(stalls);
    sidecar.facts.stalls_at = clock_.wall();
  });
}

void SidecarRegistry::OnStepAwaited(ConnectionId id, std::chrono::milliseconds awaited) {
  // All pods of the view report this within a moment.
  Change(id, kGather, [&](Job&, Sidecar& sidecar) {
    sidecar.facts.step_awaited_since.reset();
    if (awaited > awaited.zero()) sidecar.facts.step_awaited_since = clock_.wall() - awaited;
  });
}

void SidecarRegistry::OnRecoveryReport(ConnectionId id, membership::RecoveryReport report) {
  Change(id, kAtOnce, [&](Job&, Sidecar& sidecar) { sidecar.facts.report = std::move(report); });
}

planner::Time SidecarRegistry::FirstSeen(const std::string& job_key, const std::string& job_uid,
                                         std::uint64_t epoch) {
  const sync::MutexLock lock(&mu_);
  Job& job = jobs_[job_uid];
  job.key = job_key;
  job.key_is_known = true;
  if (job.seen_epoch != epoch) job.seen_at = clock_.wall();
  job.seen_epoch = epoch;
  return job.seen_at;
}

planner::Time SidecarRegistry::TakenOver(const std::string& job_key, const std::string& job_uid,
                                         bool begun) {
  const sync::MutexLock lock(&mu_);
  Job& job = jobs_[job_uid];
  job.key = job_key;
  job.key_is_known = true;
  if (!job.taken_over) {
    job.taken_over = begun ? clock_.wall() : planner::Time();
  }
  return *job.taken_over;
}

SidecarRegistry::JobFacts SidecarRegistry::Facts(const std::string& job_uid) const {
  const sync::MutexLock lock(&mu_);
  JobFacts facts;
  const auto job = jobs_.find(job_uid);
  if (job == jobs_.end()) return facts;
  for (const auto& [uid, sidecar] : job->second.sidecars) facts.sidecars.push_back(sidecar.facts);
  facts.exits = job->second.exits;
  facts.view = job->second.view;
  for (const auto& [epoch, rebuild] : job->second.rebuilds) facts.rebuilds.push_back(rebuild);
  return facts;
}

void SidecarRegistry::Notify(const std::string& job_uid, const std::string& pod_uid,
                             const Notice& notice) {
  std::shared_ptr<NoticeSink> sink;
  {
    const sync::MutexLock lock(&mu_);
    const auto job = jobs_.find(job_uid);
    if (job == jobs_.end()) return;
    const auto at = job->second.sidecars.find(pod_uid);
    if (at == job->second.sidecars.end() || at->second.sink == nullptr) return;
    auto& told = at->second.told;
    const auto same = std::find_if(told.begin(), told.end(),
                                   [&](const Notice& other) { return SameTopic(notice, other); });
    if (same == told.end()) {
      told.push_back(notice);
    } else if (*same == notice) {
      return;
    } else {
      *same = notice;
    }
    sink = at->second.sink;
  }
  sink->Send(notice);
}

void SidecarRegistry::ExitsCounted(const std::string& job_uid, std::size_t count) {
  const sync::MutexLock lock(&mu_);
  const auto job = jobs_.find(job_uid);
  if (job == jobs_.end()) return;
  auto& exits = job->second.exits;
  exits.erase(exits.begin(), exits.begin() + std::min(count, exits.size()));
}

void SidecarRegistry::Retain(const std::string& job_uid, const std::set<std::string>& pod_uids) {
  const sync::MutexLock lock(&mu_);
  const auto job = jobs_.find(job_uid);
  if (job == jobs_.end()) return;
  std::erase_if(job->second.sidecars, [&](const auto& entry) {
    return !entry.second.facts.connected && pod_uids.count(entry.first) == 0;
  });
  std::erase_if(job->second.known_exits, [&](const auto& entry) {
    return job->second.sidecars.count(entry.first.first) == 0;
  });
}

void SidecarRegistry::Forget(const std::string& job_key, const std::string& job_uid_to_keep) {
  std::vector<std::string> forgotten;
  {
    const sync::MutexLock lock(&mu_);
    for (const auto& [uid, job] : jobs_) {
      if (job.key == job_key && uid != job_uid_to_keep) forgotten.push_back(uid);
    }
    if (forgotten.empty()) return;
    for (const std::string& uid : forgotten) jobs_.erase(uid);
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
