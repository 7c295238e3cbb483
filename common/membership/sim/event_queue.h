// What happens next in a simulated schedule, and the messages that are under way in it.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <queue>
#include <vector>

#include "common/membership/member.h"

namespace ringmaster::membership::sim {

using Micros = std::int64_t;
inline constexpr Micros kMs = 1000;

// Behind each kind stands what the fields of its SimEvent mean; `a` alone is a pod.
enum class Kind : std::uint8_t {
  kDeliver,      // a, b: from, to; message
  kToRecord,     // a: from; message; b: operator
  kFromRecord,   // b: to; message
  kTimer,        // a; x: life
  kHeartbeats,   // a; x: life
  kToWorker,     // a, b: pod, slot; command; x: epoch; y: worker incarnation
  kFromWorker,   // the same, but y: worker incarnation << 32 | life of the sidecar
  kWorkersSeen,  // a; x: life
  kStep,         // x: epoch
  kFault,
  kStartSidecar,  // a
  kStartWorker,   // a, b
  kReset,         // a hears at once that b is gone
  kNotifyView,    // a: ViewDecided
  kHeal,
  kCheck,
  kEndCut,          // a, b
  kRecovery,        // b: operator
  kAsked,           // a; x: lineage; y: begin again with fresh workers
  kRecoveryReport,  // a: from; b: operator; message: index of the report
};

enum class Command : std::uint8_t { kStop, kView, kArm, kStopped, kBoundary, kRan, kEnter };

struct SimEvent {
  Micros at;
  std::uint64_t order;
  Kind kind;
  Command command;
  std::int16_t a, b;
  std::uint32_t message;
  std::uint64_t x, y;
  bool operator<(const SimEvent& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};

class EventQueue {
 public:
  Micros now() const { return now_; }
  TimePoint time_point() const { return TimePoint(std::chrono::microseconds(now_)); }

  // Events of the same moment keep their order.
  void At(Micros at, Kind kind, int a = 0, int b = 0, std::uint64_t x = 0, std::uint64_t y = 0,
          Command command = Command::kStop, std::uint32_t message = 0) {
    queue_.push({at, ++order_, kind, command, static_cast<std::int16_t>(a),
                 static_cast<std::int16_t>(b), message, x, y});
  }
  void After(Micros delay, Kind kind, int a = 0, int b = 0, std::uint64_t x = 0,
             std::uint64_t y = 0, Command command = Command::kStop, std::uint32_t message = 0) {
    At(now_ + delay, kind, a, b, x, y, command, message);
  }
  bool empty() const { return queue_.empty(); }
  // Takes the next event, and its moment is now.
  SimEvent Next();

  // Keeps a message until it is taken by its number.
  std::uint32_t Keep(Message&& message);
  Message Take(std::uint32_t number);
  // Reports are kept for ever: each is read once, and there are few.
  std::uint32_t KeepReport(RecoveryReport report);
  const RecoveryReport& Report(std::uint32_t number) const { return reports_[number]; }

 private:
  Micros now_ = 1000 * kMs;
  std::uint64_t order_ = 0;
  std::priority_queue<SimEvent> queue_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::vector<RecoveryReport> reports_;
};

}  // namespace ringmaster::membership::sim
