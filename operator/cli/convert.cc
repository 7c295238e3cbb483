#include "operator/cli/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using Notes = std::vector<std::string>;
using Words = std::vector<std::string>;

constexpr char kTheSame[] = "";  // copied without changes

// What becomes of each field of an MPIJob's spec, runPolicy and schedulingPolicy. Notes report
// other fields as unknown.
const std::map<std::string, const char*> kSpec = {
    {"slotsPerWorker", kTheSame},
    {"runPolicy", kTheSame},
    {"mpiReplicaSpecs", kTheSame},
    {"sshAuthMountPath", "workers are not reached by ssh"},
    {"mpiImplementation", "no MPI is needed"},
    {"launcherCreationPolicy", "there is no launcher pod: workers wait for each other"},
    {"runLauncherAsWorker", "there is no launcher pod: add one to spec.worker.replicas"},
    {"cleanPodPolicy", "set spec.runPolicy.cleanPodPolicy"},
    {"mainContainer", "the first container was taken"}};
const std::map<std::string, const char*> kRunPolicy = {
    {"cleanPodPolicy", kTheSame},
    {"ttlSecondsAfterFinished", kTheSame},
    {"activeDeadlineSeconds", kTheSame},
    {"backoffLimit", kTheSame},
    {"suspend", kTheSame},
    {"schedulingPolicy", kTheSame},
    {"managedBy", "name it again in the new job, if another controller shall look after it"}};
const std::map<std::string, const char*> kSchedulingPolicy = {
    {"queue", kTheSame},
    {"priorityClass", kTheSame},
    {"minAvailable", "spec.elasticPolicy.minReplicas says how many pods are enough"},
    {"minResources", "it follows from the pods"},
    {"scheduleTimeoutSeconds", "a job waits until there is room"}};

// Copies the convertible fields, and notes the others.
Json Take(const Json& from, const std::string& path,
          const std::map<std::string, const char*>& known, Notes* notes) {
  Json taken = Json::object();
  if (!from.is_object()) return taken;
  for (const auto& [name, value] : from.items()) {
    if (value.is_null()) continue;
    const auto field = known.find(name);
    if (field == known.end()) {
      notes->push_back(
          fmt::format("{}.{}: not carried over: this command doesn't know it", path, name));
    } else if (field->second == std::string(kTheSame)) {
      taken[name] = value;
    } else {
      notes->push_back(fmt::format("{}.{}: not carried over: {}", path, name, field->second));
    }
  }
  return taken;
}

bool IsLauncher(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  return name == "mpirun" || name == "mpiexec" || name == "horovodrun" || name == "mpiexec.hydra" ||
         name == "orterun";
}

std::string Bare(const std::string& option) {
  return option.substr(std::min(option.find_first_not_of('-'), option.size()));
}

// The number of words that follow an option of mpirun or horovodrun; none for an unknown option.
int ValuesOf(const std::string& bare) {
  static const std::map<std::string, int> kValues = {{"np", 1},
                                                     {"n", 1},
                                                     {"c", 1},
                                                     {"N", 1},
                                                     {"npernode", 1},
                                                     {"ppn", 1},
                                                     {"perhost", 1},
                                                     {"x", 1},
                                                     {"mca", 2},
                                                     {"gmca", 2},
                                                     {"bind-to", 1},
                                                     {"map-by", 1},
                                                     {"rank-by", 1},
                                                     {"H", 1},
                                                     {"host", 1},
                                                     {"hosts", 1},
                                                     {"hostfile", 1},
                                                     {"machinefile", 1},
                                                     {"f", 1},
                                                     {"wdir", 1},
                                                     {"wd", 1},
                                                     {"prefix", 1},
                                                     {"genv", 2},
                                                     {"env", 2},
                                                     {"genvlist", 1},
                                                     {"output-filename", 1},
                                                     {"p", 1},
                                                     {"ssh-port", 1},
                                                     {"min-np", 1},
                                                     {"max-np", 1},
                                                     {"network-interface", 1},
                                                     {"network-interfaces", 1},
                                                     {"timeline-filename", 1},
                                                     {"fusion-threshold-mb", 1},
                                                     {"cycle-time-ms", 1},
                                                     {"start-timeout", 1},
                                                     {"launcher", 1},
                                                     {"bootstrap", 1}};
  const auto known = kValues.find(bare);
  return known == kValues.end() ? 0 : known->second;
}

