// NCCL's C functions, as real_nccl.cc looks for them.
#include <string>

#include "collectives/nccl/fake/library/fake_library.h"

// The names are NCCL's.
// NOLINTBEGIN(readability-identifier-naming)

using ringmaster::nccl::Comm;
using ringmaster::nccl::Config;
using ringmaster::nccl::DataType;
using ringmaster::nccl::FakeLibraryNccl;
using ringmaster::nccl::RedOp;
using ringmaster::nccl::Result;
using ringmaster::nccl::Stream;
using ringmaster::nccl::UniqueId;

extern "C" {

Result ncclGetVersion(int* version) {
  *version = FakeLibraryNccl().version();
  return Result::kSuccess;
}
Result ncclGetUniqueId(UniqueId* id) { return FakeLibraryNccl().GetUniqueId(id); }
Result ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  return FakeLibraryNccl().CommInitRankConfig(comm, ranks, id, rank, config);
}
Result ncclCommShrink(Comm parent, int* exclude, int excluded, Comm* comm, Config* config,
                      int flags) {
  return FakeLibraryNccl().CommShrink(parent, exclude, excluded, comm, config, flags);
}
Result ncclCommRevoke(Comm comm, int flags) { return FakeLibraryNccl().CommRevoke(comm, flags); }
Result ncclCommAbort(Comm comm) { return FakeLibraryNccl().CommAbort(comm); }
Result ncclCommGetAsyncError(Comm comm, Result* error) {
  return FakeLibraryNccl().CommGetAsyncError(comm, error);
}
const char* ncclGetLastError(Comm comm) {
  static thread_local std::string text;
  text = FakeLibraryNccl().LastError(comm);
  return text.c_str();
}
const char* ncclGetErrorString(Result result) {
  static thread_local std::string text;
  text = FakeLibraryNccl().ErrorString(result);
  return text.c_str();
}
Result ncclGroupStart() { return FakeLibraryNccl().GroupStart(); }
Result ncclGroupEnd() { return FakeLibraryNccl().GroupEnd(); }
Result ncclRedOpCreatePreMulSum(RedOp* op, void* scalar, DataType type, int /*residence*/,
                                Comm comm) {
  return FakeLibraryNccl().RedOpCreatePreMulSum(op, scalar, type, comm);
}
Result ncclRedOpDestroy(RedOp op, Comm comm) { return FakeLibraryNccl().RedOpDestroy(op, comm); }
Result ncclAllReduce(const void* send, void* recv, size_t count, DataType type, RedOp op, Comm comm,
                     Stream stream) {
  return FakeLibraryNccl().AllReduce(send, recv, count, type, op, comm, stream);
}
Result ncclBroadcast(const void* send, void* recv, size_t count, DataType type, int root, Comm comm,
                     Stream stream) {
  return FakeLibraryNccl().Broadcast(send, recv, count, type, root, comm, stream);
}
Result ncclReduce(const void* send, void* recv, size_t count, DataType type, RedOp op, int root,
                  Comm comm, Stream stream) {
  return FakeLibraryNccl().Reduce(send, recv, count, type, op, root, comm, stream);
}
Result ncclAllGather(const void* send, void* recv, size_t send_count, DataType type, Comm comm,
                     Stream stream) {
  return FakeLibraryNccl().AllGather(send, recv, send_count, type, comm, stream);
}
Result ncclReduceScatter(const void* send, void* recv, size_t recv_count, DataType type, RedOp op,
                         Comm comm, Stream stream) {
  return FakeLibraryNccl().ReduceScatter(send, recv, recv_count, type, op, comm, stream);
}
Result ncclSend(const void* send, size_t count, DataType type, int peer, Comm comm, Stream stream) {
  return FakeLibraryNccl().Send(send, count, type, peer, comm, stream);
}
Result ncclRecv(void* recv, size_t count, DataType type, int peer, Comm comm, Stream stream) {
  return FakeLibraryNccl().Recv(recv, count, type, peer, comm, stream);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
