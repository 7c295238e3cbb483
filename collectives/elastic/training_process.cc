#include "collectives/elastic/training_process.h"

#include <cstdio>
#include <utility>

#include "collectives/nccl/backend_by_memory.h"

namespace ringmaster::elastic {
TrainingProcess::TrainingProcess(const WorkerOptions& options, engine::StateRegistry* state)
    : options_(options),
      devices_(options.backend, nccl::ThisMachinesGpu),
      gpu_(options.watch_gpu, nccl::ThisMachinesGpu, facts_.gpu()),
      host_(options_, state, &facts_),
      sidecar_(options, state, &facts_),
      timeline_(options) {}

TrainingProcess::~TrainingProcess() {
  // Order: the engine stops using the link, the link stops using the engine, then both can go.
  facts_.gpu()->SetWake(nullptr);
  host_.Close();
  sidecar_.Close();
  host_.End();
}

Status TrainingProcess::Start(const WorkerOptions& options, engine::StateRegistry* state,
                              Limit limit, std::unique_ptr<TrainingProcess>* out) {
  if (options.backend == BackendChoice::kNccl) {
    // A framework that the script imports later may bring what is not there yet. The first tensor
    // on a GPU (DeviceCheck) looks for it again.
    const nccl::Gpu gpu = nccl::ThisMachinesGpu();
    if (Status s = gpu.Check(); !s.ok() && !gpu.may_come)
      return {s.code(), "rm_init: the job's collectives.backend is Nccl: " + s.message()};
  }
  std::unique_ptr<TrainingProcess> worker(new TrainingProcess(options, state));
  Status status = worker->Begin(limit);
  if (status.ok()) *out = std::move(worker);
  return status;
}

TrainingProcess::Clock::time_point TrainingProcess::DeadlineOf(Limit limit) const {
  if (limit) return *limit;
  return options_.socket.empty() ? Clock::now() + options_.patience : Clock::time_point::max();
}

Status TrainingProcess::Begin(Limit limit) {
  if (!options_.socket.empty()) return StartWithSidecar(limit);
  const Status status = StartWithoutSidecar(DeadlineOf(limit));
  return status.ok() ? status : Status(status.code(), "rm_init: " + status.message());
}

Status TrainingProcess::StartWithoutSidecar(Clock::time_point deadline) {
  const bool alone = options_.launch.protocol == process_manager::Launch::Protocol::kNone;
  const Status status = alone ? host_.StartAlone() : host_.StartInFixedWorld(deadline);
  if (!status.ok()) return status;
  sidecar_.Attach(host_.engine());
  Entered();
  return {};
}

Status TrainingProcess::StartWithSidecar(Limit limit) {
  if (Status s = host_.StartInJob(sidecar_.reports()); !s.ok()) return s;
  sidecar_.Attach(host_.engine());
  if (options_.keep_recent && options_.timeline != nullptr) options_.timeline->KeepRecent();
  Role role = Role::kUnknown;
  if (Status s = sidecar_.Start(host_.endpoint(), limit, &role); !s.ok()) return s;
  // A worker may end at once of what its GPU has.
  facts_.gpu()->SetWake([this] { sidecar_.PingNow(); });
  if (role != Role::kBootstrap) return {};
  const Status begun = sidecar_.AwaitBegin(DeadlineOf(limit));
  if (begun.ok()) Entered();
  // If the job begins without this worker, the script goes on as a joiner's does, and registers its
  // state before it enters.
  if (begun.code() == RM_ERR_TIMEOUT && joining()) return {};
  return begun;
}

Status TrainingProcess::Enter(Limit limit) {
  if (info().entered) return {};
  if (Status s = sidecar_.AwaitView(DeadlineOf(limit)); !s.ok()) return s;
  Entered();
  return {};
}

void TrainingProcess::Entered() {
  sidecar_.Entered();
  // The environments of the ranks are alike, so one rank writes the remarks for all.
  std::call_once(remarked_, [this] {
    if (info().membership().rank != 0) return;
    for (const std::string& remark : options_.remarks)
      std::fprintf(stderr, "ringmaster: %s\n", remark.c_str());
  });
  changes_.Begin(info().step_ranks());
  timeline_.Entered(info());
}

bool TrainingProcess::joining() const {
  return sidecar_.joins() && !info().entered && !info().dropped;
}

Status TrainingProcess::EnsureEntered() {
  if (!joining()) return {};
  return Enter(Clock::time_point::max());
}

Status TrainingProcess::Submit(std::span<const std::shared_ptr<engine::Operation>> operations) {
  if (Status s = EnsureEntered(); !s.ok()) return s;
  if (Status s = devices_.Check(operations); !s.ok()) return s;
  gpu_.Uses(devices_.device());
  return host_.engine()->Submit(operations);
}

bool TrainingProcess::Await(const engine::Operation& operation, Clock::time_point deadline) {
  if (operation.done()) return true;
  const engine::Engine::BlockedHere blocked(host_.engine());
  return operation.WaitUntil(deadline);
}

Status TrainingProcess::StepEnd(rm_step_info* info) {
  if (Status s = EnsureEntered(); !s.ok()) return s;
  engine::StepResult result;
  if (Status s = host_.engine()->StepEnd(&result); !s.ok()) return s;
  changes_.Ended(result, info);
  return {};
}

Status TrainingProcess::Shutdown(Limit limit) {
  if (info().dropped) return {RM_ERR_DROPPED, "the others go on without this worker"};
  // A worker that is in no view has nothing to agree on with anybody.
  if (!info().entered) return {};
  const auto deadline = DeadlineOf(limit);
  Status status = host_.engine()->Shutdown(deadline);
  if (!status.ok()) return status;
  counted_sets_ = 0;
  sidecar_.AwaitHeard(deadline);
  host_.LeaveLauncher();
  return status;
}

Status TrainingProcess::Wake(Limit limit) {
  if (!options_.socket.empty() && !sidecar_.may_rest()) {
    return {RM_ERR_SHUTDOWN,
            "rm_init: all ranks have shut this job down, and its sidecars are of a version for "
            "which that is its end: call rm_shutdown (or shutdown()) only when the script is "
            "through with the library"};
  }
  // From here on this process counts as training again: its end would be a fault.
  sidecar_.Wakes();
  const auto deadline = DeadlineOf(limit);
  Status status = host_.engine()->Wake(deadline);
  // Without a sidecar nobody tells a worker how the others have ended: it only sees them go.
  const bool gone = options_.socket.empty() && status.code() == RM_ERR_INTERNAL;
  if (gone || status.code() == RM_ERR_LEFT || status.code() == RM_ERR_SHUTDOWN) {
    return {RM_ERR_SHUTDOWN,
            "rm_init: after the shutdown that all ranks have agreed on, others have ended their "
            "processes instead of beginning again, so the job is over (" +
                status.message() + "). All ranks begin again, or none"};
  }
  if (!status.ok()) return {status.code(), "rm_init: " + status.message()};
  sidecar_.AwaitHeard(deadline);
  changes_.Begin(info().step_ranks());
  timeline_.Woken(info());
  return {};
}

Status TrainingProcess::Finish(Clock::time_point deadline) {
  if (info().dropped && !sidecar_.fenced())
    return {RM_ERR_DROPPED, "the others have gone on without this worker"};
  sidecar_.Finish();
  sidecar_.AwaitHeard(deadline);
  if (Status s = host_.FinishMpi(deadline); !s.ok())
    std::fprintf(stderr, "ringmaster: MPI is not finalised: %s\n", s.message().c_str());
  return {};
}

}  // namespace ringmaster::elastic
