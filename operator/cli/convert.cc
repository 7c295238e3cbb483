#include "operator/cli/convert.h"

#include <fmt/format.h>

#include "common/fields/fields.h"

namespace ringmaster::cli {

Outcome<Converted> ConvertJob(const nlohmann::json& job) {
  struct Kind {
    const char* kind;
    const char* group;
    Outcome<Converted> (*convert)(const nlohmann::json&);
  };
  constexpr Kind kKinds[] = {{"MPIJob", "kubeflow.org/", conversion::ConvertMpiJob},
                             {"PyTorchJob", "kubeflow.org/", conversion::ConvertPyTorchJob},
                             {"TrainJob", "trainer.kubeflow.org/", conversion::ConvertTrainJob}};
  const std::string version = fields::Text(job, "apiVersion");
  const std::string kind = fields::Text(job, "kind");
  for (const Kind& known : kKinds)
    if (kind == known.kind && version.starts_with(known.group)) return known.convert(job);
  return Fail(ExitCode::kUsage,
              fmt::format("it is a {} of '{}': only an MPIJob or PyTorchJob of kubeflow.org and a "
                          "TrainJob of trainer.kubeflow.org can be converted",
                          kind.empty() ? "document without kind" : kind, version));
}

}  // namespace ringmaster::cli
