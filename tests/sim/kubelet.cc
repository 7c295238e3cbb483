// The objects of the job and its pods, and the kubelets: they start and end the containers of pods
// as the API server says, and write there what has become of them.
#include <algorithm>
#include <utility>

#include "common/fields/fields.h"
#include "common/membership/state_json.h"
#include "operator/api/labels.h"
#include "operator/api/time.h"
#include "operator/kube/resources.h"
#include "tests/sim/world.h"

namespace ringmaster::app::sim {
namespace {

constexpr int kGraceSeconds = 8;
constexpr int kManyFaults = 100'000;  // processes are killed again and again: no reason to fail

bool HasCondition(const json& job, const std::string& condition) {
  const json& conditions = fields::List(fields::Member(job, "status"), "conditions");
  return std::any_of(conditions.begin(), conditions.end(), [&](const json& one) {
    return fields::Text(one, "type") == condition && fields::Text(one, "status") == "True";
  });
}

json StateOfAll(const json& pod, const char* list, const json& state) {
  json states = json::array();
  for (const json& container : fields::List(pod["spec"], list))
    states.push_back({{"name", container["name"]}, {"state", state}});
  return states;
}

}  // namespace

// ---- The job

void World::MakeJob() {
  const json containers = {{{"name", "worker"}, {"image", "any"}, {"command", {"train"}}}};
  const json pod = {
      {"spec", {{"terminationGracePeriodSeconds", kGraceSeconds}, {"containers", containers}}}};
  (void)api_.Create(
      kube::HorovodJobs(),
      {{"apiVersion", api::kApiVersion},
       {"kind", api::kKind},
       {"metadata", {{"name", kJob}}},
       {"spec",
        {{"slotsPerWorker", job_.slots},
         {"elasticPolicy", {{"minReplicas", job_.min_pods}, {"standbyPerPod", job_.standbys}}},
         {"runPolicy", {{"backoffLimit", kManyFaults}}},
         {"worker", {{"replicas", job_.wanted}, {"template", pod}}}}}});
}

void World::PatchJob(const json& spec) {
  (void)api_.Patch(kube::HorovodJobs(), kJob, {{"spec", spec}}, "");
}

void World::OnJobObject(const json& object) {
  const json& spec = object["spec"];
  job_.wanted = spec["worker"]["replicas"];
  job_.min_pods = spec["elasticPolicy"]["minReplicas"];
  if (HasCondition(object, "Failed"))
    journal_.Fail("the job fails: " + object["status"]["conditions"].dump());
  if (HasCondition(object, "Succeeded") && !script_.finished())
    journal_.Fail("the job is said to have succeeded");
}

bool World::JobIs(const std::string& condition) const {
  const auto job = api_.Get(kube::HorovodJobs(), kJob);
  return job && HasCondition(**job, condition);
}

std::string World::JobStatus() const {
  const auto job = api_.Get(kube::HorovodJobs(), kJob);
  return job ? (**job)["status"].dump() : "";
}

// ---- What changes

void World::OnApiChange(const kube::Resource& resource, const Change& change) {
  const bool deleted = change.type == kube::WatchEvent::Type::kDeleted;
  if (resource == kube::ConfigMaps()) return OnRecordObject(*change.object, deleted);
  operators_.Tell(resource, change);
  if (resource == kube::HorovodJobs()) OnJobObject(*change.object);
  if (resource != kube::Pods()) return;
  if (change.type == kube::WatchEvent::Type::kAdded) return AddPod(*change.object);
  OnPodObject(*change.object, deleted);
}

void World::OnRecordObject(const json& object, bool deleted) {
  if (deleted) return record_.reset();
  auto read = membership::DecodeRecord(object["data"]["record"].get<std::string>());
  if (!read) return journal_.Fail("a record that can't be read: " + read.error());
  const auto before = std::exchange(record_, std::move(*read));
  const bool lost = membership::QuorumLost(*record_);
  if (lost && !(before && before->lineage == record_->lineage)) ++journal_.coverage().recoveries;
  if (record_->view == nullptr) return;
  const membership::View& view = *record_->view;
  const bool again = view.reason == membership::Reason::kBootstrap &&
                     membership::EpochLineage(view.epoch) > 1 &&
                     views_.Of(view.epoch).view == nullptr;
  journal_.coverage().restarts += again ? 1 : 0;
  Announce(record_->view);
}

void World::OnPodObject(const json& object, bool deleted) {
  const int index = IndexOf(object["metadata"]["uid"]);
  SimPod& pod = *pods_[index];
  const json& annotations = fields::Object(object["metadata"], "annotations");
  const bool deleting = object["metadata"].contains("deletionTimestamp");
  pod.leaving = pod.leaving || deleting || annotations.contains(api::kDrainAnnotation);
  if (deleted && !pod.gone) {
    // Nothing keeps it any more: its kubelet ends it without asking, when it hears so.
    const Micros late = pod.placed ? random_.Below(12 * kSecond) : 0;
    time_.After(late, [this, index] { KillPod(index, "its object is gone"); });
  }
  if (deleted || !deleting || std::exchange(pod.deleting, true)) return;
  time_.After(random_.Between(kMs, random_.Chance(50) ? kSecond : 50 * kMs),
              [this, index] { SeeDeletion(index); });
}

// ---- The kubelets

void World::AddPod(const json& object) {
  const int index = static_cast<int>(pods_.size());
  pods_.push_back(std::make_unique<SimPod>(job_.slots));
  SimPod& pod = *pods_.back();
  pod.index = index;
  pod.uid = object["metadata"]["uid"];
  pod.name = object["metadata"]["name"];
  pod.drift_ppm = random_.Between(-3000, 3000);
  pod.wall_step = random_.Between(-2 * kSecond, 2 * kSecond);
  network_.AddPod();
  time_.After(random_.Between(10 * kMs, 300 * kMs), [this, index] { PlacePod(index); });
}

void World::PlacePod(int index) {
  SimPod& pod = *pods_[index];
  if (pod.gone || pod.deleting) return;
  const std::string now = api::FormatTime(OperatorClock(&time_, &random_).wall());
  const auto placed = api_.Patch(
      kube::Pods(), pod.name,
      {{"metadata", {{"uid", pod.uid}}}, {"spec", {{"nodeName", "n-" + std::to_string(index)}}}},
      "");
  if (!placed) return;
  const json running = {{"running", {{"startedAt", now}}}};
  (void)api_.Patch(kube::Pods(), pod.name,
                   {{"metadata", {{"uid", pod.uid}}},
                    {"status",
                     {{"phase", "Running"},
                      {"startTime", now},
                      {"containerStatuses", StateOfAll(**placed, "containers", running)},
                      {"initContainerStatuses", StateOfAll(**placed, "initContainers", running)}}}},
                   "status");
  pod.placed = true;
  // The sidecar is a native one: it is up before the launcher begins.
  time_.After(random_.Below(100 * kMs), [this, index] { StartSidecar(index); });
}

void World::SeeDeletion(int index) {
  SimPod& pod = *pods_[index];
  pod.deletion_seen = true;
  if (pod.end_told) {
    (void)api_.Delete(kube::Pods(), pod.name, {.grace_period_seconds = 0, .uid = pod.uid});
  } else if (!pod.gone) {
    Terminate(index);
  }
}

// All containers have ended, and the kubelet says so: that is proof.
void World::TellEnd(int index) {
  SimPod& pod = *pods_[index];
  if (!pod.placed || std::exchange(pod.end_told, true)) return;
  const auto object = api_.Get(kube::Pods(), pod.name);
  if (!object || (**object)["metadata"]["uid"] != pod.uid) return;
  const json ended = {{"terminated",
                       {{"exitCode", pod.exit_code},
                        {"finishedAt", api::FormatTime(OperatorClock(&time_, &random_).wall())}}}};
  (void)api_.Patch(kube::Pods(), pod.name,
                   {{"metadata", {{"uid", pod.uid}}},
                    {"status",
                     {{"phase", pod.exit_code == 0 ? "Succeeded" : "Failed"},
                      {"containerStatuses", StateOfAll(**object, "containers", ended)},
                      {"initContainerStatuses", StateOfAll(**object, "initContainers", ended)}}}},
                   "status");
  if (pod.deletion_seen)
    (void)api_.Delete(kube::Pods(), pod.name, {.grace_period_seconds = 0, .uid = pod.uid});
}

}  // namespace ringmaster::app::sim
