#include "collectives/elastic/engine_host.h"

#include <algorithm>
#include <utility>

#include "collectives/elastic/first_view.h"
#include "collectives/elastic/mpi_agreement.h"
#include "collectives/elastic/network_interface.h"
#include "collectives/mpi/mpi_backend.h"
#include "collectives/mpi/real_mpi.h"
#include "collectives/nccl/backend_by_memory.h"

namespace ringmaster::elastic {
namespace {

class RealCommunicators : public engine::CommunicatorFactory {
 public:
  explicit RealCommunicators(Endpoint* endpoint) : endpoint_(endpoint) {}
  Status Create(const CommunicatorOptions& options, std::unique_ptr<Communicator>* out) override {
    return Communicator::Create(endpoint_, options, out);
  }

 private:
  Endpoint* const endpoint_;
};

}  // namespace

EngineHost::EngineHost(const WorkerOptions& options, engine::StateRegistry* state, PingFacts* facts)
    : options_(options), state_(state), fixed_world_reports_(facts) {}

EngineHost::~EngineHost() {
  if (mpi_ != nullptr && launcher_ != nullptr) launcher_->LeaveIsTaken();
}

std::unique_ptr<engine::Backend> EngineHost::MakeHostBackend() const {
  if (mpi_ == nullptr) return std::make_unique<engine::CpuBackend>();
  return std::make_unique<mpi::MpiBackend>(mpi_.get());
}

void EngineHost::Make(engine::EngineListener* listener) {
  communicators_ = std::make_unique<RealCommunicators>(endpoint_.get());
  engine::EngineOptions options;
  options.communicators = communicators_.get();
  options.listener = listener;
  options.state = state_;
  // Whether this worker has state is known only with the sidecar's welcome. Joiners are told then,
  // before any view, that they have none.
  options.has_state = true;
  options.fusion_bytes = options_.fusion_bytes;
  options.stall = options_.stall;
  options.user_patience = std::min(options.user_patience, options_.patience);
  options.timeline = options_.timeline;
  // The device of a worker that takes part before it has a tensor of its own: the GPU that scripts
  // pick for its slot.
  options.make_backend = [device = std::max(0, options_.slot),
                          needs_nccl = options_.backend == BackendChoice::kNccl, this] {
    return std::make_unique<nccl::BackendByMemory>(
        nccl::ThisMachinesGpu, device, nccl::WaitLimits(), needs_nccl, MakeHostBackend());
  };
  engine_ = std::make_unique<engine::Engine>(options);
  fixed_world_reports_.Attach(engine_.get());
}

Status EngineHost::StartInJob(engine::EngineListener* listener) {
  Endpoint::Options endpoint;
  endpoint.bind = FreePortOf(options_.bind);
  endpoint.job = options_.job;
  endpoint.shared_memory = options_.shared_memory;
  endpoint.encrypt = options_.encrypt;
  if (Status s = Endpoint::Create(endpoint, &endpoint_); !s.ok()) return s;
  Make(listener);
  return {};
}

Status EngineHost::StartAlone() {
  engine::WorkerView view = FirstView();
  view.peers.resize(1);
  view.workers = {"this process"};
  view.self = 0;
  return EnterOnlyView(std::move(view), Clock::time_point::max());
}

Status EngineHost::StartInFixedWorld(Clock::time_point deadline) {
  if (Status s = process_manager::Open(options_.launch, &launcher_); !s.ok()) return s;
  engine::WorkerView view;
  Status founded = FoundWorld(launcher_.get(), options_, deadline, &endpoint_, &view);
  if (!founded.ok()) return founded;
  if (options_.backend == BackendChoice::kMpi) {
    if (Status s = BeginMpi(deadline); !s.ok()) return s;
  }
  return EnterOnlyView(std::move(view), deadline);
}

Status EngineHost::BeginMpi(Clock::time_point deadline) {
  const auto files =
      mpi::Candidates(options_.mpi_library, mpi::OwnFolder(), options_.launch.protocol);
  std::unique_ptr<mpi::MpiApi> found;
  const Status loaded = mpi::LoadMpi(files, &found);
  const std::string name = loaded.ok() ? found->loaded() : "";
  if (Status s = AgreeOnMpi(launcher_.get(), "mpi", loaded, name, deadline); !s.ok()) return s;
  mpi_ = std::make_unique<mpi::MpiWorld>(std::move(found), mpi::MpiLimits());
  const Status begun = mpi_->Begin(launcher_->rank(), launcher_->size());
  if (Status s = AgreeOnMpi(launcher_.get(), "mpi-begun", begun, name, deadline); !s.ok()) return s;
  return mpi_->Connect(deadline);
}

Status EngineHost::EnterOnlyView(engine::WorkerView view, Clock::time_point deadline) {
  Make(&fixed_world_reports_);
  engine_->PostView(std::move(view));
  return engine_->AwaitEntered(deadline);
}

}  // namespace ringmaster::elastic
