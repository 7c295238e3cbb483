// MPI as MpiCommunicator uses it: the real one (real_mpi.h), or a fake (fake_mpi.h).
//
// The methods are the functions of a plug-in (plugin/plugin.h), and have their rules.
//
// Thread rule: as the plug-in's; loaded() any thread.
#pragma once

#include <span>
#include <string>

#include "collectives/mpi/plugin/plugin.h"

namespace ringmaster::mpi {

using Comm = rm_mpi_comm*;
using Request = rm_mpi_request*;
using Code = int;  // of MPI; 0: success
using Threads = rm_mpi_threads;

class MpiApi {
 public:
  virtual ~MpiApi() = default;

  virtual std::string loaded() const = 0;  // for people: which MPI this is

  virtual Code Begin(bool* started, Threads* threads) = 0;
  virtual bool Finished() = 0;
  virtual Code Finish() = 0;
  virtual Code Place(int* rank, int* size) = 0;
  virtual std::string Explain(Code code) = 0;

  virtual Code DupWorld(Comm* comm, Request* request) = 0;
  virtual Code Group(Comm comm, std::span<const int> ranks, int tag, Comm* out) = 0;
  virtual void FreeComm(Comm comm) = 0;

  virtual Code Allreduce(Comm comm, const void* in, void* out, int count, rm_dtype dtype, rm_op op,
                         Request* request) = 0;
  virtual Code ReduceScatter(Comm comm, const void* in, void* out, std::span<const int> counts,
                             rm_dtype dtype, rm_op op, Request* request) = 0;
  virtual Code Allgatherv(Comm comm, const void* send, int send_bytes, void* recv,
                          std::span<const int> bytes, std::span<const int> at,
                          Request* request) = 0;
  virtual Code Broadcast(Comm comm, void* data, int bytes, int root, Request* request) = 0;
  virtual Code Alltoallv(Comm comm, const void* send, std::span<const int> send_bytes,
                         std::span<const int> send_at, void* recv, std::span<const int> recv_bytes,
                         std::span<const int> recv_at, Request* request) = 0;
  virtual Code Barrier(Comm comm, Request* request) = 0;
  virtual Code Test(Request request, bool* done) = 0;
};

}  // namespace ringmaster::mpi
