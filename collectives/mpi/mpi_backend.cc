#include "collectives/mpi/mpi_backend.h"

#include <algorithm>
#include <utility>

namespace ringmaster::mpi {
namespace {

bool StaysOnHost(const engine::Request& request) {
  return request.kind == engine::Kind::kTransfer ||
         (request.kind == engine::Kind::kAllreduce && request.op == RM_ADASUM);
}

}  // namespace

void MpiBackend::Install(Communicator* host, const std::vector<std::string>& workers) {
  all_.emplace(world_, host);
  on_mpi_.Install(&*all_, workers);
  on_host_.Install(host, workers);
}

void MpiBackend::Uninstall() {
  on_mpi_.Uninstall();
  on_host_.Uninstall();
  all_.reset();
}

void MpiBackend::ForgetSet(int32_t process_set) {
  on_mpi_.ForgetSet(process_set);
  on_host_.ForgetSet(process_set);
}

engine::CpuBackend& MpiBackend::Of(const engine::Response& response) {
  const bool on_host = std::any_of(response.requests.begin(), response.requests.end(), StaysOnHost);
  return on_host ? on_host_ : on_mpi_;
}

Status MpiBackend::Execute(const engine::Response& response, const engine::PendingTable& pending,
                           engine::Retained* result) {
  last_ = &Of(response);
  Status status = last_->Execute(response, pending, result);
  if (!status.ok() && world_->stuck()) {
    for (engine::Part& part : result->parts) {
      if (part.data != nullptr) KeepForEver(std::exchange(part.data, nullptr));
    }
  }
  return status;
}

}  // namespace ringmaster::mpi
