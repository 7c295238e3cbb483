// Manifests: YAML, and what a HorovodJob may be.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "operator/api/horovod_job.h"
#include "operator/kube/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto documents = ringmaster::kube::YamlToJson({reinterpret_cast<const char*>(data), size});
  if (!documents) return 0;
  for (const auto& document : *documents) {
    (void)document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    (void)ringmaster::api::ParseHorovodJob(document);
  }
  return 0;
}
