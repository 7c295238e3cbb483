#include "operator/cli/control_commands.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "common/fields/fields.h"
#include "common/sync/mutex.h"
#include "operator/api/horovod_job.h"
#include "operator/api/labels.h"
#include "operator/cli/job_run.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/poller.h"
#include "operator/cli/run_session.h"
#include "operator/cli/table.h"
#include "operator/cli/yaml_text.h"
#include "operator/kube/kube_client.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr std::chrono::milliseconds kStatusPatience{500};
constexpr std::chrono::milliseconds kKillPatience{5000};
constexpr std::chrono::milliseconds kKillPoll{20};
// The operator lets a pod that has it leave the view, then deletes it and makes another
// (operator/planner/planner.h).

struct Connection {
  std::unique_ptr<kube::KubeApi> api;
  std::filesystem::path run_dir;  // empty: a cluster
};

Outcome<Connection> Connect(const Target& target, const RunPaths& paths) {
  Connection connection;
  std::filesystem::path kubeconfig = target.kubeconfig;
  if (kubeconfig.empty()) {
    connection.run_dir = target.run_dir;
    if (connection.run_dir.empty()) {
      auto newest = NewestLivingRun(paths);
      if (!newest) return tl::unexpected(newest.error());
      connection.run_dir = *newest;
    }
    if (!IsAlive(connection.run_dir))
      return Fail(ExitCode::kUsage,
                  fmt::format("no run is alive in {}", connection.run_dir.string()));
    kubeconfig = connection.run_dir / "kubeconfig";
  }
  auto api = kube::ConnectByKubeconfig(kubeconfig);
  if (!api) return tl::unexpected(FromKube(api.error()));
  connection.api = std::move(*api);
  return connection;
}

Outcome<std::vector<Json>> PodsOf(kube::KubeApi* api, const std::string& ns,
                                  const std::string& job) {
  auto list = api->ListAll(kube::Pods(), ns,
                           {.label_selector = std::string(api::kJobNameLabel) + "=" + job});
  if (!list) return tl::unexpected(FromKube(list.error()));
  return std::move(list->items);
}

// What the sidecars of these pods say now; a pod without an answer is left out.
std::map<std::string, SidecarStatus> Ask(const std::vector<Json>& pods) {
  std::map<std::string, SidecarStatus> answers;
  for (const Json& pod : pods) {
    std::string address =
        fields::Text(fields::At(pod, "/metadata/annotations"), api::kHttpAnnotation);
    if (address.empty()) continue;
    if (auto status = FetchStatus(address, kStatusPatience))
      answers[fields::TextAt(pod, "/metadata/name")] = *status;
  }
  return answers;
}

// The job as the API server gives it, with what only the sidecars know.
Json WithWorkers(Json job, const std::vector<Json>& pods,
                 const std::map<std::string, SidecarStatus>& answers) {
  Json list = Json::array();
  for (const Json& pod : pods) {
    std::string name = fields::TextAt(pod, "/metadata/name");
    Json entry = {{"name", name},
                  {"phase", fields::TextAt(pod, "/status/phase")},
                  {"node", fields::TextAt(pod, "/spec/nodeName")},
                  {"uid", fields::TextAt(pod, "/metadata/uid")},
                  {"workers", Json::array()}};
    auto answer = answers.find(name);
    if (answer != answers.end()) {
      entry["coordinator"] = answer->second.coordinator;
      entry["state"] = answer->second.state;
      entry["epoch"] = answer->second.epoch;
      for (const WorkerStatus& worker : answer->second.workers) {
        entry["workers"].push_back({{"slot", worker.slot},
                                    {"incarnation", worker.incarnation},
                                    {"pid", worker.pid},
                                    {"rank", worker.rank},
                                    {"state", worker.state},
                                    {"step", worker.step},
                                    {"standby", worker.standby}});
      }
    }
    list.push_back(entry);
  }
  job["status"]["pods"] = list;
  return job;
}

void Print(const Json& value, OutputFormat format) {
  std::string text = format == OutputFormat::kYaml ? ToYaml(value) : value.dump(2) + "\n";
  std::fputs(text.c_str(), stdout);
}

