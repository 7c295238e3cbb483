#include "tests/sim/kubelets.h"

#include <algorithm>
#include <utility>

#include "common/fields/fields.h"
#include "common/membership/state_json.h"
#include "operator/api/labels.h"
#include "operator/api/time.h"
#include "operator/kube/resources.h"

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

void Kubelets::MakeJob() {
  const json containers = {{{"name", "worker"}, {"image", "any"}, {"command", {"train"}}}};
  const json pod = {
      {"spec", {{"terminationGracePeriodSeconds", kGraceSeconds}, {"containers", containers}}}};
  (void)parts_.api.Create(kube::HorovodJobs(),
                          {{"apiVersion", api::kApiVersion},
                           {"kind", api::kKind},
                           {"metadata", {{"name", kJobName}}},
                           {"spec",
                            {{"slotsPerWorker", parts_.job.slots},
                             {"elasticPolicy",
                              {{"minReplicas", parts_.job.min_pods},
                               {"standbyPerPod", parts_.job.standbys},
                               {"allowedSizes", parts_.job.allowed}}},
                             {"runPolicy", {{"backoffLimit", kManyFaults}}},
                             {"worker", {{"replicas", parts_.job.wanted}, {"template", pod}}}}}});
}

void Kubelets::PatchJob(const json& spec) {
  (void)parts_.api.Patch(kube::HorovodJobs(), kJobName, {{"spec", spec}}, "");
}

void Kubelets::OnJobObject(const json& object) {
  const json& spec = object["spec"];
  parts_.job.wanted = spec["worker"]["replicas"];
  parts_.job.min_pods = spec["elasticPolicy"]["minReplicas"];
  if (HasCondition(object, "Failed"))
    parts_.journal.Fail("the job fails: " + object["status"]["conditions"].dump());
  if (HasCondition(object, "Succeeded") && !parts_.script.finished())
    parts_.journal.Fail("the job is said to have succeeded");
}

bool Kubelets::JobIs(const std::string& condition) const {
  const auto job = parts_.api.Get(kube::HorovodJobs(), kJobName);
  return job && HasCondition(**job, condition);
}

std::string Kubelets::JobStatus() const {
  const auto job = parts_.api.Get(kube::HorovodJobs(), kJobName);
  return job ? (**job)["status"].dump() : "";
}

// ---- What changes

void Kubelets::OnApiChange(const kube::Resource& resource, const Change& change) {
  const bool deleted = change.type == kube::WatchEvent::Type::kDeleted;
  if (resource == kube::ConfigMaps()) return OnRecordObject(*change.object, deleted);
  parts_.operators.Tell(resource, change);
  if (resource == kube::HorovodJobs()) OnJobObject(*change.object);
  if (resource != kube::Pods()) return;
  if (change.type == kube::WatchEvent::Type::kAdded) return AddPod(*change.object);
  OnPodObject(*change.object, deleted);
}

void Kubelets::OnRecordObject(const json& object, bool deleted) {
  if (deleted) return record_.reset();
  auto read = membership::DecodeRecord(object["data"]["record"].get<std::string>());
  if (!read) return parts_.journal.Fail("a record that can't be read: " + read.error());
  const auto before = std::exchange(record_, std::move(*read));
  const bool lost = membership::QuorumLost(*record_);
  if (lost && !(before && before->lineage == record_->lineage))
    ++parts_.journal.coverage().recoveries;
  if (record_->view == nullptr) return;
  const membership::View& view = *record_->view;
  const bool again = view.reason == membership::Reason::kBootstrap &&
                     membership::EpochLineage(view.epoch) > 1 &&
                     parts_.views.Of(view.epoch).view == nullptr;
  parts_.journal.coverage().restarts += again ? 1 : 0;
  parts_.invariants.Announce(record_->view);
}

void Kubelets::OnPodObject(const json& object, bool deleted) {
  const int index = IndexOf(object["metadata"]["uid"]);
  SimPod& pod = *parts_.pods[index];
  const json& annotations = fields::Object(object["metadata"], "annotations");
  const bool deleting = object["metadata"].contains("deletionTimestamp");
  pod.leaving = pod.leaving || deleting || annotations.contains(api::kDrainAnnotation);
  if (deleted && !pod.gone) {
    // Nothing keeps it any more: its kubelet ends it without asking, when it hears so.
    const Micros late = pod.placed ? parts_.random.Below(12 * kSecond) : 0;
    parts_.time.After(late, [this, index] { KillPod(index, "its object is gone"); });
  }
  if (deleted || !deleting || std::exchange(pod.deleting, true)) return;
  parts_.time.After(parts_.random.Between(kMs, parts_.random.Chance(50) ? kSecond : 50 * kMs),
                    [this, index] { SeeDeletion(index); });
}

