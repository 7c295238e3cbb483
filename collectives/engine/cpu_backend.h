// The backend that reduces in the host's memory, on the host's communicator.
//
// Execution and publication are apart because the result is retained between them: a survivor that
// has not executed an operation gets the buffer from one that has, and only publishes it.
//
// Thread rule: the engine's thread only.
#pragma once

#include "collectives/engine/backend.h"

namespace ringmaster::engine {

class CpuBackend : public Backend {
 public:
  void Install(Communicator* host) override { host_ = host; }
  void Uninstall() override { host_ = nullptr; }
  Status Execute(const Response& response, const PendingTable& pending, Retained* result) override;
  Status HandOver(int holder, std::shared_ptr<Buffer> held, Retained* result) override;
  bool Publish(const Retained& result, PendingTable* pending) override;

 private:
  Status Allreduce(const Response& response, const PendingTable& pending, Retained* result);
  Status Allgather(const Response& response, const PendingTable& pending, Retained* result);
  Status Broadcast(const Response& response, const PendingTable& pending, Retained* result);

  Communicator* host_ = nullptr;
  BufferPool pool_;
};

}  // namespace ringmaster::engine
