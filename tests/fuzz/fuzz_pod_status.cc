// What a sidecar answers to GET /status, as the command line, the page and the operator read it. A
// tenant's pod may answer anything: what is kept is bounded, and nothing of it controls a terminal.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/fields/parse.h"
#include "operator/inspection/sidecar_status.h"

namespace {

// More than any of the limits in sidecar_status.cc.
constexpr std::size_t kMostEntries = 10'000, kMostBytes = 1'000;

void CheckText(const std::string& text) {
  const auto controls = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (text.size() > kMostBytes || std::any_of(text.begin(), text.end(), controls)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto status =
      ringmaster::inspection::ParseSidecarStatus(ringmaster::fields::ParseOrDiscard(text));
  if (!status) return 0;
  for (const std::string& each :
       {status->version, status->job, status->pod, status->state, status->view_reason}) {
    CheckText(each);
  }
  for (const std::string& pod : status->pods) CheckText(pod);
  for (const auto& worker : status->workers) CheckText(worker.state), CheckText(worker.library);
  for (const auto& [name, value] : status->values) CheckText(name);
  for (const auto& link : status->broken_links) CheckText(link.pod);
  for (const auto& stall : status->stalls) {
    CheckText(stall.tensor);
    for (const std::string& pod : stall.pods) CheckText(pod);
  }
  for (const auto& rebuild : status->rebuilds) {
    CheckText(rebuild.reason);
    for (const auto* names : {&rebuild.members, &rebuild.left, &rebuild.joined}) {
      for (const std::string& name : *names) CheckText(name);
    }
  }
  const std::size_t counts[] = {status->pods.size(),     status->ranks.size(),
                                status->workers.size(),  status->exits.size(),
                                status->rebuilds.size(), status->stalls.size(),
                                status->values.size(),   status->broken_links.size()};
  if (*std::max_element(std::begin(counts), std::end(counts)) > kMostEntries) std::abort();
  return 0;
}
