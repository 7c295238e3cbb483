#include "collectives/engine/trace.h"

#include <algorithm>

#include "common/job/rebuild.h"

namespace ringmaster::engine {
namespace {

using timeline::Event;
using timeline::Row;

struct Names {
  const char* waits;
  const char* runs;
};

Names NamesOf(Kind kind) {
  switch (kind) {
    case Kind::kAllreduce:
      return {"NEGOTIATE_ALLREDUCE", "ALLREDUCE"};
    case Kind::kAllgather:
      return {"NEGOTIATE_ALLGATHER", "ALLGATHER"};
    case Kind::kBroadcast:
      return {"NEGOTIATE_BROADCAST", "BROADCAST"};
    case Kind::kReducescatter:
      return {"NEGOTIATE_REDUCESCATTER", "REDUCESCATTER"};
    case Kind::kAlltoall:
      return {"NEGOTIATE_ALLTOALL", "ALLTOALL"};
    case Kind::kBarrier:
      return {"NEGOTIATE_BARRIER", "BARRIER"};
    case Kind::kJoin:
      return {"NEGOTIATE_JOIN", "JOIN"};
    case Kind::kStepEnd:
      return {"NEGOTIATE_STEP_END", "STEP_END"};
    case Kind::kAddSet:
      return {"NEGOTIATE_ADD_PROCESS_SET", "ADD_PROCESS_SET"};
    case Kind::kRemoveSet:
      return {"NEGOTIATE_REMOVE_PROCESS_SET", "REMOVE_PROCESS_SET"};
    case Kind::kShutdown:
      return {"NEGOTIATE_SHUTDOWN", "SHUTDOWN"};
    case Kind::kTransfer:
      return {"NEGOTIATE_SEND", "SEND"};
  }
  return {"", ""};
}

bool IsSet(Trace::Clock::time_point at) { return at != Trace::Clock::time_point(); }

// The names of the library's own operations begin with a byte that isn't shown.
std::string_view Shown(const std::string& name) {
  std::string_view shown = name;
  if (!shown.empty() && shown.front() == kReservedPrefix) shown.remove_prefix(1);
  return shown;
}

}  // namespace

void Trace::RoundBegins() {
  RecordView();
  round_began_ = Now();
}

void Trace::RoundEnds(const RoundResult& result) {
  if (!on() || !IsSet(round_began_)) return;
  timeline_->Record([&](Event* event) {
    event->row = Row::kRounds;
    event->what = "round";
    event->name.clear();
    event->begin = round_began_;
    event->end = Clock::now();
    event->numbers = {{{"operations", static_cast<int64_t>(result.responses.size())}}};
  });
}

void Trace::OperationBegins(const Response& response, const PendingTable& pending) {
  operation_began_ = Now();
  asked_.clear();
  if (!on()) return;
  for (const Request& request : response.requests) {
    const auto operation = pending.Find(request.key());
    asked_.push_back(operation == nullptr ? Clock::time_point() : operation->asked_at);
  }
}

void Trace::OperationEnds(const Response& response) {
  if (!on() || !IsSet(operation_began_)) return;
  const auto now = Clock::now();
  int64_t bytes = 0;
  Clock::time_point waits_since;  // when this rank had asked for all that it asked for
  for (size_t i = 0; i < response.requests.size(); ++i) {
    const Request& request = response.requests[i];
    const Names names = NamesOf(request.kind);
    bytes += static_cast<int64_t>(request.bytes());
    const auto record = [&](const char* what, Clock::time_point begin, Clock::time_point end) {
      timeline_->Record([&](Event* event) {
        event->row = Row::kTensor;
        event->what = what;
        event->name = Shown(request.name);
        event->begin = begin;
        event->end = end;
        // Tensors with the same number belong to the same operation.
        event->numbers = {{{"number", static_cast<int64_t>(response.number)},
                           {"bytes", static_cast<int64_t>(request.bytes())},
                           {"process_set", request.process_set}}};
      });
    };
    if (i < asked_.size() && IsSet(asked_[i])) {
      record(names.waits, asked_[i], operation_began_);
      waits_since = std::max(waits_since, asked_[i]);
    }
    record(names.runs, operation_began_, now);
  }
  if (IsSet(waits_since)) RecordWait(response, waits_since);
  timeline_->Record([&](Event* event) {
    event->row = Row::kOperations;
    event->what = NamesOf(response.kind()).runs;
    event->name = response.error == RM_OK ? "" : "failed";
    event->begin = operation_began_;
    event->end = now;
    event->numbers = {{{"number", static_cast<int64_t>(response.number)},
                       {"tensors", static_cast<int64_t>(response.requests.size())},
                       {"bytes", bytes},
                       {"process_set", response.process_set()}}};
  });
}

void Trace::RecordWait(const Response& response, Clock::time_point since) {
  timeline_->Record([&](Event* event) {
    event->row = Row::kWaits;
    event->what = NamesOf(response.kind()).waits;
    event->name.clear();
    event->begin = since;
    event->end = operation_began_;
    event->numbers = {{{"number", static_cast<int64_t>(response.number)},
                       {"tensors", static_cast<int64_t>(response.requests.size())},
                       {"process_set", response.process_set()}}};
  });
}

void Trace::StepEnds(uint64_t step) {
  const auto now = Now();
  if (IsSet(now) && IsSet(step_ended_)) {
    timeline_->Record([&](Event* event) {
      event->row = Row::kSteps;
      event->what = "step";
      event->name = std::to_string(step);
      event->begin = step_ended_;
      event->end = now;
      event->numbers = {{{"step", static_cast<int64_t>(step)}}};
    });
  }
  step_ended_ = now;
}

void Trace::ViewBegins(const WorkerView& view) {
  view_.emplace();
  view_->row = Row::kViews;
  view_->what = "view";
  view_->name = ViewNumber(view.epoch) + " (" + view.reason + ")";
  view_->begin = view_->end = Clock::now();
  view_->numbers = {
      {{"view", static_cast<int64_t>(view.epoch)}, {"rank", view.self}, {"size", view.size()}}};
  view_in_ = 0;
  RecordView();
}

// A timeline that begins later gets the view in which it begins, too.
void Trace::RecordView() {
  if (!on() || !view_) return;
  if (const uint64_t newest = timeline_->number(); view_in_ != newest) {
    view_in_ = newest;
    timeline_->Record([&](Event* event) { *event = *view_; });
  }
}

void Trace::Rebuilt(const RebuildTimes& times) {
  if (!on()) return;
  const auto length = [](double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  // The phases follow each other, and the last one ends with the rebuild. The stop is a part of the
  // decision, but a worker that is late may get the new view before it has stopped.
  const auto redone = times.end - length(times.resume);
  const auto connected = redone - length(times.redo);
  const auto stopped = std::min(times.stop_asked + length(times.stop), times.decided);
  if (times.noticed < times.decided) RecordPhase(job::kDecide, times, times.noticed, times.decided);
  if (IsSet(times.stop_asked)) RecordPhase(job::kStop, times, times.stop_asked, stopped);
  RecordPhase(job::kConnect, times, times.decided, connected);
  RecordPhase(job::kRedo, times, connected, redone);
  RecordPhase(job::kResume, times, redone, times.end);
}

void Trace::RecordPhase(const char* phase, const RebuildTimes& times, Clock::time_point begin,
                        Clock::time_point end) {
  timeline_->Record([&](Event* event) {
    event->row = Row::kViews;
    event->what = phase;
    event->name = "for view " + ViewNumber(times.epoch);
    event->begin = begin;
    event->end = end;
    event->numbers = {{{"view", static_cast<int64_t>(times.epoch)}}};
  });
}

}  // namespace ringmaster::engine