// Takes a variable for every rank: "NAME=VALUE" of -x, or "NAME" "VALUE" of -genv.
bool TakeVariable(const std::string& bare, const Words& values,
                  std::vector<std::pair<std::string, std::string>>* env) {
  if ((bare == "genv" || bare == "env") && values.size() == 2) {
    env->emplace_back(values[0], values[1]);
    return true;
  }
  if (bare != "x" || values.empty()) return false;
  const size_t equals = values[0].find('=');
  if (equals != std::string::npos)
    env->emplace_back(values[0].substr(0, equals), values[0].substr(equals + 1));
  return true;  // NAME alone: the launcher's variables are copied anyway
}

Words WordsOf(const Json& container) {
  Words words;
  for (const char* field : {"command", "args"})
    for (const Json& word : fields::List(container, field))
      if (word.is_string()) words.push_back(word.get<std::string>());
  return words;
}

// `sh -c "mpirun ... python train.py"`: splits at spaces, unless something in it needs a shell.
Words OfShell(const Words& command) {
  static const std::set<std::string> kShells = {"sh", "bash", "ash", "dash"};
  if (command.size() != 3 || (command[1] != "-c" && command[1] != "-lc")) return command;
  if (kShells.count(std::filesystem::path(command[0]).filename().string()) == 0) return command;
  if (command[2].find_first_of("\"'`$&|;<>(){}*?\\\n") != std::string::npos) return command;
  Words words;
  std::string word;
  for (char c : command[2] + " ") {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  return !words.empty() && IsLauncher(words[0]) ? words : command;
}

Json FirstContainer(const Json& replica_spec) {
  const Json& containers = fields::ListAt(replica_spec, "/template/spec/containers");
  return containers.empty() ? Json() : containers[0];
}

// Adds the variables of `from` that `into` doesn't have.
void AddVariables(const Json& from, Json* into) {
  if (!into->is_array()) *into = Json::array();
  for (const Json& variable : from) {
    const std::string name = fields::Text(variable, "name");
    const bool there = std::any_of(into->begin(), into->end(), [&](const Json& other) {
      return fields::Text(other, "name") == name;
    });
    if (!there) into->push_back(variable);
  }
}

void SetCommand(const Json& launcher, Json* worker, Notes* notes) {
  const Words given = WordsOf(launcher);
  std::vector<std::pair<std::string, std::string>> set;
  const Words command = WithoutLauncher(OfShell(given), &set, notes);
  if (!WordsOf(*worker).empty()) {
    notes->push_back(fmt::format(
        "mpiReplicaSpecs.Worker: its command '{}' is replaced by the launcher's program",
        fmt::join(WordsOf(*worker), " ")));
  }
  worker->erase("args");
  (*worker)["command"] = command;
  Json variables = Json::array();
  for (const auto& [name, value] : set) variables.push_back({{"name", name}, {"value", value}});
  AddVariables(variables, &(*worker)["env"]);
  AddVariables(fields::List(launcher, "env"), &(*worker)["env"]);
  if (worker->at("env").empty()) worker->erase("env");
  for (const char* field : {"image", "workingDir"}) {
    const std::string theirs = fields::Text(launcher, field), ours = fields::Text(*worker, field);
    if (!theirs.empty() && ours.empty()) {
      (*worker)[field] = theirs;
    } else if (theirs != ours && !theirs.empty()) {
      notes->push_back(
          fmt::format("mpiReplicaSpecs.Launcher: its {} '{}' is not used: workers have '{}'", field,
                      theirs, ours));
    }
  }
}

Json TemplateOf(const Json& launcher, const Json& worker, Notes* notes) {
  Json pod = fields::Member(worker, "template");
  Json& first = pod["spec"]["containers"][0];
  SetCommand(FirstContainer(launcher), &first, notes);
  first["name"] = api::kWorkerContainer;
  if (pod["spec"].contains("restartPolicy") && pod["spec"]["restartPolicy"] != "Never") {
    pod["spec"].erase("restartPolicy");
    notes->push_back(
        "mpiReplicaSpecs.Worker.template.spec.restartPolicy: not carried over: workers are "
        "restarted in place, see spec.failurePolicy");
  }
  const Json& volumes = fields::ListAt(launcher, "/template/spec/volumes");
  if (!volumes.empty() && volumes != fields::ListAt(worker, "/template/spec/volumes")) {
    notes->push_back(
        "mpiReplicaSpecs.Launcher: its volumes are not carried over: give workers what the script "
        "needs");
  }
  return pod;
}

Json MetadataOf(const Json& mpi_job) {
  Json metadata = Json::object();
  for (const char* field : {"name", "namespace", "labels", "annotations"}) {
    const Json& value = fields::Member(fields::Member(mpi_job, "metadata"), field);
    if (!value.is_null()) metadata[field] = value;
  }
  if (metadata.contains("annotations"))
    metadata["annotations"].erase("kubectl.kubernetes.io/last-applied-configuration");
  return metadata;
}

}  // namespace

