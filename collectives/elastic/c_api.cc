// The C ABI: checks arguments, keeps handles and the calling thread's last error. All else is
// Worker.
#include <cmath>
#include <memory>
#include <string>

#include "collectives/elastic/handle_table.h"
#include "collectives/elastic/worker.h"
#include "collectives/element/element.h"
#include "common/sync/mutex.h"
#include "ringmaster/ringmaster.h"

namespace {

using ringmaster::Status;
using ringmaster::elastic::HandleTable;
using ringmaster::elastic::Worker;
using ringmaster::elastic::WorkerOptions;
using ringmaster::engine::Kind;
using ringmaster::engine::Membership;
using ringmaster::engine::Operation;
using ringmaster::engine::Request;
using Clock = std::chrono::steady_clock;

// Never destroyed: threads of the user may still be here while the process exits.
struct Global {
  ringmaster::sync::Mutex init_mu;  // one rm_init or rm_shutdown at a time
  ringmaster::sync::Mutex mu;
  std::shared_ptr<Worker> worker GUARDED_BY(mu);
  ringmaster::engine::StateRegistry state;
  HandleTable handles;
};

Global& Library() {
  static Global* const global = new Global;
  return *global;
}

thread_local std::string last_error;
thread_local std::string last_text;

rm_status Answer(const Status& status) {
  last_error = status.message();
  return status.code();
}

std::shared_ptr<Worker> Current() {
  Global& g = Library();
  ringmaster::sync::MutexLock lock(&g.mu);
  return g.worker;
}

Status NotInitialised() {
  return {RM_ERR_SHUTDOWN, "rm_init has not been called, or rm_shutdown has"};
}

Clock::time_point Deadline(double seconds, double otherwise) {
  const double s = seconds > 0 ? seconds : otherwise;
  if (!(s < 1e8)) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

Status CheckTensor(const char* name, const void* data, size_t count, rm_dtype dtype) {
  if (name == nullptr || name[0] == '\0')
    return {RM_ERR_INVALID, "name is empty: a tensor needs one"};
  if (name[0] == ringmaster::engine::kReservedPrefix) {
    return {RM_ERR_INVALID, "name begins with the byte 1, which is reserved for the library"};
  }
  const size_t element = ringmaster::element::Size(dtype);
  const std::string tensor = std::string("tensor '") + name + "': ";
  if (element == 0) {
    return {RM_ERR_INVALID,
            tensor + "dtype is " + std::to_string(static_cast<int>(dtype)) + ", allowed is 0 to 7"};
  }
  if (count > SIZE_MAX / 2 / element)
    return {RM_ERR_INVALID, tensor + "count is " + std::to_string(count)};
  if (data == nullptr && count > 0) {
    return {RM_ERR_INVALID, tensor + "the buffer is null and count is " + std::to_string(count)};
  }
  return {};
}

rm_status Enqueue(std::shared_ptr<Operation> operation, rm_handle* handle) {
  if (handle == nullptr) return Answer({RM_ERR_INVALID, "handle is null"});
  *handle = 0;
  const auto worker = Current();
  if (!worker) return Answer(NotInitialised());
  if (Status s = worker->Submit(operation); !s.ok()) return Answer(s);
  *handle = Library().handles.Add(std::move(operation));
  return Answer({});
}

template <typename Field>
int MembershipField(Field field, int otherwise) {
  const auto worker = Current();
  return worker ? static_cast<int>(worker->membership().*field) : otherwise;
}

Status Initialise(double timeout_seconds) {
  Global& g = Library();
  ringmaster::sync::MutexLock init(&g.init_mu);
  if (Current()) return {};
  WorkerOptions options;
  if (Status s = ringmaster::elastic::OptionsFromEnvironment(&options); !s.ok()) return s;
  std::unique_ptr<Worker> worker;
  Status status = Worker::Start(options, &g.state, Deadline(timeout_seconds, 600), &worker);
  if (!status.ok()) return status;
  ringmaster::sync::MutexLock lock(&g.mu);
  g.worker = std::move(worker);
  return {};
}

Status ShutDown(double timeout_seconds) {
  Global& g = Library();
  ringmaster::sync::MutexLock init(&g.init_mu);
  auto worker = Current();
  if (!worker) return {};
  Status status = worker->Shutdown(Deadline(timeout_seconds, 600));
  if (status.code() == RM_ERR_TIMEOUT) return status;
  ringmaster::sync::MutexLock lock(&g.mu);
  g.worker.reset();
  return status;
}

}  // namespace

extern "C" {

int rm_abi_version(void) { return RM_ABI_VERSION; }
const char* rm_version(void) { return RINGMASTER_VERSION; }
const char* rm_last_error(void) { return last_error.c_str(); }
size_t rm_dtype_size(rm_dtype dtype) { return ringmaster::element::Size(dtype); }

const char* rm_status_name(rm_status status) {
  switch (status) {
    case RM_OK:
      return "RM_OK";
    case RM_ERR_INVALID:
      return "RM_ERR_INVALID";
    case RM_ERR_MISMATCH:
      return "RM_ERR_MISMATCH";
    case RM_ERR_EPOCH_MOVED:
      return "RM_ERR_EPOCH_MOVED";
    case RM_ERR_LEFT:
      return "RM_ERR_LEFT";
    case RM_ERR_TIMEOUT:
      return "RM_ERR_TIMEOUT";
    case RM_ERR_UNAVAILABLE:
      return "RM_ERR_UNAVAILABLE";
    case RM_ERR_SHUTDOWN:
      return "RM_ERR_SHUTDOWN";
    case RM_ERR_NO_STATE:
      return "RM_ERR_NO_STATE";
    case RM_ERR_INTERNAL:
      return "RM_ERR_INTERNAL";
  }
  return "unknown status";
}

// ---- Beginning and end

rm_status rm_init(double timeout_seconds) { return Answer(Initialise(timeout_seconds)); }
rm_status rm_shutdown(double timeout_seconds) { return Answer(ShutDown(timeout_seconds)); }
int rm_initialized(void) { return Current() != nullptr; }

int rm_is_joining(void) {
  const auto worker = Current();
  return worker && worker->joining();
}

rm_status rm_enter(double timeout_seconds) {
  const auto worker = Current();
  return Answer(worker ? worker->Enter(Deadline(timeout_seconds, 600)) : NotInitialised());
}

int rm_rank(void) { return MembershipField(&Membership::rank, -1); }
int rm_size(void) { return MembershipField(&Membership::size, -1); }
int rm_local_rank(void) { return MembershipField(&Membership::local_rank, -1); }
int rm_local_size(void) { return MembershipField(&Membership::local_size, -1); }
int rm_cross_rank(void) { return MembershipField(&Membership::cross_rank, -1); }
int rm_cross_size(void) { return MembershipField(&Membership::cross_size, -1); }

uint64_t rm_epoch(void) {
  const auto worker = Current();
  return worker ? worker->membership().epoch : 0;
}

// ---- Collectives

rm_status rm_allreduce_async(const char* name, const void* in, void* out, size_t count,
                             rm_dtype dtype, rm_op op, double prescale, double postscale,
                             rm_handle* handle) {
  if (Status s = CheckTensor(name, in, count, dtype); !s.ok()) return Answer(s);
  if (Status s = CheckTensor(name, out, count, dtype); !s.ok()) return Answer(s);
  if (op < RM_SUM || op > RM_PRODUCT) {
    return Answer({RM_ERR_INVALID, std::string("tensor '") + name + "': op is " +
                                       std::to_string(static_cast<int>(op)) +
                                       ", allowed is 0 to 4"});
  }
  if (!std::isfinite(prescale) || !std::isfinite(postscale)) {
    return Answer({RM_ERR_INVALID,
                   std::string("tensor '") + name + "': prescale and postscale must be finite"});
  }
  Request request{name, Kind::kAllreduce, dtype, op, 0, count, prescale, postscale};
  return Enqueue(std::make_shared<Operation>(std::move(request), in, out), handle);
}

rm_status rm_allgather_async(const char* name, const void* in, size_t rows, size_t row_count,
                             rm_dtype dtype, rm_handle* handle) {
  if (Status s = CheckTensor(name, rows == 0 ? "" : in, row_count, dtype); !s.ok())
    return Answer(s);
  if (row_count > 0 && rows > SIZE_MAX / 16 / row_count) {
    return Answer(
        {RM_ERR_INVALID, std::string("tensor '") + name + "': rows is " + std::to_string(rows)});
  }
  Request request{name, Kind::kAllgather, dtype, RM_SUM, 0, row_count, 1.0, 1.0};
  return Enqueue(std::make_shared<Operation>(std::move(request), in, nullptr, rows), handle);
}

rm_status rm_allgather_result(rm_handle handle, const void** data, size_t* rows,
                              const size_t** rows_by_rank, size_t* ranks) {
  const auto operation = Library().handles.Find(handle);
  if (!operation)
    return Answer({RM_ERR_INVALID, "handle " + std::to_string(handle) + " is unknown"});
  if (!operation->done())
    return Answer({RM_ERR_INVALID, "the allgather is not done: rm_wait first"});
  if (Status s = operation->status(); !s.ok()) return Answer(s);
  if (operation->request.kind != Kind::kAllgather) {
    return Answer({RM_ERR_INVALID, "'" + operation->request.name + "' is no allgather"});
  }
  size_t total = 0;
  for (size_t r : operation->rows_by_rank) total += r;
  if (data != nullptr) *data = operation->gathered->data();
  if (rows != nullptr) *rows = total;
  if (rows_by_rank != nullptr) *rows_by_rank = operation->rows_by_rank.data();
  if (ranks != nullptr) *ranks = operation->rows_by_rank.size();
  return Answer({});
}

rm_status rm_broadcast_async(const char* name, void* data, size_t count, rm_dtype dtype, int root,
                             rm_handle* handle) {
  if (Status s = CheckTensor(name, data, count, dtype); !s.ok()) return Answer(s);
  Request request{name, Kind::kBroadcast, dtype, RM_SUM, root, count, 1.0, 1.0};
  return Enqueue(std::make_shared<Operation>(std::move(request), data, data), handle);
}

rm_status rm_barrier_async(const char* name, rm_handle* handle) {
  if (Status s = CheckTensor(name, nullptr, 0, RM_UINT8); !s.ok()) return Answer(s);
  Request request;
  request.name = name;
  return Enqueue(std::make_shared<Operation>(std::move(request), nullptr, nullptr), handle);
}

int rm_poll(rm_handle handle) {
  const auto operation = Library().handles.Find(handle);
  return operation ? operation->done() : -1;
}

rm_status rm_wait(rm_handle handle, double timeout_seconds) {
  const auto operation = Library().handles.Find(handle);
  if (!operation)
    return Answer({RM_ERR_INVALID, "handle " + std::to_string(handle) + " is unknown"});
  if (!operation->WaitUntil(Deadline(timeout_seconds, 1e9))) {
    return Answer({RM_ERR_TIMEOUT, "'" + operation->request.name +
                                       "' is not done before the deadline, and goes on"});
  }
  return Answer(operation->status());
}

void rm_release(rm_handle handle) { Library().handles.Release(handle); }

// ---- Steps, state, membership

rm_status rm_step_end(rm_step_info* info) {
  const auto worker = Current();
  return Answer(worker ? worker->StepEnd(info) : NotInitialised());
}

rm_status rm_state_register(const char* name, void* data, size_t bytes) {
  return Answer(Library().state.Register(name == nullptr ? "" : name, data, bytes));
}

rm_status rm_state_unregister(const char* name) {
  return Answer(Library().state.Unregister(name == nullptr ? "" : name));
}

rm_status rm_state_callbacks(rm_state_save_fn save, rm_state_load_fn load, void* user) {
  if ((save == nullptr) != (load == nullptr)) {
    return Answer({RM_ERR_INVALID, "save and load belong together: give both, or neither"});
  }
  Library().state.SetCallbacks(save, load, user);
  return Answer({});
}

rm_status rm_report(const char* name, double value) {
  if (name == nullptr || name[0] == '\0') return Answer({RM_ERR_INVALID, "name is empty"});
  if (!std::isfinite(value))
    return Answer({RM_ERR_INVALID, std::string("'") + name + "': value is not finite"});
  const auto worker = Current();
  if (!worker) return Answer(NotInitialised());
  worker->Report(name, value);
  return Answer({});
}

const char* rm_last_rebuild(void) {
  const auto worker = Current();
  last_text = worker ? worker->LastRebuild() : "";
  return last_text.c_str();
}

}  // extern "C"
