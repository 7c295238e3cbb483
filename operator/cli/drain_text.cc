#include "operator/cli/drain_text.h"

#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/inspection/job_conditions.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

bool IsOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
}

// "digits-worker-10 leaves" does not name digits-worker-1.
bool Names(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || !IsOfName(text[at - 1]);
    if (begins && (end == text.size() || !IsOfName(text[end]))) return true;
  }
  return false;
}

std::string MessageOf(const Json& job, const char* type) {
  const Json* condition = inspection::TrueCondition(job, type);
  return condition == nullptr ? "" : fields::Text(*condition, "message");
}

}  // namespace

std::optional<std::string> DrainText(const std::string& name, const Json& pod, const Json& job) {
  const Json& annotations = fields::At(pod, "/metadata/annotations");
  const bool marked = !fields::Text(annotations, api::kDrainSinceAnnotation).empty();
  const std::string phase = fields::TextAt(pod, "/status/phase");
  const bool ended = phase == "Failed" || phase == "Succeeded";
  if (pod.is_null() || (ended && !marked)) return name + " is not there any more";
  const bool goes = !fields::TextAt(pod, "/metadata/deletionTimestamp").empty();
  if (goes || marked) {
    const std::string waits = MessageOf(job, "NoStepEnds");
    return name + " leaves after its step" + (goes || waits.empty() ? "" : "; " + waits);
  }
  const std::string held = MessageOf(job, "DrainHeld");
  if (!Names(held, name)) return std::nullopt;
  return fmt::format("{} stays for now: {}", name, held);
}

}  // namespace ringmaster::cli
