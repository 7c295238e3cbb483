#include "operator/cli/control_commands.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/api/labels.h"
#include "operator/cli/absence.h"
#include "operator/cli/command_job.h"
#include "operator/cli/drain_text.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/pod_process.h"
#include "operator/inspection/inspection.h"
#include "operator/inspection/poller.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr std::chrono::milliseconds kStatusPatience{500};
constexpr std::chrono::milliseconds kKillPatience{5000};
constexpr std::chrono::milliseconds kKillPoll{20};
constexpr std::chrono::seconds kDrainPatience{3};
constexpr std::chrono::milliseconds kDrainPoll{50};

// Kills a process of the pod; if the pod is on another machine, it asks that machine's kubelet.
// Returns an empty text on success.
std::string KillProcess(kube::KubeApi* api, const Json& pod, int pid) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid");
  auto node = api->Get(kube::Nodes(), "", fields::TextAt(pod, "/spec/nodeName"));
  if (!node) return node.error().message;
  if (fields::TextAt(*node, "/status/addresses/0/address") == "127.0.0.1")
    return KillProcessOfPod(pid, uid);
  const Json patch = {
      {"metadata",
       {{"annotations", {{api::kLocalKillAnnotation, fmt::format("{}/{}", uid, pid)}}}}}};
  auto marked = api->Patch(kube::Pods(), fields::TextAt(pod, "/metadata/namespace"),
                           fields::TextAt(pod, "/metadata/name"), patch, {});
  return marked ? "" : marked.error().message;
}

Outcome<void> KillWorker(kube::KubeApi* api, const Json& pod, int slot, const std::string& token) {
  std::string name = fields::TextAt(pod, "/metadata/name");
  const auto answer = inspection::FetchStatus(
      fields::Text(fields::At(pod, "/metadata/annotations"), api::kHttpAnnotation), token,
      kStatusPatience);
  if (!answer)
    return Fail(
        ExitCode::kJobFailed,
        fmt::format("the sidecar of {} does not answer: which workers it has is not known", name));
  for (const inspection::WorkerStatus& worker : answer->workers) {
    if (worker.slot != slot || worker.standby || worker.pid <= 0) continue;
    const std::string why = KillProcess(api, pod, worker.pid);
    if (!why.empty())
      return Fail(ExitCode::kJobFailed, fmt::format("worker {}/{}: {}", name, slot, why));
    std::printf("killed worker %s/%d (rank %d, process %d)\n", name.c_str(), slot, worker.rank,
                worker.pid);
    return {};
  }
  return Fail(ExitCode::kJobFailed,
              fmt::format("--worker {}: pod {} has no such worker now", slot, name));
}

// The kubelet is in another process: an annotation asks it, and the pod's status has its answer.
bool IsFinal(const std::string& phase) { return phase == "Succeeded" || phase == "Failed"; }

Outcome<void> KillPod(kube::KubeApi* api, const Json& pod) {
  std::string ns = fields::TextAt(pod, "/metadata/namespace"),
              name = fields::TextAt(pod, "/metadata/name");
  std::string uid = fields::TextAt(pod, "/metadata/uid");
  // The mark would stay, and kill the pod when it has processes.
  if (const std::string phase = fields::TextAt(pod, "/status/phase");
      fields::TextAt(pod, "/spec/nodeName").empty() || IsFinal(phase)) {
    return Fail(ExitCode::kJobFailed,
                fmt::format("pod {} has no processes: it is {}", name, phase));
  }
  Json patch = {{"metadata", {{"annotations", {{api::kLocalKillAnnotation, uid}}}}}};
  auto marked = api->Patch(kube::Pods(), ns, name, patch, {});
  if (!marked) return tl::unexpected(FromKube(marked.error()));
  auto deadline = std::chrono::steady_clock::now() + kKillPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    auto now = api->Get(kube::Pods(), ns, name);
    const bool gone = now ? fields::TextAt(*now, "/metadata/uid") != uid
                          : now.error().code == kube::ErrorCode::kNotFound;
    if (gone || (now && IsFinal(fields::TextAt(*now, "/status/phase")))) {
      std::printf("killed pod %s\n", name.c_str());
      return {};
    }
    std::this_thread::sleep_for(kKillPoll);
  }
  return Fail(ExitCode::kJobFailed, fmt::format("pod {} still runs", name));
}

