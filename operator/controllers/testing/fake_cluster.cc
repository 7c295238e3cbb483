#include "operator/controllers/testing/fake_cluster.h"

#include <algorithm>

#include "operator/controllers/sidecar_report.h"
#include "operator/planner/planner.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using runtime::MetaField;

Json ContainerStatuses(const Json& pod, const char* list, const Json& state) {
  Json statuses = Json::array();
  for (const Json& container : pod["spec"][list]) {
    statuses.push_back({{"name", container["name"]}, {"state", state}});
  }
  return statuses;
}

std::string Now() { return api::FormatTime(std::chrono::system_clock::now()); }

const char* Kind(const planner::Notice& notice) {
  constexpr const char* kKinds[] = {"ViewDecided", "Drain",  "PodGone",
                                    "Target",      "Finish", "Recover"};
  return kKinds[notice.index()];
}

}  // namespace

class FakeCluster::Sink : public NoticeSink {
 public:
  Sink(FakeCluster* cluster, std::string uid) : cluster_(cluster), uid_(std::move(uid)) {}
  void Send(const planner::Notice& notice) override { cluster_->OnNotice(uid_, notice); }

 private:
  FakeCluster* const cluster_;
  const std::string uid_;
};

FakeCluster::FakeCluster(std::shared_ptr<kube::KubeApi> api, std::string ns,
                         SidecarRegistry* registry,
                         std::function<void(const std::string& pod)> bind)
    : api_(std::move(api)),
      ns_(std::move(ns)),
      bind_(std::move(bind)),
      registry_(registry),
      thread_([this](std::stop_token stop) { Watch(stop); }) {}

FakeCluster::~FakeCluster() = default;

void FakeCluster::Watch(std::stop_token stop) {
  while (!stop.stop_requested()) {
    kube::WatchOptions options;
    options.timeout = std::chrono::seconds(60);
    (void)api_->Watch(
        kube::Pods(), ns_, options,
        [&](const kube::WatchEvent& event) {
          if (event.type != kube::WatchEvent::Type::kBookmark) {
            OnPod(event.object, event.type == kube::WatchEvent::Type::kDeleted);
          }
          return !stop.stop_requested();
        },
        stop);
  }
}

void FakeCluster::OnPod(const Json& object, bool deleted) {
  const std::lock_guard lock(mu_);
  const std::string uid = MetaField(object, "uid"), name = MetaField(object, "name");
  if (deleted) return Drop(uid);
  if (!MetaField(object, "deletionTimestamp").empty()) return Terminate(object);
  if (pods_.count(uid) != 0) return;
  if (!object.value("/spec/schedulingGates"_json_pointer, Json::array()).empty()) return;
  Json status = {{"phase", "Running"}, {"podIP", "127.0.0.1"}, {"startTime", Now()}};
  const Json running = {{"running", {{"startedAt", Now()}}}};
  status["containerStatuses"] = ContainerStatuses(object, "containers", running);
  status["initContainerStatuses"] = ContainerStatuses(object, "initContainers", running);
  bind_(name);
  (void)api_->Patch(kube::Pods(), ns_, name, {{"status", status}}, {.subresource = "status"});
  const Json& owner = object["metadata"]["ownerReferences"][0];
  job_name_ = owner["name"].get<std::string>();
  job_uid_ = owner["uid"].get<std::string>();
  Pod& pod = pods_[uid];
  pod.name = name;
  pod.uid = uid;
  pod.candidate.pod = {.uid = uid,
                       .name = name,
                       .incarnation = 1,
                       .node = "node-1",
                       .address = "a",
                       .heartbeat = "h",
                       .http = "127.0.0.1:1"};
  pod.candidate.workers = {{.slot = 0, .incarnation = 1, .tcp = "t", .shm = "s", .ready = true}};
  Connect(pod);
}

