#include "collectives/nccl/nccl_backend.h"

#include <algorithm>
#include <cstdio>
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
using engine::Response;
using engine::Retained;

namespace {

// A network that fails now and then is worth another view; one that never works isn't.
constexpr int kMostFailedConnects = 3;

Status NoMemory(uint64_t bytes, const char* where) {
  return {RM_ERR_OUT_OF_MEMORY, std::string("no memory ") + where + " for a buffer of " +
                                    std::to_string(bytes) + " bytes"};
}

// Bytes of an operation's input on this rank.
uint64_t InputBytes(const Operation& operation) {
  const Request& request = operation.request;
  return IsRagged(request.kind) ? operation.rows * request.bytes() : request.bytes();
}

// Of `rows` the first ranks get one more where they can't be shared evenly.
std::vector<size_t> SharedEvenly(uint64_t rows, size_t ranks) {
  std::vector<size_t> shares(ranks, rows / ranks);
  for (size_t rank = 0; rank < rows % ranks; ++rank) ++shares[rank];
  return shares;
}

bool AllSame(const std::vector<size_t>& values) {
  return std::all_of(values.begin(), values.end(), [&](size_t v) { return v == values.front(); });
}

// The first failure of several calls.
Result First(Result first, Result second) {
  return first == Result::kSuccess || first == Result::kInProgress ? second : first;
}

}  // namespace

NcclBackend::NcclBackend(const Gpu& gpu, engine::Backend* on_host, int device, Limits limits)
    : gpu_(gpu),
      on_host_(on_host),
      limits_(limits),
      device_(device),
      pool_(gpu.cuda),
      stream_(gpu.cuda) {
  world_.group = std::make_unique<NcclGroup>(gpu_.nccl, limits_);
}

NcclBackend::~NcclBackend() {
  Uninstall();
  std::vector<Comm> last;
  world_.group->GiveUp(&last);
  (void)AbortAll(gpu_.nccl, last, limits_.quiet);
}

// ---- Views

void NcclBackend::Install(Communicator* host, const std::vector<std::string>& workers) {
  host_ = host;
  epoch_ = host->epoch();
  world_.host = host;
  world_.workers = workers;
}

void NcclBackend::Abort(uint64_t epoch) {
  uint64_t before = aborted_epoch_;
  while (before < epoch && !aborted_epoch_.compare_exchange_weak(before, epoch)) {
  }
}

Patience::Over NcclBackend::Over() const {
  return [this] { return aborted_epoch_ >= epoch_; };
}

void NcclBackend::Uninstall() {
  if (host_ == nullptr) return;
  std::vector<NcclGroup*> groups = {world_.group.get()};
  for (auto& [number, set] : sets_) groups.push_back(set.group.get());
  EndWhatRuns(groups);
  world_.group->Leave();
  sets_.clear();
  in_use_.clear();
  in_trouble_ = false;
  on_ = nullptr;
  host_ = nullptr;
}

// All are marked before any is freed: what frees waits for the device, and there may run a kernel
// of another one that waits for a dead peer.
void NcclBackend::EndWhatRuns(const std::vector<NcclGroup*>& groups) {
  const bool runs = !stream_.Ended().has_value();
  const bool revoke = runs && gpu_.nccl != nullptr && gpu_.nccl->HasRevoke();
  bool revoked = true;
  if (revoke) {
    for (NcclGroup* group : groups) group->MarkRevoked();
    for (NcclGroup* group : groups) revoked = group->AwaitRevoked() && revoked;
  }
  // What is kept can be shrunk, or serves the next view as it is.
  const bool keep = !in_trouble_ && (!runs || (revoke && revoked));
  std::vector<Comm> given_up;
  for (NcclGroup* group : groups) {
    if (group != world_.group.get() || !keep) group->GiveUp(&given_up);
  }
  bool quiet = AbortAll(gpu_.nccl, given_up, limits_.quiet);
  const Patience patience(limits_.quiet, {});
  quiet =
      patience.Await("the GPU's work", [&] { return stream_.Ended(); }).code() != RM_ERR_TIMEOUT &&
      quiet;
  if (quiet) return;
  broken_ = true;
  // What still runs may write to them: they are never used again.
  for (auto& buffer : in_use_) new std::shared_ptr<Buffer>(buffer);
}

