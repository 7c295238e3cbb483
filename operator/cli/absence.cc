#include "operator/cli/absence.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/suggestion.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr std::chrono::milliseconds kPatienceElsewhere{1000};

std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kMost = 5;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost));
  return fmt::format("{}{}", fmt::join(names.begin(), end, ", "),
                     names.size() > kMost ? ", ..." : "");
}

std::vector<std::string> PodsOf(const std::string& job, const Neighbours& there) {
  std::vector<std::string> pods;
  for (const auto& [pod, of] : there.pods)
    if (job.empty() || of == job) pods.push_back(pod);
  return pods;
}

std::vector<std::string> NamesThere(NameKind wanted, const Neighbours& there) {
  std::vector<std::string> names;
  if (wanted != NameKind::kPod) names = there.jobs;
  if (wanted != NameKind::kJob)
    for (const std::string& pod : PodsOf("", there)) names.push_back(pod);
  return names;
}

std::string NameOfObject(const Json& object) { return fields::TextAt(object, "/metadata/name"); }

std::vector<std::filesystem::path> RunsThatHave(const std::string& job, const Surroundings& around,
                                                const std::filesystem::path& but) {
  std::vector<std::filesystem::path> found;
  const auto runs = LivingRuns(around.paths);
  if (but.empty() || !runs) return {};
  for (const std::filesystem::path& run : *runs) {
    std::error_code ignored;
    if (std::filesystem::equivalent(run, but, ignored)) continue;
    const auto to = ConnectTo({run, {run / "kubeconfig"}, ""}, {}, kPatienceElsewhere);
    if (to && to->api->Get(kube::HorovodJobs(), to->ns, job)) found.push_back(run);
  }
  return found;
}

}  // namespace

std::string AbsenceText(NameKind wanted, const std::string& name, const Neighbours& there) {
  const auto pod = there.pods.find(name);
  if (wanted == NameKind::kJob && pod != there.pods.end())
    return fmt::format("\"{}\" is a pod of job \"{}\", and a job is wanted", name, pod->second);
  if (std::find(there.jobs.begin(), there.jobs.end(), name) != there.jobs.end()) {
    const std::vector<std::string> pods = PodsOf(name, there);
    return fmt::format("\"{}\" is a job, and a pod is wanted; the job has {}", name,
                       pods.empty() ? "none" : Some(pods));
  }
  const char* kind = wanted == NameKind::kJob   ? "job"
                     : wanted == NameKind::kPod ? "pod"
                                                : "pod or job";
  const std::string text =
      fmt::format("there is no {} \"{}\" in namespace \"{}\"", kind, name, there.ns);
  if (!there.elsewhere.empty())
    return fmt::format("{} of this run; another run has that job: --run-dir {}", text,
                       there.elsewhere.front().string());
  const std::vector<std::string> names = NamesThere(wanted, there);
  const std::string meant = DidYouMean(name, names);
  if (!meant.empty()) return text + meant;
  return names.empty() ? text + ", and no other"
                       : fmt::format("{}; there is {}", text, Some(names));
}

Failure NotThere(const inspection::Connection& to, const Surroundings& around, NameKind wanted,
                 const std::string& name, const kube::Error& error) {
  if (error.code != kube::ErrorCode::kNotFound) return FromKube(error);
  const auto jobs = to.api->ListAll(kube::HorovodJobs(), to.ns, {});
  const auto pods = to.api->ListAll(kube::Pods(), to.ns, {.label_selector = api::kWorkerSelector});
  if (!jobs || !pods) return FromKube(error);
  Neighbours there{.ns = to.ns, .elsewhere = RunsThatHave(name, around, to.run_dir)};
  for (const Json& job : jobs->items) there.jobs.push_back(NameOfObject(job));
  for (const Json& pod : pods->items)
    there.pods[NameOfObject(pod)] =
        fields::Text(fields::At(pod, "/metadata/labels"), api::kJobNameLabel);
  return {ExitCode::kJobFailed, AbsenceText(wanted, name, there)};
}

}  // namespace ringmaster::cli