// Waits for the operator's reaction, which is an annotation of the pod or a condition of the job.
std::string AnswerToDrain(kube::KubeApi* api, const Json& asked) {
  const std::string ns = fields::TextAt(asked, "/metadata/namespace");
  const std::string name = fields::TextAt(asked, "/metadata/name");
  const std::string job = fields::Text(fields::At(asked, "/metadata/labels"), api::kJobNameLabel);
  const auto deadline = std::chrono::steady_clock::now() + kDrainPatience;
  while (true) {
    auto pod = api->Get(kube::Pods(), ns, name);
    const bool same =
        pod && fields::TextAt(*pod, "/metadata/uid") == fields::TextAt(asked, "/metadata/uid");
    const bool gone = pod ? !same : pod.error().code == kube::ErrorCode::kNotFound;
    Json owner;
    if (auto read = api->Get(kube::HorovodJobs(), ns, job)) owner = std::move(*read);
    if (gone || pod) {
      const auto said = DrainText(name, gone ? Json() : *pod, owner);
      if (said) return *said;
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(kDrainPoll);
  }
  return fmt::format("{} is asked to leave; no operator has taken that up within {} s", name,
                     kDrainPatience.count());
}

}  // namespace

Outcome<void> Scale(const ScaleOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kChange);
  if (!to) return tl::unexpected(to.error());
  auto job = to->api->Get(kube::HorovodJobs(), to->ns, options.job);
  if (!job) return tl::unexpected(NotThere(*to, around, NameKind::kJob, options.job, job.error()));
  const std::string advice = ScaleAdvice(*job, options.replicas);
  Json patch = {{"spec", {{"worker", {{"replicas", options.replicas}}}}}};
  job->merge_patch(patch);
  // The server checks each field by itself, so bounds between fields have to be checked here.
  if (auto parsed = api::ParseHorovodJob(*job, api::UnknownFields::kIgnore); !parsed)
    return Fail(ExitCode::kUsage,
                api::ToString(parsed.error()) + (advice.empty() ? "" : "\n" + advice));
  auto done = to->api->Patch(kube::HorovodJobs(), to->ns, options.job, patch, {});
  if (!done) return tl::unexpected(FromKube(done.error()));
  std::printf("%s: %d replicas wanted\n", options.job.c_str(), options.replicas);
  return {};
}

Outcome<void> Drain(const DrainOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kChange);
  if (!to) return tl::unexpected(to.error());
  auto pod = to->api->Get(kube::Pods(), to->ns, options.pod);
  if (!pod) return tl::unexpected(NotThere(*to, around, NameKind::kPod, options.pod, pod.error()));
  if (fields::Text(fields::At(*pod, "/metadata/labels"), api::kJobNameLabel).empty())
    return Fail(ExitCode::kJobFailed,
                fmt::format("{} belongs to no HorovodJob: nobody would let it leave after a step, "
                            "so it is not asked to",
                            options.pod));
  // The operator lets a pod with this annotation leave the view, then deletes and replaces it.
  Json patch = {{"metadata", {{"annotations", {{api::kDrainAnnotation, "Requested"}}}}}};
  auto done = to->api->Patch(kube::Pods(), to->ns, options.pod, patch, {});
  if (!done)
    return tl::unexpected(NotThere(*to, around, NameKind::kPod, options.pod, done.error()));
  std::printf("%s\n", AnswerToDrain(to->api.get(), *done).c_str());
  return {};
}

Outcome<void> Kill(const KillOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kChange);
  if (!to) return tl::unexpected(to.error());
  if (to->run_dir.empty())
    return Fail(ExitCode::kUsage,
                "kill reaches pods of a run on this machine only; on a cluster use `kubectl exec` "
                "or `kubectl delete pod --force`");
  auto pod = to->api->Get(kube::Pods(), to->ns, options.pod);
  if (!pod) return tl::unexpected(NotThere(*to, around, NameKind::kPod, options.pod, pod.error()));
  if (options.worker) {
    const std::string job = fields::Text(fields::At(*pod, "/metadata/labels"), api::kJobNameLabel);
    return KillWorker(to->api.get(), *pod, *options.worker, inspection::TokenOf(*to, to->ns, job));
  }
  return KillPod(to->api.get(), *pod);
}

Outcome<void> Delete(const DeleteOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kChange);
  if (!to) return tl::unexpected(to.error());
  auto done =
      to->api->Delete(kube::HorovodJobs(), to->ns, options.job, {.propagation = "Background"});
  if (!done)
    return tl::unexpected(NotThere(*to, around, NameKind::kJob, options.job, done.error()));
  std::printf("%s deleted\n", options.job.c_str());
  return {};
}

}  // namespace ringmaster::cli
