// The C ABI of the collectives: requests become operations, operations have handles.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/elastic/library.h"
#include "collectives/elastic/request_reader.h"

namespace {

namespace fork_guard = ringmaster::fork_guard;
using ringmaster::Status;
using ringmaster::elastic::CurrentWorker;
using ringmaster::elastic::Deadline;
using ringmaster::elastic::Guarded;
using ringmaster::elastic::Library;
using ringmaster::elastic::NotInitialised;
using ringmaster::elastic::PreparedGroup;
using ringmaster::elastic::ReadPrepared;
using ringmaster::elastic::ReadRequests;
using ringmaster::elastic::TrainingProcess;
using ringmaster::engine::Kind;
using ringmaster::engine::KindName;
using ringmaster::engine::Operation;
using Operations = std::vector<std::shared_ptr<Operation>>;

Status Enqueue(TrainingProcess* worker, const Operations& operations, rm_handle* handles) {
  // The handles are made first, so that nothing can fail once the library has the buffers.
  auto& table = Library::Get().handles;
  std::vector<rm_handle> numbers;
  for (const auto& operation : operations) numbers.push_back(table.Add(operation));
  if (Status s = worker->Submit(operations); !s.ok()) {
    for (rm_handle number : numbers) table.Release(number);
    return s;
  }
  std::copy(numbers.begin(), numbers.end(), handles);
  return {};
}

Status Submit(const rm_request* requests, size_t n, rm_handle* handles) {
  if (handles == nullptr) return {RM_ERR_INVALID, "handle is null"};
  std::fill_n(handles, n, 0);
  const auto worker = CurrentWorker();
  // A joiner has to enter first: only then does it know the members.
  if (worker != nullptr) {
    if (Status s = worker->EnsureEntered(); !s.ok()) return s;
  }
  ringmaster::elastic::Asker asker;
  if (worker != nullptr) asker.worker = worker->info().WorkerAt(-1);
  asker.members = [&](int process_set) {
    std::vector<std::string> workers;
    if (worker != nullptr) (void)worker->info().StepMembersOf(process_set, &workers);
    return workers;
  };
  asker.members_now = [&](int process_set) {
    std::vector<std::string> workers;
    if (worker != nullptr) (void)worker->info().MembersOf(process_set, &workers, nullptr);
    return workers;
  };
  Operations operations;
  if (Status s = ReadRequests(requests, n, asker, &operations); !s.ok()) return s;
  return worker == nullptr ? NotInitialised() : Enqueue(worker.get(), operations, handles);
}

Status Prepare(const char* name, const rm_request* requests, size_t n, rm_group* group) {
  if (group == nullptr) return {RM_ERR_INVALID, "group is null"};
  *group = 0;
  const auto prepared = std::make_shared<PreparedGroup>();
  if (Status s = ReadPrepared(name, requests, n, prepared.get()); !s.ok()) return s;
  *group = Library::Get().groups.Add(prepared);
  return {};
}

Status SubmitGroup(rm_group group, const void* ready_event, rm_handle* handle) {
  if (handle == nullptr) return {RM_ERR_INVALID, "handle is null"};
  *handle = 0;
  const auto prepared = Library::Get().groups.Find(group);
  if (prepared == nullptr) {
    return {RM_ERR_INVALID, "group " + std::to_string(group) +
                                " is unknown: it was never prepared, or has been freed"};
  }
  if (!prepared->request.on_gpu && ready_event != nullptr) {
    return {RM_ERR_INVALID, "prepared group '" + prepared->request.name +
                                "': ready_event must be NULL, it lies in the host's memory"};
  }
  const auto worker = CurrentWorker();
  if (worker == nullptr) return NotInitialised();
  return Enqueue(worker.get(), {prepared->Ask(ready_event)}, handle);
}

// A request for a tensor. If `tensor` is null the request has no shape, and ReadRequests refuses
// it.
rm_request RequestFor(rm_kind kind, const char* name, const rm_tensor* tensor) {
  rm_request request = rm_request_of(kind, name);
  request.dimensions = -1;
  if (tensor == nullptr) return request;
  request.shape = tensor->shape;
  request.dimensions = tensor->dimensions;
  request.dtype = tensor->dtype;
  return request;
}

// The worker that the rank `root` means in this step.
Status ResolveRoot(const char* name, int root, std::string* id) {
  if (name == nullptr) return {RM_ERR_INVALID, "name is empty: a tensor needs one"};
  const auto worker = CurrentWorker();
  if (!worker) return NotInitialised();
  if (Status s = worker->EnsureEntered(); !s.ok()) return s;
  const std::vector<std::string> workers = worker->info().step_ranks().workers;
  const int size = static_cast<int>(workers.size());
  if (root < 0 || root >= size) {
    return {RM_ERR_INVALID, std::string("broadcast '") + name + "': root is " +
                                std::to_string(root) + ", allowed is 0 to " +
                                std::to_string(size - 1)};
  }
  *id = workers[static_cast<size_t>(root)];
  return {};
}

Status FindDone(rm_handle handle, std::shared_ptr<Operation>* operation) {
  *operation = Library::Get().handles.Find(handle);
  if (*operation == nullptr) {
    return {RM_ERR_INVALID, "handle " + std::to_string(handle) + " is unknown"};
  }
  if (!(*operation)->done()) return {RM_ERR_INVALID, "the operation is not done: rm_wait first"};
  return (*operation)->status();
}

// Waits until the operation is done. False: the deadline passed. After rm_shutdown there is no
// worker, and every operation is done.
bool Await(const Operation& operation, TrainingProcess::Clock::time_point deadline) {
  const auto worker = CurrentWorker();
  return worker != nullptr ? worker->Await(operation, deadline) : operation.WaitUntil(deadline);
}

Status WaitAll(const rm_handle* handles, size_t n, double timeout_seconds) {
  if (handles == nullptr && n > 0) return {RM_ERR_INVALID, "handles is null"};
  const auto deadline =
      LimitOf(timeout_seconds).value_or(TrainingProcess::Clock::time_point::max());
  Status first;
  // Mostly the last one is done last: whoever waits for that one first is woken once.
  for (size_t i = n; i-- > 0;) {
    const auto operation = Library::Get().handles.Find(handles[i]);
    if (!operation) return {RM_ERR_INVALID, "handle " + std::to_string(handles[i]) + " is unknown"};
    if (!Await(*operation, deadline)) {
      return {RM_ERR_TIMEOUT,
              "'" + operation->request.name + "' is not done before the deadline, and goes on"};
    }
    if (Status s = operation->status(); !s.ok()) first = std::move(s);
  }
  return first;
}

}  // namespace

