#include "sidecar/app/worker_timelines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "common/fields/fields.h"

namespace ringmaster::app {
namespace {

// Of workers that are in no view: above all ranks.
constexpr int kFirstWithoutRank = 100'000;
// Of one worker: the names of its rows, and some events.
constexpr size_t kLeastBytes = 4096;

bool CanTell(const WorkerProcess& worker) {
  return !worker.standby() && worker.connection.welcomed() && worker.connection.keeps_timeline();
}

}  // namespace

// ---- One answer

WorkerTimeline* TimelineGathering::Awaited(uint64_t connection) {
  for (WorkerTimeline& worker : workers_) {
    if (worker.connection == connection && !worker.whole && worker.missing.empty()) return &worker;
  }
  return nullptr;
}

void TimelineGathering::OnPiece(uint64_t connection, const nlohmann::json& frame) {
  WorkerTimeline* const worker = connection == 0 ? nullptr : Awaited(connection);
  if (worker == nullptr) return;
  const std::string piece = fields::Text(frame, "text");
  if (worker->text.size() + piece.size() > most_bytes_) {
    worker->text.clear();
    worker->missing = "it told more than it was asked for";
    return;
  }
  worker->text += piece;
  worker->whole = fields::Flag(frame, "last");
}

void TimelineGathering::OnClosed(uint64_t connection) {
  if (WorkerTimeline* const worker = connection == 0 ? nullptr : Awaited(connection))
    worker->missing = "its connection closed";
}

bool TimelineGathering::Done(SteadyTime now) {
  const auto awaited = [](const WorkerTimeline& w) { return !w.whole && w.missing.empty(); };
  if (now < deadline_) return std::none_of(workers_.begin(), workers_.end(), awaited);
  for (WorkerTimeline& worker : workers_) {
    if (awaited(worker)) worker.missing = "it did not answer in time";
  }
  return true;
}

// ---- All that are under way

// A worker may still hold the answer to a question of the sidecar before this one.
WorkerTimelines::WorkerTimelines(SendFrame send)
    : send_(std::move(send)), newest_(uint64_t{std::random_device{}()} << 16) {}

void WorkerTimelines::ForgetDone(SteadyTime now) {
  std::erase_if(under_way_, [&](const auto& gathering) {
    return gathering.use_count() == 1 && gathering->Done(now);
  });
}

std::shared_ptr<TimelineGathering> WorkerTimelines::Ask(const TimelineAsk& ask,
                                                        const std::vector<WorkerProcess>& workers,
                                                        const PodView& view, SteadyTime now) {
  ForgetDone(now);
  if (under_way_.size() >= kMostAtOnce) return nullptr;
  const auto tell = std::max<size_t>(1, std::count_if(workers.begin(), workers.end(), CanTell));
  const size_t each = std::max(kLeastBytes, static_cast<size_t>(ask.bytes) / tell);
  auto gathering = std::make_shared<TimelineGathering>(++newest_, now + kPatience, each);
  under_way_.push_back(gathering);
  for (const WorkerProcess& worker : workers) {
    if (worker.standby()) continue;
    WorkerTimeline expected{.slot = worker.slot(),
                            .incarnation = worker.identity.incarnation(),
                            .rank = view.RankOf(worker)};
    expected.process = expected.rank >= 0 ? expected.rank : kFirstWithoutRank + worker.slot();
    if (!worker.connection.welcomed()) {
      expected.missing = "it is not connected";
    } else if (!worker.connection.keeps_timeline()) {
      expected.missing = "it keeps no timeline";
    } else {
      expected.connection = worker.connection.id();
    }
    gathering->Expect(expected);
    if (expected.connection == 0) continue;
    send_(expected.connection, {{"t", "timeline"},
                                {"request", gathering->number()},
                                {"process", expected.process},
                                {"seconds", ask.seconds},
                                {"tensors", ask.tensors},
                                {"bytes", each}});
  }
  return gathering;
}

void WorkerTimelines::Forget(uint64_t number) {
  std::erase_if(under_way_, [&](const auto& gathering) { return gathering->number() == number; });
}

void WorkerTimelines::OnPiece(const WorkerProcess& worker, const nlohmann::json& frame) {
  const uint64_t request = fields::Unsigned(frame, "request");
  for (const auto& gathering : under_way_) {
    if (gathering->number() == request) gathering->OnPiece(worker.connection.id(), frame);
  }
}

void WorkerTimelines::OnClosed(uint64_t connection) {
  for (const auto& gathering : under_way_) gathering->OnClosed(connection);
}

}  // namespace ringmaster::app
