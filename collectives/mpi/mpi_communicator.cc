#include "collectives/mpi/mpi_communicator.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "collectives/algorithms/reduce.h"
#include "collectives/communicator/arguments.h"
#include "collectives/communicator/wide_average.h"
#include "collectives/element/element.h"
#include "collectives/mpi/pieces.h"

namespace ringmaster::mpi {
namespace {

using communicator::RankAndSize;
using communicator::WideAverage;

// Memory of ours that MPI reads and writes. If a call is given up, it is kept for ever.
class Staging {
 public:
  Staging(const MpiWorld* world, size_t bytes)
      : world_(world), memory_(new (std::nothrow) std::byte[bytes + 1]) {}
  ~Staging() {
    if (world_->stuck()) KeepForEver(std::move(memory_));
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  std::byte* data() { return memory_.get(); }

 private:
  const MpiWorld* const world_;
  std::shared_ptr<std::byte[]> memory_;
};

Status NoMemory(size_t bytes) {
  return {RM_ERR_OUT_OF_MEMORY, "no memory for " + std::to_string(bytes) + " bytes"};
}

bool Overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return first < second + b_bytes && second < first + a_bytes;
}

// What MPI reduces: an average is a sum, which is divided afterwards.
rm_op SumOf(rm_op op) { return op == RM_AVERAGE ? RM_SUM : op; }
void Divide(void* sum, size_t count, rm_dtype dtype, rm_op op, int size) {
  if (op != RM_AVERAGE || size == 1 || count == 0) return;
  const void* const one[] = {sum};
  algorithms::Reduce(sum, one, count, dtype, op, size);
}

}  // namespace

MpiCommunicator::MpiCommunicator(MpiWorld* world, Comm comm, Communicator* host,
                                 Communicator* whole, std::unique_ptr<Communicator> own_host)
    : world_(world), comm_(comm), own_host_(std::move(own_host)), host_(host), whole_(whole) {}

MpiCommunicator::~MpiCommunicator() {
  if (own_host_ != nullptr) world_->Free(comm_);
}

Status MpiCommunicator::Allreduce(const void* in, void* out, size_t count, rm_dtype dtype,
                                  rm_op op) {
  if (Status s = communicator::CheckAllreduce(in, out, count, dtype, op); !s.ok()) return s;
  if (Status s = world_->CheckUsable(); !s.ok()) return s;
  if (WideAverage::Needed(dtype, op, size())) return AverageWide(in, out, count, dtype);
  return Sum(in, out, count, dtype, op);
}

Status MpiCommunicator::Sum(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op) {
  const size_t element = element::Size(dtype);
  for (const Piece& piece :
       PiecesOf(count, std::max<size_t>(1, world_->limits().bytes / element))) {
    const auto* from = static_cast<const std::byte*>(in) + piece.begin * element;
    auto* to = static_cast<std::byte*>(out) + piece.begin * element;
    Request request = nullptr;
    const Code begun = mpi()->Allreduce(comm_, from, to, static_cast<int>(piece.count), dtype,
                                        SumOf(op), &request);
    if (Status s = Await("MPI_Iallreduce", begun, request); !s.ok()) return s;
  }
  Divide(out, count, dtype, op, size());
  return {};
}

Status MpiCommunicator::AverageWide(const void* in, void* out, size_t count, rm_dtype dtype) {
  const auto wide = std::make_shared<WideAverage>(dtype, size());
  if (Status s = wide->Take(in, count); !s.ok()) return s;
  const Status status = Sum(wide->taken(), wide->taken(), count, wide->dtype(), wide->op());
  if (status.ok()) wide->Give(wide->taken(), out, count);
  if (world_->stuck()) KeepForEver(wide);
  return status;
}

Status MpiCommunicator::Allgatherv(const void* send, void* recv,
                                   std::span<const size_t> bytes_by_rank) {
  if (Status s = communicator::CheckAllgatherv({rank(), size()}, send, recv, bytes_by_rank);
      !s.ok())
    return s;
  if (Status s = world_->CheckUsable(); !s.ok()) return s;
  const size_t largest = *std::max_element(bytes_by_rank.begin(), bytes_by_rank.end());
  if (largest <= sizeof(uint64_t) * bytes_by_rank.size())
    return host_->Allgatherv(send, recv, bytes_by_rank);

  const std::vector<size_t> at = Offsets(bytes_by_rank);
  const size_t self = static_cast<size_t>(rank());
  if (Total(bytes_by_rank) <= world_->limits().bytes) {
    Request request = nullptr;
    const Code begun = mpi()->Allgatherv(comm_, send, static_cast<int>(bytes_by_rank[self]), recv,
                                         Ints(bytes_by_rank), Ints(at), &request);
    return Await("MPI_Iallgatherv", begun, request);
  }
  auto* to = static_cast<std::byte*>(recv);
  if (bytes_by_rank[self] > 0) std::memmove(to + at[self], send, bytes_by_rank[self]);
  for (size_t root = 0; root < at.size(); ++root) {
    if (Status s = Broadcast(to + at[root], bytes_by_rank[root], static_cast<int>(root)); !s.ok())
      return s;
  }
  return {};
}

Status MpiCommunicator::Broadcast(void* data, size_t bytes, int root) {
  if (Status s = communicator::CheckBroadcast({rank(), size()}, data, bytes, root); !s.ok())
    return s;
  if (Status s = world_->CheckUsable(); !s.ok()) return s;
  for (const Piece& piece : PiecesOf(bytes, world_->limits().bytes)) {
    Request request = nullptr;
    const Code begun = mpi()->Broadcast(comm_, static_cast<std::byte*>(data) + piece.begin,
                                        static_cast<int>(piece.count), root, &request);
    if (Status s = Await("MPI_Ibcast", begun, request); !s.ok()) return s;
  }
  return {};
}

Status MpiCommunicator::ReduceScatter(const void* in, void* out, std::span<const size_t> counts,
                                      rm_dtype dtype, rm_op op) {
  if (Status s = communicator::CheckReduceScatter({rank(), size()}, in, out, counts, dtype, op);
      !s.ok())
    return s;
  if (Status s = world_->CheckUsable(); !s.ok()) return s;
  if (WideAverage::Needed(dtype, op, size())) return AverageWideBlocks(in, out, counts, dtype);
  return SumBlocks(in, out, counts, dtype, op);
}

Status MpiCommunicator::SumBlocks(const void* in, void* out, std::span<const size_t> counts,
                                  rm_dtype dtype, rm_op op) {
  const size_t element = element::Size(dtype), own = counts[static_cast<size_t>(rank())];
  const size_t bytes = Total(counts) * element;
  if (bytes == 0) return {};
  // MPI takes no output that lies in the input; the rounds pack the input elsewhere, too.
  if (bytes > world_->limits().bytes || Overlap(in, bytes, out, own * element)) {
    if (Status s = SumBlocksInRounds(in, out, counts, dtype, op); !s.ok()) return s;
  } else {
    Request request = nullptr;
    const Code begun =
        mpi()->ReduceScatter(comm_, in, out, Ints(counts), dtype, SumOf(op), &request);
    if (Status s = Await("MPI_Ireduce_scatter", begun, request); !s.ok()) return s;
  }
  Divide(out, own, dtype, op, size());
  return {};
}

Status MpiCommunicator::SumBlocksInRounds(const void* in, void* out, std::span<const size_t> counts,
                                          rm_dtype dtype, rm_op op) {
  const size_t element = element::Size(dtype), self = static_cast<size_t>(rank());
  const size_t most = std::max<size_t>(1, world_->limits().bytes / element / counts.size());
  const std::vector<size_t> at = Offsets(counts);
  const size_t packed_bytes = std::min(most * counts.size(), Total(counts)) * element;
  Staging packed(world_, packed_bytes), part(world_, std::min(most, counts[self]) * element);
  if (packed.data() == nullptr || part.data() == nullptr) return NoMemory(packed_bytes);
  for (size_t round = 0; round < Rounds(counts, most); ++round) {
    std::vector<int> in_round;
    std::byte* to = packed.data();
    for (size_t k = 0; k < counts.size(); ++k) {
      const Piece piece = PartInRound(counts[k], round, most);
      const auto* from = static_cast<const std::byte*>(in) + (at[k] + piece.begin) * element;
      to = std::copy_n(from, piece.count * element, to);
      in_round.push_back(static_cast<int>(piece.count));
    }
    Request request = nullptr;
    const Code begun = mpi()->ReduceScatter(comm_, packed.data(), part.data(), in_round, dtype,
                                            SumOf(op), &request);
    if (Status s = Await("MPI_Ireduce_scatter", begun, request); !s.ok()) return s;
    const Piece own = PartInRound(counts[self], round, most);
    std::copy_n(part.data(), own.count * element,
                static_cast<std::byte*>(out) + own.begin * element);
  }
  return {};
}

Status MpiCommunicator::AverageWideBlocks(const void* in, void* out, std::span<const size_t> counts,
                                          rm_dtype dtype) {
  const size_t own = counts[static_cast<size_t>(rank())];
  const auto wide = std::make_shared<WideAverage>(dtype, size());
  if (Status s = wide->Take(in, Total(counts), own); !s.ok()) return s;
  const Status status = SumBlocks(wide->taken(), wide->beside(), counts, wide->dtype(), wide->op());
  if (status.ok()) wide->Give(wide->beside(), out, own);
  if (world_->stuck()) KeepForEver(wide);
  return status;
}

Status MpiCommunicator::Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) {
  if (Status s = communicator::CheckAlltoallv({rank(), size()}, send, recv, bytes); !s.ok())
    return s;
  if (Status s = world_->CheckUsable(); !s.ok()) return s;
  const size_t n = static_cast<size_t>(size()), self = static_cast<size_t>(rank());
  const auto column = [&](size_t rank) {
    std::vector<size_t> received(n);
    for (size_t from = 0; from < n; ++from) received[from] = bytes[from * n + rank];
    return received;
  };
  size_t largest = 0;  // what any rank sends or receives: all ranks find the same
  for (size_t k = 0; k < n; ++k)
    largest = std::max({largest, Total(bytes.subspan(k * n, n)), Total(column(k))});
  if (largest == 0) return {};
  if (largest > world_->limits().bytes) {
    return ExchangeInRounds(static_cast<const std::byte*>(send), static_cast<std::byte*>(recv),
                            bytes);
  }
  const std::span<const size_t> sent = bytes.subspan(self * n, n);
  const std::vector<size_t> received = column(self);
  Request request = nullptr;
  const Code begun = mpi()->Alltoallv(comm_, send, Ints(sent), Ints(Offsets(sent)), recv,
                                      Ints(received), Ints(Offsets(received)), &request);
  return Await("MPI_Ialltoallv", begun, request);
}

