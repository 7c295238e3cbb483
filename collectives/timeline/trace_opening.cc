#include "collectives/timeline/trace_opening.h"

#include <thread>
#include <utility>

#include "common/sync/mutex.h"

namespace ringmaster::timeline {
namespace {

constexpr int kMostFilesOfARank = 100;

// "t.json" for rank 2, the third of that rank: "t.rank2-3.json"
std::string PathOf(const std::string& path, int rank, int nth) {
  if (rank == 0 && nth == 1) return path;
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  const bool has_ending =
      dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot > 0;
  const size_t at = has_ending ? dot : path.size();
  return path.substr(0, at) + ".rank" + std::to_string(rank) +
         (nth > 1 ? std::string("-") + std::to_string(nth) : "") + path.substr(at);
}

// Of the thread that opens and the one that waits for it.
struct Opening {
  sync::Mutex mu;
  sync::CondVar changed;
  bool ended GUARDED_BY(mu) = false;
  bool given_up GUARDED_BY(mu) = false;
  Status status GUARDED_BY(mu);                    // if it has ended
  std::unique_ptr<TraceFile> file GUARDED_BY(mu);  // if it has ended
};

void Open(const std::string& path, bool later, const Process& process, Opening* opening) {
  auto file = std::make_unique<TraceFile>();
  Status opened;
  for (int nth = 1; nth <= kMostFilesOfARank; ++nth) {
    opened = file->Open(PathOf(path, process.rank, nth), later, process);
    if (opened.code() != RM_ERR_UNAVAILABLE) break;
  }
  sync::MutexLock lock(&opening->mu);
  if (opening->given_up) return file->Discard();  // another one may be recorded there by now
  opening->file = std::move(file);
  opening->status = std::move(opened);
  opening->ended = true;
  opening->changed.NotifyAll();
}

}  // namespace

Status OpenTrace(const std::string& path, bool later, const Process& process,
                 Clock::time_point deadline, std::unique_ptr<TraceFile>* file) {
  const auto opening = std::make_shared<Opening>();
  std::thread([=] { Open(path, later, process, opening.get()); }).detach();
  sync::MutexLock lock(&opening->mu);
  while (!opening->ended && opening->changed.WaitUntil(&opening->mu, deadline)) {
  }
  if (!opening->ended) {
    opening->given_up = true;
    return {RM_ERR_INVALID, "the timeline " + PathOf(path, process.rank, 1) +
                                " can't be opened: its file system, or who is to read it, does "
                                "not answer"};
  }
  if (!opening->status.ok()) return {RM_ERR_INVALID, opening->status.message()};
  *file = std::move(opening->file);
  return {};
}

}  // namespace ringmaster::timeline