void FakeCluster::Terminate(const Json& object) {
  const std::string uid = MetaField(object, "uid"), name = MetaField(object, "name");
  const auto pod = pods_.find(uid);
  if (pod != pods_.end() && pod->second.lost) return;
  if (!terminated_.insert(uid).second) return;
  // The sidecar treats TERM as a drain; then the kubelet reports that nothing runs any more.
  if (view_ != nullptr && view_->FindPod(uid) >= 0 && view_->pods.size() > 1) {
    Decide(membership::Reason::kPodDrained, [&](membership::View& view) {
      std::erase_if(view.pods, [&](const auto& member) { return member.uid == uid; });
    });
  }
  if (pod != pods_.end() && !pod->second.ended) EndPod(name, 143);
  Drop(uid);
  (void)api_->Delete(kube::Pods(), ns_, name, {.grace_period_seconds = 0});
}

void FakeCluster::Connect(Pod& pod) {
  pod.connection = registry_->Connect(
      {.job_namespace = ns_,
       .job_name = job_name_,
       .job_uid = job_uid_,
       .pod_name = pod.name,
       .pod_uid = pod.uid,
       .http_address = "127.0.0.1:1",
       .epoch = view_ != nullptr && view_->FindPod(pod.uid) >= 0 ? view_->epoch : 0,
       .boot_id = boot_id_},
      std::make_shared<Sink>(this, pod.uid));
  registry_->Take(pod.connection, EarlierExits{pod.exits});
  const bool ready = never_ready_.count(pod.name) == 0;
  std::vector<std::uint32_t> missing;
  if (!ready) missing.push_back(0);
  registry_->Take(pod.connection, ReadinessReport{ready, missing, pod.candidate});
  const bool member = view_ != nullptr && view_->FindPod(pod.uid) >= 0;
  registry_->Take(pod.connection, HealthReport{member, std::chrono::milliseconds(0)});
}

void FakeCluster::OnNotice(const std::string& pod_uid, const planner::Notice& notice) {
  const std::lock_guard lock(mu_);
  const auto pod = pods_.find(pod_uid);
  if (pod == pods_.end()) return;
  told_.insert({pod->second.name, Kind(notice)});
  if (const auto* found = std::get_if<planner::ViewDecidedNotice>(&notice)) {
    if (membership::EpochOf(view_) < found->view->epoch) {
      view_ = found->view;
      return Announce();
    }
    if (view_->FindPod(pod_uid) >= 0) return Announce();
    const bool anybody = std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
      return !entry.second.ended && view_->FindPod(entry.first) >= 0;
    });
    if (!anybody) return;  // no member of that view answers the joiner
    if (never_ready_.count(pod->second.name) != 0) return;
    Decide(membership::Reason::kPodJoined,
           [&](membership::View& view) { view.pods.push_back(pod->second.candidate.pod); });
  } else if (const auto* drain = std::get_if<planner::DrainNotice>(&notice)) {
    const std::string& uid = drain->pod_uids->front();
    if (view_ == nullptr || view_->FindPod(uid) < 0 || view_->pods.size() < 2) return;
    Decide(membership::Reason::kPodDrained, [&](membership::View& view) {
      std::erase_if(view.pods, [&](const auto& member) { return member.uid == uid; });
    });
  } else if (const auto* recover = std::get_if<planner::RecoverNotice>(&notice)) {
    if (recover->lineage <= membership::EpochLineage(membership::EpochOf(view_))) return;
    membership::RecoveryReport report{recover->lineage, view_, false, true, pod->second.candidate};
    registry_->Take(pod->second.connection, report);
  } else if (const auto* gone = std::get_if<planner::PodsGoneNotice>(&notice)) {
    for (const planner::GonePod& lost : *gone->pods) {
      if (view_->FindPod(lost.uid) < 0 || view_->pods.size() < 2) continue;
      Decide(membership::Reason::kPodLost, [&](membership::View& view) {
        std::erase_if(view.pods, [&](const auto& member) { return member.uid == lost.uid; });
      });
    }
  }
}

void FakeCluster::Decide(membership::Reason reason,
                         const std::function<void(membership::View&)>& change) {
  membership::View view = *view_;
  view.parent = view.epoch;
  ++view.epoch;
  view.reason = reason;
  change(view);
  view.coordinator = view.pods.front().uid;
  view.ranks.clear();
  for (std::uint32_t i = 0; i < view.pods.size(); ++i) {
    view.ranks.push_back({.pod = i, .incarnation = 1, .tcp = "t", .shm = "s"});
  }
  view_ = std::make_shared<const membership::View>(std::move(view));
  Announce();
}

