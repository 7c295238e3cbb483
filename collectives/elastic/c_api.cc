// The C ABI except for collectives, process sets and timeline: beginning and end, ranks, steps,
// state. TrainingProcess does the work.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "collectives/elastic/library.h"
#include "collectives/elastic/rebuild_text.h"
#include "collectives/element/element.h"
#include "collectives/mpi/real_mpi.h"
#include "collectives/nccl/gpu.h"
#include "collectives/nccl/process_exit.h"

namespace {

namespace fork_guard = ringmaster::fork_guard;
using ringmaster::Status;
using ringmaster::elastic::CurrentWorker;
using ringmaster::elastic::Deadline;
using ringmaster::elastic::Guarded;
using ringmaster::elastic::LastError;
using ringmaster::elastic::Library;
using ringmaster::elastic::LimitOf;
using ringmaster::elastic::NotInitialised;
using ringmaster::elastic::TrainingProcess;
using ringmaster::elastic::WorkerOptions;
using ringmaster::engine::Membership;

constexpr size_t kLongestReportName = 64;  // what people see of a name

thread_local std::string last_text;

template <typename Field>
int MembershipField(Field field, int otherwise) {
  const auto worker = CurrentWorker();
  return worker ? static_cast<int>(worker->info().membership().*field) : otherwise;
}

void EndAtExit(int exit_status, void*);

Status WakeUp(Library* g, double timeout_seconds) REQUIRES(g->init_mu) {
  if (Status s = g->resting->Wake(LimitOf(timeout_seconds)); !s.ok()) return s;
  ringmaster::sync::MutexLock lock(&g->mu);
  g->worker = std::move(g->resting);
  return {};
}

Status Initialise(double timeout_seconds) {
  Library& g = Library::Get();
  ringmaster::sync::MutexLock init(&g.init_mu);
  if (CurrentWorker()) return {};
  if (g.resting) return WakeUp(&g, timeout_seconds);
  WorkerOptions options;
  if (Status s = ringmaster::elastic::OptionsFromEnvironment(&options); !s.ok()) return s;
  options.timeline = &g.timeline;
  options.version = RINGMASTER_VERSION;
  std::unique_ptr<TrainingProcess> worker;
  Status status = TrainingProcess::Start(options, &g.state, LimitOf(timeout_seconds), &worker);
  if (!status.ok()) return status;
  ringmaster::sync::MutexLock lock(&g.mu);
  g.worker = std::move(worker);
  return {};
}

Status ShutDown(double timeout_seconds) {
  Library& g = Library::Get();
  ringmaster::sync::MutexLock init(&g.init_mu);
  auto worker = CurrentWorker();
  if (!worker) return {};
  const bool agrees = worker->AgreesWithOthers();
  const auto limit = LimitOf(timeout_seconds);
  Status status = worker->Shutdown(limit);
  // After a timeout the shutdown may still be agreed on, and a process that was dropped has no part
  // in it: the worker stays as it is.
  if (status.code() == RM_ERR_TIMEOUT || status.code() == RM_ERR_DROPPED) return status;
  const auto patience = Deadline(ringmaster::timeline::Timeline::kPatience.count());
  if (Status written = g.timeline.Stop(std::min(limit.value_or(patience), patience)); !written.ok())
    std::fprintf(stderr, "ringmaster: %s\n", written.message().c_str());
  if (status.ok() && agrees) {
    g.resting = worker;
    // If the process ends normally from here on, this worker is through with the job: EndAtExit
    // says so.
    static std::once_flag once;
    std::call_once(once, [] { on_exit(EndAtExit, nullptr); });
  }
  ringmaster::sync::MutexLock lock(&g.mu);
  g.last_rank = worker->info().membership().rank;
  g.worker.reset();
  return status;
}

// At the exit of a process that has succeeded and rests: the worker is through with the job. Any
// other exit is a fault, and the others go on without this worker.
void EndAtExit(int exit_status, void*) {
  if (fork_guard::InChild() || (exit_status & 0xff) != 0) return;
  ringmaster::nccl::ProcessExits() = true;
  Library& g = Library::Get();
  ringmaster::sync::MutexLock init(&g.init_mu);
  if (!g.resting) return;
  const Status end = g.resting->Finish(Deadline(10));
  if (end.code() != RM_ERR_DROPPED) return g.resting.reset();
  std::fprintf(stderr, "ringmaster: %s: started again\n", end.message().c_str());
  std::fflush(nullptr);
  _exit(RM_EXIT_DROPPED);
}

// At the exit of a process that has succeeded: all ranks agree on the end of the job. Any other
// exit is a fault, and the others go on without this worker.
// The thread's last error is not touched: it has been destroyed by now.
void ShutDownAtExit(int exit_status, void*) {
  if (fork_guard::InChild() || (exit_status & 0xff) != 0) return;
  ringmaster::nccl::ProcessExits() = true;
  Status end;
  try {
    end = ShutDown(0);
    EndAtExit(exit_status, nullptr);
  } catch (const std::bad_alloc&) {
    end = {RM_ERR_OUT_OF_MEMORY, ""};
  }
  if (end.ok() || end.code() == RM_ERR_LEFT || end.code() == RM_ERR_SHUTDOWN) return;
  std::fprintf(stderr, "ringmaster: the end of the job was not agreed: %s (%s)\n",
               end.message().c_str(), rm_status_name(end.code()));
  if (end.code() != RM_ERR_DROPPED) return;
  std::fflush(nullptr);
  _exit(RM_EXIT_DROPPED);
}

}  // namespace