// ---- The kubelets

void Kubelets::AddPod(const json& object) {
  const int index = parts_.pods.Add(parts_.job.slots);
  SimPod& pod = *parts_.pods[index];
  pod.index = index;
  pod.uid = object["metadata"]["uid"];
  pod.name = object["metadata"]["name"];
  pod.drift_ppm = parts_.random.Between(-3000, 3000);
  pod.wall_step = parts_.random.Between(-2 * kSecond, 2 * kSecond);
  parts_.network.AddPod();
  parts_.time.After(parts_.random.Between(10 * kMs, 300 * kMs), [this, index] { PlacePod(index); });
}

void Kubelets::PlacePod(int index) {
  SimPod& pod = *parts_.pods[index];
  if (pod.gone || pod.deleting) return;
  const std::string now = api::FormatTime(OperatorClock(&parts_.time, &parts_.random).wall());
  const auto placed = parts_.api.Patch(
      kube::Pods(), pod.name,
      {{"metadata", {{"uid", pod.uid}}}, {"spec", {{"nodeName", "n-" + std::to_string(index)}}}},
      "");
  if (!placed) return;
  const json running = {{"running", {{"startedAt", now}}}};
  (void)parts_.api.Patch(
      kube::Pods(), pod.name,
      {{"metadata", {{"uid", pod.uid}}},
       {"status",
        {{"phase", "Running"},
         {"startTime", now},
         {"containerStatuses", StateOfAll(**placed, "containers", running)},
         {"initContainerStatuses", StateOfAll(**placed, "initContainers", running)}}}},
      "status");
  pod.placed = true;
  // The sidecar is a native one: it is up before the launcher begins.
  parts_.time.After(parts_.random.Below(100 * kMs),
                    [this, index] { parts_.sidecars.Start(index); });
}

void Kubelets::SeeDeletion(int index) {
  SimPod& pod = *parts_.pods[index];
  pod.deletion_seen = true;
  if (pod.end_told) {
    (void)parts_.api.Delete(kube::Pods(), pod.name, {.grace_period_seconds = 0, .uid = pod.uid});
  } else if (!pod.gone) {
    parts_.launchers.Terminate(index);
  }
}

// All containers have ended, and the kubelet says so: that is proof.
void Kubelets::TellEnd(int index) {
  SimPod& pod = *parts_.pods[index];
  if (!pod.placed || std::exchange(pod.end_told, true)) return;
  const auto object = parts_.api.Get(kube::Pods(), pod.name);
  if (!object || (**object)["metadata"]["uid"] != pod.uid) return;
  const json ended = {
      {"terminated",
       {{"exitCode", pod.exit_code},
        {"finishedAt", api::FormatTime(OperatorClock(&parts_.time, &parts_.random).wall())}}}};
  (void)parts_.api.Patch(
      kube::Pods(), pod.name,
      {{"metadata", {{"uid", pod.uid}}},
       {"status",
        {{"phase", pod.exit_code == 0 ? "Succeeded" : "Failed"},
         {"containerStatuses", StateOfAll(**object, "containers", ended)},
         {"initContainerStatuses", StateOfAll(**object, "initContainers", ended)}}}},
      "status");
  if (pod.deletion_seen)
    (void)parts_.api.Delete(kube::Pods(), pod.name, {.grace_period_seconds = 0, .uid = pod.uid});
}

void Kubelets::KillPod(int index, const std::string& why) {
  SimPod& pod = *parts_.pods[index];
  if (pod.gone) return;
  parts_.journal.Trace([&] { return pod.uid + " is gone: " + why; });
  if (pod.leaving) ++parts_.journal.coverage().left;
  // Of a pod that is killed nobody may hear for a while: its node is lost.
  const bool told = pod.launcher.ended || parts_.plan.healed_at() || parts_.random.Chance(850);
  if (!pod.launcher.ended) pod.exit_code = 137;
  pod.gone = true;
  for (const Child& child : std::vector<Child>(pod.launcher.children))
    parts_.workers.Exit(child.worker, 137, 9);
  pod.launcher.children.clear();
  parts_.sidecars.Crash(index, why);
  if (told) parts_.time.After(parts_.random.Below(2 * kSecond), [this, index] { TellEnd(index); });
}

}  // namespace ringmaster::app::sim
