#include "collectives/nccl/backend_by_memory.h"

#include <algorithm>

namespace ringmaster::nccl {

using engine::PendingTable;
using engine::Response;
using engine::Retained;

void BackendByMemory::Install(Communicator* host, const std::vector<std::string>& workers) {
  host_ = host;
  workers_ = workers;
  on_host_->Install(host, workers);
  if (on_gpu_ != nullptr) on_gpu_->Install(host, workers);
}

void BackendByMemory::Uninstall() {
  host_ = nullptr;
  if (on_gpu_ != nullptr) on_gpu_->Uninstall();
  on_host_->Uninstall();
}

void BackendByMemory::ForgetSet(int32_t process_set) {
  if (on_gpu_ != nullptr) on_gpu_->ForgetSet(process_set);
  on_host_->ForgetSet(process_set);
}

Status BackendByMemory::MakeOnGpu() {
  const Gpu gpu = find_gpu_();
  if (gpu.cuda == nullptr) {
    return {RM_ERR_UNAVAILABLE, "the others' tensors lie in GPUs' memory, and here " + gpu.no_cuda};
  }
  const int device = gpu.devices > 0 ? device_ % gpu.devices : 0;
  on_gpu_ = std::make_unique<NcclBackend>(gpu, on_host_.get(), device, limits_, needs_nccl_);
  on_gpu_->Install(host_, workers_);
  sync::MutexLock lock(&mu_);
  to_abort_ = on_gpu_.get();
  on_gpu_->Abort(aborted_epoch_);
  return {};
}

bool BackendByMemory::RunsHere(const Response& response) const {
  if (response.error != RM_OK) return false;
  const std::vector<int>& ranks = response.ranks;
  return !response.requests.front().is_partial() ||
         std::find(ranks.begin(), ranks.end(), host_->rank()) != ranks.end();
}

Status BackendByMemory::Execute(const Response& response, const PendingTable& pending,
                                Retained* result) {
  last_ = on_host_.get();
  if (response.requests.front().on_gpu) {
    if (response.error == RM_OK) on_host_->Note(response);
    // A rank that has nothing to do in it needs no GPU.
    if (on_gpu_ == nullptr && !RunsHere(response)) {
      *result = {response, {}};
      result->holds = response.error != RM_OK;
      return {};
    }
    if (on_gpu_ == nullptr) {
      if (Status s = MakeOnGpu(); !s.ok()) return s;
    }
    last_ = on_gpu_.get();
  }
  return last_->Execute(response, pending, result);
}

Status BackendByMemory::HandOver(int holder, const Retained* held, Retained* result) {
  // A rank without a GPU has no part in this operation, and takes part in handing it over: the
  // bytes pass through the host's memory.
  if (result->response.requests.front().on_gpu && on_gpu_ == nullptr) (void)MakeOnGpu();
  return Of(result->response)->HandOver(holder, held, result);
}

engine::Backend* BackendByMemory::Of(const Response& response) {
  const bool on_gpu = response.requests.front().on_gpu && on_gpu_ != nullptr;
  return on_gpu ? on_gpu_.get() : on_host_.get();
}

void BackendByMemory::Withdraw(Retained* result, const PendingTable& pending) {
  Of(result->response)->Withdraw(result, pending);
}

bool BackendByMemory::Publish(const Retained& result, PendingTable* pending) {
  return Of(result.response)->Publish(result, pending);
}

void BackendByMemory::Abort(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  aborted_epoch_ = std::max(aborted_epoch_, epoch);
  if (to_abort_ != nullptr) to_abort_->Abort(epoch);
}

}  // namespace ringmaster::nccl
