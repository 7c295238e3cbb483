#include <fmt/format.h>

#include <set>

#include "common/fields/fields.h"
#include "operator/cli/convert.h"
#include "operator/cli/convert_parts.h"
#include "operator/cli/convert_torch.h"

namespace ringmaster::cli::conversion {
namespace {

constexpr char kReplicaSpecs[] = "spec.pytorchReplicaSpecs";
constexpr char kRendezvous[] = "the pods find each other without it";
const Fields kPyTorchJobSpec = {{"pytorchReplicaSpecs", kTheSame},
                                {"runPolicy", kTheSame},
                                {"elasticPolicy", kTheSame},
                                {"nprocPerNode", kTheSame}};
const Fields kReplicaKinds = {{"Master", kTheSame}, {"Worker", kTheSame}};
const Fields kReplicaSpec = {
    {"replicas", kTheSame}, {"template", kTheSame}, {"restartPolicy", kTheSame}};
const Fields kPyTorchElasticPolicy = {
    {"minReplicas", kTheSame},
    {"maxReplicas", kTheSame},
    {"nProcPerNode", kTheSame},
    {"maxRestarts", kTheSame},
    {"rdzvBackend", kRendezvous},
    {"rdzvHost", kRendezvous},
    {"rdzvPort", kRendezvous},
    {"rdzvId", kRendezvous},
    {"rdzvConf", kRendezvous},
    {"standalone", kRendezvous},
    {"metrics",
     "make a HorizontalPodAutoscaler for the HorovodJob, which has a scale subresource"}};

void NoteRestartPolicy(const std::string& path, const Json& replica, Notes* notes) {
  const std::string policy = fields::Text(replica, "restartPolicy");
  if (policy.empty()) return;
  const char* what =
      policy == "ExitCode"
          ? "a worker that a signal ended is restarted in place, as it says, and any other exit "
            "code fails the job: of those from 128 on name what is to be restarted in "
            "spec.failurePolicy.rules"
      : policy == "Never"
          ? "a worker that a signal ended is restarted in place nevertheless: give "
            "spec.failurePolicy a rule with FailJob for its code (128 + the signal)"
          : "a worker that a signal ended is restarted in place, and any other exit code fails the "
            "job: name the codes that are to be restarted in spec.failurePolicy.rules";
  notes->push_back(fmt::format("{}.restartPolicy: {} is not carried over: {}", path, policy, what));
}

// "/spec/containers/0/image" as people write it: "spec.containers[0].image".
std::string PathOf(const std::string& pointer) {
  std::string path, part;
  for (const char c : pointer + "/") {
    if (c != '/') {
      part += c;
    } else if (!part.empty()) {
      const bool index = part.find_first_not_of("0123456789-") == std::string::npos;
      path += index ? "[" + part + "]" : (path.empty() ? "" : ".") + part;
      part.clear();
    }
  }
  return path;
}

void NoteDifferences(const Json& master, const Json& worker, Notes* notes) {
  std::set<std::string> paths;
  for (const Json& change : Json::diff(worker, master))
    paths.insert(PathOf(fields::Text(change, "path")));
  if (paths.empty()) return;
  notes->push_back(fmt::format(
      "{}.Master.template: not carried over where it differs from the Worker's, because all pods "
      "are alike: {}",
      kReplicaSpecs, fmt::join(paths, ", ")));
}

// The container that trains: `pytorch`, as the Training Operator has it, or else the first.
size_t TrainerOf(const Json& pod_template) {
  const Json& containers = fields::ListAt(pod_template, "/spec/containers");
  for (size_t i = 0; i < containers.size(); ++i)
    if (fields::Text(containers[i], "name") == "pytorch") return i;
  return 0;
}

// Adds up the replicas, and takes the template of the workers, or of the master if it is alone.
Outcome<TorchJob> PodsOf(const Json& replica_specs, Notes* notes) {
  TorchJob job{.kind = "a PyTorchJob", .replicas = 0};
  const Json kinds = Take(replica_specs, kReplicaSpecs, kReplicaKinds, notes);
  std::string path;
  for (const char* kind : {"Master", "Worker"}) {
    if (!kinds.contains(kind)) continue;
    path = fmt::format("{}.{}", kReplicaSpecs, kind);
    const Json replica = Take(kinds[kind], path, kReplicaSpec, notes);
    const Json& pod_template = fields::Member(replica, "template");
    if (auto wrong = WrongContainers(pod_template, path + ".template"); !wrong.empty())
      return Fail(ExitCode::kUsage, wrong);
    job.replicas += fields::Integer(replica, "replicas", 1);
    NoteRestartPolicy(path, replica, notes);
    if (!job.pod_template.is_null()) NoteDifferences(job.pod_template, pod_template, notes);
    job.pod_template = pod_template;
  }
  if (path.empty())
    return Fail(ExitCode::kUsage,
                fmt::format("{}: it has neither a Master nor a Worker", kReplicaSpecs));
  if (kinds.contains("Master"))
    notes->push_back(fmt::format(
        "{}.Master: it is one of the {} pods of spec.worker now: each of them can be lost and "
        "replaced",
        kReplicaSpecs, job.replicas));
  DropRestartPolicy(path + ".template.spec", &job.pod_template["spec"], notes);
  job.container = TrainerOf(job.pod_template);
  job.container_path = fmt::format("{}.template.spec.containers[{}]", path, job.container);
  return job;
}

void UseElasticPolicy(const Json& policy, TorchJob* job, Notes* notes) {
  const Json taken = Take(policy, "spec.elasticPolicy", kPyTorchElasticPolicy, notes);
  if (taken.contains("minReplicas")) job->least = fields::Integer(taken, "minReplicas");
  if (taken.contains("maxReplicas")) job->most = fields::Integer(taken, "maxReplicas");
  job->max_restarts = fields::Member(taken, "maxRestarts");
  if (!taken.contains("nProcPerNode")) return;
  if (job->processes.is_null()) {
    job->processes = taken["nProcPerNode"];
    job->processes_path = "spec.elasticPolicy.nProcPerNode";
  } else if (job->processes != taken["nProcPerNode"]) {
    notes->push_back("spec.elasticPolicy.nProcPerNode: not carried over: spec.nprocPerNode counts");
  }
}

}  // namespace

Outcome<Converted> ConvertPyTorchJob(const Json& pytorch_job) {
  Converted converted;
  Notes* notes = &converted.notes;
  const Json spec = Take(fields::Member(pytorch_job, "spec"), "spec", kPyTorchJobSpec, notes);
  auto job = PodsOf(fields::Member(spec, "pytorchReplicaSpecs"), notes);
  if (!job) return tl::unexpected(job.error());
  job->processes = fields::Member(spec, "nprocPerNode");
  job->processes_path = "spec.nprocPerNode";
  UseElasticPolicy(fields::Member(spec, "elasticPolicy"), &*job, notes);
  job->run_policy = TakeRunPolicy(fields::Member(spec, "runPolicy"), notes);
  converted.job = JobOf(pytorch_job, SpecOf(std::move(*job), &converted), notes);
  return converted;
}

}  // namespace ringmaster::cli::conversion
