#include "collectives/engine/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>

#include "collectives/element/element.h"
#include "collectives/engine/adasum.h"

namespace ringmaster::engine {
namespace {

Status NoMemory(uint64_t bytes) {
  return {RM_ERR_OUT_OF_MEMORY, "no memory for a buffer of " + std::to_string(bytes) + " bytes"};
}

// What a rank gives that has joined and so has asked for nothing.
const Operation& Nothing() {
  static const Operation* const nothing = new Operation(Request(), nullptr, nullptr);
  return *nothing;
}

const Operation& AskedFor(const Request& request, const PendingTable& pending) {
  const auto operation = pending.Find(request.key());
  return operation == nullptr ? Nothing() : *operation;
}

bool IsAsked(const Operation& operation) { return &operation != &Nothing(); }

// Of `rows` the first ranks get one more where they can't be shared evenly.
std::vector<size_t> SharedEvenly(uint64_t rows, size_t ranks) {
  std::vector<size_t> shares(ranks, rows / ranks);
  for (size_t rank = 0; rank < rows % ranks; ++rank) ++shares[rank];
  return shares;
}

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
  } else if (request.kind == Kind::kAllreduce || request.kind == Kind::kBroadcast) {
    const bool is_there = part.delivered && request.postscale == 1.0;
    if (is_there) return;
    element::CopyScaled(part.delivered ? static_cast<const std::byte*>(operation->out) : from,
                        operation->out, request.count, request.dtype, request.postscale);
  }
}

// Ranges that share bytes and are not the same: not even one call may reduce the one into the
// other.
bool OverlapPartly(const void* a, const void* b, uint64_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return first != second && first < second + bytes && second < first + bytes;
}

