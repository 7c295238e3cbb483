#include "collectives/nccl/nccl_operations.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collectives/element/element.h"

namespace ringmaster::nccl {

using engine::Buffer;
using engine::Kind;
using engine::Operation;
using engine::Part;
using engine::PendingTable;
using engine::Request;

namespace {

// How many rows each rank gets. If they can't be shared evenly, the first ranks get one more.
std::vector<size_t> SharedEvenly(uint64_t rows, size_t ranks) {
  std::vector<size_t> shares(ranks, rows / ranks);
  for (size_t rank = 0; rank < rows % ranks; ++rank) ++shares[rank];
  return shares;
}

bool AllSame(const std::vector<size_t>& values) {
  return std::all_of(values.begin(), values.end(), [&](size_t v) { return v == values.front(); });
}

// What NCCL loads and stores at a time.
constexpr uint64_t kWidest = 16;

// Combines the results of two calls: the first failure wins.
Result First(Result first, Result second) {
  return first == Result::kSuccess || first == Result::kInProgress ? second : first;
}

// NCCL's operations that multiply by a factor. They exist as long as calls with them are being
// made.
class ScaledOps {
 public:
  explicit ScaledOps(NcclLink* link) : link_(link) {}
  ~ScaledOps() {
    for (RedOp op : made_) (void)link_->api()->RedOpDestroy(op, link_->comm());
  }
  Status Get(const NcclReduction& reduction, rm_dtype dtype, RedOp* op) {
    *op = reduction.op;
    if (reduction.factor == 1) return {};
    std::vector<char> scalar = ScalarOf(reduction.factor, dtype);
    const Result result =
        link_->api()->RedOpCreatePreMulSum(op, scalar.data(), reduction.type, link_->comm());
    if (result == Result::kSuccess) made_.push_back(*op);
    return StatusOf(link_->api(), result, link_->comm(), "a sum with a factor");
  }

