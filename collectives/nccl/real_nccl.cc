#include "collectives/nccl/real_nccl.h"

#include <cstdlib>
#include <utility>

#include "collectives/nccl/nccl_settings.h"

namespace ringmaster::nccl {
namespace {

constexpr const char* kNcclNames[] = {"libnccl.so.2"};

class RealNccl : public NcclApi {
 public:
  static Status Load(SharedLibrary library, std::unique_ptr<NcclApi>* out) {
    std::unique_ptr<RealNccl> nccl(new RealNccl);
    library.Resolve("ncclGetVersion", &nccl->get_version_);
    if (Status s = library.CheckResolved(); !s.ok()) return s;
    if (nccl->get_version_(&nccl->version_) != Result::kSuccess) {
      return {RM_ERR_UNAVAILABLE, library.name() + " does not say its version"};
    }
    if (nccl->version_ < kOldest) {
      return {RM_ERR_UNAVAILABLE, library.name() + " is version " + std::to_string(nccl->version_) +
                                      "; 2.20.5 is the oldest that is used: in older ones a "
                                      "communicator can't be given up on another thread than the "
                                      "one that launches"};
    }
    if (Status s = nccl->ResolveAll(&library); !s.ok()) return s;
    *out = std::move(nccl);
    return {};
  }

  int version() const override { return version_; }
  Result GetUniqueId(UniqueId* id) override { return get_unique_id_(id); }
  Result CommInitRankConfig(Comm* comm, int ranks, const UniqueId& id, int rank,
                            Config* config) override {
    return comm_init_(comm, ranks, id, rank, config);
  }
  Result CommShrink(Comm parent, int* exclude, int excluded, Comm* comm, Config* config,
                    int flags) override {
    return comm_shrink_(parent, exclude, excluded, comm, config, flags);
  }
  Result CommRevoke(Comm comm, int flags) override { return comm_revoke_(comm, flags); }
  Result CommAbort(Comm comm) override { return comm_abort_(comm); }
  Result CommGetAsyncError(Comm comm, Result* error) override { return async_error_(comm, error); }
  std::string LastError(Comm comm) override {
    const char* text = get_last_error_(comm);
    return text == nullptr ? "" : text;
  }
  std::string ErrorString(Result result) override { return get_error_string_(result); }
  Result GroupStart() override { return group_start_(); }
  Result GroupEnd() override { return group_end_(); }
  Result RedOpCreatePreMulSum(RedOp* op, void* scalar, DataType type, Comm comm) override {
    return create_pre_mul_sum_(op, scalar, type, kScalarOnHost, comm);
  }
  Result RedOpDestroy(RedOp op, Comm comm) override { return destroy_op_(op, comm); }
  Result AllReduce(const void* send, void* recv, size_t count, DataType type, RedOp op, Comm comm,
                   Stream stream) override {
    return all_reduce_(send, recv, count, type, op, comm, stream);
  }
  Result Broadcast(const void* send, void* recv, size_t count, DataType type, int root, Comm comm,
                   Stream stream) override {
    return broadcast_(send, recv, count, type, root, comm, stream);
  }
  Result Reduce(const void* send, void* recv, size_t count, DataType type, RedOp op, int root,
                Comm comm, Stream stream) override {
    return reduce_(send, recv, count, type, op, root, comm, stream);
  }
  Result AllGather(const void* send, void* recv, size_t send_count, DataType type, Comm comm,
                   Stream stream) override {
    return all_gather_(send, recv, send_count, type, comm, stream);
  }
  Result ReduceScatter(const void* send, void* recv, size_t recv_count, DataType type, RedOp op,
                       Comm comm, Stream stream) override {
    return reduce_scatter_(send, recv, recv_count, type, op, comm, stream);
  }
  Result Send(const void* send, size_t count, DataType type, int peer, Comm comm,
              Stream stream) override {
    return send_(send, count, type, peer, comm, stream);
  }
  Result Recv(void* recv, size_t count, DataType type, int peer, Comm comm,
              Stream stream) override {
    return recv_(recv, count, type, peer, comm, stream);
  }

