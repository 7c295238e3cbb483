// The C ABI of process sets.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "collectives/elastic/library.h"

namespace {

using ringmaster::Status;
using ringmaster::elastic::CurrentWorker;
using ringmaster::elastic::Guarded;
using ringmaster::elastic::Library;
using ringmaster::elastic::NotInitialised;
using ringmaster::elastic::TrainingProcess;
using ringmaster::engine::Kind;
using ringmaster::engine::Operation;
using ringmaster::engine::Request;

Status Start(TrainingProcess* worker, Request request, rm_handle* handle) {
  const auto operation = std::make_shared<Operation>(std::move(request), nullptr, nullptr);
  const rm_handle number = Library::Get().handles.Add(operation);
  if (Status s = worker->Submit(operation); !s.ok()) {
    Library::Get().handles.Release(number);
    return s;
  }
  *handle = number;
  return {};
}

Status ResolveMembers(const TrainingProcess& worker, const int* ranks, size_t n, Request* request) {
  if (ranks == nullptr || n == 0) return {RM_ERR_INVALID, "process set: there are no ranks"};
  std::vector<int> sorted(ranks, ranks + n);
  std::sort(sorted.begin(), sorted.end());
  const std::vector<std::string> workers = worker.info().step_ranks().workers;
  const int size = static_cast<int>(workers.size());
  for (size_t i = 0; i < n; ++i) {
    const std::string which = "process set: rank " + std::to_string(sorted[i]);
    if (sorted[i] < 0 || sorted[i] >= size) {
      return {RM_ERR_INVALID,
              which + " is not in the world, which has 0 to " + std::to_string(size - 1)};
    }
    if (i > 0 && sorted[i] == sorted[i - 1]) return {RM_ERR_INVALID, which + " is there twice"};
    request->members.push_back(workers[static_cast<size_t>(sorted[i])]);
  }
  return {};
}

// A joiner adds no set, because the others added theirs long ago. It only counts its calls, so that
// its sets get the same numbers.
Status CountOnly(TrainingProcess* worker, rm_handle* handle) {
  const auto operation = std::make_shared<Operation>(Request(), nullptr, nullptr);
  operation->process_set = worker->CountSet();
  operation->Complete({});
  *handle = Library::Get().handles.Add(operation);
  return {};
}

Status AddSet(const int* ranks, size_t n, rm_handle* handle) {
  if (handle == nullptr) return {RM_ERR_INVALID, "handle is null"};
  *handle = 0;
  const auto worker = CurrentWorker();
  if (!worker) return NotInitialised();
  if (worker->joining()) return CountOnly(worker.get(), handle);
  Request request;
  request.name = ringmaster::engine::kAddSetName;
  request.kind = Kind::kAddSet;
  if (Status s = ResolveMembers(*worker, ranks, n, &request); !s.ok()) return s;
  return Start(worker.get(), std::move(request), handle);
}

Status RemoveSet(int process_set, rm_handle* handle) {
  if (handle == nullptr) return {RM_ERR_INVALID, "handle is null"};
  *handle = 0;
  const auto worker = CurrentWorker();
  if (!worker) return NotInitialised();
  if (process_set == 0) return {RM_ERR_INVALID, "process set 0, all ranks, can't be removed"};
  Request request;
  request.name = ringmaster::engine::kRemoveSetName;
  request.kind = Kind::kRemoveSet;
  request.removed_set = process_set;
  return Start(worker.get(), std::move(request), handle);
}

}  // namespace

extern "C" {

rm_status rm_process_set_add_async(const int* ranks, size_t n, rm_handle* handle) {
  return Guarded([&] { return AddSet(ranks, n, handle); });
}

rm_status rm_process_set_remove_async(int process_set, rm_handle* handle) {
  return Guarded([&] { return RemoveSet(process_set, handle); });
}

rm_status rm_process_set_number(rm_handle handle, int* process_set) {
  return Guarded([&]() -> Status {
    const auto operation = Library::Get().handles.Find(handle);
    if (!operation || !operation->done()) {
      return {RM_ERR_INVALID, "handle " + std::to_string(handle) + " is unknown, or not done"};
    }
    if (Status s = operation->status(); !s.ok()) return s;
    if (process_set != nullptr) *process_set = operation->process_set;
    return {};
  });
}

rm_status rm_process_set_ranks(int process_set, int* ranks, size_t capacity, size_t* n) {
  return Guarded([&]() -> Status {
    const auto worker = CurrentWorker();
    if (!worker) return NotInitialised();
    std::vector<int> members;
    // A joiner that has not entered is in no set.
    if (!worker->joining() && !worker->info().MembersOf(process_set, nullptr, &members)) {
      return {RM_ERR_INVALID, "process set " + std::to_string(process_set) +
                                  " is unknown: it was never added, or has been removed"};
    }
    if (ranks != nullptr) {
      std::copy_n(members.begin(), std::min(capacity, members.size()), ranks);
    }
    if (n != nullptr) *n = members.size();
    return {};
  });
}

}  // extern "C"