Words WithoutLauncher(const Words& command, std::vector<std::pair<std::string, std::string>>* env,
                      Notes* notes) {
  if (command.empty()) return command;
  if (!IsLauncher(command[0])) {
    notes->push_back(fmt::format(
        "the launcher's command '{}' doesn't begin with mpirun or horovodrun: every worker runs it "
        "as it is now; take mpirun out of it by hand",
        fmt::join(command, " ")));
    return command;
  }
  Words dropped;
  size_t at = 1;
  while (at < command.size() && command[at].starts_with('-')) {
    const std::string& option = command[at];
    const size_t equals = option.find('=');
    const std::string bare = Bare(option.substr(0, equals));
    const int count = equals == std::string::npos ? ValuesOf(bare) : 0;
    Words values;
    for (int i = 0; i < count && at + 1 < command.size(); ++i) values.push_back(command[++at]);
    ++at;
    if (TakeVariable(bare, values, env)) continue;
    dropped.push_back(values.empty() ? option
                                     : fmt::format("{} {}", option, fmt::join(values, " ")));
  }
  if (!dropped.empty())
    notes->push_back(fmt::format("options of {} without a meaning here: {}", command[0],
                                 fmt::join(dropped, ", ")));
  return Words(command.begin() + static_cast<std::ptrdiff_t>(at), command.end());
}

Outcome<Converted> ConvertMpiJob(const Json& mpi_job) {
  const std::string version = fields::Text(mpi_job, "apiVersion");
  const std::string kind = fields::Text(mpi_job, "kind");
  if (kind != "MPIJob" || !version.starts_with("kubeflow.org/"))
    return Fail(ExitCode::kUsage,
                fmt::format("it is a {} of '{}': only MPIJob of kubeflow.org can be converted",
                            kind.empty() ? "document without kind" : kind, version));
  Converted converted;
  Notes* notes = &converted.notes;
  const Json& spec = fields::Member(mpi_job, "spec");
  const Json& launcher = fields::At(spec, "/mpiReplicaSpecs/Launcher");
  const Json& worker = fields::At(spec, "/mpiReplicaSpecs/Worker");
  for (const auto& [name, replica] : {std::pair("Launcher", &launcher), {"Worker", &worker}}) {
    if (FirstContainer(*replica).is_null())
      return Fail(
          ExitCode::kUsage,
          fmt::format("spec.mpiReplicaSpecs.{}.template.spec.containers: there is none", name));
  }
  const Json taken = Take(spec, "spec", kSpec, notes);
  const int64_t replicas = fields::Integer(worker, "replicas", 1);
  Json job_spec = {
      {"elasticPolicy", {{"minReplicas", replicas}, {"maxReplicas", replicas}}},
      {"worker", {{"replicas", replicas}, {"template", TemplateOf(launcher, worker, notes)}}}};
  notes->push_back(
      "spec.elasticPolicy: as an MPIJob, of one size. With a smaller minReplicas the job goes on "
      "while a pod is replaced, with a larger maxReplicas it can grow");
  if (taken.contains("slotsPerWorker")) job_spec["slotsPerWorker"] = taken["slotsPerWorker"];
  Json run_policy = Take(fields::Member(taken, "runPolicy"), "spec.runPolicy", kRunPolicy, notes);
  if (run_policy.contains("schedulingPolicy")) {
    run_policy["schedulingPolicy"] =
        Take(run_policy["schedulingPolicy"], "spec.runPolicy.schedulingPolicy", kSchedulingPolicy,
             notes);
    if (run_policy["schedulingPolicy"].empty()) run_policy.erase("schedulingPolicy");
  }
  if (!run_policy.empty()) job_spec["runPolicy"] = std::move(run_policy);
  converted.job = {{"apiVersion", api::kApiVersion},
                   {"kind", api::kKind},
                   {"metadata", MetadataOf(mpi_job)},
                   {"spec", std::move(job_spec)}};
  return converted;
}

}  // namespace ringmaster::cli
