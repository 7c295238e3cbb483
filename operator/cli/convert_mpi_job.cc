#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/cli/convert.h"
#include "operator/cli/convert_parts.h"
#include "operator/cli/convert_program.h"

namespace ringmaster::cli::conversion {
namespace {

const Fields kMpiJobSpec = {
    {"slotsPerWorker", kTheSame},
    {"runPolicy", kTheSame},
    {"mpiReplicaSpecs", kTheSame},
    {"sshAuthMountPath", "workers are not reached by ssh"},
    {"mpiImplementation", "no MPI is needed"},
    {"launcherCreationPolicy", "there is no launcher pod: workers wait for each other"},
    {"runLauncherAsWorker", "there is no launcher pod: add one to spec.worker.replicas"},
    {"cleanPodPolicy", "set spec.runPolicy.cleanPodPolicy"},
    {"mainContainer", "the first container was taken"}};

const Fields kMpiReplicaKinds = {{"Launcher", kTheSame}, {"Worker", kTheSame}};
const Fields kMpiReplica = {
    {"replicas", kTheSame}, {"template", kTheSame}, {"restartPolicy", kTheSame}};
constexpr char kMpiReplicas[] = "spec.mpiReplicaSpecs";
constexpr char kLauncherTemplate[] = "spec.mpiReplicaSpecs.Launcher.template";

Json FirstContainer(const Json& replica_spec) {
  const Json& containers = fields::ListAt(replica_spec, "/template/spec/containers");
  return containers.empty() ? Json() : containers[0];
}

// Adds the variables of `from` that workers don't have. `path` is that of `from`.
void TakeVariables(const Json& from, const std::string& path, Json* env, Notes* notes) {
  for (const Json& variable : from) {
    const std::string name = fields::Text(variable, "name");
    for (const Json& ours : *env)
      if (fields::Text(ours, "name") == name && ours != variable)
        notes->push_back(
            fmt::format("{} {}: not carried over: workers have another of this name", path, name));
  }
  AddVariables(from, env);
}

// What the launcher pod and the workers have, and only one of them can.
void TakeFromLauncher(const Json& launcher, Json* worker, Notes* notes) {
  for (const char* field : {"image", "workingDir"}) {
    const std::string theirs = fields::Text(launcher, field), ours = fields::Text(*worker, field);
    if (!theirs.empty() && ours.empty()) {
      (*worker)[field] = theirs;
    } else if (theirs != ours && !theirs.empty()) {
      notes->push_back(fmt::format("{}.Launcher: its {} '{}' is not used: workers have '{}'",
                                   kMpiReplicas, field, theirs, ours));
    }
  }
}

// Notes each field of `launcher` that workers don't have alike.
void NoteFieldsOfLauncher(const std::string& path, const Json& launcher, const Json& worker,
                          Notes* notes) {
  for (const auto& [name, value] : launcher.items()) {
    const Json& ours = fields::Member(worker, name.c_str());
    if (value.empty() || value == ours) continue;
    if (value.is_object() && ours.is_object()) {
      NoteFieldsOfLauncher(path + "." + name, value, ours, notes);
    } else {
      notes->push_back(
          fmt::format("{}.{}: not carried over: there is no launcher pod: give workers what the "
                      "script needs",
                      path, name));
    }
  }
}

// Notes what neither TakeFromLauncher nor SetCommandOfLauncher looks at.
void NoteRestOfLauncher(Json launcher, Json worker, Notes* notes) {
  const std::string path = kLauncherTemplate;
  for (const char* field : {"metadata", "spec"})  // so that fields in it are named one by one
    if (!worker[field].is_object()) worker[field] = Json::object();
  Json& spec = launcher["spec"];
  DropRestartPolicy(path + ".spec", &spec, notes);
  spec.erase("restartPolicy");
  const Json containers = spec["containers"], ours = worker["spec"]["containers"];
  spec.erase("containers");
  NoteFieldsOfLauncher(path, launcher, worker, notes);
  for (size_t i = 0; i < containers.size(); ++i) {
    const std::string at = fmt::format("{}.spec.containers[{}]", path, i);
    Json container = containers[i];
    if (i == 0) {
      for (const char* seen : {"name", "image", "workingDir", "command", "args", "env"})
        container.erase(seen);
      NoteFieldsOfLauncher(at, container, ours[0], notes);
    } else if (std::find(ours.begin(), ours.end(), container) == ours.end()) {
      notes->push_back(fmt::format("{}: not carried over: '{}' ran beside the launcher alone", at,
                                   fields::Text(container, "name")));
    }
  }
}

// `program`: the launcher's command taken apart.
void SetCommandOfLauncher(const Json& launcher, const Program& program, Json* worker,
                          Notes* notes) {
  const Words given = WordsOf(launcher);
  if (program.starter != Starter::kMpi && !given.empty()) {
    notes->push_back(fmt::format(
        "the launcher's command '{}' doesn't begin with mpirun or horovodrun: every worker runs it "
        "as it is now; take mpirun out of it by hand",
        fmt::join(given, " ")));
  }
  if (!WordsOf(*worker).empty()) {
    notes->push_back(
        fmt::format("{}.Worker: its command '{}' is replaced by the launcher's program",
                    kMpiReplicas, fmt::join(WordsOf(*worker), " ")));
  }
  worker->erase("args");
  (*worker)["command"] = program.starter == Starter::kMpi ? program.command : given;
  Json variables = Json::array();
  for (const auto& [name, value] : program.env)
    variables.push_back({{"name", name}, {"value", value}});
  if (!worker->contains("env")) (*worker)["env"] = Json::array();
  TakeVariables(variables, "variables of the launcher's command:", &(*worker)["env"], notes);
  TakeVariables(fields::List(launcher, "env"),
                fmt::format("{}.spec.containers[0].env", kLauncherTemplate), &(*worker)["env"],
                notes);
  if (worker->at("env").empty()) worker->erase("env");
  TakeFromLauncher(launcher, worker, notes);
}

Json TemplateOfMpiJob(const Json& launcher, const Program& program, const Json& worker,
                      Notes* notes) {
  Json pod = fields::Member(worker, "template");
  Json& first = pod["spec"]["containers"][0];
  SetCommandOfLauncher(FirstContainer(launcher), program, &first, notes);
  first["name"] = api::kWorkerContainer;
  DropRestartPolicy(fmt::format("{}.Worker.template.spec", kMpiReplicas), &pod["spec"], notes);
  NoteRestOfLauncher(fields::Member(launcher, "template"), fields::Member(worker, "template"),
                     notes);
  return pod;
}

}  // namespace

Outcome<Converted> ConvertMpiJob(const Json& mpi_job) {
  Converted converted;
  Notes* notes = &converted.notes;
  const Json& spec = fields::Member(mpi_job, "spec");
  const Json& launcher = fields::At(spec, "/mpiReplicaSpecs/Launcher");
  const Json& worker = fields::At(spec, "/mpiReplicaSpecs/Worker");
  for (const auto& [name, replica] : {std::pair("Launcher", &launcher), {"Worker", &worker}}) {
    const std::string path = fmt::format("{}.{}", kMpiReplicas, name);
    if (auto wrong = WrongContainers(fields::Member(*replica, "template"), path + ".template");
        !wrong.empty())
      return Fail(ExitCode::kUsage, wrong);
    Json known = Take(*replica, path, kMpiReplica, notes);
    DropRestartPolicy(path, &known, notes);
  }
  const Json taken = Take(spec, "spec", kMpiJobSpec, notes);
  (void)Take(fields::Member(spec, "mpiReplicaSpecs"), kMpiReplicas, kMpiReplicaKinds, notes);
  const int64_t replicas = fields::Integer(worker, "replicas", 1);
  const Program program = ProgramOf(WordsOf(FirstContainer(launcher)), notes);
  if (!program.doubt.empty()) converted.to_mend.push_back(program.doubt);
  const Bounds bounds =
      BoundsOf(program, fields::Integer(taken, "slotsPerWorker", 1), replicas, notes);
  Json job_spec = {
      {"elasticPolicy",
       {{"minReplicas", bounds.least.value_or(replicas)},
        {"maxReplicas", bounds.most.value_or(replicas)}}},
      {"worker",
       {{"replicas", replicas}, {"template", TemplateOfMpiJob(launcher, program, worker, notes)}}}};
  if (!bounds.least && !bounds.most) notes->push_back(OneSizeNote("an MPIJob"));
  if (taken.contains("slotsPerWorker")) job_spec["slotsPerWorker"] = taken["slotsPerWorker"];
  Json run_policy = TakeRunPolicy(fields::Member(taken, "runPolicy"), notes);
  if (!run_policy.empty()) job_spec["runPolicy"] = std::move(run_policy);
  converted.job = JobOf(mpi_job, std::move(job_spec), notes);
  return converted;
}

}  // namespace ringmaster::cli::conversion
