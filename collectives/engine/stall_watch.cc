#include "collectives/engine/stall_watch.h"

#include <algorithm>
#include <utility>

namespace ringmaster::engine {
namespace {

std::int64_t MsSince(StallWatch::Clock::time_point since, StallWatch::Clock::time_point now) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - since).count();
}

job::Stall StallOf(const Unanswered& waiting, StallWatch::Clock::time_point now) {
  return {.tensor = waiting.tensor,
          .process_set = waiting.process_set,
          .asked = static_cast<int>(waiting.asked.size()),
          .waiting = waiting.asked,
          .missing = waiting.missing,
          .in_shutdown = waiting.in_shutdown,
          .waited_ms = MsSince(waiting.since, now)};
}

// Adds a stall. Operations that wait for the same ranks become one stall.
void Add(job::Stall stall, std::vector<job::Stall>* stalls) {
  const auto same = std::find_if(stalls->begin(), stalls->end(), [&](const job::Stall& other) {
    return other.process_set == stall.process_set && other.missing == stall.missing;
  });
  if (same == stalls->end()) return stalls->push_back(std::move(stall));
  const int tensors = same->tensors + 1;
  if (stall.waited_ms > same->waited_ms) *same = std::move(stall);
  same->tensors = tensors;
}

// Whether these are the same stalls, no matter how long they last.
bool Same(std::vector<job::Stall> one, std::vector<job::Stall> other) {
  for (auto* stalls : {&one, &other}) {
    for (job::Stall& stall : *stalls) stall.waited_ms = 0;
  }
  return one == other;
}

}  // namespace

bool StallWatch::Update(const std::vector<Unanswered>& waiting, int self, Clock::time_point now) {
  std::vector<job::Stall> stalls;
  std::set<Key> told;
  give_up_.clear();
  for (const Unanswered& one : waiting) {
    job::Stall stall = StallOf(one, now);
    const bool may_end = limits_.give_up.count() > 0 && !one.is_shutdown;
    if (may_end && stall.waited_ms >= limits_.give_up.count()) {
      give_up_ = "stalled for " + std::to_string(stall.waited_ms / 1000) +
                 " s (HOROVOD_STALL_SHUTDOWN_TIME_SECONDS): " + job::Describe(stall);
    }
    const Key key(one.tensor, one.process_set);
    if (one.asked.front() != self && !told_.contains(key)) continue;
    told.insert(key);
    Add(std::move(stall), &stalls);
  }
  told_ = std::move(told);
  const bool news = !Same(stalls, stalls_);
  if (news) stalls_ = std::move(stalls);
  return news;
}

}  // namespace ringmaster::engine
