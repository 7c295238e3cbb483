#include "collectives/engine/cpu_collectives.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "collectives/element/element.h"
#include "collectives/element/streaming_copy.h"
#include "collectives/engine/adasum.h"
#include "collectives/engine/pieces.h"

namespace ringmaster::engine {
namespace {

// The operation of a rank that has joined, and so has asked for nothing, or for something else.
const Operation& Nothing() {
  static const Operation* const nothing = new Operation(Request(), nullptr, nullptr);
  return *nothing;
}

bool IsAsked(const Operation& operation) { return &operation != &Nothing(); }

// Shares `rows` out evenly; if they don't divide evenly, the first ranks get one more.
std::vector<size_t> SharedEvenly(uint64_t rows, size_t ranks) {
  std::vector<size_t> shares(ranks, rows / ranks);
  for (size_t rank = 0; rank < rows % ranks; ++rank) ++shares[rank];
  return shares;
}

// Whether two ranges share bytes without being the same. Then a reduction from one into the other
// would overwrite input that it has yet to read.
bool OverlapPartly(const void* a, const void* b, uint64_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return first != second && first < second + bytes && second < first + bytes;
}

}  // namespace

const Operation& AskedFor(const Request& request, const PendingTable& pending) {
  const auto operation = pending.FindAgreed(request);
  return operation == nullptr ? Nothing() : *operation;
}

Status CpuCollectives::Run(Batch batch, int root, Part* part) {
  switch (batch.front().kind) {
    case Kind::kAllreduce:
      return Allreduce(batch, part);
    case Kind::kAllgather:
      return Allgather(batch.front(), part);
    case Kind::kBroadcast:
    case Kind::kTransfer:
      return Broadcast(batch.front(), root, part);
    case Kind::kReducescatter:
      return Reducescatter(batch.front(), part);
    case Kind::kAlltoall:
      return Alltoall(batch.front(), part);
    case Kind::kJoin:
    case Kind::kAddSet:
    case Kind::kRemoveSet:
    case Kind::kBarrier:
    case Kind::kStepEnd:
    case Kind::kShutdown:
      return {};  // there is nothing to do once all ranks have asked for it
  }
  return {};
}

// Until all ranks have the result, no rank may publish its `out` or lose its input, because the
// operation may have to run once more. So an input that is overwritten is saved, and the pipeline
// lets all ranks confirm the result (mode A of rule 14).
Status CpuCollectives::DirectAllreduce(const Request& request, uint64_t segment_bytes, Part* part) {
  const Operation& operation = AskedFor(request, pending_);
  const size_t element = element::Size(request.dtype);
  const auto* in = static_cast<const std::byte*>(operation.in);
  auto* out = static_cast<std::byte*>(operation.out);
  part->bytes = request.bytes();
  part->delivered = IsAsked(operation) && !OverlapPartly(in, out, part->bytes);
  if (!part->delivered) {
    part->data = pool_->Get(part->bytes);
    if (part->data == nullptr) return NoMemory(part->bytes);
    out = part->data->data();
  }
  const bool scales = request.prescale != 1.0;
  const bool saves = in == out && (on_.host->size() > 1 || scales);
  if (saves) part->input = pool_->Get(part->bytes);
  if (saves && part->input == nullptr) return NoMemory(part->bytes);

  const uint64_t segment = std::max<uint64_t>(1, segment_bytes / element);
  for (uint64_t begin = 0; begin < request.count; begin += segment) {
    const uint64_t count = std::min(segment, request.count - begin);
    std::byte* to = out + begin * element;
    const std::byte* from = in == nullptr ? to : in + begin * element;
    // A saved input is read again only if a call fails, so the copy bypasses the caches and leaves
    // the segment itself in them.
    if (saves) {
      element::StreamingCopy(part->input->data() + begin * element, from, count * element);
    }
    if (!IsAsked(operation)) {
      element::FillIdentity(to, count, request.dtype, request.op);
    } else if (scales) {
      element::CopyScaled(from, to, count, request.dtype, request.prescale);
      from = to;
    }
    if (Status s = on_.host->Allreduce(from, to, count, request.dtype, request.op); !s.ok()) {
      // Later segments are neither saved nor changed yet.
      if (saves) std::memcpy(out, part->input->data(), (begin + count) * element);
      part->input.reset();
      return s;
    }
  }
  return {};
}

Status CpuCollectives::Allreduce(Batch batch, Part* part) {
  const Request& first = batch.front();
  uint64_t count = 0;
  for (const Request& request : batch) count += request.count;
  part->bytes = count * element::Size(first.dtype);
  part->data = pool_->Get(part->bytes);
  if (part->data == nullptr) return NoMemory(part->bytes);
  if (count == 0) return {};

  if (first.op == RM_ADASUM) return Adasum(first, part);
  std::byte* to = part->data->data();
  const Operation& only = AskedFor(first, pending_);
  if (batch.size() == 1 && first.prescale == 1.0 && IsAsked(only) && only.pieces == nullptr) {
    return on_.host->Allreduce(only.in, to, count, first.dtype, first.op);
  }
  for (const Request& request : batch) {
    const Operation& operation = AskedFor(request, pending_);
    if (operation.pieces != nullptr) {
      Pack(*operation.pieces, to, request.dtype, request.prescale);
    } else if (IsAsked(operation)) {
      element::CopyScaled(operation.in, to, request.count, request.dtype, request.prescale);
    } else {
      element::FillIdentity(to, request.count, request.dtype, request.op);
    }
    to += request.bytes();
  }
  return on_.host->Allreduce(part->data->data(), part->data->data(), count, first.dtype, first.op);
}

// part->data holds this rank's scaled input first, and the result at the end.
Status CpuCollectives::Adasum(const Request& request, Part* part) {
  const Operation& operation = AskedFor(request, pending_);
  const size_t element = element::Size(request.dtype);
  const size_t size = static_cast<size_t>(on_.host->size());
  const size_t rank = static_cast<size_t>(on_.host->rank());
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
  const auto slices = pool_->Get(size * bytes[rank]);
  const auto slice = pool_->Get(bytes[rank]);
  if (slices == nullptr || slice == nullptr) return NoMemory(size * bytes[rank]);
  if (Status s = on_.host->Alltoallv(whole, slices->data(), matrix); !s.ok()) return s;

  std::vector<const void*> by_rank;
  for (size_t from = 0; from < size; ++from) by_rank.push_back(slices->data() + from * bytes[rank]);
  const auto parts = AdasumProducts(by_rank, counts[rank], request.dtype);
  std::vector<double> products(parts.size());
  if (Status s =
          on_.host->Allreduce(parts.data(), products.data(), parts.size(), RM_FLOAT64, RM_SUM);
      !s.ok()) {
    return s;
  }
  AddWeighted(by_rank, AdasumWeights(products, size), counts[rank], request.dtype, slice->data());
  return on_.host->Allgatherv(slice->data(), whole, bytes);
}

Status CpuCollectives::Allgather(const Request& request, Part* part) {
  const Operation& operation = AskedFor(request, pending_);
  const size_t size = on_.host->size();
  const uint64_t rows = operation.rows;
  std::vector<uint64_t> rows_by_rank(size);
  const std::vector<size_t> eight(size, sizeof(uint64_t));
  Status status = on_.host->Allgatherv(&rows, rows_by_rank.data(), eight);
  if (!status.ok()) return status;

  std::vector<size_t> bytes_by_rank;
  for (uint64_t r : rows_by_rank) bytes_by_rank.push_back(r * request.bytes());
  part->rows_by_rank.assign(rows_by_rank.begin(), rows_by_rank.end());
  part->rows = std::accumulate(rows_by_rank.begin(), rows_by_rank.end(), size_t{0});
  part->bytes = std::accumulate(bytes_by_rank.begin(), bytes_by_rank.end(), uint64_t{0});
  // Not from the pool, because the caller keeps it until rm_release.
  part->data = Buffer::Make(part->bytes);
  if (part->data == nullptr) return NoMemory(part->bytes);
  if (part->bytes == 0) return {};
  return on_.host->Allgatherv(operation.in, part->data->data(), bytes_by_rank);
}

Status CpuCollectives::Broadcast(const Request& request, int root, Part* part) {
  part->bytes = request.bytes();
  part->data = pool_->Get(part->bytes);
  if (part->data == nullptr) return NoMemory(part->bytes);
  if (part->bytes == 0) return {};
  if (on_.host->rank() == root) {
    std::memcpy(part->data->data(), AskedFor(request, pending_).in, part->bytes);
  }
  return on_.host->Broadcast(part->data->data(), part->bytes, root);
}

Status CpuCollectives::Reducescatter(const Request& request, Part* part) {
  const size_t rank = static_cast<size_t>(on_.host->rank());
  part->rows_by_rank = SharedEvenly(request.rows(), static_cast<size_t>(on_.host->size()));
  part->rows = part->rows_by_rank[rank];
  const uint64_t row_count = request.rows() == 0 ? 0 : request.count / request.rows();
  std::vector<size_t> counts;
  for (size_t rows : part->rows_by_rank) counts.push_back(rows * row_count);
  part->bytes = counts[rank] * element::Size(request.dtype);
  part->data = Buffer::Make(part->bytes);
  if (part->data == nullptr) return NoMemory(part->bytes);
  const Operation& operation = AskedFor(request, pending_);
  const void* in = operation.in;
  std::shared_ptr<Buffer> made;
  if (request.prescale != 1.0 || !IsAsked(operation)) {
    made = pool_->Get(request.bytes());
    if (made == nullptr) return NoMemory(request.bytes());
    in = made->data();
    if (IsAsked(operation)) {
      element::CopyScaled(operation.in, made->data(), request.count, request.dtype,
                          request.prescale);
    } else {
      element::FillIdentity(made->data(), request.count, request.dtype, request.op);
    }
  }
  return on_.host->ReduceScatter(in, part->data->data(), counts, request.dtype, request.op);
}

std::vector<uint64_t> CpuCollectives::RowsTo(const Operation& operation) const {
  std::vector<uint64_t> rows(on_.workers.size(), 0);
  const Operation::Splits& splits = operation.splits;
  for (size_t rank = 0; rank < on_.workers.size(); ++rank) {
    const auto found = std::find(splits.workers.begin(), splits.workers.end(), on_.workers[rank]);
    if (found != splits.workers.end()) rows[rank] = splits.rows[found - splits.workers.begin()];
  }
  return rows;
}

const std::byte* CpuCollectives::Packed(const Operation& operation,
                                        const std::vector<uint64_t>& rows,
                                        std::shared_ptr<Buffer>* packed) {
  const auto* in = static_cast<const std::byte*>(operation.in);
  const uint64_t sent = std::accumulate(rows.begin(), rows.end(), uint64_t{0});
  if (sent == operation.rows || in == nullptr) return in;  // nobody has died since it was asked for
  const uint64_t row_bytes = operation.request.bytes();
  *packed = pool_->Get(sent * row_bytes);
  if (*packed == nullptr) return nullptr;
  std::byte* to = (*packed)->data();
  const Operation::Splits& splits = operation.splits;
  for (size_t i = 0; i < splits.workers.size(); ++i) {
    const uint64_t bytes = splits.rows[i] * row_bytes;
    const bool alive =
        std::find(on_.workers.begin(), on_.workers.end(), splits.workers[i]) != on_.workers.end();
    if (alive && bytes > 0) to = std::copy_n(in, bytes, to);
    in += bytes;
  }
  return (*packed)->data();
}

Status CpuCollectives::Alltoall(const Request& request, Part* part) {
  const Operation& operation = AskedFor(request, pending_);
  const size_t size = static_cast<size_t>(on_.host->size());
  const size_t rank = static_cast<size_t>(on_.host->rank());
  const std::vector<uint64_t> rows = RowsTo(operation);
  std::vector<uint64_t> matrix(size * size);
  const std::vector<size_t> row(size, size * sizeof(uint64_t));
  if (Status s = on_.host->Allgatherv(rows.data(), matrix.data(), row); !s.ok()) return s;

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
  return on_.host->Alltoallv(send, part->data->data(), bytes);
}

}  // namespace ringmaster::engine
