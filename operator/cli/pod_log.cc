#include "operator/cli/pod_log.h"

#include <chrono>
#include <fstream>
#include <string_view>
#include <utility>

#include "common/fields/fields.h"
#include "common/lines/line_splitter.h"
#include "operator/api/horovod_job.h"
#include "operator/cli/failure_report.h"
#include "operator/cli/log_lines.h"
#include "operator/kubelet/log_folder.h"

namespace ringmaster::cli {

namespace {

// Keeps the newest lines of a text that arrives in pieces.
class Newest {
 public:
  static constexpr int kMost = 2000;

  void Feed(std::string_view text) { lines_.Feed(text, std::chrono::steady_clock::now()); }
  std::deque<std::string> Take() {
    lines_.Finish();
    return std::move(last_);
  }

 private:
  std::deque<std::string> last_;
  lines::LineSplitter lines_{[this](std::string_view line) {
                               last_.emplace_back(line);
                               if (last_.size() > kMost) last_.pop_front();
                             },
                             lines::LineSplitter::kLongestLabelled};
};

std::deque<std::string> LastLinesOfFile(const std::filesystem::path& file) {
  Newest newest;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) newest.Feed(line + "\n");
  return newest.Take();
}

}  // namespace

std::deque<std::string> LastLines(kube::KubeApi* api, const std::string& ns,
                                  const std::string& pod) {
  Newest newest;
  auto on_text = [&](std::string_view text) {
    newest.Feed(text);
    return true;
  };
  (void)api->PodLogWith(ns, pod, {.container = api::kWorkerContainer, .tail = Newest::kMost},
                        on_text, {});
  return newest.Take();
}

LogState StateOfLog(kube::KubeApi* api, const std::string& ns, const std::string& pod,
                    const std::string& container, const std::string& uid) {
  const auto object = api->Get(kube::Pods(), ns, pod);
  if (!object)
    return object.error().code == kube::ErrorCode::kNotFound ? LogState::kGone : LogState::kGrows;
  if (!uid.empty() && fields::TextAt(*object, "/metadata/uid") != uid) return LogState::kGone;
  for (const kube::Json& status : fields::ListAt(*object, "/status/containerStatuses")) {
    if (fields::Text(status, "name") != container) continue;
    if (fields::Integer(status, "restartCount") != 0) return LogState::kGone;
    const kube::Json& state = fields::Member(status, "state");
    if (state.contains("running")) return LogState::kGrows;
    return state.contains("terminated") ? LogState::kEnded : LogState::kGone;
  }
  return LogState::kGone;
}

bool StillRuns(kube::KubeApi* api, const std::string& ns, const std::string& pod,
               const std::string& container) {
  return StateOfLog(api, ns, pod, container) == LogState::kGrows;
}

std::vector<std::string> FailureLinesOf(kube::KubeApi* api, const JobRun& job,
                                        const std::string& why, bool shown,
                                        const std::filesystem::path& logs) {
  const std::string pod = job.PodToBlame();
  auto log = pod.empty() ? std::deque<std::string>() : LastLines(api, job.ns(), pod);
  if (log.empty() && !pod.empty() && !logs.empty())
    log = LastLinesOfFile(logs / kubelet::LogFolder(job.ns(), pod) /
                          (std::string(api::kWorkerContainer) + ".log"));
  return FailureReport(job.name(), why,
                       {.name = pod,
                        .first_number = job.FirstNumberOf(pod),
                        .labelled = LabelsLines(job.object()),
                        .shown = shown,
                        .had_view = job.HadView()},
                       log);
}

}  // namespace ringmaster::cli
