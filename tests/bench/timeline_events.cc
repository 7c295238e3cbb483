// What recording costs the engine's thread: nanoseconds an event where nothing is on, and where the
// newest events are kept in memory, as they are under a sidecar; and how long it takes to tell
// them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "collectives/timeline/timeline.h"

namespace {

using namespace ringmaster::timeline;

constexpr int kEvents = 2'000, kRepeats = 200;

// As the engine's trace does it for a tensor. The clock is read once for two such events there.
void Record(Timeline* timeline, const std::vector<std::string>& names, int i) {
  if (!timeline->on()) return;
  const auto now = Clock::now();
  timeline->Record([&](Event* event) {
    event->row = Row::kTensor;
    event->what = "ALLREDUCE";
    event->name = names[static_cast<size_t>(i) % names.size()];
    event->begin = event->end = now;
    event->numbers = {{{"bytes", i}, {"process_set", 0}}};
  });
}

// The median over bursts: the machine has other work. `cold`: between bursts, each as long as a
// step's, something else has used the caches.
double NanosecondsAnEvent(Timeline* timeline, bool cold = false) {
  const int events = cold ? 250 : kEvents;
  std::vector<char> other(cold ? 64u << 20 : 0);
  std::vector<std::string> names;
  for (int i = 0; i < 161; ++i)
    names.push_back("DistributedOptimizer.layer4." + std::to_string(i) + ".conv2.weight");
  std::vector<double> bursts;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::fill(other.begin(), other.end(), static_cast<char>(repeat));
    const auto begin = Clock::now();
    for (int i = 0; i < events; ++i) Record(timeline, names, i);
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    bursts.push_back(took.count() / events);
  }
  std::nth_element(bursts.begin(), bursts.begin() + kRepeats / 2, bursts.end());
  return bursts[kRepeats / 2];
}

}  // namespace

int main() {
  Timeline timeline;
  std::printf("nothing on      %6.0f ns an event\n", NanosecondsAnEvent(&timeline));
  timeline.KeepRecent();
  std::printf("in memory       %6.0f ns an event\n", NanosecondsAnEvent(&timeline));
  std::printf("caches cold     %6.0f ns an event\n", NanosecondsAnEvent(&timeline, true));
  const auto begin = Clock::now();
  size_t bytes = 0;
  for (const std::string& piece :
       timeline.Recent({.span = std::chrono::hours(1), .most_bytes = 64u << 20}))
    bytes += piece.size();
  const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
  std::printf("to tell it      %6.0f ms, %.1f MB, on another thread\n", took.count(),
              static_cast<double>(bytes) / 1e6);
  return 0;
}
