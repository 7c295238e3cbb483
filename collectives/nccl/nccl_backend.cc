#include "collectives/nccl/nccl_backend.h"

#include <algorithm>
#include <utility>

#include "collectives/element/element.h"
#include "collectives/nccl/process_exit.h"

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

NcclBackend::NcclBackend(const Gpu& gpu, engine::Backend* on_host, int device, WaitLimits limits,
                         bool needs_nccl)
    : gpu_(gpu),
      on_host_(on_host),
      limits_(limits),
      device_(device),
      connector_(&view_, needs_nccl),
      buffers_(gpu.cuda),
      stream_(gpu.cuda),
      ranks_(gpu, limits),
      operations_(gpu.nccl, limits, &stream_, &buffers_, view_.Asker()) {}

NcclBackend::~NcclBackend() {
  Uninstall();
  if (ProcessExits()) Leak();
}

// ---- Views

void NcclBackend::Install(Communicator* host, const std::vector<std::string>& workers) {
  host_ = host;
  view_.Install(host->epoch());
  ranks_.Install(host, workers);
  connector_.Install(workers);
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

// All communicators are revoked or aborted together, before any is waited for: to free one waits
// for the device, where a kernel of another one may run that waits for a dead peer.
void NcclBackend::EndWhatRuns() {
  if (ProcessExits()) return Leak();
  if (!broken_.empty()) return;
  const std::vector<NcclGroup*> groups = ranks_.All();
  const bool runs = !stream_.Ended().has_value();
  // In trouble a revoke is of no use, and may wait for a launch that hangs.
  const bool revoke = runs && !in_trouble_ && gpu_.nccl != nullptr && gpu_.nccl->HasRevoke();
  const bool rests = !runs || (revoke && Revoke(groups));
  // A communicator on which nothing runs is kept: the next view shrinks it, or uses it as it is.
  NcclLink* const world = ranks_.world()->kept();
  const bool keep = !in_trouble_ && rests && world != nullptr && !world->Trouble();
  std::vector<GivenUp> given_up;
  for (NcclGroup* group : groups) {
    if (group != ranks_.world() || !keep) group->GiveUp(&given_up);
  }
  aborted_ = Both(std::move(aborted_), StartAborts(gpu_, given_up));
  const Patience patience(limits_.quiet, {});
  const Status ended = patience.Await("the GPU's work", [&] { return stream_.Ended(); });
  if (ended.code() == RM_ERR_TIMEOUT) broken_ = ended.message() + ": a kernel hangs on it";
  if (broken_.empty()) (void)AwaitAborted(patience);
  if (!broken_.empty()) buffers_.Abandon();
}

void NcclBackend::Leak() {
  ranks_.Leak();
  buffers_.Abandon();
  stream_.Leak();
  broken_ = "the process ends";
}

Status NcclBackend::AwaitAborted(const Patience& patience) {
  if (!aborted_) return {};
  const Status s = AwaitAborts(aborted_, patience);
  if (s.code() == RM_ERR_TIMEOUT || s.code() == RM_ERR_EPOCH_MOVED) return s;
  aborted_ = {};
  if (s.ok()) return CheckDevice();
  if (broken_.empty()) broken_ = s.message();
  buffers_.Abandon();
  return CheckDevice();
}

// False: something may still run.
bool NcclBackend::Revoke(const std::vector<NcclGroup*>& groups) {
  std::vector<NcclLink*> links;
  for (NcclGroup* group : groups) {
    if (group->kept() != nullptr) links.push_back(group->kept());
  }
  return RevokeAll(gpu_, links, Patience(limits_.quiet, {})).ok();
}

void NcclBackend::ForgetSet(int32_t process_set) {
  Ended aborts;
  if (!ranks_.Forget(process_set, &aborts).ok() || !aborts) return;
  aborted_ = Both(std::move(aborted_), std::move(aborts));
  (void)AwaitAborted(Patience(limits_.quiet, view_.Asker()));
}

// ---- Executing

Status NcclBackend::CheckDevice() const {
  if (broken_.empty()) return {};
  return {RM_ERR_INTERNAL, "the GPU did not come to rest after a fault: " + broken_};
}

// Does all that can fail before the ranks need each other, and then connects them.
Status NcclBackend::Prepare(const Response& response, const PendingTable& pending) {
  if (Status s = CheckDevice(); !s.ok()) return s;
  if (Status s = AwaitAborted(Patience(limits_.collective, view_.Asker())); !s.ok()) {
    if (s.code() == RM_ERR_TIMEOUT) broken_ = s.message();
    return CheckDevice().ok() ? s : CheckDevice();
  }
  const bool joined = pending.Find(engine::kJoinName) != nullptr;
  for (const Request& request : response.requests) {
    const auto operation = pending.FindAgreed(request);
    if (operation != nullptr) device_ = operation->on_device.device;
    if (operation != nullptr || joined) continue;
    return {RM_ERR_INTERNAL, "agreed on '" + request.name + "', which was not asked for here"};
  }
  if (Status s = stream_.Use(device_); !s.ok()) return s;
  buffers_.Use(device_);  // until now it may have been a guess
  return connector_.Connect(on_, device_);
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

NcclLink* NcclBackend::LinkFor(const Work& work, std::vector<NcclReduction>* reductions) {
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
  std::vector<NcclReduction> reductions;
  NcclLink* const link = LinkFor(work, &reductions);
  if (link == nullptr) return RunOnHost(work);
  const Patience patience(limits_.collective, view_.Asker());
  for (const Request& request : work.batch) {
    const auto operation = work.pending.FindAgreed(request);
    if (operation == nullptr) continue;
    if (Status s = AwaitReady(*operation, patience); !s.ok()) return s;
  }
  const Status enqueued = operations_.Enqueue(work, link, reductions);
  if (Status s = stream_.Mark(); !s.ok()) return s;  // also if only a part was enqueued
  if (!enqueued.ok()) {
    in_trouble_ = true;
    return enqueued;
  }
  return Finish(link);
}

Status NcclBackend::AwaitReady(const Operation& operation, const Patience& patience) {
  return patience.Await("the event of tensor '" + operation.request.name + "'",
                        [&] { return stream_.Reached(operation.on_device.ready_event); });
}

Status NcclBackend::Finish(NcclLink* link) {
  const Patience patience(limits_.collective, view_.Asker());
  std::optional<Status> trouble;
  const Status status = patience.Await("a collective of NCCL", [&]() -> std::optional<Status> {
    // In this order: a kernel that NCCL ends because of an error leaves no result.
    const auto ended = stream_.Ended();
    if (link != nullptr) trouble = link->Trouble();
    return trouble ? trouble : ended;
  });
  in_trouble_ = in_trouble_ || trouble.has_value() || status.code() == RM_ERR_TIMEOUT;
  if (status.ok()) buffers_.LetGo();
  return status;
}

// ---- Through the host's memory

Status NcclBackend::CopyToHost(const Operation& operation, std::shared_ptr<Buffer>* copy) {
  const uint64_t bytes = InputBytes(operation);
  *copy = Buffer::Make(bytes);
  if (*copy == nullptr) return NoMemory(bytes, "on the host");
  buffers_.Hold(*copy);
  const Patience patience(limits_.collective, view_.Asker());
  if (Status s = AwaitReady(operation, patience); !s.ok()) return s;
  if (operation.pieces != nullptr) {
    std::byte* to = (*copy)->data();
    for (const engine::Piece& piece : *operation.pieces) {
      const uint64_t size = piece.count * element::Size(operation.request.dtype);
      if (size == 0) continue;
      if (Status s = stream_.Copy(to, piece.in, size); !s.ok()) return s;
      to += size;
    }
  }
  if (operation.in == nullptr) return {};
  return stream_.Copy((*copy)->data(), operation.in, bytes);
}

Status NcclBackend::RunOnHost(const Work& work) {
  PendingTable copies;
  std::vector<std::shared_ptr<Buffer>> inputs;
  for (const Request& request : work.batch) {
    const auto operation = work.pending.FindAgreed(request);
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
  return Finalize(work);
}

// The host's results follow each other without gaps, and their postscale is still to come.
Status NcclBackend::Finalize(const Work& work) {
  const bool scaled = std::any_of(work.batch.begin(), work.batch.end(),
                                  [](const Request& r) { return r.postscale != 1.0; });
  if (!scaled && work.batch.size() == 1) return {};
  const bool fused = work.batch.front().kind == Kind::kAllreduce;
  const uint64_t all = fused ? BytesOf(work.batch) : work.part->bytes;
  const auto final = Buffer::Make(all);
  if (final == nullptr) return NoMemory(all, "on the host");
  const std::byte* from = work.part->data->data();
  std::byte* to = final->data();
  for (const Request& request : work.batch) {
    const size_t bytes = fused ? request.bytes() : work.part->bytes;
    element::CopyScaled(from, to, bytes / element::Size(request.dtype), request.dtype,
                        request.postscale);
    from += bytes;
    to += SpaceOf(request);
  }
  work.part->data = final;
  work.part->bytes = all;
  return {};
}

// ---- Handing over and giving out

// Through the host's communicator: results are handed over at the beginning of a view, when NCCL
// has no communicator in it yet.
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
  if (operation->pieces != nullptr) {
    for (const engine::Piece& piece : *operation->pieces) {
      const uint64_t size = piece.count * element::Size(request.dtype);
      if (size == 0) continue;
      if (Status s = stream_.Copy(piece.out, from, size); !s.ok()) return s;
      from += size;
    }
    return {};
  }
  if (request.kind == Kind::kAllreduce || request.kind == Kind::kBroadcast) {
    return stream_.Copy(operation->out, from, request.bytes());
  }
  // The caller keeps a gathered result, on the device.
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
      const auto operation = pending->TakeAgreed(request);
      if (operation != nullptr) {
        gathered.emplace_back(&part, nullptr);
        done.push_back(operation);
        // A result that was handed over may be there before the caller's stream has come to this
        // operation. It counts, so the end of the view doesn't end this wait either.
        if (status.ok()) status = AwaitReady(*operation, Patience(limits_.collective, {}));
        if (status.ok())
          status = GiveOut(part, request, from, operation.get(), &gathered.back().second);
      }
      all_found = all_found && operation != nullptr;
      from += SpaceOf(request);
    }
    rest = rest.subspan(result.response.batches[i]);
  }
  // This marks also the copies before a failure: they must have ended when the operations complete,
  // because the callers may then use the memory for something else.
  const Status marked = usable ? stream_.Mark() : Status();
  if (status.ok()) status = marked;
  // The end of the view doesn't end this wait: the result counts all the same, and copies wait for
  // no peer.
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
