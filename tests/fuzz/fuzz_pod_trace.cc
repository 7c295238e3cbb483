// What a sidecar answers to GET /timeline, as the command line and the page read it.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/inspection/job_trace.h"
#include "operator/inspection/pod_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) return 0;
  const auto pod = ringmaster::inspection::ParsePodTrace(document);
  if (!pod) return 0;
  const auto trace = ringmaster::inspection::LayTogether({*pod, *pod});
  // It is given to a program of somebody else's.
  if (nlohmann::json::parse(ringmaster::inspection::ChromeText(trace), nullptr, false)
          .is_discarded())
    std::abort();
  (void)ringmaster::inspection::TimelineNotes(trace);
  return 0;
}