// The end of a step is completed by the engine, when it lets the user go on.
std::shared_ptr<Operation> TakeToComplete(const Request& request, PendingTable* pending,
                                          bool* all_found) {
  if (request.kind == Kind::kStepEnd) return nullptr;
  auto operation = pending->Take(request.key());
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

bool CpuBackend::RunsDirect(Batch batch) const {
  const Request& request = batch.front();
  // Of a tensor on a GPU this is a copy, and its result goes back there.
  return all_share_memory_ && batch.size() == 1 && request.kind == Kind::kAllreduce &&
         !request.on_gpu && request.process_set == 0 && request.op != RM_ADASUM &&
         request.bytes() >= direct_.bytes;
}

// No rank may see its `out` as complete, nor lose its input, before all have the result: so an
// input that is written over is saved, and the pipeline lets all confirm (mode A of rule 14).
Status CpuBackend::DirectAllreduce(const Request& request, const PendingTable& pending,
                                   Part* part) {
  const Operation& operation = AskedFor(request, pending);
  const size_t element = element::Size(request.dtype);
  const auto* in = static_cast<const std::byte*>(operation.in);
  auto* out = static_cast<std::byte*>(operation.out);
  part->bytes = request.bytes();
  part->delivered = IsAsked(operation) && !OverlapPartly(in, out, part->bytes);
  if (!part->delivered) {
    part->data = pool_.Get(part->bytes);
    if (part->data == nullptr) return NoMemory(part->bytes);
    out = part->data->data();
  }
  const bool scales = request.prescale != 1.0;
  const bool saves = in == out && (on_->host->size() > 1 || scales);
  if (saves) part->input = pool_.Get(part->bytes);
  if (saves && part->input == nullptr) return NoMemory(part->bytes);

  const uint64_t piece = std::max<uint64_t>(1, direct_.piece / element);
  for (uint64_t begin = 0; begin < request.count; begin += piece) {
    const uint64_t count = std::min(piece, request.count - begin);
    std::byte* to = out + begin * element;
    const std::byte* from = in == nullptr ? to : in + begin * element;
    if (saves) std::memcpy(part->input->data() + begin * element, from, count * element);
    if (!IsAsked(operation)) {
      element::FillIdentity(to, count, request.dtype, request.op);
    } else if (scales) {
      element::CopyScaled(from, to, count, request.dtype, request.prescale);
      from = to;
    }
    if (Status s = on_->host->Allreduce(from, to, count, request.dtype, request.op); !s.ok()) {
      // Of the pieces that follow nothing is saved yet, and nothing has changed.
      if (saves) std::memcpy(out, part->input->data(), (begin + count) * element);
      part->input.reset();
      return s;
    }
  }
  return {};
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

Status CpuBackend::Allreduce(Batch batch, const PendingTable& pending, Part* part) {
  const Request& first = batch.front();
  uint64_t count = 0;
  for (const Request& request : batch) count += request.count;
  part->bytes = count * element::Size(first.dtype);
  part->data = pool_.Get(part->bytes);
  if (part->data == nullptr) return NoMemory(part->bytes);
  if (count == 0) return {};

  if (first.op == RM_ADASUM) return Adasum(first, pending, part);
  std::byte* to = part->data->data();
  if (batch.size() == 1 && first.prescale == 1.0 && IsAsked(AskedFor(first, pending))) {
    return on_->host->Allreduce(AskedFor(first, pending).in, to, count, first.dtype, first.op);
  }
  for (const Request& request : batch) {
    const Operation& operation = AskedFor(request, pending);
    if (IsAsked(operation)) {
      element::CopyScaled(operation.in, to, request.count, request.dtype, request.prescale);
    } else {
      element::FillIdentity(to, request.count, request.dtype, request.op);
    }
    to += request.bytes();
  }
  return on_->host->Allreduce(part->data->data(), part->data->data(), count, first.dtype, first.op);
}

// Of the result's buffer the front holds this rank's input first.
Status CpuBackend::Adasum(const Request& request, const PendingTable& pending, Part* part) {
  const Operation& operation = AskedFor(request, pending);
  const size_t element = element::Size(request.dtype);
  const size_t size = static_cast<size_t>(on_->host->size());
  const size_t rank = static_cast<size_t>(on_->host->rank());
  std::byte* whole = part->data->data();
  if (IsAsked(operation)) {
    element::CopyScaled(operation.in, whole, request.count, request.dtype, request.prescale);
  } else {
    element::FillIdentity(whole, request.count, request.dtype, request.op);
  }

  const std::vector<size_t> counts = SharedEvenly(request.count, size);
  std::vector<size_t> bytes, matrix;
  for (size_t count : counts) bytes.push_back(count * element);
  for (size_t from = 0; from < size; ++from)
    matrix.insert(matrix.end(), bytes.begin(), bytes.end());
  const auto slices = pool_.Get(size * bytes[rank]);
  const auto slice = pool_.Get(bytes[rank]);
  if (slices == nullptr || slice == nullptr) return NoMemory(size * bytes[rank]);
  if (Status s = on_->host->Alltoallv(whole, slices->data(), matrix); !s.ok()) return s;

  std::vector<const void*> by_rank;
  for (size_t from = 0; from < size; ++from) by_rank.push_back(slices->data() + from * bytes[rank]);
  const auto parts = AdasumProducts(by_rank, counts[rank], request.dtype);
  std::vector<double> products(parts.size());
  if (Status s =
          on_->host->Allreduce(parts.data(), products.data(), parts.size(), RM_FLOAT64, RM_SUM);
      !s.ok()) {
    return s;
  }
  AddWeighted(by_rank, AdasumWeights(products, size), counts[rank], request.dtype, slice->data());
  return on_->host->Allgatherv(slice->data(), whole, bytes);
}

Status CpuBackend::Allgather(const Request& request, const PendingTable& pending, Part* part) {
  const Operation& operation = AskedFor(request, pending);
  const size_t size = on_->host->size();
  const uint64_t rows = operation.rows;
  std::vector<uint64_t> rows_by_rank(size);
  const std::vector<size_t> eight(size, sizeof(uint64_t));
  Status status = on_->host->Allgatherv(&rows, rows_by_rank.data(), eight);
  if (!status.ok()) return status;

  std::vector<size_t> bytes_by_rank;
  for (uint64_t r : rows_by_rank) bytes_by_rank.push_back(r * request.bytes());
  part->rows_by_rank.assign(rows_by_rank.begin(), rows_by_rank.end());
  part->rows = std::accumulate(rows_by_rank.begin(), rows_by_rank.end(), size_t{0});
  part->bytes = std::accumulate(bytes_by_rank.begin(), bytes_by_rank.end(), uint64_t{0});
  // Not from the pool: the caller keeps it until rm_release.
  part->data = Buffer::Make(part->bytes);
  if (part->data == nullptr) return NoMemory(part->bytes);
  if (part->bytes == 0) return {};
  return on_->host->Allgatherv(operation.in, part->data->data(), bytes_by_rank);
}

Status CpuBackend::Broadcast(const Request& request, int root, const PendingTable& pending,
                             Part* part) {
  part->bytes = request.bytes();
  part->data = pool_.Get(part->bytes);
  if (part->data == nullptr) return NoMemory(part->bytes);
  if (part->bytes == 0) return {};
  if (on_->host->rank() == root) {
    std::memcpy(part->data->data(), AskedFor(request, pending).in, part->bytes);
  }
  return on_->host->Broadcast(part->data->data(), part->bytes, root);
}

Status CpuBackend::Reducescatter(const Request& request, const PendingTable& pending, Part* part) {
  const size_t rank = static_cast<size_t>(on_->host->rank());
  part->rows_by_rank = SharedEvenly(request.rows(), static_cast<size_t>(on_->host->size()));
  part->rows = part->rows_by_rank[rank];
  const uint64_t row_count = request.rows() == 0 ? 0 : request.count / request.rows();
  std::vector<size_t> counts;
  for (size_t rows : part->rows_by_rank) counts.push_back(rows * row_count);
  part->bytes = counts[rank] * element::Size(request.dtype);
  part->data = Buffer::Make(part->bytes);
  if (part->data == nullptr) return NoMemory(part->bytes);
  const Operation& operation = AskedFor(request, pending);
  const void* in = operation.in;
  std::shared_ptr<Buffer> made;
  if (request.prescale != 1.0 || !IsAsked(operation)) {
    made = pool_.Get(request.bytes());
    if (made == nullptr) return NoMemory(request.bytes());
    in = made->data();
    if (IsAsked(operation)) {
      element::CopyScaled(operation.in, made->data(), request.count, request.dtype,
                          request.prescale);
    } else {
      element::FillIdentity(made->data(), request.count, request.dtype, request.op);
    }
  }
  return on_->host->ReduceScatter(in, part->data->data(), counts, request.dtype, request.op);
}

std::vector<uint64_t> CpuBackend::RowsTo(const Operation& operation) const {
  std::vector<uint64_t> rows(on_->workers.size(), 0);
  const Operation::Splits& splits = operation.splits;
  for (size_t rank = 0; rank < on_->workers.size(); ++rank) {
    const auto found = std::find(splits.workers.begin(), splits.workers.end(), on_->workers[rank]);
    if (found != splits.workers.end()) rows[rank] = splits.rows[found - splits.workers.begin()];
  }
  return rows;
}

const std::byte* CpuBackend::Packed(const Operation& operation, const std::vector<uint64_t>& rows,
                                    std::shared_ptr<Buffer>* packed) {
  const auto* in = static_cast<const std::byte*>(operation.in);
  const uint64_t sent = std::accumulate(rows.begin(), rows.end(), uint64_t{0});
  if (sent == operation.rows || in == nullptr) return in;  // nobody has died since it was asked for
  const uint64_t row_bytes = operation.request.bytes();
  *packed = pool_.Get(sent * row_bytes);
  if (*packed == nullptr) return nullptr;
  std::byte* to = (*packed)->data();
  const Operation::Splits& splits = operation.splits;
  for (size_t i = 0; i < splits.workers.size(); ++i) {
    const uint64_t bytes = splits.rows[i] * row_bytes;
    const bool alive = std::find(on_->workers.begin(), on_->workers.end(), splits.workers[i]) !=
                       on_->workers.end();
    if (alive && bytes > 0) to = std::copy_n(in, bytes, to);
    in += bytes;
  }
  return (*packed)->data();
}

Status CpuBackend::Alltoall(const Request& request, const PendingTable& pending, Part* part) {
  const Operation& operation = AskedFor(request, pending);
  const size_t size = static_cast<size_t>(on_->host->size());
  const size_t rank = static_cast<size_t>(on_->host->rank());
  const std::vector<uint64_t> rows = RowsTo(operation);
  std::vector<uint64_t> matrix(size * size);
  const std::vector<size_t> row(size, size * sizeof(uint64_t));
  if (Status s = on_->host->Allgatherv(rows.data(), matrix.data(), row); !s.ok()) return s;

  std::vector<size_t> bytes;
  for (uint64_t r : matrix) bytes.push_back(r * request.bytes());
  for (size_t from = 0; from < size; ++from) {
    part->rows_by_rank.push_back(matrix[from * size + rank]);
    part->rows += part->rows_by_rank.back();
  }
  part->bytes = part->rows * request.bytes();
  part->data = Buffer::Make(part->bytes);
  if (part->data == nullptr) return NoMemory(part->bytes);
  std::shared_ptr<Buffer> packed;
  const std::byte* send = Packed(operation, rows, &packed);
  if (send == nullptr && operation.in != nullptr) return NoMemory(operation.rows);
  return on_->host->Alltoallv(send, part->data->data(), bytes);
}

Status CpuBackend::Run(Batch batch, int root, const PendingTable& pending, Part* part) {
  switch (batch.front().kind) {
    case Kind::kAllreduce:
      if (RunsDirect(batch)) return DirectAllreduce(batch.front(), pending, part);
      return Allreduce(batch, pending, part);
    case Kind::kAllgather:
      return Allgather(batch.front(), pending, part);
    case Kind::kBroadcast:
      return Broadcast(batch.front(), root, pending, part);
    case Kind::kReducescatter:
      return Reducescatter(batch.front(), pending, part);
    case Kind::kAlltoall:
      return Alltoall(batch.front(), pending, part);
    case Kind::kJoin:
    case Kind::kAddSet:
    case Kind::kRemoveSet:
    case Kind::kBarrier:
    case Kind::kStepEnd:
    case Kind::kShutdown:
      return {};  // that all ranks have asked for it is all there is to it
  }
  return {};
}

Status CpuBackend::Choose(const Response& response) {
  on_ = &world_;
  if (response.process_set() == 0) return {};
  on_ = nullptr;
  const std::vector<int>& ranks = response.ranks;
  if (std::find(ranks.begin(), ranks.end(), host_->rank()) == ranks.end()) return {};
  const auto [set, is_new] = sets_.try_emplace(response.process_set());
  if (is_new) {
    if (Status s = host_->Subset(ranks, &set->second.own); !s.ok()) {
      sets_.erase(set);
      return s;
    }
    set->second.host = set->second.own.get();
    for (int rank : ranks) set->second.workers.push_back(world_.workers[rank]);
  }
  on_ = &set->second;
  return {};
}

Status CpuBackend::Execute(const Response& response, const PendingTable& pending,
                           Retained* result) {
  *result = {response, {}};
  if (response.error != RM_OK) return {};
  if (Status s = Choose(response); !s.ok()) return s;
  result->holds = on_ != nullptr;
  if (!result->holds) return {};
  const bool joined = pending.Find(kJoinName) != nullptr;
  for (const Request& request : response.requests) {
    if (!joined && pending.Find(request.key()) == nullptr) {
      return {RM_ERR_INTERNAL, "agreed on '" + request.name + "', which was not asked for here"};
    }
  }
  Batch rest = response.requests;
  for (size_t i = 0; i < response.batches.size(); ++i) {
    result->parts.emplace_back();
    const Batch batch = rest.first(response.batches[i]);
    result->response.direct |= RunsDirect(batch);
    if (Status s = Run(batch, response.roots[i], pending, &result->parts.back()); !s.ok()) {
      RestoreInputs(*result, pending);
      return s;
    }
    rest = rest.subspan(response.batches[i]);
  }
  return {};
}

Status CpuBackend::HandOver(int holder, const Retained* held, Retained* result) {
  for (size_t i = 0; i < result->parts.size(); ++i) {
    Part& part = result->parts[i];
    if (part.bytes == 0) {  // an allgather of no rows has a result, too
      part.data = Buffer::Make(0);
      continue;
    }
    // Also those that hold it, or need nothing, take part; what they receive is dropped.
    part.data = host_->rank() == holder ? held->parts[i].data : Buffer::Make(part.bytes);
    if (part.data == nullptr) return NoMemory(part.bytes);
    if (Status s = host_->Broadcast(part.data->data(), part.bytes, holder); !s.ok()) return s;
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