 private:
  Status ResolveAll(SharedLibrary* library) {
    library->Resolve("ncclGetUniqueId", &get_unique_id_);
    library->Resolve("ncclCommInitRankConfig", &comm_init_);
    library->Resolve("ncclCommAbort", &comm_abort_);
    library->Resolve("ncclCommGetAsyncError", &async_error_);
    library->Resolve("ncclGetLastError", &get_last_error_);
    library->Resolve("ncclGetErrorString", &get_error_string_);
    library->Resolve("ncclGroupStart", &group_start_);
    library->Resolve("ncclGroupEnd", &group_end_);
    library->Resolve("ncclRedOpCreatePreMulSum", &create_pre_mul_sum_);
    library->Resolve("ncclRedOpDestroy", &destroy_op_);
    library->Resolve("ncclAllReduce", &all_reduce_);
    library->Resolve("ncclBroadcast", &broadcast_);
    library->Resolve("ncclReduce", &reduce_);
    library->Resolve("ncclAllGather", &all_gather_);
    library->Resolve("ncclReduceScatter", &reduce_scatter_);
    library->Resolve("ncclSend", &send_);
    library->Resolve("ncclRecv", &recv_);
    if (HasShrink()) library->Resolve("ncclCommShrink", &comm_shrink_);
    if (HasRevoke()) library->Resolve("ncclCommRevoke", &comm_revoke_);
    return library->CheckResolved();
  }

  int version_ = 0;
  Result (*get_version_)(int*) = nullptr;
  Result (*get_unique_id_)(UniqueId*) = nullptr;
  Result (*comm_init_)(Comm*, int, UniqueId, int, Config*) = nullptr;
  Result (*comm_shrink_)(Comm, int*, int, Comm*, Config*, int) = nullptr;
  Result (*comm_revoke_)(Comm, int) = nullptr;
  Result (*comm_abort_)(Comm) = nullptr;
  Result (*async_error_)(Comm, Result*) = nullptr;
  const char* (*get_last_error_)(Comm) = nullptr;
  const char* (*get_error_string_)(Result) = nullptr;
  Result (*group_start_)() = nullptr;
  Result (*group_end_)() = nullptr;
  Result (*create_pre_mul_sum_)(RedOp*, void*, DataType, int, Comm) = nullptr;
  Result (*destroy_op_)(RedOp, Comm) = nullptr;
  Result (*all_reduce_)(const void*, void*, size_t, DataType, RedOp, Comm, Stream) = nullptr;
  Result (*broadcast_)(const void*, void*, size_t, DataType, int, Comm, Stream) = nullptr;
  Result (*reduce_)(const void*, void*, size_t, DataType, RedOp, int, Comm, Stream) = nullptr;
  Result (*all_gather_)(const void*, void*, size_t, DataType, Comm, Stream) = nullptr;
  Result (*reduce_scatter_)(const void*, void*, size_t, DataType, RedOp, Comm, Stream) = nullptr;
  Result (*send_)(const void*, size_t, DataType, int, Comm, Stream) = nullptr;
  Result (*recv_)(void*, size_t, DataType, int, Comm, Stream) = nullptr;
};

}  // namespace

Status LoadNccl(SharedLibrary::Where where, std::unique_ptr<NcclApi>* out, bool* missing) {
  *missing = false;
  const auto why = WhyBlocking([](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  });
  if (why) return {RM_ERR_UNAVAILABLE, *why};
  SharedLibrary library;
  const Status opened = SharedLibrary::Open(kNcclNames, &library, where);
  *missing = !opened.ok();
  if (*missing) return opened;
  return RealNccl::Load(std::move(library), out);
}

Status LoadNcclFrom(const char* name, std::unique_ptr<NcclApi>* out) {
  SharedLibrary library;
  const char* const names[] = {name};
  if (Status s = SharedLibrary::Open(names, &library); !s.ok()) return s;
  return RealNccl::Load(std::move(library), out);
}

}  // namespace ringmaster::nccl
