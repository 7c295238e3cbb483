// Writes to the embedded API server: create, merge patch, apply and update, with any JSON. The
// input is several JSON texts, one a line.
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include "common/fields/parse.h"
#include "operator/kube/resources.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace kube = ringmaster::kube;
namespace local = ringmaster::local;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto store = std::make_shared<local::Store>(local::StoreOptions{});
  local::InMemoryApi api(store);
  const kube::Json base = {{"metadata", {{"name", "a"}}}, {"data", {{"k", "v"}}}};
  (void)api.Create(kube::ConfigMaps(), "default", base);
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  for (std::string line; std::getline(lines, line);) {
    const kube::Json json = ringmaster::fields::ParseOrDiscard(line);
    if (json.is_discarded()) continue;
    (void)api.Patch(kube::ConfigMaps(), "default", "a", json, {});
    kube::PatchOptions apply;
    apply.type = kube::PatchType::kApply;
    apply.field_manager = "fuzz";
    (void)api.Patch(kube::ConfigMaps(), "default", "a", json, apply);
    (void)api.Update(kube::ConfigMaps(), "default", json, "");
    (void)api.Create(kube::Pods(), "default", json);
  }
  return 0;
}
