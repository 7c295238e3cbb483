#include "collectives/nccl/gpu.h"

#include <utility>

#include "collectives/nccl/real_cuda.h"
#include "collectives/nccl/real_nccl.h"
#include "common/sync/mutex.h"

namespace ringmaster::nccl {
namespace {

using Where = SharedLibrary::Where;

// Looks for the libraries again and again, until both are found or can't be used.
class Search {
 public:
  Gpu Look() {
    const sync::MutexLock lock(&mu_);
    if (cuda_missing_) LookForCuda();
    if (nccl_missing_) LookForNccl();
    where_ = Where::kLoaded;  // what else is on this machine doesn't change
    found_.may_come = found_.cuda == nullptr ? cuda_missing_ : nccl_missing_;
    return found_;
  }

 private:
  void LookForCuda() REQUIRES(mu_) {
    std::unique_ptr<CudaApi> cuda;
    const Status loaded = LoadCuda(where_, &cuda, &cuda_missing_);
    if (cuda_missing_ && where_ == Where::kLoaded) return;  // the first look has said more
    found_.no_cuda = loaded.message();
    if (!loaded.ok()) return;
    if (const CudaResult r = cuda->GetDeviceCount(&found_.devices); r != kCudaSuccess) {
      found_.no_cuda = "no GPU can be used: " + cuda->ErrorString(r);
    } else if (found_.devices == 0) {
      found_.no_cuda = "CUDA finds no GPU";
    } else {
      found_.cuda = std::move(cuda);
    }
  }
  void LookForNccl() REQUIRES(mu_) {
    std::unique_ptr<NcclApi> nccl;
    const Status loaded = LoadNccl(where_, &nccl, &nccl_missing_);
    if (nccl_missing_ && where_ == Where::kLoaded) return;
    found_.no_nccl = loaded.message();
    found_.nccl = std::move(nccl);
  }

  sync::Mutex mu_;
  Where where_ GUARDED_BY(mu_) = Where::kLoadedOrFound;
  bool cuda_missing_ GUARDED_BY(mu_) = true, nccl_missing_ GUARDED_BY(mu_) = true;
  Gpu found_ GUARDED_BY(mu_);
};

}  // namespace

Gpu ThisMachinesGpu() {
  static auto* const search = new Search;  // never destroyed: threads may still be here at exit
  return search->Look();
}

}  // namespace ringmaster::nccl