extern "C" {

int rm_abi_version(void) { return RM_ABI_VERSION; }
const char* rm_version(void) { return RINGMASTER_VERSION; }
const char* rm_last_error(void) { return LastError(); }
size_t rm_dtype_size(rm_dtype dtype) { return ringmaster::element::Size(dtype); }

const char* rm_status_name(rm_status status) {
  switch (status) {
    case RM_OK:
      return "RM_OK";
    case RM_ERR_INVALID:
      return "RM_ERR_INVALID";
    case RM_ERR_MISMATCH:
      return "RM_ERR_MISMATCH";
    case RM_ERR_EPOCH_MOVED:
      return "RM_ERR_EPOCH_MOVED";
    case RM_ERR_LEFT:
      return "RM_ERR_LEFT";
    case RM_ERR_TIMEOUT:
      return "RM_ERR_TIMEOUT";
    case RM_ERR_UNAVAILABLE:
      return "RM_ERR_UNAVAILABLE";
    case RM_ERR_SHUTDOWN:
      return "RM_ERR_SHUTDOWN";
    case RM_ERR_NO_STATE:
      return "RM_ERR_NO_STATE";
    case RM_ERR_INTERNAL:
      return "RM_ERR_INTERNAL";
    case RM_ERR_ROOT_LOST:
      return "RM_ERR_ROOT_LOST";
    case RM_ERR_DROPPED:
      return "RM_ERR_DROPPED";
    case RM_ERR_OUT_OF_MEMORY:
      return "RM_ERR_OUT_OF_MEMORY";
    case RM_ERR_FORKED:
      return "RM_ERR_FORKED";
  }
  return "unknown status";
}

// ---- Beginning and end

rm_status rm_init(double timeout_seconds) {
  return Guarded([&] { return Initialise(timeout_seconds); });
}

rm_status rm_shutdown(double timeout_seconds) {
  return Guarded([&] { return ShutDown(timeout_seconds); });
}

rm_status rm_shutdown_at_exit(void) {
  return Guarded([]() -> Status {
    static std::once_flag once;
    std::call_once(once, [] { on_exit(ShutDownAtExit, nullptr); });
    return {};
  });
}

int rm_initialized(void) { return CurrentWorker() != nullptr; }

int rm_nccl_version(void) {
  const auto gpu = ringmaster::nccl::ThisMachinesGpu();
  const Status status = gpu.Check();
  (void)Guarded([&] { return status; });
  return status.ok() ? gpu.nccl->version() : 0;
}

int rm_mpi_built(void) {
  return Guarded([]() -> Status {
           WorkerOptions options;
           if (Status s = ringmaster::elastic::OptionsFromEnvironment(&options); !s.ok()) return s;
           std::unique_ptr<ringmaster::mpi::MpiApi> mpi;
           return ringmaster::mpi::LoadMpi(
               ringmaster::mpi::Candidates(options.mpi_library, ringmaster::mpi::OwnFolder(),
                                           options.launch.protocol),
               &mpi);
         }) == RM_OK;
}

int rm_mpi_enabled(void) {
  const auto worker = CurrentWorker();
  if (worker == nullptr || worker->mpi() == nullptr) return 0;
  return worker->mpi()->parallel() ? 2 : 1;
}

int rm_is_joining(void) {
  const auto worker = CurrentWorker();
  return worker && worker->joining();
}

rm_status rm_enter(double timeout_seconds) {
  return Guarded([&]() -> Status {
    const auto worker = CurrentWorker();
    return worker ? worker->Enter(LimitOf(timeout_seconds)) : NotInitialised();
  });
}

int rm_rank(void) { return MembershipField(&Membership::rank, -1); }
int rm_last_rank(void) {
  if (fork_guard::InChild()) return -1;
  Library& g = Library::Get();
  ringmaster::sync::MutexLock lock(&g.mu);
  return g.last_rank;
}
int rm_size(void) { return MembershipField(&Membership::size, -1); }
int rm_local_rank(void) { return MembershipField(&Membership::local_rank, -1); }
int rm_local_size(void) { return MembershipField(&Membership::local_size, -1); }
int rm_cross_rank(void) { return MembershipField(&Membership::cross_rank, -1); }
int rm_cross_size(void) { return MembershipField(&Membership::cross_size, -1); }

uint64_t rm_epoch(void) {
  const auto worker = CurrentWorker();
  return worker ? worker->info().membership().epoch : 0;
}

// ---- Steps, state, membership

rm_status rm_step_end(rm_step_info* info) {
  return Guarded([&]() -> Status {
    const auto worker = CurrentWorker();
    return worker ? worker->StepEnd(info) : NotInitialised();
  });
}

rm_status rm_state_register(const char* name, void* data, size_t bytes) {
  return Guarded([&]() -> Status {
    return Library::Get().state.Register(name == nullptr ? "" : name, data, bytes);
  });
}

rm_status rm_state_unregister(const char* name) {
  return Guarded(
      [&]() -> Status { return Library::Get().state.Unregister(name == nullptr ? "" : name); });
}

rm_status rm_state_callbacks(rm_state_save_fn save, rm_state_load_fn load, void* user) {
  return Guarded([&]() -> Status {
    if ((save == nullptr) != (load == nullptr)) {
      return {RM_ERR_INVALID, "save and load belong together: give both, or neither"};
    }
    Library::Get().state.SetCallbacks(save, load, user);
    return {};
  });
}

rm_status rm_report(const char* name, double value) {
  return Guarded([&]() -> Status {
    if (name == nullptr || name[0] == '\0') return {RM_ERR_INVALID, "name is empty"};
    if (const size_t bytes = std::strlen(name); bytes > kLongestReportName) {
      return {RM_ERR_INVALID, "name has " + std::to_string(bytes) + " bytes: at most " +
                                  std::to_string(kLongestReportName) + " are allowed"};
    }
    if (!std::isfinite(value))
      return {RM_ERR_INVALID, std::string("'") + name + "': value is not finite"};
    const auto worker = CurrentWorker();
    if (!worker) return NotInitialised();
    worker->Report(name, value);
    return {};
  });
}

const char* rm_worker_id(int rank) {
  const auto worker = CurrentWorker();
  last_text = worker ? worker->info().WorkerAt(rank) : "";
  return last_text.c_str();
}

uint64_t rm_step_epoch(void) {
  const auto worker = CurrentWorker();
  return worker ? worker->info().step_ranks().epoch : 0;
}

const char* rm_step_worker_id(int rank) {
  const auto worker = CurrentWorker();
  if (rank == -1) return rm_worker_id(rank);
  const auto workers = worker ? worker->info().step_ranks().workers : std::vector<std::string>();
  const auto at = static_cast<size_t>(rank);  // of a negative one: more than any size
  last_text = at < workers.size() ? workers[at] : "";
  return last_text.c_str();
}

const char* rm_last_rebuild(void) {
  const auto worker = CurrentWorker();
  last_text = worker ? ringmaster::elastic::RebuildText(worker->info().last_rebuild()) : "";
  return last_text.c_str();
}

}  // extern "C"
