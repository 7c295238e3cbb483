// Paths and selectors of requests to the embedded API server.
#include <cstdint>
#include <string>

#include "operator/kube/selectors.h"
#include "operator/local/server/request_path.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const nlohmann::json object = {{"metadata", {{"name", "a"}, {"labels", {{"a", "b"}}}}}};
  if (const auto labels = ringmaster::kube::LabelSelector::Parse(text)) {
    (void)labels->Matches(object);
  }
  if (const auto fields = ringmaster::kube::FieldSelector::Parse(text, {"metadata.name"})) {
    (void)fields->Matches(object);
  }
  (void)ringmaster::local::ParsePath(text);
  return 0;
}
