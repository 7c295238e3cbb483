#include "collectives/elastic/library.h"

namespace ringmaster::elastic {
namespace {

thread_local std::string last_error;

const char kForked[] =
    "this process was forked from a worker: the library, its rank and its connections are the "
    "worker's alone (take what you need from it before the fork)";

}  // namespace

Library& Library::Get() {
  static Library* const library = new Library;
  return *library;
}

std::shared_ptr<TrainingProcess> CurrentWorker() {
  if (fork_guard::InChild()) {
    last_error = kForked;
    return nullptr;
  }
  Library& library = Library::Get();
  sync::MutexLock lock(&library.mu);
  return library.worker;
}

Status NotInitialised() {
  return {RM_ERR_SHUTDOWN, "rm_init has not been called, or rm_shutdown has"};
}

std::chrono::steady_clock::time_point Deadline(double seconds) {
  using Clock = std::chrono::steady_clock;
  if (!(seconds < 1e8)) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

TrainingProcess::Limit LimitOf(double seconds) {
  if (!(seconds > 0)) return std::nullopt;
  return Deadline(seconds);
}

rm_status Answer(const Status& status) {
  last_error = status.message();
  return status.code();
}

rm_status AnswerForked() { return Answer({RM_ERR_FORKED, kForked}); }

rm_status AnswerOutOfMemory() {
  last_error = "out of memory";  // short enough that the string allocates nothing
  return RM_ERR_OUT_OF_MEMORY;
}

const char* LastError() { return last_error.c_str(); }

}  // namespace ringmaster::elastic
