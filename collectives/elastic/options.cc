#include "collectives/elastic/options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "collectives/elastic/network_interface.h"
#include "common/fields/parse.h"

namespace ringmaster::elastic {
namespace {

constexpr char kFusionThreshold[] = "HOROVOD_FUSION_THRESHOLD";
// The default and the maximum of spec.collectives.fusionThresholdBytes.
constexpr size_t kDefaultFusionBytes = size_t{64} << 20, kMostFusionBytes = size_t{1} << 30;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Status ReadNumber(const char* name, uint64_t most, uint64_t* out) {
  const std::string text = Variable(name);
  if (text.empty()) return {};
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) {
    return {RM_ERR_INVALID, std::string(name) + " is '" + text +
                                "', allowed is a number from 0 to " + std::to_string(most)};
  }
  *out = value;
  return {};
}

Status ReadFlag(const char* name, bool* out) {
  uint64_t value = *out;
  Status status = ReadNumber(name, 1, &value);
  *out = value == 1;
  return status;
}

Status ReadBackend(const nlohmann::json& spec, WorkerOptions* options) {
  const auto backend = spec.find("backend");
  if (backend == spec.end() || *backend == "Auto") return {};
  if (*backend == "Cpu") {
    options->backend = BackendChoice::kCpu;
  } else if (*backend == "Nccl") {
    options->backend = BackendChoice::kNccl;
  } else if (*backend == "Mpi") {
    // An operator may have accepted it before it refused that value. Such jobs go on as they ran.
    options->remarks.push_back(
        "spec.collectives.backend is Mpi, which is refused in new jobs and counts as Auto in this "
        "one: MPI carries collectives only in processes that mpirun, mpiexec or srun has started");
  } else {
    return {RM_ERR_INVALID, "RINGMASTER_COLLECTIVES: backend is " + backend->dump() +
                                ", allowed is \"Auto\", \"Cpu\" or \"Nccl\""};
  }
  return {};
}

// RINGMASTER_BACKEND: for processes without a sidecar, which have no job that could say it.
Status ReadOwnBackend(WorkerOptions* options) {
  constexpr char kName[] = "RINGMASTER_BACKEND";
  options->mpi_library = Variable("RINGMASTER_MPI_LIBRARY");
  const std::string backend = Variable(kName);
  if (backend.empty()) return {};
  if (!options->socket.empty()) {
    return {RM_ERR_INVALID,
            std::string(kName) + " is '" + backend +
                "', allowed is none here: this process belongs to a job, whose "
                "spec.collectives.backend counts. MPI carries collectives only in processes that "
                "mpirun, mpiexec or srun has started"};
  }
  const struct {
    const char* name;
    BackendChoice choice;
  } choices[] = {{"auto", BackendChoice::kAuto},
                 {"cpu", BackendChoice::kCpu},
                 {"nccl", BackendChoice::kNccl},
                 {"mpi", BackendChoice::kMpi}};
  for (const auto& [name, choice] : choices) {
    if (backend == name) return options->backend = choice, Status();
  }
  return {RM_ERR_INVALID,
          std::string(kName) + " is '" + backend + "', allowed is 'auto', 'cpu', 'nccl' or 'mpi'"};
}

// MPI has nothing to do for one process, and isn't started for it.
void RemarkIfMpiIsIdle(WorkerOptions* options) {
  const bool alone = options->launch.protocol == process_manager::Launch::Protocol::kNone;
  if (options->backend != BackendChoice::kMpi || !alone) return;
  options->remarks.push_back(
      "RINGMASTER_BACKEND is mpi, and no launcher has started this process beside others: it is a "
      "world of one, in which MPI has nothing to do");
}

// If the job doesn't set the field, the operator hands on its default, so the default counts as not
// set: then Horovod's variable is followed.
Status TakeJobsFusion(size_t bytes, WorkerOptions* options) {
  if (bytes == kDefaultFusionBytes) return {};
  if (!Variable(kFusionThreshold).empty() && bytes != options->fusion_bytes) {
    options->remarks.push_back(
        std::string(kFusionThreshold) + " is " + std::to_string(options->fusion_bytes) +
        " and is not followed: the job's fusionThresholdBytes is " + std::to_string(bytes));
  }
  options->fusion_bytes = bytes;
  return {};
}

// To be called after ReadTuning(): what the job says counts more than Horovod's variables.
Status ReadCollectives(WorkerOptions* options) {
  const std::string text = Variable("RINGMASTER_COLLECTIVES");
  if (text.empty()) return {};
  const auto spec = fields::Parse(text, "RINGMASTER_COLLECTIVES");
  if (!spec) return {RM_ERR_INVALID, spec.error()};
  if (!spec->is_object())
    return {RM_ERR_INVALID, "RINGMASTER_COLLECTIVES is not a JSON object: " + text};
  if (spec->value("backend", nlohmann::json()) == "None") {
    return {RM_ERR_INVALID,
            "spec.collectives.backend is None: this job's processes are to use collectives of "
            "their own; for Ringmaster's set it to Auto"};
  }
  if (spec->value("timeline", nlohmann::json()) == "Off") options->timeline_file.clear();
  const auto encryption = spec->find("encryption");
  if (encryption != spec->end()) {
    if (*encryption != "On" && *encryption != "Off") {
      return {RM_ERR_INVALID, "RINGMASTER_COLLECTIVES: encryption is " + encryption->dump() +
                                  ", allowed is \"On\" or \"Off\""};
    }
    options->encrypt = *encryption == "On";
  }
  if (Status s = ReadBackend(*spec, options); !s.ok()) return s;
  const auto fusion = spec->find("fusionThresholdBytes");
  if (fusion == spec->end()) return {};
  if (!fusion->is_number_unsigned()) {
    return {RM_ERR_INVALID, "RINGMASTER_COLLECTIVES: fusionThresholdBytes is " + fusion->dump() +
                                ", allowed is a number of bytes, 0 for no fusion"};
  }
  return TakeJobsFusion(fusion->get<size_t>(), options);
}

// Reads Horovod's variables for tuning, of which only HOROVOD_FUSION_THRESHOLD has a meaning here.
// The others give remarks.
Status ReadTuning(WorkerOptions* options) {
  uint64_t fusion = kDefaultFusionBytes;
  if (Status s = ReadNumber(kFusionThreshold, kMostFusionBytes, &fusion); !s.ok()) return s;
  options->fusion_bytes = fusion;
  const std::string always =
      "reductions always go through shared memory within a pod first, then "
      "between pods";
  const struct {
    const char* name;
    std::string why;
    bool asks_only_if_on;
  } others[] = {
      {"HOROVOD_CYCLE_TIME",
       "an operation starts when all ranks have asked for it: there are no cycles", false},
      {"HOROVOD_HIERARCHICAL_ALLREDUCE", always, false},
      {"HOROVOD_HIERARCHICAL_ALLGATHER", always, false},
      {"HOROVOD_AUTOTUNE",
       "there is nothing to tune: what is packed together follows from what is ready", true},
  };
  for (const auto& [name, why, asks_only_if_on] : others) {
    const std::string value = Variable(name);
    if (value.empty() || (asks_only_if_on && value == "0")) continue;
    options->remarks.push_back(std::string(name) + " has no meaning here and is not read: " + why);
  }
  return {};
}

// The names and meanings are Horovod's.
Status ReadStallLimits(engine::StallLimits* limits) {
  constexpr uint64_t kMostSeconds = 1'000'000;
  bool off = false;
  uint64_t tell = static_cast<uint64_t>(limits->tell.count()) / 1000, give_up = 0;
  if (Status s = ReadFlag("HOROVOD_STALL_CHECK_DISABLE", &off); !s.ok()) return s;
  if (Status s = ReadNumber("HOROVOD_STALL_CHECK_TIME_SECONDS", kMostSeconds, &tell); !s.ok())
    return s;
  if (Status s = ReadNumber("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", kMostSeconds, &give_up); !s.ok())
    return s;
  *limits = {};
  if (off || tell == 0) return {};
  // A stall that ends the job has to be noticed by then.
  if (give_up != 0) tell = std::min(tell, give_up);
  *limits = {std::chrono::seconds(tell), std::chrono::seconds(give_up)};
  return {};
}

bool IsLoopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

// Reads where the worker listens: at the address that RINGMASTER_BIND_WORKER names; else at that of
// the interface that a variable names, ours or one of another library; else at the pod's address.
// If the interface has addresses of both families, the pod's family is chosen.
Status ReadBind(WorkerOptions* options) {
  if (std::string bind = Variable("RINGMASTER_BIND_WORKER"); !bind.empty()) {
    options->bind = std::move(bind);
    options->bind_is_given = true;
    return {};
  }
  const std::string pod_ip = Variable("RINGMASTER_POD_IP");
  struct {
    const char* name;
    bool is_for_us;
  } const variables[] = {{"RINGMASTER_SOCKET_IFNAME", true},
                         {"HOROVOD_GLOO_IFACE", true},
                         {"GLOO_SOCKET_IFNAME", false},
                         {"NCCL_SOCKET_IFNAME", false}};
  for (const auto& [name, is_for_us] : variables) {
    const std::string choice = Variable(name);
    // With `^` the other library may use any interface that isn't named, so that doesn't say which
    // one to use.
    if (choice.empty() || (!is_for_us && choice.front() == '^')) continue;
    const Status found = AddressOfInterface(choice, FamilyOf(pod_ip), &options->bind);
    // Another library that keeps to the loopback has one machine in mind.
    const bool of_no_use = found.ok() && !is_for_us && !pod_ip.empty() && !IsLoopback(pod_ip) &&
                           IsLoopback(options->bind);
    options->bind_is_given = found.ok() && !of_no_use;
    if (options->bind_is_given) return {};
    const std::string what = std::string(name) + " is '" + choice +
                             "': " + (of_no_use ? "that is the loopback" : found.message());
    if (is_for_us) return {found.code(), what};
    // The other library may use an interface that is of no use to us, such as InfiniBand.
    std::fprintf(stderr, "ringmaster: %s; it is not followed\n", what.c_str());
  }
  if (!pod_ip.empty()) options->bind = pod_ip;
  return {};
}

}  // namespace

