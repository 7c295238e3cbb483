#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/fields/fields.h"
#include "operator/cli/convert.h"
#include "operator/cli/convert_overrides.h"
#include "operator/cli/convert_parts.h"
#include "operator/cli/convert_torch.h"

namespace ringmaster::cli::conversion {
namespace {

const Fields kTrainJobSpec = {
    {"runtimeRef", kTheSame},
    {"trainer", kTheSame},
    {"initializer", kTheSame},
    {"podTemplateOverrides", kTheSame},
    {"podSpecOverrides", kTheSame},
    {"runtimePatches", kTheSame},
    {"labels", kTheSame},
    {"annotations", kTheSame},
    {"suspend", kTheSame},
    {"activeDeadlineSeconds", kTheSame},
    {"managedBy", "set spec.runPolicy.managedBy if another controller shall look after the job"}};
const Fields kTrainer = {{"image", kTheSame},
                         {"command", kTheSame},
                         {"args", kTheSame},
                         {"env", kTheSame},
                         {"numNodes", kTheSame},
                         {"numProcPerNode", kTheSame},
                         {"resourcesPerNode", kTheSame}};
constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";

// The runtime is an object of the cluster. Says what of the job may come from it.
void NoteRuntime(const Json& reference, const Json& trainer, Notes* notes) {
  std::string kind = fields::Text(reference, "kind");
  if (kind.empty()) kind = "ClusterTrainingRuntime";
  std::string lower = kind;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string name = fields::Text(reference, "name");
  Words from_it;
  for (const auto& [field, text] : {std::pair("image", "the image"),
                                    {"command", "the command"},
                                    {"resourcesPerNode", "resources"},
                                    {"numNodes", "the number of pods"},
                                    {"numProcPerNode", "processes in each pod"}})
    if (!trainer.contains(field)) from_it.emplace_back(text);
  for (const char* text : {"volumes", "environment", "init containers"}) from_it.emplace_back(text);
  notes->push_back(fmt::format(
      "spec.runtimeRef: {} '{}' can't be seen from here. From it may come: {}. Look with `kubectl "
      "get {} {} -o yaml`, and add what the job needs to spec.worker.template",
      kind, name, fmt::join(from_it, ", "), lower, name));
}

void NoteInitializer(const Json& initializer, Notes* notes) {
  for (const auto& [what, value] : initializer.items()) {
    const std::string uri = fields::Text(value, "storageUri");
    notes->push_back(fmt::format(
        "spec.initializer.{}: not carried over: let the script or an init container of "
        "spec.worker.template fetch {} (with the initializer's env and secretRef, if it has them)",
        what, uri.empty() ? "what it fetches" : "'" + uri + "'"));
  }
}

// The container as far as the job itself tells.
Json TrainerContainer(const Json& trainer, Json container, Notes* notes) {
  for (const char* field : {"image", "command", "args"})
    if (trainer.contains(field)) container[field] = trainer[field];
  if (trainer.contains("resourcesPerNode")) container["resources"] = trainer["resourcesPerNode"];
  Json env = fields::List(trainer, "env");
  AddVariables(fields::List(container, "env"), &env);
  if (!env.empty()) container["env"] = std::move(env);
  if (!trainer.contains("image"))
    notes->push_back(
        "spec.trainer.image: there is none: write that of the runtime into "
        "spec.worker.template.spec.containers[].image");
  return container;
}

Json TemplateOfTrainJob(const Json& spec, const Json& trainer, Notes* notes) {
  Json pod = OverriddenTemplate(spec, notes);
  // Labels and annotations of the job's objects: of these a HorovodJob makes the pods.
  for (const char* field : {"labels", "annotations"}) {
    for (const auto& [name, value] : fields::Object(spec, field).items())
      if (!pod["metadata"][field].contains(name)) pod["metadata"][field][name] = value;
  }
  Json& containers = pod["spec"]["containers"];
  containers[0] = TrainerContainer(trainer, containers[0], notes);
  return pod;
}

Json RunPolicyOf(const Json& train_job, const Json& spec, Notes* notes) {
  Json policy = Json::object();
  for (const char* field : {"suspend", "activeDeadlineSeconds"})
    if (spec.contains(field)) policy[field] = spec[field];
  const Json& labels = fields::Object(fields::Member(train_job, "metadata"), "labels");
  if (fields::Flag(policy, "suspend") && labels.contains(kQueueLabel))
    notes->push_back(fmt::format(
        "spec.suspend: carried over, though the job has the label {}: if Kueue has set it, and not "
        "you, take spec.runPolicy.suspend out",
        kQueueLabel));
  return policy;
}

}  // namespace

Outcome<Converted> ConvertTrainJob(const Json& train_job) {
  Converted converted;
  Notes* notes = &converted.notes;
  const Json spec = Take(fields::Member(train_job, "spec"), "spec", kTrainJobSpec, notes);
  const Json trainer = Take(fields::Object(spec, "trainer"), "spec.trainer", kTrainer, notes);
  NoteRuntime(fields::Member(spec, "runtimeRef"), trainer, notes);
  NoteInitializer(fields::Object(spec, "initializer"), notes);
  TorchJob job{.kind = "a TrainJob",
               .pod_template = TemplateOfTrainJob(spec, trainer, notes),
               .container_path = "spec.trainer",
               .replicas = fields::Integer(trainer, "numNodes", 1),
               .processes = fields::Member(trainer, "numProcPerNode"),
               .processes_path = "spec.trainer.numProcPerNode",
               .run_policy = RunPolicyOf(train_job, spec, notes)};
  if (!trainer.contains("numNodes"))
    notes->push_back(
        "spec.worker.replicas: 1 was guessed: spec.trainer.numNodes is not there, and mlPolicy of "
        "the runtime may say more");
  converted.job = JobOf(train_job, SpecOf(std::move(job), &converted), notes);
  return converted;
}

}  // namespace ringmaster::cli::conversion
