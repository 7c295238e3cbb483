#include "operator/cli/pod_log.h"

#include <chrono>
#include <string_view>

#include "common/lines/line_splitter.h"
#include "operator/api/horovod_job.h"
#include "operator/cli/failure_report.h"

namespace ringmaster::cli {

std::deque<std::string> LastLines(kube::KubeApi* api, const std::string& ns,
                                  const std::string& pod) {
  constexpr int kMost = 2000;
  std::deque<std::string> last;
  lines::LineSplitter lines([&](std::string_view line) {
    last.emplace_back(line);
    if (last.size() > kMost) last.pop_front();
  });
  auto on_text = [&](std::string_view text) {
    lines.Feed(text, std::chrono::steady_clock::now());
    return true;
  };
  (void)api->PodLogWith(ns, pod, {.container = api::kWorkerContainer, .tail = kMost}, on_text, {});
  lines.Finish();
  return last;
}

std::vector<std::string> FailureLinesOf(kube::KubeApi* api, const JobRun& job,
                                        const std::string& why, bool shown) {
  const std::string pod = job.PodToBlame();
  const auto log = pod.empty() ? std::deque<std::string>() : LastLines(api, job.ns(), pod);
  return FailureReport(job.name(), why,
                       {.name = pod,
                        .first_rank = job.FirstNumberOf(pod),
                        .labelled = job.LabelsLines(),
                        .shown = shown},
                       log);
}

}  // namespace ringmaster::cli