Outcome<void> PrintPodLog(kube::KubeApi* api, const std::string& ns, const std::string& pod,
                          const LogsOptions& options, const std::string& prefix, sync::Mutex* out) {
  const std::string container =
      options.container.empty() ? api::kWorkerContainer : options.container;
  std::string line;
  auto on_text = [&](std::string_view text) {
    line += text;
    size_t end = line.rfind('\n');
    if (end == std::string::npos) return true;
    const sync::MutexLock lock(out);
    for (size_t at = 0; at <= end;) {
      size_t next = line.find('\n', at);
      std::printf("%s%.*s\n", prefix.c_str(), static_cast<int>(next - at), line.data() + at);
      at = next + 1;
    }
    std::fflush(stdout);
    line.erase(0, end + 1);
    return true;
  };
  auto read = api->PodLog(ns, pod, container, options.follow, on_text, {});
  if (!line.empty()) {
    const sync::MutexLock lock(out);
    std::printf("%s%s\n", prefix.c_str(), line.c_str());
  }
  if (!read) return tl::unexpected(FromKube(read.error()));
  return {};
}

Outcome<void> KillWorker(const Json& pod, int slot) {
  std::string name = fields::TextAt(pod, "/metadata/name");
  auto answers = Ask({pod});
  if (answers.empty())
    return Fail(
        ExitCode::kJobFailed,
        fmt::format("the sidecar of {} does not answer: who its workers are is not known", name));
  for (const WorkerStatus& worker : answers.begin()->second.workers) {
    if (worker.slot != slot || worker.standby || worker.pid <= 0) continue;
    if (::kill(worker.pid, SIGKILL) != 0)
      return Fail(ExitCode::kJobFailed, fmt::format("process {} of worker {}/{}: {}", worker.pid,
                                                    name, slot, std::strerror(errno)));
    std::printf("killed worker %s/%d (rank %d, process %d)\n", name.c_str(), slot, worker.rank,
                worker.pid);
    return {};
  }
  return Fail(ExitCode::kUsage,
              fmt::format("--worker {}: pod {} has no such worker now", slot, name));
}

// The kubelet is in the process of `ringmaster run`: it is asked by an annotation, and answers by
// the pod's status.
Outcome<void> KillPod(kube::KubeApi* api, const Json& pod) {
  std::string ns = fields::TextAt(pod, "/metadata/namespace"),
              name = fields::TextAt(pod, "/metadata/name");
  std::string uid = fields::TextAt(pod, "/metadata/uid");
  Json patch = {{"metadata", {{"annotations", {{api::kLocalKillAnnotation, uid}}}}}};
  auto marked = api->Patch(kube::Pods(), ns, name, patch, {});
  if (!marked) return tl::unexpected(FromKube(marked.error()));
  auto deadline = std::chrono::steady_clock::now() + kKillPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    auto now = api->Get(kube::Pods(), ns, name);
    bool other = now && fields::TextAt(*now, "/metadata/uid") != uid;
    if (!now || other || fields::TextAt(*now, "/status/phase") != "Running") {
      std::printf("killed pod %s\n", name.c_str());
      return {};
    }
    std::this_thread::sleep_for(kKillPoll);
  }
  return Fail(ExitCode::kJobFailed, fmt::format("pod {} still runs", name));
}

}  // namespace

Outcome<void> Get(const GetOptions& options, const RunPaths& paths) {
  auto to = Connect(options.target, paths);
  if (!to) return tl::unexpected(to.error());
  const std::string& ns = options.target.ns;
  std::vector<Json> jobs;
  if (options.job.empty()) {
    auto list = to->api->ListAll(kube::HorovodJobs(), ns, {});
    if (!list) return tl::unexpected(FromKube(list.error()));
    jobs = std::move(list->items);
  } else {
    auto job = to->api->Get(kube::HorovodJobs(), ns, options.job);
    if (!job) return tl::unexpected(FromKube(job.error()));
    jobs.push_back(std::move(*job));
  }
  std::vector<Json> full;
  for (Json& job : jobs) {
    auto pods = PodsOf(to->api.get(), ns, fields::TextAt(job, "/metadata/name"));
    if (!pods) return tl::unexpected(pods.error());
    full.push_back(WithWorkers(std::move(job), *pods, Ask(*pods)));
  }
  if (options.format == OutputFormat::kJson || options.format == OutputFormat::kYaml) {
    Print(options.job.empty() ? Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", full}}
                              : full[0],
          options.format);
    return {};
  }
  bool pods = !options.job.empty() || options.format == OutputFormat::kWide;
  std::fputs(JobsTable(full, pods, options.format == OutputFormat::kWide).c_str(), stdout);
  return {};
}

