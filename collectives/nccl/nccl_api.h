// NCCL as NcclBackend uses it: the real library (real_nccl.h), or a fake (fake/fake_gpu.h).
//
// Each method is the function of NCCL with this name, and has its rules. Communicators are always
// nonblocking: most calls may return kInProgress, and CommGetAsyncError() says when they are done.
//
// Thread rule: one thread for each communicator; CommAbort() and CommRevoke() from any thread.
#pragma once

#include <cstddef>
#include <string>

#include "collectives/nccl/nccl_types.h"

namespace ringmaster::nccl {

using Comm = void*;
using Stream = void*;  // CUDA's

class NcclApi {
 public:
  virtual ~NcclApi() = default;

  virtual int version() const = 0;  // 22703 for 2.27.3
  bool HasShrink() const { return version() >= kFirstShrink; }
  bool HasRevoke() const { return version() >= kFirstRevoke; }

  virtual Result GetUniqueId(UniqueId* id) = 0;
  virtual Result CommInitRankConfig(Comm* comm, int ranks, const UniqueId& id, int rank,
                                    Config* config) = 0;
  virtual Result CommShrink(Comm parent, int* exclude, int excluded, Comm* comm, Config* config,
                            int flags) = 0;
  virtual Result CommRevoke(Comm comm, int flags) = 0;
  virtual Result CommAbort(Comm comm) = 0;
  virtual Result CommGetAsyncError(Comm comm, Result* error) = 0;
  // For people: what the communicator's last error was, or what a code means.
  virtual std::string LastError(Comm comm) = 0;
  virtual std::string ErrorString(Result result) = 0;

  virtual Result GroupStart() = 0;
  virtual Result GroupEnd() = 0;
  virtual Result RedOpCreatePreMulSum(RedOp* op, void* scalar, DataType type, Comm comm) = 0;
  virtual Result RedOpDestroy(RedOp op, Comm comm) = 0;

  virtual Result AllReduce(const void* send, void* recv, size_t count, DataType type, RedOp op,
                           Comm comm, Stream stream) = 0;
  virtual Result Broadcast(const void* send, void* recv, size_t count, DataType type, int root,
                           Comm comm, Stream stream) = 0;
  virtual Result Reduce(const void* send, void* recv, size_t count, DataType type, RedOp op,
                        int root, Comm comm, Stream stream) = 0;
  virtual Result AllGather(const void* send, void* recv, size_t send_count, DataType type,
                           Comm comm, Stream stream) = 0;
  virtual Result ReduceScatter(const void* send, void* recv, size_t recv_count, DataType type,
                               RedOp op, Comm comm, Stream stream) = 0;
  virtual Result Send(const void* send, size_t count, DataType type, int peer, Comm comm,
                      Stream stream) = 0;
  virtual Result Recv(void* recv, size_t count, DataType type, int peer, Comm comm,
                      Stream stream) = 0;
};

}  // namespace ringmaster::nccl
