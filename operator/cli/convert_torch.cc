#include "operator/cli/convert_torch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/cli/convert_program.h"

namespace ringmaster::cli::conversion {
namespace {

std::string TextOf(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool IsOfTorchrun(const std::string& name) {
  for (const char* one : {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                          "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK"})
    if (name == one) return true;
  return name.starts_with("PET_") || name.starts_with("TORCHELASTIC_");
}

// Takes the variables out that are set for each view, or that only torchrun reads.
void DropVariablesOfTorchrun(const std::string& path, Json* container, Notes* notes) {
  Json kept = Json::array();
  for (const Json& variable : fields::List(*container, "env")) {
    const std::string name = fields::Text(variable, "name");
    if (!IsOfTorchrun(name)) {
      kept.push_back(variable);
      continue;
    }
    notes->push_back(fmt::format("{}.env {}: not carried over: {}", path, name,
                                 name.starts_with("PET_")
                                     ? "it is an option of torchrun, which is not used"
                                     : "each process gets its own anew in each view"));
  }
  if (kept.empty()) {
    container->erase("env");
  } else {
    (*container)["env"] = std::move(kept);
  }
}

// The GPUs of a container, whoever made them.
std::int64_t GpusOf(const Json& container) {
  for (const char* kind : {"/resources/limits", "/resources/requests"}) {
    for (const auto& [name, amount] : fields::ObjectAt(container, kind).items())
      if (name.find("gpu") != std::string::npos)
        if (const auto count = NumberIn(TextOf(amount)); count && *count > 0) return *count;
  }
  return 0;
}

// Processes in each pod, as torchrun's option or the job's field says, or else as torchrun guesses.
std::int64_t SlotsOf(const TorchJob& job, const Program& program, bool torchrun, Notes* notes) {
  const auto option = program.settings.find("nproc-per-node");
  const bool has_option = option != program.settings.end();
  const std::string given = has_option ? option->second : TextOf(job.processes);
  const std::string from = has_option ? "torchrun --nproc-per-node" : job.processes_path;
  if (const auto number = NumberIn(given)) {
    if (!torchrun && program.starter == Starter::kNone && *number > 1)
      notes->push_back(fmt::format(
          "{}: {} is for torchrun, which the command doesn't name. So many processes of the "
          "command "
          "are started in each pod now: make spec.slotsPerWorker 1 if it starts them itself",
          from, *number));
    return *number;
  }
  const std::int64_t gpus = GpusOf(job.pod_template["spec"]["containers"][job.container]);
  const std::string said = given.empty() ? "" : fmt::format(" ({} is '{}')", from, given);
  if (torchrun && gpus > 0 && given != "cpu") {
    notes->push_back(
        fmt::format("spec.slotsPerWorker: {} was guessed: one process for each GPU{}", gpus, said));
    return gpus;
  }
  if (torchrun || !given.empty() || gpus > 1)
    notes->push_back(fmt::format(
        "spec.slotsPerWorker: 1 was guessed: say how many processes each pod shall have{}", said));
  return 1;
}

// torchrun's "--nnodes 2" or "--nnodes 1:4" against what the job says.
void UseNodes(const Program& program, TorchJob* job, Notes* notes) {
  const auto option = program.settings.find("nnodes");
  if (option == program.settings.end()) return;
  const std::string& text = option->second;
  const size_t colon = text.find(':');
  const auto least = NumberIn(text.substr(0, colon));
  const auto most = colon == std::string::npos ? least : NumberIn(text.substr(colon + 1));
  if (least && most && *least < *most && !job->least && !job->most) {
    job->least = least;
    job->most = most;
    notes->push_back(fmt::format("torchrun --nnodes {}: became spec.elasticPolicy", text));
  } else if (!least || !most || *least > job->replicas || *most < job->replicas) {
    notes->push_back(fmt::format(
        "torchrun --nnodes {}: not carried over: spec.worker.replicas is {}", text, job->replicas));
  }
}

// horovodrun's --min-np and --max-np against what the job says.
void UseProcesses(const Program& program, std::int64_t slots, TorchJob* job, Notes* notes) {
  if (job->least || job->most) {
    for (const char* name : {"min-np", "max-np"})
      if (program.settings.count(name) > 0)
        notes->push_back(fmt::format("{} --{} {}: not carried over: spec.elasticPolicy counts",
                                     program.starter_name, name, program.settings.at(name)));
    return;
  }
  const Bounds bounds = BoundsOf(program, slots, job->replicas, notes);
  job->least = bounds.least;
  job->most = bounds.most;
}

void UseRestarts(const Program& program, const std::string& path, TorchJob* job, Notes* notes) {
  const auto option = program.settings.find("max-restarts");
  const bool has_option = option != program.settings.end();
  const std::string text = has_option ? option->second : TextOf(job->max_restarts);
  if (text.empty()) return;
  const std::string from = has_option ? "torchrun --max-restarts" : path;
  const auto number = NumberIn(text);
  if (!number || job->run_policy.contains("backoffLimit")) {
    notes->push_back(fmt::format(
        "{}: {} is not carried over: spec.runPolicy.backoffLimit says how many faults are too many",
        from, text));
    return;
  }
  job->run_policy["backoffLimit"] = *number;
  notes->push_back(fmt::format(
      "{}: became spec.runPolicy.backoffLimit, which counts faults of the application, not lost "
      "machines",
      from));
}

// Of a job that none of our starters begins, what people have to look at.
void NoteCommand(const std::string& path, const Words& given, Notes* notes) {
  if (NamesTorchrun(given)) {
    notes->push_back(path +
                     ".command: torchrun stands where this command can't take it out: take it out "
                     "by hand, so that the script is started as python3 -u SCRIPT, once for each "
                     "rank");
    return;
  }
  for (const char* starter : {"accelerate", "deepspeed", "tune"}) {
    if (given.empty() || !given[0].ends_with(starter)) continue;
    notes->push_back(fmt::format(
        "{}.command: '{}' starts processes of its own: start the script in its place, once for "
        "each rank, as python3 -u SCRIPT",
        path, given[0]));
  }
}

// Sets the command without what starts it. Returns it taken apart.
Program SetCommand(const std::string& path, Json* container, Notes* notes) {
  if (fields::List(*container, "command").empty()) {
    notes->push_back(fmt::format(
        "{}.command: there is none, and the entrypoint of the image can't be seen from here: write "
        "it into spec.worker.template.spec.containers[].command",
        path));
    return {};
  }
  const Words given = WordsOf(*container);
  Program program = ProgramOf(given, notes);
  if (program.starter == Starter::kNone) NoteCommand(path, given, notes);
  container->erase("args");
  (*container)["command"] = program.command;
  Json variables = Json::array();
  for (const auto& [name, value] : program.env)
    variables.push_back({{"name", name}, {"value", value}});
  if (!variables.empty()) AddVariables(variables, &(*container)["env"]);
  return program;
}

// torchrun gives each of several processes one thread.
void SetThreads(std::int64_t slots, const Program& program, Json* container, Notes* notes) {
  if (program.starter != Starter::kTorch || slots < 2) return;
  Json& env = (*container)["env"];
  const size_t before = env.size();
  AddVariables(Json::array({{{"name", "OMP_NUM_THREADS"}, {"value", "1"}}}), &env);
  if (env.size() > before)
    notes->push_back(
        "spec.worker.template.spec.containers[].env OMP_NUM_THREADS: 1, as torchrun sets it where "
        "a pod has several processes");
}

void SetBackend(const Program& program, Json* spec, Notes* notes) {
  if (program.starter == Starter::kMpi) {
    notes->push_back(
        fmt::format("spec.collectives.backend: left out: the command begins with {}, so the script "
                    "is taken for "
                    "one of Horovod",
                    program.starter_name));
    return;
  }
  (*spec)["collectives"] = {{"backend", "None"}};
  notes->push_back(
      "spec.collectives.backend: None was guessed: the script is taken for one of "
      "torch.distributed. All its processes are started again when a pod is lost or joins, so it "
      "has to write checkpoints and to go on from the newest. If it imports horovod or ringmaster, "
      "take the field out");
}

}  // namespace

Json SpecOf(TorchJob job, Converted* converted) {
  Notes* const notes = &converted->notes;
  const std::string restarts_path = "spec.elasticPolicy.maxRestarts";
  Json& container = job.pod_template["spec"]["containers"][job.container];
  container["name"] = api::kWorkerContainer;
  const bool torchrun = NamesTorchrun(WordsOf(container));
  const Program program = SetCommand(job.container_path, &container, notes);
  DropVariablesOfTorchrun(job.container_path, &container, notes);
  const std::int64_t slots = SlotsOf(job, program, torchrun, notes);
  SetThreads(slots, program, &container, notes);
  if (!program.doubt.empty()) converted->to_mend.push_back(program.doubt);
  UseNodes(program, &job, notes);
  UseProcesses(program, slots, &job, notes);
  UseRestarts(program, restarts_path, &job, notes);
  if (!job.least && !job.most) notes->push_back(OneSizeNote(job.kind));
  const std::int64_t least = job.least.value_or(job.replicas);
  Json spec = {
      {"slotsPerWorker", slots},
      {"elasticPolicy",
       {{"minReplicas", least}, {"maxReplicas", job.most.value_or(std::max(job.replicas, least))}}},
      {"worker", {{"replicas", job.replicas}, {"template", std::move(job.pod_template)}}}};
  SetBackend(program, &spec, notes);
  if (!job.run_policy.empty()) spec["runPolicy"] = std::move(job.run_policy);
  return spec;
}

}  // namespace ringmaster::cli::conversion
