#include "collectives/engine/cpu_backend.h"

#include <cstring>
#include <numeric>

#include "collectives/element/element.h"

namespace ringmaster::engine {
namespace {

Status NoMemory(uint64_t bytes) {
  return {RM_ERR_UNAVAILABLE, "no memory for a buffer of " + std::to_string(bytes) + " bytes"};
}

void GiveOut(const Retained& result, const Request& request, const std::byte* from,
             Operation* operation) {
  if (request.kind == Kind::kAllgather) {
    operation->gathered = result.data;
    operation->rows_by_rank = result.rows_by_rank;
  } else if (request.kind == Kind::kAllreduce || request.kind == Kind::kBroadcast) {
    element::CopyScaled(from, operation->out, request.count, request.dtype, request.postscale);
  }
}

}  // namespace

Status CpuBackend::Allreduce(const Response& response, const PendingTable& pending,
                             Retained* result) {
  const Request& first = response.requests.front();
  uint64_t count = 0;
  for (const Request& request : response.requests) count += request.count;
  result->bytes = count * element::Size(first.dtype);
  result->data = pool_.Get(result->bytes);
  if (result->data == nullptr) return NoMemory(result->bytes);
  if (count == 0) return {};

  std::byte* to = result->data->data();
  if (response.requests.size() == 1 && first.prescale == 1.0) {
    return host_->Allreduce(pending.Find(first.name)->in, to, count, first.dtype, first.op);
  }
  for (const Request& request : response.requests) {
    element::CopyScaled(pending.Find(request.name)->in, to, request.count, request.dtype,
                        request.prescale);
    to += request.bytes();
  }
  return host_->Allreduce(result->data->data(), result->data->data(), count, first.dtype, first.op);
}

Status CpuBackend::Allgather(const Response& response, const PendingTable& pending,
                             Retained* result) {
  const Request& request = response.requests.front();
  const auto operation = pending.Find(request.name);
  const size_t size = host_->size();
  const uint64_t rows = operation->rows;
  std::vector<uint64_t> rows_by_rank(size);
  const std::vector<size_t> eight(size, sizeof(uint64_t));
  Status status = host_->Allgatherv(&rows, rows_by_rank.data(), eight);
  if (!status.ok()) return status;

  std::vector<size_t> bytes_by_rank;
  for (uint64_t r : rows_by_rank) bytes_by_rank.push_back(r * request.bytes());
  result->rows_by_rank.assign(rows_by_rank.begin(), rows_by_rank.end());
  result->bytes = std::accumulate(bytes_by_rank.begin(), bytes_by_rank.end(), uint64_t{0});
  // Not from the pool: the caller keeps it until rm_release.
  result->data = Buffer::Make(result->bytes);
  if (result->data == nullptr) return NoMemory(result->bytes);
  if (result->bytes == 0) return {};
  return host_->Allgatherv(operation->in, result->data->data(), bytes_by_rank);
}

Status CpuBackend::Broadcast(const Response& response, const PendingTable& pending,
                             Retained* result) {
  const Request& request = response.requests.front();
  result->bytes = request.bytes();
  result->data = pool_.Get(result->bytes);
  if (result->data == nullptr) return NoMemory(result->bytes);
  if (result->bytes == 0) return {};
  if (host_->rank() == request.root) {
    std::memcpy(result->data->data(), pending.Find(request.name)->in, result->bytes);
  }
  return host_->Broadcast(result->data->data(), result->bytes, request.root);
}

Status CpuBackend::Execute(const Response& response, const PendingTable& pending,
                           Retained* result) {
  *result = {response, nullptr, 0, {}};
  if (response.error != RM_OK) return {};
  for (const Request& request : response.requests) {
    if (pending.Find(request.name) == nullptr) {
      return {RM_ERR_INTERNAL, "agreed on '" + request.name + "', which was not asked for here"};
    }
  }
  switch (response.kind()) {
    case Kind::kAllreduce:
      return Allreduce(response, pending, result);
    case Kind::kAllgather:
      return Allgather(response, pending, result);
    case Kind::kBroadcast:
      return Broadcast(response, pending, result);
    case Kind::kBarrier:
    case Kind::kStepEnd:
    case Kind::kShutdown:
      return {};  // that all ranks have asked for it is all there is to it
  }
  return {};
}

Status CpuBackend::HandOver(int holder, std::shared_ptr<Buffer> held, Retained* result) {
  if (result->bytes == 0) return {};
  // Also those that hold it, or need nothing, take part; what they receive is dropped.
  result->data = host_->rank() == holder ? std::move(held) : Buffer::Make(result->bytes);
  if (result->data == nullptr) {
    return {RM_ERR_UNAVAILABLE, "no memory for a result that is handed over"};
  }
  return host_->Broadcast(result->data->data(), result->bytes, holder);
}

bool CpuBackend::Publish(const Retained& result, PendingTable* pending) {
  bool all_found = true;
  const std::byte* from = result.data == nullptr ? nullptr : result.data->data();
  for (const Request& request : result.response.requests) {
    if (request.kind != Kind::kStepEnd || result.response.error != RM_OK) {
      const auto operation = pending->Take(request.name);
      if (operation == nullptr) {
        all_found = false;
      } else if (result.response.error != RM_OK) {
        operation->Complete({result.response.error, result.response.message});
      } else {
        GiveOut(result, request, from, operation.get());
        operation->Complete({});
      }
    }
    if (from != nullptr && request.kind != Kind::kAllgather) from += request.bytes();
  }
  return all_found;
}

}  // namespace ringmaster::engine