Status MpiCommunicator::ExchangeInRounds(const std::byte* send, std::byte* recv,
                                         std::span<const size_t> bytes) {
  const size_t n = static_cast<size_t>(size()), self = static_cast<size_t>(rank());
  const size_t most = std::max<size_t>(1, world_->limits().bytes / n);
  std::vector<size_t> sent(n), received(n);
  for (size_t k = 0; k < n; ++k) {
    sent[k] = bytes[self * n + k];
    received[k] = bytes[k * n + self];
  }
  const std::vector<size_t> send_at = Offsets(sent), recv_at = Offsets(received);
  Staging to_send(world_, most * n), to_receive(world_, most * n);
  if (to_send.data() == nullptr || to_receive.data() == nullptr) return NoMemory(most * n);
  for (size_t round = 0; round < Rounds(bytes, most); ++round) {
    std::vector<int> sends, receives, at;
    for (size_t k = 0; k < n; ++k) {
      const Piece piece = PartInRound(sent[k], round, most);
      std::copy_n(send + send_at[k] + piece.begin, piece.count, to_send.data() + k * most);
      sends.push_back(static_cast<int>(piece.count));
      receives.push_back(static_cast<int>(PartInRound(received[k], round, most).count));
      at.push_back(static_cast<int>(k * most));
    }
    Request request = nullptr;
    const Code begun = mpi()->Alltoallv(comm_, to_send.data(), sends, at, to_receive.data(),
                                        receives, at, &request);
    if (Status s = Await("MPI_Ialltoallv", begun, request); !s.ok()) return s;
    for (size_t k = 0; k < n; ++k) {
      const Piece piece = PartInRound(received[k], round, most);
      std::copy_n(to_receive.data() + k * most, piece.count, recv + recv_at[k] + piece.begin);
    }
  }
  return {};
}

Status MpiCommunicator::Barrier() {
  if (Status s = world_->CheckUsable(); !s.ok()) return s;
  Request request = nullptr;
  const Code begun = mpi()->Barrier(comm_, &request);
  return Await("MPI_Ibarrier", begun, request);
}

// The host's communicator of these ranks uses no channel: those are given out to subsets that run
// on the host alone.
Status MpiCommunicator::Subset(std::span<const int> ranks, int,
                               std::unique_ptr<Communicator>* out) {
  std::unique_ptr<Communicator> host;
  if (Status s = host_->Subset(ranks, 0, &host); !s.ok()) return s;
  // Whoever has left this barrier knows that all ranks are there and about to make the call.
  if (Status s = host->Barrier(); !s.ok()) return s;
  Comm comm = nullptr;
  if (Status s = world_->Group(whole_, ranks, &comm); !s.ok()) return s;
  Communicator* const on = host.get();
  out->reset(new MpiCommunicator(world_, comm, on, whole_, std::move(host)));
  return {};
}

}  // namespace ringmaster::mpi
