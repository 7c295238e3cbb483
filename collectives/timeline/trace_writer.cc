#include "collectives/timeline/trace_writer.h"

#include <utility>

namespace ringmaster::timeline {
namespace {

constexpr std::chrono::milliseconds kPause{100};

}  // namespace

TraceWriter::TraceWriter(std::shared_ptr<EventQueue> queue, std::unique_ptr<TraceFile> file)
    : shared_(new Shared{.queue = std::move(queue), .file = std::move(file)}),
      thread_([shared = shared_] { Write(shared.get()); }) {}

Status TraceWriter::Stop(Clock::time_point deadline, bool* gave_up) {
  Status closed;
  {
    sync::MutexLock lock(&shared_->mu);
    shared_->stopping = true;
    shared_->changed.NotifyAll();
    while (!shared_->ended && shared_->changed.WaitUntil(&shared_->mu, deadline)) {
    }
    *gave_up = !shared_->ended;
    closed = shared_->closed;
  }
  if (!*gave_up) {
    thread_.join();
    return closed;
  }
  thread_.detach();
  return {RM_ERR_INTERNAL, "not all of the timeline was written to " + shared_->file->path() +
                               ", which takes nothing any more: its file system, or who reads it, "
                               "does not answer"};
}

void TraceWriter::Write(Shared* shared) {
  for (bool last = false; !last;) {
    last = Pause(shared);
    shared->queue->Pop([&](const Event& event) { shared->file->Write(event); });
    if (const size_t dropped = shared->queue->TakeDropped())
      shared->file->WriteDropped(dropped, Clock::now());
    shared->file->Flush();
  }
  Status closed = shared->file->Close();
  sync::MutexLock lock(&shared->mu);
  shared->closed = std::move(closed);
  shared->ended = true;
  shared->changed.NotifyAll();
}

bool TraceWriter::Pause(Shared* shared) {
  sync::MutexLock lock(&shared->mu);
  const auto due = Clock::now() + kPause;
  while (!shared->stopping && shared->changed.WaitUntil(&shared->mu, due)) {
  }
  return shared->stopping;
}

}  // namespace ringmaster::timeline