extern "C" {

rm_status rm_submit(const rm_request* requests, size_t n, rm_handle* handles) {
  return Guarded([&] { return Submit(requests, n, handles); });
}

rm_status rm_prepare(const char* name, const rm_request* requests, size_t n, rm_group* group) {
  return Guarded([&] { return Prepare(name, requests, n, group); });
}

rm_status rm_submit_group(rm_group group, const void* ready_event, rm_handle* handle) {
  return Guarded([&] { return SubmitGroup(group, ready_event, handle); });
}

void rm_free_group(rm_group group) {
  if (!fork_guard::InChild()) Library::Get().groups.Release(group);
}

rm_status rm_allreduce_async(const char* name, const void* in, void* out, size_t count,
                             rm_dtype dtype, rm_op op, double prescale, double postscale,
                             rm_handle* handle) {
  const rm_tensor tensor = {&count, 1, dtype};
  return rm_allreduce_tensor_async(name, in, out, &tensor, op, prescale, postscale, handle);
}

rm_status rm_allreduce_tensor_async(const char* name, const void* in, void* out,
                                    const rm_tensor* tensor, rm_op op, double prescale,
                                    double postscale, rm_handle* handle) {
  rm_request request = RequestFor(RM_ALLREDUCE, name, tensor);
  request.in = in;
  request.out = out;
  request.op = op;
  request.prescale = prescale;
  request.postscale = postscale;
  return rm_submit(&request, 1, handle);
}

rm_status rm_allgather_async(const char* name, const void* in, size_t rows, size_t row_count,
                             rm_dtype dtype, rm_handle* handle) {
  const size_t shape[] = {rows, row_count};
  const rm_tensor tensor = {shape, 2, dtype};
  return rm_allgather_tensor_async(name, in, &tensor, handle);
}

rm_status rm_allgather_tensor_async(const char* name, const void* in, const rm_tensor* tensor,
                                    rm_handle* handle) {
  rm_request request = RequestFor(RM_ALLGATHER, name, tensor);
  request.in = in;
  return rm_submit(&request, 1, handle);
}

rm_status rm_result(rm_handle handle, const void** data, size_t* rows, const size_t** rows_by_rank,
                    size_t* ranks) {
  return Guarded([&]() -> Status {
    std::shared_ptr<Operation> operation;
    if (Status s = FindDone(handle, &operation); !s.ok()) return s;
    if (operation->gathered == nullptr) {
      return {RM_ERR_INVALID, "'" + operation->request.name + "', " +
                                  KindName(operation->request.kind) +
                                  ", has put its result in out"};
    }
    if (data != nullptr) *data = operation->gathered->data();
    if (rows != nullptr) *rows = operation->gathered_rows;
    if (rows_by_rank != nullptr) *rows_by_rank = operation->rows_by_rank.data();
    if (ranks != nullptr) *ranks = operation->rows_by_rank.size();
    return {};
  });
}

rm_status rm_allgather_result(rm_handle handle, const void** data, size_t* rows,
                              const size_t** rows_by_rank, size_t* ranks) {
  return rm_result(handle, data, rows, rows_by_rank, ranks);
}

rm_status rm_broadcast_async(const char* name, void* data, size_t count, rm_dtype dtype, int root,
                             rm_handle* handle) {
  const rm_tensor tensor = {&count, 1, dtype};
  std::string id;
  const rm_status found = Guarded([&] { return ResolveRoot(name, root, &id); });
  if (found != RM_OK) return found;
  return rm_broadcast_tensor_async(name, data, &tensor, id.c_str(), handle);
}

rm_status rm_broadcast_tensor_async(const char* name, void* data, const rm_tensor* tensor,
                                    const char* root, rm_handle* handle) {
  rm_request request = RequestFor(RM_BROADCAST, name, tensor);
  request.out = data;
  request.root = root;
  return rm_submit(&request, 1, handle);
}

rm_status rm_broadcast_bytes_async(const char* name, const void* data, size_t bytes,
                                   const char* root, rm_handle* handle) {
  const rm_tensor tensor = {&bytes, 1, RM_UINT8};
  rm_request request = RequestFor(RM_BROADCAST_BYTES, name, &tensor);
  request.in = data;
  request.root = root;
  return rm_submit(&request, 1, handle);
}

rm_status rm_barrier_async(const char* name, rm_handle* handle) {
  const rm_request request = rm_request_of(RM_BARRIER, name);
  return rm_submit(&request, 1, handle);
}

rm_status rm_join_async(rm_handle* handle) {
  const rm_request request = rm_request_of(RM_JOIN, nullptr);
  return rm_submit(&request, 1, handle);
}

rm_status rm_join_result(rm_handle handle, int* last_rank) {
  return Guarded([&]() -> Status {
    std::shared_ptr<Operation> operation;
    if (Status s = FindDone(handle, &operation); !s.ok()) return s;
    if (operation->request.kind != Kind::kJoin) {
      return {RM_ERR_INVALID, "'" + operation->request.name + "' is no join"};
    }
    if (const auto worker = CurrentWorker()) worker->Joined();
    if (last_rank != nullptr) *last_rank = operation->last_joined;
    return {};
  });
}

int rm_poll(rm_handle handle) {
  if (fork_guard::InChild()) return -1;
  const auto operation = Library::Get().handles.Find(handle);
  return operation ? operation->done() : -1;
}

rm_status rm_wait(rm_handle handle, double timeout_seconds) {
  return rm_wait_all(&handle, 1, timeout_seconds);
}

rm_status rm_wait_all(const rm_handle* handles, size_t n, double timeout_seconds) {
  return Guarded([&] { return WaitAll(handles, n, timeout_seconds); });
}

void rm_release(rm_handle handle) { rm_release_all(&handle, 1); }

void rm_release_all(const rm_handle* handles, size_t n) {
  if (handles == nullptr || fork_guard::InChild()) return;
  Library::Get().handles.Release(std::span(handles, n));
}

}  // extern "C"
