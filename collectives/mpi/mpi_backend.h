// The backend of a world that an MPI launcher has started: MPI moves the bytes of what the ranks
// have agreed on. They agree on the host's communicator, as with every backend.
//
// It runs the operations of CpuBackend over a communicator of MPI, so inputs are packed, results
// are kept and given out as there; nothing is reduced in callers' buffers. Two things run on the
// host's communicator: Adasum, which is made of several collectives on memory that can't be kept,
// and transfers, because each pair of ranks would need a communicator of MPI, which has few.
//
// A world that MPI has started has one view. If a peer dies in it, what MPI has begun is given up,
// with the memory (MpiWorld).
//
// Thread rule: the engine's thread only. The abort of the host's communicator ends its waits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/engine/cpu_backend.h"
#include "collectives/mpi/mpi_communicator.h"

namespace ringmaster::mpi {

class MpiBackend : public engine::Backend {
 public:
  // `world` has begun, and outlives this.
  explicit MpiBackend(MpiWorld* world) : world_(world) {}

  void Install(Communicator* host, const std::vector<std::string>& workers) override;
  void Uninstall() override;
  void ForgetSet(int32_t process_set) override;
  Status Execute(const engine::Response& response, const engine::PendingTable& pending,
                 engine::Retained* result) override;
  void Note(const engine::Response& response) override { Of(response).Note(response); }
  Status Confirm() override { return last_->Confirm(); }
  void Withdraw(engine::Retained* result, const engine::PendingTable& pending) override {
    on_host_.Withdraw(result, pending);
  }
  Status HandOver(int holder, const engine::Retained* held, engine::Retained* result) override {
    return on_host_.HandOver(holder, held, result);
  }
  bool Publish(const engine::Retained& result, engine::PendingTable* pending) override {
    return on_host_.Publish(result, pending);
  }

 private:
  // The one of the two that runs this.
  engine::CpuBackend& Of(const engine::Response& response);

  MpiWorld* const world_;
  std::optional<MpiCommunicator> all_;
  engine::CpuBackend on_mpi_, on_host_;
  engine::CpuBackend* last_ = &on_host_;  // which of the two has executed last
};

}  // namespace ringmaster::mpi