 private:
  NcclLink* const link_;
  std::vector<RedOp> made_;
};

}  // namespace

uint64_t SpaceOf(const Request& request) {
  return (request.bytes() + kWidest - 1) / kWidest * kWidest;
}

uint64_t BytesOf(Batch batch) {
  uint64_t bytes = batch.back().bytes();
  for (const Request& request : batch.first(batch.size() - 1)) bytes += SpaceOf(request);
  return bytes;
}

Status NcclOperations::InputOf(const Request& request, const PendingTable& pending,
                               const void** in) {
  if (const auto operation = pending.FindAgreed(request)) {
    *in = operation->in;
    return {};
  }
  *in = nullptr;
  if (request.bytes() == 0) return {};
  const auto nothing = Buffer::Make(request.bytes());
  const auto on_device = buffers_->Take(request.bytes());
  if (nothing == nullptr || on_device == nullptr) return NoMemory(request.bytes(), "for a join");
  buffers_->Hold(nothing);
  element::FillIdentity(nothing->data(), request.count, request.dtype, request.op);
  *in = on_device->data();
  return stream_->Copy(on_device->data(), nothing->data(), request.bytes());
}

Status NcclOperations::CallsFor(const Request& request, const PendingTable& pending,
                                uint64_t offset, std::vector<Call>* calls) {
  const void* in = nullptr;
  if (Status s = InputOf(request, pending, &in); !s.ok()) return s;
  if (request.pieces.empty()) {
    calls->push_back({in, offset, request.count});
    return {};
  }
  const auto operation = pending.FindAgreed(request);
  const auto* at = static_cast<const std::byte*>(in);  // of a rank that has joined
  const std::vector<uint64_t> counts = engine::CountsOfPieces(request.pieces);
  // The calls may not go beyond the buffer, whatever a rank with a defect has said.
  if (std::accumulate(counts.begin(), counts.end(), uint64_t{0}) != request.count)
    return {RM_ERR_INTERNAL, "the tensors of '" + request.name + "' are not its elements"};
  for (size_t i = 0; i < counts.size(); ++i) {
    calls->push_back({operation == nullptr ? at : (*operation->pieces)[i].in, offset, counts[i]});
    const uint64_t bytes = counts[i] * element::Size(request.dtype);
    if (at != nullptr) at += bytes;
    offset += bytes;
  }
  return {};
}

Status NcclOperations::Launch(NcclLink* link, const std::string& what,
                              const std::function<Result()>& calls) {
  link->CountLaunch();
  Result result = nccl_->GroupStart();
  if (result == Result::kSuccess) result = calls();
  result = First(result, nccl_->GroupEnd());
  return link->Settle(result, what, Patience(limits_.connect, over_));
}

Status NcclOperations::Enqueue(const Work& work, NcclLink* link,
                               const std::vector<NcclReduction>& reductions) {
  switch (work.batch.front().kind) {
    case Kind::kAllreduce:
      return Allreduce(work, link, reductions);
    case Kind::kReducescatter:
      return Reducescatter(work, link, reductions.front());
    case Kind::kAllgather:
      return Allgather(work, link);
    case Kind::kBroadcast:
      return Broadcast(work, link);
    case Kind::kAlltoall:
      return Alltoall(work, link);
    default:
      return {RM_ERR_INTERNAL, "no tensors belong to this kind of operation"};
  }
}

// Makes one call for each tensor, from where it lies to the result's buffer, and launches all as
// one: so nothing has to be packed.
Status NcclOperations::Allreduce(const Work& work, NcclLink* link,
                                 const std::vector<NcclReduction>& reductions) {
  const uint64_t bytes = BytesOf(work.batch);
  if (Status s = buffers_->TakeFor(work.part, bytes); !s.ok()) return s;
  if (bytes == 0) return {};
  ScaledOps ops(link);
  std::vector<std::vector<Call>> calls(work.batch.size());
  std::vector<RedOp> op(work.batch.size());
  uint64_t offset = 0;
  for (size_t i = 0; i < work.batch.size(); ++i) {
    if (Status s = CallsFor(work.batch[i], work.pending, offset, &calls[i]); !s.ok()) return s;
    if (Status s = ops.Get(reductions[i], work.batch[i].dtype, &op[i]); !s.ok()) return s;
    offset += SpaceOf(work.batch[i]);
  }
  return Launch(link, "an allreduce", [&] {
    Result result = Result::kSuccess;
    for (size_t i = 0; i < work.batch.size(); ++i) {
      for (const Call& call : calls[i]) {
        if (call.count == 0) continue;
        result = First(result,
                       nccl_->AllReduce(call.in, work.part->data->data() + call.offset, call.count,
                                        reductions[i].type, op[i], link->comm(), stream_->get()));
      }
    }
    return result;
  });
}

Status NcclOperations::Reducescatter(const Work& work, NcclLink* link,
                                     const NcclReduction& reduction) {
  const Request& request = work.batch.front();
  const size_t size = static_cast<size_t>(link->size()), own = static_cast<size_t>(link->rank());
  Part* const part = work.part;
  part->rows_by_rank = SharedEvenly(request.rows(), size);
  part->rows = part->rows_by_rank[own];
  const uint64_t row = request.rows() == 0 ? 0 : request.count / request.rows();
  const size_t element = element::Size(request.dtype);
  if (Status s = buffers_->TakeFor(part, part->rows * row * element); !s.ok()) return s;
  if (request.count == 0) return {};
  ScaledOps ops(link);
  RedOp op;
  const void* in = nullptr;
  if (Status s = ops.Get(reduction, request.dtype, &op); !s.ok()) return s;
  if (Status s = InputOf(request, work.pending, &in); !s.ok()) return s;
  return Launch(link, "a reducescatter", [&] {
    if (AllSame(part->rows_by_rank)) {
      return nccl_->ReduceScatter(in, part->data->data(), part->rows * row, reduction.type, op,
                                  link->comm(), stream_->get());
    }
    Result result = Result::kSuccess;
    auto* from = static_cast<const std::byte*>(in);
    for (size_t rank = 0; rank < size; ++rank) {
      const size_t count = part->rows_by_rank[rank] * row;
      if (count == 0) continue;
      result = First(result, nccl_->Reduce(from, rank == own ? part->data->data() : nullptr, count,
                                           reduction.type, op, static_cast<int>(rank), link->comm(),
                                           stream_->get()));
      from += count * element;
    }
    return result;
  });
}

Status NcclOperations::Allgather(const Work& work, NcclLink* link) {
  const Request& request = work.batch.front();
  const auto operation = work.pending.FindAgreed(request);
  const size_t size = static_cast<size_t>(link->size()), own = static_cast<size_t>(link->rank());
  const uint64_t rows = operation == nullptr ? 0 : operation->rows;
  std::vector<uint64_t> rows_by_rank(size);
  const std::vector<size_t> eight(size, sizeof(uint64_t));
  if (Status s = work.on.host->Allgatherv(&rows, rows_by_rank.data(), eight); !s.ok()) return s;
  Part* const part = work.part;
  part->rows_by_rank.assign(rows_by_rank.begin(), rows_by_rank.end());
  part->rows = std::accumulate(rows_by_rank.begin(), rows_by_rank.end(), size_t{0});
  if (Status s = buffers_->TakeFor(part, part->rows * request.bytes()); !s.ok()) return s;
  if (part->bytes == 0) return {};
  const void* in = operation == nullptr ? nullptr : operation->in;
  return Launch(link, "an allgather", [&] {
    if (AllSame(part->rows_by_rank)) {
      return nccl_->AllGather(in, part->data->data(), rows * request.bytes(), DataType::kUint8,
                              link->comm(), stream_->get());
    }
    Result result = Result::kSuccess;
    std::byte* to = part->data->data();
    for (size_t rank = 0; rank < size; ++rank) {
      const size_t bytes = part->rows_by_rank[rank] * request.bytes();
      if (bytes == 0) continue;
      result =
          First(result, nccl_->Broadcast(rank == own ? in : to, to, bytes, DataType::kUint8,
                                         static_cast<int>(rank), link->comm(), stream_->get()));
      to += bytes;
    }
    return result;
  });
}

Status NcclOperations::Broadcast(const Work& work, NcclLink* link) {
  const Request& request = work.batch.front();
  if (Status s = buffers_->TakeFor(work.part, request.bytes()); !s.ok()) return s;
  if (work.part->bytes == 0) return {};
  void* const to = work.part->data->data();
  const auto operation = work.pending.FindAgreed(request);
  const bool sends = link->rank() == work.root && operation != nullptr;
  return Launch(link, "a broadcast", [&] {
    return nccl_->Broadcast(sends ? operation->in : to, to, work.part->bytes, DataType::kUint8,
                            work.root, link->comm(), stream_->get());
  });
}

// Rows for workers that have died since the operation was asked for are not sent.
Status NcclOperations::Alltoall(const Work& work, NcclLink* link) {
  const Request& request = work.batch.front();
  const auto operation = work.pending.FindAgreed(request);
  const size_t size = static_cast<size_t>(link->size()), own = static_cast<size_t>(link->rank());
  std::vector<uint64_t> rows(size, 0);
  std::vector<const std::byte*> from(size, nullptr);
  if (operation != nullptr) {
    const auto* at = static_cast<const std::byte*>(operation->in);
    const Operation::Splits& splits = operation->splits;
    for (size_t i = 0; i < splits.workers.size(); ++i) {
      const auto found =
          std::find(work.on.workers.begin(), work.on.workers.end(), splits.workers[i]);
      if (found != work.on.workers.end()) {
        rows[found - work.on.workers.begin()] = splits.rows[i];
        from[found - work.on.workers.begin()] = at;
      }
      at += splits.rows[i] * request.bytes();
    }
  }
  std::vector<uint64_t> matrix(size * size);
  const std::vector<size_t> row(size, size * sizeof(uint64_t));
  if (Status s = work.on.host->Allgatherv(rows.data(), matrix.data(), row); !s.ok()) return s;
  Part* const part = work.part;
  for (size_t rank = 0; rank < size; ++rank) {
    part->rows_by_rank.push_back(matrix[rank * size + own]);
    part->rows += part->rows_by_rank.back();
  }
  if (Status s = buffers_->TakeFor(part, part->rows * request.bytes()); !s.ok()) return s;
  return Launch(link, "an alltoall", [&] {
    Result result = Result::kSuccess;
    std::byte* to = part->data->data();
    for (size_t rank = 0; rank < size; ++rank) {
      const int peer = static_cast<int>(rank);
      const size_t sent = rows[rank] * request.bytes();
      const size_t received = part->rows_by_rank[rank] * request.bytes();
      if (sent > 0) {
        result = First(result, nccl_->Send(from[rank], sent, DataType::kUint8, peer, link->comm(),
                                           stream_->get()));
      }
      if (received > 0) {
        result = First(result, nccl_->Recv(to, received, DataType::kUint8, peer, link->comm(),
                                           stream_->get()));
      }
      to += received;
    }
    return result;
  });
}

}  // namespace ringmaster::nccl
