#include "collectives/nccl/nccl_backend.h"

#include <algorithm>
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

// Bytes of an operation's input on this rank.
uint64_t InputBytes(const Operation& operation) {
  const Request& request = operation.request;
  return IsRagged(request.kind) ? operation.rows * request.bytes() : request.bytes();
}

}  // namespace

NcclBackend::NcclBackend(const Gpu& gpu, engine::Backend* on_host, int device, Limits limits)
    : gpu_(gpu),
      on_host_(on_host),
      limits_(limits),
      device_(device),
      buffers_(gpu.cuda),
      stream_(gpu.cuda),
      ranks_(gpu.nccl, limits),
      operations_(gpu.nccl, limits, &stream_, &buffers_, view_.Asker()) {}

NcclBackend::~NcclBackend() { Uninstall(); }

// ---- Views

void NcclBackend::Install(Communicator* host, const std::vector<std::string>& workers) {
  host_ = host;
  view_.Install(host->epoch());
  ranks_.Install(host, workers);
}

void NcclBackend::Uninstall() {
  if (host_ == nullptr) return;
  EndWhatRuns();
  ranks_.Leave();
  buffers_.LetGo();
  in_trouble_ = false;
  on_ = nullptr;
  host_ = nullptr;
}

// All are marked before any is freed: what frees waits for the device, and there may run a kernel
// of another one that waits for a dead peer.
void NcclBackend::EndWhatRuns() {
  if (!broken_.empty()) return;
  const std::vector<NcclGroup*> groups = ranks_.All();
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
    if (group != ranks_.world() || !keep) group->GiveUp(&given_up);
  }
  const Status gone = AbortAll(gpu_.nccl, given_up, limits_.quiet);
  const Patience patience(limits_.quiet, {});
  const Status ended = patience.Await("the GPU's work", [&] { return stream_.Ended(); });
  if (ended.code() == RM_ERR_TIMEOUT) broken_ = ended.message() + ": a kernel hangs on it";
  if (broken_.empty()) broken_ = gone.message();
  if (!broken_.empty()) buffers_.Abandon();
}

void NcclBackend::ForgetSet(int32_t process_set) {
  const Status gone = ranks_.Forget(process_set);
  if (gone.ok() || !broken_.empty()) return;
  broken_ = gone.message();
  buffers_.Abandon();
}

// ---- Executing

Status NcclBackend::CheckDevice() const {
  if (broken_.empty()) return {};
  return {RM_ERR_INTERNAL, "the GPU did not come to rest after a fault: " + broken_};
}

// Everything that can go wrong before the ranks need each other, and their communicator.
Status NcclBackend::Prepare(const Response& response, const PendingTable& pending) {
  if (Status s = CheckDevice(); !s.ok()) return s;
  const bool joined = pending.Find(engine::kJoinName) != nullptr;
  for (const Request& request : response.requests) {
    const auto operation = pending.Find(request.key());
    if (operation != nullptr && std::exchange(device_, operation->on_device.device) != device_)
      buffers_.FreeUnused();  // on the device that was only guessed
    if (operation != nullptr || joined) continue;
    return {RM_ERR_INTERNAL, "agreed on '" + request.name + "', which was not asked for here"};
  }
  if (Status s = stream_.Use(device_); !s.ok()) return s;
  return connector_.Connect(on_);
}

Status NcclBackend::Execute(const Response& response, const PendingTable& pending,
                            Retained* result) {
  *result = {response, {}};
  if (response.error != RM_OK) return {};
  if (Status s = ranks_.Choose(response, &on_); !s.ok()) return s;
  result->holds = on_ != nullptr;
  if (!result->holds) return {};
  if (Status s = Prepare(response, pending); !s.ok()) return s;
  Batch rest = response.requests;
  for (size_t i = 0; i < response.batches.size(); ++i) {
    result->parts.emplace_back();
    const Work work{rest.first(response.batches[i]),
                    response.roots[i],
                    *on_,
                    response,
                    pending,
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
  const Status enqueued = operations_.Enqueue(work, link, reductions);
  if (Status s = stream_.Mark(); !s.ok()) return s;  // also what was enqueued before a failure
  if (!enqueued.ok()) {
    in_trouble_ = true;
    return enqueued;
  }
  return Finish(link);
}

Status NcclBackend::Finish(NcclLink* link) {
  const Patience patience(limits_.collective, view_.Asker());
  std::optional<Status> trouble;
  const Status status = patience.Await("a collective of NCCL", [&]() -> std::optional<Status> {
    if (auto ended = stream_.Ended()) return ended;
    if (link != nullptr) trouble = link->Trouble();
    return trouble;
  });
  in_trouble_ = in_trouble_ || trouble.has_value() || status.code() == RM_ERR_TIMEOUT;
  if (status.ok()) buffers_.LetGo();
  return status;
}

// ---- Through the host's memory

// Waits for the input first: a copy to memory that isn't pinned would wait for it without a limit.
Status NcclBackend::CopyToHost(const Operation& operation, std::shared_ptr<Buffer>* copy) {
  const uint64_t bytes = InputBytes(operation);
  *copy = Buffer::Make(bytes);
  if (*copy == nullptr) return NoMemory(bytes, "on the host");
  buffers_.Hold(*copy);
  if (Status s = stream_.WaitFor(operation.on_device.ready_event); !s.ok()) return s;
  if (Status s = stream_.Mark(); !s.ok()) return s;
  const Patience patience(limits_.collective, view_.Asker());
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
  if (Status s = CheckDevice(); !s.ok()) return s;
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
  *gathered = part.data->adopted() ? part.data : buffers_.Take(part.bytes);
  if (*gathered == nullptr) return NoMemory(part.bytes, "on the GPU");
  return stream_.Copy((*gathered)->data(), from, part.bytes);
}

bool NcclBackend::Publish(const Retained& result, PendingTable* pending) {
  if (result.response.error != RM_OK) return on_host_->Publish(result, pending);
  bool all_found = true;
  Status status = CheckDevice();
  if (status.ok()) status = stream_.Use(device_);
  const bool usable = status.ok();
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
  // Also what was enqueued before a failure: who asked for it may use the memory once it is done.
  const Status marked = usable ? stream_.Mark() : Status();
  if (status.ok()) status = marked;
  // Also when the view is over: the result counts, and copies wait for nobody.
  const Status ended =
      Patience(limits_.quiet, {}).Await("copying results", [&] { return stream_.Ended(); });
  if (status.ok()) status = ended;
  if (ended.ok()) buffers_.LetGo();
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