void NcclBackend::ForgetSet(int32_t process_set) {
  const auto set = sets_.find(process_set);
  if (set == sets_.end()) return;
  std::vector<Comm> given_up;
  set->second.group->GiveUp(&given_up);
  if (!AbortAll(gpu_.nccl, given_up, limits_.quiet)) broken_ = true;
  sets_.erase(set);
}

// ---- Executing

Status NcclBackend::Choose(const Response& response) {
  on_ = &world_;
  if (response.process_set() == 0) return {};
  on_ = nullptr;
  const std::vector<int>& ranks = response.ranks;
  if (std::find(ranks.begin(), ranks.end(), host_->rank()) == ranks.end()) return {};
  const auto [set, is_new] = sets_.try_emplace(response.process_set());
  if (is_new) {
    set->second.group = std::make_unique<NcclGroup>(gpu_.nccl, limits_);
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

// Everything that can go wrong before the ranks need each other, and their communicator.
Status NcclBackend::Prepare(const Response& response, const PendingTable& pending) {
  if (broken_) {
    return {RM_ERR_INTERNAL, "the GPU did not come to rest after a fault: a kernel hangs on it"};
  }
  const bool joined = pending.Find(engine::kJoinName) != nullptr;
  for (const Request& request : response.requests) {
    const auto operation = pending.Find(request.key());
    if (operation != nullptr && std::exchange(device_, operation->on_device.device) != device_)
      pool_.FreeUnused();  // on the device that was only guessed
    if (operation != nullptr || joined) continue;
    return {RM_ERR_INTERNAL, "agreed on '" + request.name + "', which was not asked for here"};
  }
  if (Status s = stream_.Use(device_); !s.ok()) return s;
  if (on_->group->connected()) return {};
  const Status connected = on_->group->Connect(on_->host, Over());
  if (connected.ok()) {
    failed_connects_ = 0;
    if (on_->group->link() == nullptr && !said_why_) {
      said_why_ = true;
      std::fprintf(stderr, "ringmaster: tensors on GPUs go through the host's memory: %s\n",
                   on_->group->why_on_host().c_str());
    }
    return {};
  }
  if (aborted_epoch_ >= epoch_ || ++failed_connects_ < kMostFailedConnects) return connected;
  return {RM_ERR_INTERNAL, connected.message() + ", in " + std::to_string(failed_connects_) +
                               " views one after the other"};
}

Status NcclBackend::Execute(const Response& response, const PendingTable& pending,
                            Retained* result) {
  *result = {response, {}};
  if (response.error != RM_OK) return {};
  if (Status s = Choose(response); !s.ok()) return s;
  result->holds = on_ != nullptr;
  if (!result->holds) return {};
  if (Status s = Prepare(response, pending); !s.ok()) return s;
  Batch rest = response.requests;
  for (size_t i = 0; i < response.batches.size(); ++i) {
    result->parts.emplace_back();
    const Work work{rest.first(response.batches[i]), response.roots[i], response, pending,
                    &result->parts.back()};
    if (Status s = RunBatch(work); !s.ok()) return s;
    rest = rest.subspan(response.batches[i]);
  }
  return {};
}

NcclLink* NcclBackend::LinkFor(const Work& work, std::vector<Reduction>* reductions) {
  NcclLink* const link = on_->group->link();
  const Kind kind = work.batch.front().kind;
  if (link == nullptr || (kind != Kind::kAllreduce && kind != Kind::kReducescatter)) return link;
  for (const Request& request : work.batch) {
    const auto reduction = ReductionFor(request, link->size());
    if (!reduction) return nullptr;
    reductions->push_back(*reduction);
  }
  return link;
}

Status NcclBackend::RunBatch(const Work& work) {
  std::vector<Reduction> reductions;
  NcclLink* const link = LinkFor(work, &reductions);
  if (link == nullptr) return RunOnHost(work);
  for (const Request& request : work.batch) {
    const auto operation = work.pending.Find(request.key());
    if (operation == nullptr) continue;
    if (Status s = stream_.WaitFor(operation->on_device.ready_event); !s.ok()) return s;
  }
  const Status enqueued = Enqueue(work, link, reductions);
  if (Status s = stream_.Mark(); !s.ok()) return s;  // also what was enqueued before a failure
  if (!enqueued.ok()) {
    in_trouble_ = true;
    return enqueued;
  }
  return Finish(link);
}

Status NcclBackend::Finish(NcclLink* link) {
  const Patience patience(limits_.collective, Over());
  std::optional<Status> trouble;
  const Status status = patience.Await("a collective of NCCL", [&]() -> std::optional<Status> {
    if (auto ended = stream_.Ended()) return ended;
    if (link != nullptr) trouble = link->Trouble();
    return trouble;
  });
  in_trouble_ = in_trouble_ || trouble.has_value() || status.code() == RM_ERR_TIMEOUT;
  if (status.ok()) in_use_.clear();
  return status;
}

std::shared_ptr<Buffer> NcclBackend::Take(uint64_t bytes) {
  auto buffer = pool_.Get(bytes);
  if (buffer != nullptr) in_use_.push_back(buffer);
  return buffer;
}

Status NcclBackend::MakePart(Part* part, uint64_t bytes) {
  part->bytes = bytes;
  part->data = Take(bytes);
  return part->data == nullptr ? NoMemory(bytes, "on the GPU") : Status();
}

Status NcclBackend::InputOf(const Request& request, const PendingTable& pending, const void** in) {
  if (const auto operation = pending.Find(request.key())) {
    *in = operation->in;
    return {};
  }
  *in = nullptr;
  if (request.bytes() == 0) return {};
  const auto nothing = Buffer::Make(request.bytes());
  const auto on_device = Take(request.bytes());
  if (nothing == nullptr || on_device == nullptr) return NoMemory(request.bytes(), "for a join");
  in_use_.push_back(nothing);
  element::FillIdentity(nothing->data(), request.count, request.dtype, request.op);
  *in = on_device->data();
  return stream_.Copy(on_device->data(), nothing->data(), request.bytes());
}

Status NcclBackend::Launch(NcclLink* link, const std::string& what,
                           const std::function<Result()>& calls) {
  link->CountLaunch();
  Result result = gpu_.nccl->GroupStart();
  if (result == Result::kSuccess) result = calls();
  result = First(result, gpu_.nccl->GroupEnd());
  return link->Settle(result, what, Patience(limits_.connect, Over()));
}

Status NcclBackend::Enqueue(const Work& work, NcclLink* link,
                            const std::vector<Reduction>& reductions) {
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

namespace {

// The operations that multiply by a factor, for as long as calls with them are being made.
class ScaledOps {
 public:
  explicit ScaledOps(NcclLink* link) : link_(link) {}
  ~ScaledOps() {
    for (RedOp op : made_) (void)link_->api()->RedOpDestroy(op, link_->comm());
  }
  Status Get(const Reduction& reduction, rm_dtype dtype, RedOp* op) {
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

// A call for each tensor, launched as one, from where it lies to the result's buffer: so nothing
// has to be packed.
Status NcclBackend::Allreduce(const Work& work, NcclLink* link,
                              const std::vector<Reduction>& reductions) {
  uint64_t bytes = 0;
  for (const Request& request : work.batch) bytes += request.bytes();
  if (Status s = MakePart(work.part, bytes); !s.ok()) return s;
  if (bytes == 0) return {};
  ScaledOps ops(link);
  std::vector<const void*> inputs(work.batch.size());
  std::vector<RedOp> op(work.batch.size());
  for (size_t i = 0; i < work.batch.size(); ++i) {
    if (Status s = InputOf(work.batch[i], work.pending, &inputs[i]); !s.ok()) return s;
    if (Status s = ops.Get(reductions[i], work.batch[i].dtype, &op[i]); !s.ok()) return s;
  }
  return Launch(link, "an allreduce", [&] {
    Result result = Result::kSuccess;
    std::byte* to = work.part->data->data();
    for (size_t i = 0; i < work.batch.size(); ++i) {
      const Request& request = work.batch[i];
      if (request.count > 0) {
        result =
            First(result, gpu_.nccl->AllReduce(inputs[i], to, request.count, reductions[i].type,
                                               op[i], link->comm(), stream_.get()));
      }
      to += request.bytes();
    }
    return result;
  });
}

Status NcclBackend::Reducescatter(const Work& work, NcclLink* link, const Reduction& reduction) {
  const Request& request = work.batch.front();
  const size_t size = static_cast<size_t>(link->size()), own = static_cast<size_t>(link->rank());
  Part* const part = work.part;
  part->rows_by_rank = SharedEvenly(request.rows(), size);
  part->rows = part->rows_by_rank[own];
  const uint64_t row = request.rows() == 0 ? 0 : request.count / request.rows();
  const size_t element = element::Size(request.dtype);
  if (Status s = MakePart(part, part->rows * row * element); !s.ok()) return s;
  if (request.count == 0) return {};
  ScaledOps ops(link);
  RedOp op;
  const void* in = nullptr;
  if (Status s = ops.Get(reduction, request.dtype, &op); !s.ok()) return s;
  if (Status s = InputOf(request, work.pending, &in); !s.ok()) return s;
  return Launch(link, "a reducescatter", [&] {
    if (AllSame(part->rows_by_rank)) {
      return gpu_.nccl->ReduceScatter(in, part->data->data(), part->rows * row, reduction.type, op,
                                      link->comm(), stream_.get());
    }
    Result result = Result::kSuccess;
    auto* from = static_cast<const std::byte*>(in);
    for (size_t rank = 0; rank < size; ++rank) {
      const size_t count = part->rows_by_rank[rank] * row;
      if (count == 0) continue;
      result = First(result, gpu_.nccl->Reduce(from, rank == own ? part->data->data() : nullptr,
                                               count, reduction.type, op, static_cast<int>(rank),
                                               link->comm(), stream_.get()));
      from += count * element;
    }
    return result;
  });
}

Status NcclBackend::Allgather(const Work& work, NcclLink* link) {
  const Request& request = work.batch.front();
  const auto operation = work.pending.Find(request.key());
  const size_t size = static_cast<size_t>(link->size()), own = static_cast<size_t>(link->rank());
  const uint64_t rows = operation == nullptr ? 0 : operation->rows;
  std::vector<uint64_t> rows_by_rank(size);
  const std::vector<size_t> eight(size, sizeof(uint64_t));
  if (Status s = on_->host->Allgatherv(&rows, rows_by_rank.data(), eight); !s.ok()) return s;
  Part* const part = work.part;
  part->rows_by_rank.assign(rows_by_rank.begin(), rows_by_rank.end());
  part->rows = std::accumulate(rows_by_rank.begin(), rows_by_rank.end(), size_t{0});
  if (Status s = MakePart(part, part->rows * request.bytes()); !s.ok()) return s;
  if (part->bytes == 0) return {};
  const void* in = operation == nullptr ? nullptr : operation->in;
  return Launch(link, "an allgather", [&] {
    if (AllSame(part->rows_by_rank)) {
      return gpu_.nccl->AllGather(in, part->data->data(), rows * request.bytes(), DataType::kUint8,
                                  link->comm(), stream_.get());
    }
    Result result = Result::kSuccess;
    std::byte* to = part->data->data();
    for (size_t rank = 0; rank < size; ++rank) {
      const size_t bytes = part->rows_by_rank[rank] * request.bytes();
      if (bytes == 0) continue;
      result =
          First(result, gpu_.nccl->Broadcast(rank == own ? in : to, to, bytes, DataType::kUint8,
                                             static_cast<int>(rank), link->comm(), stream_.get()));
      to += bytes;
    }
    return result;
  });
}

Status NcclBackend::Broadcast(const Work& work, NcclLink* link) {
  const Request& request = work.batch.front();
  if (Status s = MakePart(work.part, request.bytes()); !s.ok()) return s;
  if (work.part->bytes == 0) return {};
  void* const to = work.part->data->data();
  const auto operation = work.pending.Find(request.key());
  const bool sends = link->rank() == work.root && operation != nullptr;
  return Launch(link, "a broadcast", [&] {
    return gpu_.nccl->Broadcast(sends ? operation->in : to, to, work.part->bytes, DataType::kUint8,
                                work.root, link->comm(), stream_.get());
  });
}

// Rows for workers that have died since it was asked for stay where they are.
Status NcclBackend::Alltoall(const Work& work, NcclLink* link) {
  const Request& request = work.batch.front();
  const auto operation = work.pending.Find(request.key());
  const size_t size = static_cast<size_t>(link->size()), own = static_cast<size_t>(link->rank());
  std::vector<uint64_t> rows(size, 0);
  std::vector<const std::byte*> from(size, nullptr);
  if (operation != nullptr) {
    const auto* at = static_cast<const std::byte*>(operation->in);
    const Operation::Splits& splits = operation->splits;
    for (size_t i = 0; i < splits.workers.size(); ++i) {
      const auto found = std::find(on_->workers.begin(), on_->workers.end(), splits.workers[i]);
      if (found != on_->workers.end()) {
        rows[found - on_->workers.begin()] = splits.rows[i];
        from[found - on_->workers.begin()] = at;
      }
      at += splits.rows[i] * request.bytes();
    }
  }
  std::vector<uint64_t> matrix(size * size);
  const std::vector<size_t> row(size, size * sizeof(uint64_t));
  if (Status s = on_->host->Allgatherv(rows.data(), matrix.data(), row); !s.ok()) return s;
  Part* const part = work.part;
  for (size_t rank = 0; rank < size; ++rank) {
    part->rows_by_rank.push_back(matrix[rank * size + own]);
    part->rows += part->rows_by_rank.back();
  }
  if (Status s = MakePart(part, part->rows * request.bytes()); !s.ok()) return s;
  return Launch(link, "an alltoall", [&] {
    Result result = Result::kSuccess;
    std::byte* to = part->data->data();
    for (size_t rank = 0; rank < size; ++rank) {
      const int peer = static_cast<int>(rank);
      const size_t sent = rows[rank] * request.bytes();
      const size_t received = part->rows_by_rank[rank] * request.bytes();
      if (sent > 0) {
        result = First(result, gpu_.nccl->Send(from[rank], sent, DataType::kUint8, peer,
                                               link->comm(), stream_.get()));
      }
      if (received > 0) {
        result = First(result, gpu_.nccl->Recv(to, received, DataType::kUint8, peer, link->comm(),
                                               stream_.get()));
      }
      to += received;
    }
    return result;
  });
}

// ---- Through the host's memory

// Waits for the input first: a copy to memory that isn't pinned would wait for it without a limit.
Status NcclBackend::CopyToHost(const Operation& operation, std::shared_ptr<Buffer>* copy) {
  const uint64_t bytes = InputBytes(operation);
  *copy = Buffer::Make(bytes);
  if (*copy == nullptr) return NoMemory(bytes, "on the host");
  in_use_.push_back(*copy);
  if (Status s = stream_.WaitFor(operation.on_device.ready_event); !s.ok()) return s;
  if (Status s = stream_.Mark(); !s.ok()) return s;
  const Patience patience(limits_.collective, Over());
  if (Status s = patience.Await("the input's event", [&] { return stream_.Ended(); }); !s.ok())
    return s;
  if (operation.in == nullptr) return {};
  return stream_.Copy((*copy)->data(), operation.in, bytes);
}

Status NcclBackend::RunOnHost(const Work& work) {
  PendingTable copies;
  std::vector<std::shared_ptr<Buffer>> inputs;
  for (const Request& request : work.batch) {
    const auto operation = work.pending.Find(request.key());
    if (operation == nullptr) continue;
    std::shared_ptr<Buffer> in;
    if (Status s = CopyToHost(*operation, &in); !s.ok()) return s;
    inputs.push_back(in);
    copies.Add(std::make_shared<Operation>(operation->request, in->data(), nullptr, operation->rows,
                                           operation->splits));
  }
  if (const auto join = work.pending.Find(engine::kJoinName)) copies.Add(join);
  if (Status s = stream_.Mark(); !s.ok()) return s;
  if (Status s = Finish(nullptr); !s.ok()) return s;

  Response response = Response::Of({work.batch.begin(), work.batch.end()});
  response.number = work.response.number;
  response.ranks = work.response.ranks;
  response.roots = {work.root};
  Retained result;
  if (Status s = on_host_->Execute(response, copies, &result); !s.ok()) return s;
  *work.part = std::move(result.parts.front());
  const bool scaled = std::any_of(work.batch.begin(), work.batch.end(),
                                  [](const Request& r) { return r.postscale != 1.0; });
  if (!scaled) return {};
  const auto final = Buffer::Make(work.part->bytes);
  if (final == nullptr) return NoMemory(work.part->bytes, "on the host");
  size_t at = 0;
  for (const Request& request : work.batch) {
    const size_t element = element::Size(request.dtype);
    const size_t bytes = request.kind == Kind::kAllreduce ? request.bytes() : work.part->bytes;
    element::CopyScaled(work.part->data->data() + at, final->data() + at, bytes / element,
                        request.dtype, request.postscale);
    at += bytes;
  }
  work.part->data = final;
  return {};
}

// ---- Handing over and giving out

// Through the host: who lacks a result is in the new view with everybody else, and NCCL has no
// communicator there yet.
Status NcclBackend::HandOver(int holder, const Retained* held, Retained* result) {
  const bool holds = host_->rank() == holder;
  if (holds) {
    if (Status s = stream_.Use(device_); !s.ok()) return s;
  }
  for (size_t i = 0; i < result->parts.size(); ++i) {
    Part& part = result->parts[i];
    part.data = Buffer::Make(part.bytes);
    if (part.data == nullptr) return NoMemory(part.bytes, "on the host");
    if (part.bytes == 0) continue;
    if (holds) {
      if (Status s = stream_.Copy(part.data->data(), held->parts[i].data->data(), part.bytes);
          !s.ok()) {
        return s;
      }
      if (Status s = stream_.Mark(); !s.ok()) return s;
      if (Status s = Finish(nullptr); !s.ok()) return s;
    }
    if (Status s = host_->Broadcast(part.data->data(), part.bytes, holder); !s.ok()) return s;
  }
  return {};
}

Status NcclBackend::GiveOut(const Part& part, const Request& request, const std::byte* from,
                            Operation* operation, std::shared_ptr<Buffer>* gathered) {
  if (request.kind == Kind::kAllreduce || request.kind == Kind::kBroadcast) {
    return stream_.Copy(operation->out, from, request.bytes());
  }
  // The caller keeps it, on the device.
  *gathered = part.data->adopted() ? part.data : Take(part.bytes);
  if (*gathered == nullptr) return NoMemory(part.bytes, "on the GPU");
  return stream_.Copy((*gathered)->data(), from, part.bytes);
}

bool NcclBackend::Publish(const Retained& result, PendingTable* pending) {
  if (result.response.error != RM_OK) return on_host_->Publish(result, pending);
  bool all_found = true;
  Status status = stream_.Use(device_);
  std::vector<std::shared_ptr<Operation>> done;
  std::vector<std::pair<const Part*, std::shared_ptr<Buffer>>> gathered;
  Batch rest = result.response.requests;
  for (size_t i = 0; i < result.parts.size(); ++i) {
    const Part& part = result.parts[i];
    const std::byte* from = part.data->data();
    for (const Request& request : rest.first(result.response.batches[i])) {
      const auto operation = pending->Take(request.key());
      if (operation != nullptr) {
        gathered.emplace_back(&part, nullptr);
        done.push_back(operation);
        // Handed over, it may come before the caller's stream has come to the operation.
        if (status.ok()) status = stream_.WaitFor(operation->on_device.ready_event);
        if (status.ok())
          status = GiveOut(part, request, from, operation.get(), &gathered.back().second);
      }
      all_found = all_found && operation != nullptr;
      if (request.kind == Kind::kAllreduce) from += request.bytes();
    }
    rest = rest.subspan(result.response.batches[i]);
  }
  if (const Status marked = stream_.Mark(); status.ok()) status = marked;
  // Also when the view is over: the result counts, and copies wait for nobody.
  const Status ended =
      Patience(limits_.quiet, {}).Await("copying results", [&] { return stream_.Ended(); });
  if (status.ok()) status = ended;
  if (ended.ok()) in_use_.clear();
  for (size_t i = 0; i < done.size(); ++i) {
    if (const auto& [part, data] = gathered[i]; data != nullptr && status.ok()) {
      done[i]->gathered = data;
      done[i]->gathered_rows = part->rows;
      done[i]->rows_by_rank = part->rows_by_rank;
    }
    done[i]->Complete(status.code() == RM_ERR_TIMEOUT ? Status(RM_ERR_INTERNAL, status.message())
                                                      : status);
  }
  return all_found;
}

}  // namespace ringmaster::nccl
