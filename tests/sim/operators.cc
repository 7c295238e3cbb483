#include "tests/sim/operators.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "operator/kube/resources.h"

namespace ringmaster::app::sim {

runtime::Clock OperatorClock(const Timeline* time, Random* random) {
  runtime::Clock clock;
  clock.wall = [time] {
    return std::chrono::system_clock::time_point(std::chrono::milliseconds(kUnixMs) +
                                                 std::chrono::microseconds(time->now()));
  };
  clock.steady = [time] {
    return std::chrono::steady_clock::time_point(std::chrono::microseconds(time->now()));
  };
  clock.jitter = [random](std::chrono::milliseconds wait, int n) {
    return wait + std::chrono::milliseconds(random->Below(wait.count() / n + 1));
  };
  return clock;
}

// ---- The process

void Operators::Start() {
  if (current_ != nullptr) return;
  parts_.journal.Trace([] { return std::string("an operator starts"); });
  ++life_;
  current_ = std::make_unique<OperatorProcess>(
      std::make_shared<OperatorsApi>(&parts_.api, [this] { return FateOfCall(); }),
      OperatorProcessOptions{.clock = OperatorClock(&parts_.time, &parts_.random),
                             .proof_finalizer = parts_.options.proof_finalizer,
                             .forgets = parts_.options.forgets},
      parts_.send);
  for (const kube::Resource* resource : {&kube::HorovodJobs(), &kube::Pods()}) {
    for (const ObjectPtr& object : parts_.api.All(*resource))
      current_->Take(*resource, {kube::WatchEvent::Type::kAdded, *object});
  }
  Wake();
}

// Another begins after a while: it knows only what the API server has, and hears the rest from the
// sidecars. The one before may not know yet that it is none any more: it takes part in votes, and
// acts once more on what it knew.
void Operators::Stop(Micros away, bool overlaps) {
  former_ = std::move(current_);
  ++life_;
  if (former_ == nullptr) return;
  const Micros longest = parts_.options.at_operators ? 6 * kSecond : 3 * kSecond;
  const Micros until = overlaps ? parts_.random.Between(0, away + longest) : 0;
  parts_.time.After(until, [this, former = former_.get()] {
    if (former_.get() != former) return;
    if (former->NextLook() && parts_.random.Chance(500)) Look(former);
    former_.reset();
  });
  parts_.time.After(away, [this] { Start(); });
}

CallFate Operators::FateOfCall() {
  if (parts_.time.now() >= calls_fail_until_ || !parts_.random.Chance(400)) return CallFate::kDone;
  ++parts_.journal.coverage().calls_failed;
  return parts_.random.Chance(500) ? CallFate::kRefused : CallFate::kAnswerLost;
}

// It is busy with other jobs, too.
void Operators::Wake() {
  if (current_ == nullptr) return;
  const auto due = current_->NextLook();
  if (!due) return;
  const Micros at =
      std::max<Micros>(
          parts_.time.now(),
          std::chrono::duration_cast<std::chrono::microseconds>(due->time_since_epoch()).count() +
              1) +
      parts_.random.Between(kMs, parts_.random.Chance(20) ? kSecond : 20 * kMs);
  if (look_at_ && *look_at_ <= at) return;
  look_at_ = at;
  parts_.time.At(at, [this, number = ++look_number_] {
    if (number != look_number_) return;
    look_at_.reset();
    if (current_ != nullptr) Look(current_.get());
    Wake();
  });
}

void Operators::Look(OperatorProcess* process) {
  const auto due = process->NextLook();
  if (!due || *due > OperatorClock(&parts_.time, &parts_.random).steady()) return;
  ++parts_.journal.coverage().looks;
  process->LookAtNext();
}

void Operators::Tell(const kube::Resource& resource, const Change& change) {
  if (current_ == nullptr) return;
  Random& random = parts_.random;
  const Micros late = random.Chance(50) ? 900 * kMs : 10 * kMs;
  const bool stalls = parts_.options.at_operators && random.Chance(30);
  watch_ = std::max(watch_, parts_.time.now() + random.Between(kMs, stalls ? 6 * kSecond : late));
  parts_.time.At(watch_, [this, &resource, change, life = life_] {
    if (life != life_ || current_ == nullptr) return;
    current_->Take(resource, {change.type, *change.object});
    Wake();
  });
}

std::optional<std::string> Operators::AskRecord(const std::string& message) {
  const bool former = former_ != nullptr && parts_.random.Chance(500);
  auto answer = (former ? former_ : current_)->AskRecord(message);
  if (!answer) return std::nullopt;
  return std::move(*answer);
}

// ---- The streams

std::uint64_t Operators::OpenStream(int pod) {
  streams_[next_stream_] = pod;
  return next_stream_++;
}

std::string Operators::Take(std::uint64_t stream, const v1::SidecarReport& report) {
  return current_->Take(stream, report);
}

// What is under way on a stream is lost only with the stream: both ends find out.
void Operators::LoseStream(std::uint64_t stream, bool at_once) {
  if (current_ == nullptr || stream == 0) return;
  const Micros late =
      at_once ? parts_.network.LinkDelay() : parts_.random.Between(kSecond, 8 * kSecond);
  parts_.time.After(late, [this, stream, life = life_] {
    if (life != life_ || current_ == nullptr) return;
    current_->StreamEnded(stream);
    Wake();
  });
}

}  // namespace ringmaster::app::sim
