#include "collectives/engine/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "collectives/element/element.h"
#include "collectives/engine/cpu_collectives.h"

namespace ringmaster::engine {
namespace {

void GiveOut(const Part& part, const Request& request, const std::byte* from,
             Operation* operation) {
  if (request.kind == Kind::kJoin) operation->last_joined = static_cast<int>(request.count);
  if (request.kind == Kind::kAllgather || HasOwnResults(request.kind)) {
    if (request.kind == Kind::kReducescatter) {
      const size_t count = part.bytes / element::Size(request.dtype);
      element::CopyScaled(from, part.data->data(), count, request.dtype, request.postscale);
    }
    operation->gathered = part.data;
    operation->gathered_rows = part.rows;
    operation->rows_by_rank = part.rows_by_rank;
  } else if (request.kind == Kind::kTransfer) {  // the sender has no `out`
    if (operation->out != nullptr) std::memcpy(operation->out, from, request.bytes());
  } else if (operation->pieces != nullptr) {
    Unpack(from, *operation->pieces, request.dtype, request.postscale);
  } else if (request.kind == Kind::kAllreduce || request.kind == Kind::kBroadcast) {
    const bool is_there = part.delivered && request.postscale == 1.0;
    if (is_there) return;
    element::CopyScaled(part.delivered ? static_cast<const std::byte*>(operation->out) : from,
                        operation->out, request.count, request.dtype, request.postscale);
  }
}

// Null for the end of a step, which the engine completes when it lets the user go on.
std::shared_ptr<Operation> TakeToComplete(const Request& request, PendingTable* pending,
                                          bool* all_found) {
  if (request.kind == Kind::kStepEnd) return nullptr;
  auto operation = pending->TakeAgreed(request);
  if (operation == nullptr) *all_found = false;
  return operation;
}

bool PublishError(const Response& response, PendingTable* pending) {
  bool all_found = true;
  for (const Request& request : response.requests) {
    const auto operation = pending->Take(request.key());
    if (operation == nullptr) {
      all_found = false;
    } else {
      operation->Complete({response.error, response.message});
    }
  }
  return all_found;
}

}  // namespace

bool AllShareMemory(const Communicator* host) {
  for (int rank = 0; rank < host->size(); ++rank) {
    if (std::string_view(host->PathTo(rank)) != "shm") return false;
  }
  return true;
}

bool CpuBackend::RunsAlone(const Request& request) const {
  // A tensor on a GPU comes here as a copy in the host's memory, and its result is copied back.
  if (!all_share_memory_ || request.on_gpu) return false;
  if (!request.pieces.empty()) return false;  // they lie apart, so they are packed
  // The first operation of a set in a view is packed: only then the set is given its channel.
  if (request.process_set != 0 && !ranks_.HasChannel(request.process_set)) return false;
  return request.kind == Kind::kAllreduce && request.op != RM_ADASUM &&
         request.bytes() >= direct_.bytes;
}

size_t CpuBackend::SegmentBytes() const {
  return on_->host->size() == 2 ? direct_.segment_of_two_ranks : direct_.segment;
}

void CpuBackend::RestoreInputs(const Retained& result, const PendingTable& pending) const {
  Batch rest = result.response.requests;
  for (size_t i = 0; i < result.parts.size(); ++i) {
    const Part& part = result.parts[i];
    if (part.input != nullptr) {
      std::memcpy(AskedFor(rest.front(), pending).out, part.input->data(), part.bytes);
    }
    rest = rest.subspan(result.response.batches[i]);
  }
}

void CpuBackend::Withdraw(Retained* result, const PendingTable& pending) {
  Batch rest = result->response.requests;
  for (size_t i = 0; i < result->parts.size(); ++i) {
    Part& part = result->parts[i];
    if (part.input != nullptr) {
      auto* out = static_cast<std::byte*>(AskedFor(rest.front(), pending).out);
      std::swap_ranges(out, out + part.bytes, part.input->data());
      part.data = std::move(part.input);
      part.delivered = false;
    }
    rest = rest.subspan(result->response.batches[i]);
  }
}

Status CpuBackend::Execute(const Response& response, const PendingTable& pending,
                           Retained* result) {
  *result = {response, {}};
  if (response.error != RM_OK) return {};
  if (Status s = ranks_.Choose(response, &on_); !s.ok()) return s;
  result->holds = on_ != nullptr;
  if (!result->holds) return {};
  const bool joined = pending.Find(kJoinName) != nullptr;
  for (const Request& request : response.requests) {
    if (!joined && pending.Find(request.key()) == nullptr) {
      return {RM_ERR_INTERNAL, "agreed on '" + request.name + "', which was not asked for here"};
    }
  }
  CpuCollectives collectives(*on_, pending, &pool_);
  Batch rest = response.requests;
  for (size_t i = 0; i < response.batches.size(); ++i) {
    Part* part = &result->parts.emplace_back();
    const Batch batch = rest.first(response.batches[i]);
    const bool direct = batch.size() == 1 && RunsAlone(batch.front());
    result->response.direct |= direct;
    if (Status s = direct ? collectives.DirectAllreduce(batch.front(), SegmentBytes(), part)
                          : collectives.Run(batch, response.roots[i], part);
        !s.ok()) {
      RestoreInputs(*result, pending);
      return s;
    }
    rest = rest.subspan(response.batches[i]);
  }
  return {};
}

Status CpuBackend::HandOver(int holder, const Retained* held, Retained* result) {
  Communicator* host = ranks_.world().host;
  for (size_t i = 0; i < result->parts.size(); ++i) {
    Part& part = result->parts[i];
    if (part.bytes == 0) {  // an allgather of no rows has a result, too
      part.data = Buffer::Make(0);
      continue;
    }
    // Ranks that hold the result already, or need nothing, take part, too, and drop what they get.
    part.data = host->rank() == holder ? held->parts[i].data : Buffer::Make(part.bytes);
    if (part.data == nullptr) return NoMemory(part.bytes);
    if (Status s = host->Broadcast(part.data->data(), part.bytes, holder); !s.ok()) return s;
  }
  return {};
}

bool CpuBackend::Publish(const Retained& result, PendingTable* pending) {
  if (result.response.error != RM_OK) return PublishError(result.response, pending);
  bool all_found = true;
  Batch rest = result.response.requests;
  for (size_t i = 0; i < result.parts.size(); ++i) {
    const Part& part = result.parts[i];
    const std::byte* from = part.data == nullptr ? nullptr : part.data->data();
    for (const Request& request : rest.first(result.response.batches[i])) {
      if (const auto operation = TakeToComplete(request, pending, &all_found)) {
        GiveOut(part, request, from, operation.get());
        operation->Complete({});
      }
      if (from != nullptr && request.kind == Kind::kAllreduce) from += request.bytes();
    }
    rest = rest.subspan(result.response.batches[i]);
  }
  return all_found;
}

}  // namespace ringmaster::engine
