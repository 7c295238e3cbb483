// What sidecars answer to GET /timeline, as the command line and the page read it. The input is the
// answers of several pods, each after a line "---"; one alone is there twice.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "common/fields/parse.h"
#include "operator/inspection/job_trace.h"
#include "operator/inspection/pod_trace.h"

namespace inspection = ringmaster::inspection;

namespace {

std::vector<inspection::PodTrace> ReadPods(std::string_view text) {
  constexpr std::string_view kBetween = "\n---\n";
  std::vector<inspection::PodTrace> pods;
  while (true) {
    const std::size_t end = text.find(kBetween);
    auto pod = inspection::ParsePodTrace(ringmaster::fields::ParseOrDiscard(text.substr(0, end)));
    if (pod) pods.push_back(std::move(*pod));
    if (end == text.npos) break;
    text.remove_prefix(end + kBetween.size());
  }
  if (pods.size() == 1) pods.push_back(pods.front());
  return pods;
}

// It is given to a program of somebody else's, and a pod can't make it longer than what it has
// sent.
void CheckFile(const inspection::JobTrace& trace) {
  const auto file = nlohmann::json::parse(inspection::ChromeText(trace), nullptr, false);
  if (file.is_discarded()) std::abort();
  std::size_t sent = 0;
  for (const inspection::PodTrace& pod : trace.pods) sent += pod.events.size();
  const auto& written = file["traceEvents"];
  if (static_cast<std::size_t>(std::count_if(written.begin(), written.end(), [](const auto& event) {
        return event["ph"] != "M";
      })) > sent)
    std::abort();
}

void CheckTimes(const inspection::JobTrace& trace) {
  if (!(trace.first_us() <= trace.last_us()) && trace.last_us() != 0) std::abort();
  if (trace.late.size() > trace.workers()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto pods = ReadPods({reinterpret_cast<const char*>(data), size});
  if (pods.empty()) return 0;
  const auto trace = inspection::LayTogether(pods);
  CheckFile(trace);
  CheckTimes(trace);
  (void)inspection::TimelineNotes(trace);
  return 0;
}
