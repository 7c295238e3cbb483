#include "operator/app/api_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/logging/log.h"
#include "common/sync/pause.h"

namespace ringmaster::app {
namespace {

using Clock = std::chrono::steady_clock;

struct Refusal {
  kube::Error error;
  std::string ns;  // empty: all
};

// Finds the first namespace whose HorovodJobs can't be listed.
std::optional<Refusal> FirstRefusal(kube::KubeApi* api, std::vector<std::string> namespaces) {
  // This list succeeds or fails like a list of all jobs, but returns none.
  const kube::ListOptions probe{.field_selector = "metadata.name=ringmaster-probe"};
  if (namespaces.empty()) namespaces.emplace_back();
  for (const std::string& ns : namespaces) {
    const auto listed = api->ListAll(kube::HorovodJobs(), ns, probe);
    if (!listed) return Refusal{listed.error(), ns};
  }
  return std::nullopt;
}

}  // namespace

ApiProblem ExplainApiError(const kube::Error& error, const std::string& ns) {
  const std::string where = ns.empty() ? "in all namespaces" : fmt::format("in namespace {}", ns);
  switch (error.code) {
    case kube::ErrorCode::kNotFound:
      return {.what =
                  "the API server knows no HorovodJobs: install the CustomResourceDefinition "
                  "(kubectl apply --server-side -f crds/ringmaster.dev_horovodjobs.yaml, or "
                  "the Helm chart); waiting for it"};
    case kube::ErrorCode::kForbidden:
      if (error.http_status == 401) {
        return {.what =
                    "the API server doesn't accept the credentials; they may have expired or "
                    "be another cluster's: " +
                    error.message};
      }
      // the call was never sent
      if (error.http_status == 0) return {.what = "no credentials: " + error.message};
      return {.what = fmt::format("a right is missing: list horovodjobs.ringmaster.dev {}, which "
                                  "the chart's {} gives: {}",
                                  where, ns.empty() ? "ClusterRole" : "Role", error.message)};
    case kube::ErrorCode::kUnavailable:
    case kube::ErrorCode::kTooManyRequests:
      return {.unreachable = true, .what = "the API server can't be reached: " + error.message};
    default:
      return {.what = "HorovodJobs can't be listed: " + error.message};
  }
}

kube::Result<void> WaitForApiServer(kube::KubeApi* api, const ApiWaitOptions& options,
                                    std::stop_token stop) {
  auto reachable = Clock::now();
  Clock::time_point said;
  std::string last;
  auto pause = options.first_pause;
  while (!stop.stop_requested()) {
    const auto refusal = FirstRefusal(api, options.namespaces);
    const auto now = Clock::now();
    if (!refusal) {
      if (!last.empty()) logging::Info("the API server is there");
      if (options.on_problem) options.on_problem("");
      return {};
    }
    const ApiProblem problem = ExplainApiError(refusal->error, refusal->ns);
    if (!problem.unreachable) reachable = now;
    if (problem.unreachable && now - reachable >= options.timeout) {
      return tl::unexpected(
          kube::Error{.code = kube::ErrorCode::kUnavailable,
                      .message = fmt::format("{} (for {} s: --api-server-timeout-seconds)",
                                             problem.what, options.timeout.count() / 1000)});
    }
    if (problem.what != last || now - said >= options.say_again) {
      logging::Warn("waiting for the API server why={}", logging::Value(problem.what));
      said = now;
    }
    if (problem.what != last && options.on_problem) options.on_problem(problem.what);
    last = problem.what;
    sync::Pause(stop, std::max(pause, std::min(refusal->error.retry_after, options.last_pause)));
    pause = std::min(pause * 2, options.last_pause);
  }
  return tl::unexpected(
      kube::Error{.code = kube::ErrorCode::kUnavailable, .message = "stopped before it began"});
}

}  // namespace ringmaster::app