Status OptionsFromEnvironment(WorkerOptions* options) {
  options->socket = Variable("RINGMASTER_SOCKET");
  if (options->socket.empty()) {
    if (Status s = process_manager::ReadLaunch(Variable, &options->launch); !s.ok()) return s;
  }
  options->job = Variable("RINGMASTER_JOB_UID");
  if (Status s = ReadBind(options); !s.ok()) return s;
  if (options->socket.size() > 107) {
    return {RM_ERR_INVALID, "RINGMASTER_SOCKET has " + std::to_string(options->socket.size()) +
                                " bytes, a unix socket allows 107: " + options->socket};
  }
  uint64_t slot = 0;
  if (Status s = ReadNumber("RINGMASTER_SLOT", 1 << 20, &slot); !s.ok()) return s;
  options->slot = static_cast<int>(slot);
  if (Status s = ReadNumber("RINGMASTER_INCARNATION", INT64_MAX, &options->incarnation); !s.ok())
    return s;
  if (Status s = ReadFlag("RINGMASTER_STANDBY", &options->standby); !s.ok()) return s;
  options->timeline_file = Variable("HOROVOD_TIMELINE");
  // Horovod's value for "only when the script asks for it", which is always possible here.
  if (options->timeline_file == "DYNAMIC") options->timeline_file.clear();
  if (Status s = ReadFlag("RINGMASTER_LIVE_TIMELINE", &options->keep_recent); !s.ok()) return s;
  if (Status s = ReadFlag("RINGMASTER_GPU_HEALTH", &options->watch_gpu); !s.ok()) return s;
  if (Status s = ReadFlag("RINGMASTER_SHM", &options->shared_memory); !s.ok()) return s;
  if (Status s = ReadStallLimits(&options->stall); !s.ok()) return s;
  if (Status s = ReadTuning(options); !s.ok()) return s;
  if (Status s = ReadCollectives(options); !s.ok()) return s;
  if (Status s = ReadOwnBackend(options); !s.ok()) return s;
  RemarkIfMpiIsIdle(options);
  return {};
}

}  // namespace ringmaster::elastic
