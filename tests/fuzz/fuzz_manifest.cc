// Manifests: YAML, and what a HorovodJob may be. Each document is one; a job is an update of the
// one before it.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "operator/api/crd.h"
#include "operator/api/horovod_job.h"
#include "operator/api/structural_schema.h"
#include "operator/kube/yaml.h"

namespace api = ringmaster::api;
using nlohmann::json;

namespace {

// Ends the fuzzer: what always holds does not.
void Demand(bool holds) {
  if (!holds) std::abort();
}

void CheckPods(const api::HorovodJob& job) {
  const int wanted = job.WantedPods();
  Demand(wanted <= job.MaxPods());
  Demand(job.spec.worker.replicas == 0 ? wanted == 0 : wanted >= job.LeastPods());
  Demand(job.WantedPodsOf(wanted) == wanted);
}

// As an API server stores it: without what the schema doesn't know, and with its defaults.
json Stored(json document) {
  (void)api::PruneUnknown(api::JobSchema(), document);
  api::SetDefaults(api::JobSchema(), document);
  json again = document;
  Demand(api::PruneUnknown(api::JobSchema(), again).empty());
  api::SetDefaults(api::JobSchema(), again);
  Demand(again == document);
  (void)api::FindViolations(api::JobSchema(), document, "");
  return document;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto documents = ringmaster::kube::YamlToJson({reinterpret_cast<const char*>(data), size});
  if (!documents) return 0;
  std::optional<api::Spec> before;
  for (const auto& document : *documents) {
    (void)document.dump(-1, ' ', false, json::error_handler_t::replace);
    const json stored = Stored(document);
    const auto job = api::ParseHorovodJob(document);
    if (!job) {
      Demand(!job.error().empty());
      continue;
    }
    Demand(api::ParseHorovodJob(stored).has_value());
    CheckPods(*job);
    Demand(*api::ToString(job->spec.run_policy.clean_pod_policy) != '\0');
    Demand(api::CheckUpdate(job->spec, job->spec).empty());
    if (before) (void)api::CheckUpdate(*before, job->spec);
    before = job->spec;
  }
  return 0;
}