void FakeCluster::Announce() {
  for (auto& [uid, pod] : pods_) {
    if (view_->FindPod(uid) < 0 || pod.ended) continue;
    job::Rebuild figures = {.epoch = view_->epoch,
                            .reason = std::string(ReasonText(view_->reason)),
                            .seconds = {{job::kDecide, 0.05}}};
    registry_->Take(pod.connection, ViewReport::Whole(view_, figures));
    registry_->Take(pod.connection, HealthReport{true, std::chrono::milliseconds(0)});
  }
}

void FakeCluster::Drop(const std::string& uid) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.ended) return;
  pod->second.ended = true;
  registry_->Disconnect(pod->second.connection);
}

void FakeCluster::NeverReady(const std::string& pod) {
  const std::lock_guard lock(mu_);
  never_ready_.insert(pod);
}

void FakeCluster::LosePod(const std::string& name) {
  const std::lock_guard lock(mu_);
  for (auto& [uid, pod] : pods_) {
    if (pod.name != name || pod.ended) continue;
    pod.lost = true;
    Drop(uid);
    Decide(membership::Reason::kPodLost, [&, uid = uid](membership::View& view) {
      std::erase_if(view.pods, [&](const auto& member) { return member.uid == uid; });
    });
  }
}

void FakeCluster::SetBootId(const std::string& boot_id) {
  const std::lock_guard lock(mu_);
  boot_id_ = boot_id;
}

void FakeCluster::EndPod(const std::string& name, int exit_code) {
  const std::lock_guard lock(mu_);
  const auto object = api_->Get(kube::Pods(), ns_, name);
  if (!object) return;
  const Json ended = {{"terminated", {{"exitCode", exit_code}, {"finishedAt", Now()}}}};
  const Json status = {
      {"phase", exit_code == 0 ? "Succeeded" : "Failed"},
      {"containerStatuses", ContainerStatuses(*object, "containers", ended)},
      {"initContainerStatuses", ContainerStatuses(*object, "initContainers", ended)}};
  Drop(MetaField(*object, "uid"));
  (void)api_->Patch(kube::Pods(), ns_, name, {{"status", status}}, {.subresource = "status"});
}

void FakeCluster::FinishJob() {
  const std::lock_guard lock(mu_);
  for (const membership::Pod& member : view_->pods) {
    registry_->Take(pods_[member.uid].connection, FinishedReport{view_->epoch});
  }
  for (const membership::Pod& member : view_->pods) EndPod(member.name, 0);
}

void FakeCluster::RestartWorker(const std::string& name, int exit_code) {
  const std::lock_guard lock(mu_);
  for (auto& [uid, pod] : pods_) {
    if (pod.name != name || pod.ended) continue;
    const std::uint64_t incarnation = pod.candidate.workers[0].incarnation++;
    pod.exits.push_back(
        {.slot = 0, .exit_code = exit_code, .restarting = true, .incarnation = incarnation});
    registry_->Take(pod.connection, pod.exits.back());
  }
}

void FakeCluster::MoveTo(SidecarRegistry* registry) {
  const std::lock_guard lock(mu_);
  registry_ = registry;
  for (auto& [uid, pod] : pods_) {
    if (!pod.ended) Connect(pod);
  }
}

std::vector<std::string> FakeCluster::Members() const {
  const std::lock_guard lock(mu_);
  std::vector<std::string> names;
  if (view_ != nullptr) {
    for (const membership::Pod& pod : view_->pods) names.push_back(pod.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t FakeCluster::epoch() const {
  const std::lock_guard lock(mu_);
  return membership::EpochOf(view_);
}

bool FakeCluster::WasTold(const std::string& pod, const std::string& kind) const {
  const std::lock_guard lock(mu_);
  return told_.count({pod, kind}) != 0;
}

}  // namespace ringmaster::controllers