Outcome<void> Logs(const LogsOptions& options, const RunPaths& paths) {
  auto to = Connect(options.target, paths);
  if (!to) return tl::unexpected(to.error());
  const std::string& ns = options.target.ns;
  sync::Mutex out;
  auto pod = to->api->Get(kube::Pods(), ns, options.name);
  if (pod) return PrintPodLog(to->api.get(), ns, options.name, options, "", &out);
  if (pod.error().code != kube::ErrorCode::kNotFound) return tl::unexpected(FromKube(pod.error()));
  auto pods = PodsOf(to->api.get(), ns, options.name);
  if (!pods) return tl::unexpected(pods.error());
  if (pods->empty())
    return Fail(ExitCode::kUsage, fmt::format("\"{}\" is neither a pod nor a job with pods in "
                                              "namespace \"{}\"",
                                              options.name, ns));
  std::vector<Outcome<void>> outcomes(pods->size());
  {
    std::vector<std::jthread> readers;
    for (size_t i = 0; i < pods->size(); ++i) {
      readers.emplace_back([&, i] {
        std::string name = fields::TextAt((*pods)[i], "/metadata/name");
        outcomes[i] = PrintPodLog(to->api.get(), ns, name, options, name + ": ", &out);
      });
    }
  }
  for (auto& outcome : outcomes)
    if (!outcome) return outcome;
  return {};
}

Outcome<void> Scale(const ScaleOptions& options, const RunPaths& paths) {
  auto to = Connect(options.target, paths);
  if (!to) return tl::unexpected(to.error());
  auto job = to->api->Get(kube::HorovodJobs(), options.target.ns, options.job);
  if (!job) return tl::unexpected(FromKube(job.error()));
  Json patch = {{"spec", {{"worker", {{"replicas", options.replicas}}}}}};
  job->merge_patch(patch);
  // The server checks each field for itself; bounds between fields are ours to check.
  if (auto parsed = api::ParseHorovodJob(*job); !parsed)
    return Fail(ExitCode::kUsage, api::ToString(parsed.error()));
  auto done = to->api->Patch(kube::HorovodJobs(), options.target.ns, options.job, patch, {});
  if (!done) return tl::unexpected(FromKube(done.error()));
  std::printf("%s: %d replicas wanted\n", options.job.c_str(), options.replicas);
  return {};
}

Outcome<void> Drain(const DrainOptions& options, const RunPaths& paths) {
  auto to = Connect(options.target, paths);
  if (!to) return tl::unexpected(to.error());
  Json patch = {{"metadata", {{"annotations", {{api::kDrainAnnotation, "Requested"}}}}}};
  auto done = to->api->Patch(kube::Pods(), options.target.ns, options.pod, patch, {});
  if (!done) return tl::unexpected(FromKube(done.error()));
  std::printf("%s leaves after its step\n", options.pod.c_str());
  return {};
}

Outcome<void> Kill(const KillOptions& options, const RunPaths& paths) {
  auto to = Connect(options.target, paths);
  if (!to) return tl::unexpected(to.error());
  if (to->run_dir.empty())
    return Fail(ExitCode::kUsage,
                "kill reaches pods of a run on this machine only; on a cluster use `kubectl exec` "
                "or `kubectl delete pod --force`");
  auto pod = to->api->Get(kube::Pods(), options.target.ns, options.pod);
  if (!pod) return tl::unexpected(FromKube(pod.error()));
  if (options.worker) return KillWorker(*pod, *options.worker);
  return KillPod(to->api.get(), *pod);
}

Outcome<void> Delete(const DeleteOptions& options, const RunPaths& paths) {
  auto to = Connect(options.target, paths);
  if (!to) return tl::unexpected(to.error());
  auto done = to->api->Delete(kube::HorovodJobs(), options.target.ns, options.job,
                              {.propagation = "Background"});
  if (!done) return tl::unexpected(FromKube(done.error()));
  std::printf("%s deleted\n", options.job.c_str());
  return {};
}

}  // namespace ringmaster::cli
