// The operator's processes: their streams to the sidecars, their watches and calls, and when they
// look at the job. What they do is the product's (operator_process.h).
#include <algorithm>
#include <utility>

#include "common/membership/message_json.h"
#include "operator/app/notice_proto.h"
#include "operator/kube/resources.h"
#include "tests/sim/world.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kPoll = 300 * kMs;
constexpr Micros kConnect = 2 * kSecond;  // as long as an attempt to reach the operator may take

}  // namespace

// ---- The process

runtime::Clock World::OperatorClock() {
  runtime::Clock clock;
  clock.wall = [this] {
    return std::chrono::system_clock::time_point(std::chrono::milliseconds(kUnixMs) +
                                                 std::chrono::microseconds(time_.now()));
  };
  clock.steady = [this] {
    return std::chrono::steady_clock::time_point(std::chrono::microseconds(time_.now()));
  };
  clock.jitter = [this](std::chrono::milliseconds wait, int n) {
    return wait + std::chrono::milliseconds(random_.Below(wait.count() / n + 1));
  };
  return clock;
}

void World::StartOperator() {
  if (operator_ != nullptr) return;
  Trace([] { return std::string("an operator starts"); });
  ++operator_life_;
  operator_ = std::make_unique<OperatorProcess>(
      std::make_shared<OperatorsApi>(api_.get(), [this] { return FateOfCall(); }),
      OperatorProcessOptions{.clock = OperatorClock(),
                             .proof_finalizer = options_.proof_finalizer,
                             .forgets = options_.forgets},
      [this](std::uint64_t stream, const v1::OperatorNotice& notice) {
        SendNotice(stream, notice);
      });
  for (const kube::Resource* resource : {&kube::HorovodJobs(), &kube::Pods()}) {
    for (const ObjectPtr& object : api_->All(*resource))
      operator_->Take(*resource, {kube::WatchEvent::Type::kAdded, *object});
  }
  OperatorWakes();
}

// Another begins after a while: it knows only what the API server has, and hears the rest from the
// sidecars. The one before may not know yet that it is none any more: it takes part in votes, and
// acts once more on what it knew.
void World::OperatorStops(Micros away, bool overlaps) {
  former_ = std::move(operator_);
  ++operator_life_;
  if (former_ == nullptr) return;
  const Micros longest = options_.at_operators ? 6 * kSecond : 3 * kSecond;
  const Micros until = overlaps ? random_.Between(0, away + longest) : 0;
  time_.After(until, [this, former = former_.get()] {
    if (former_.get() != former) return;
    if (former->NextLook() && random_.Chance(500)) OperatorLooks(former);
    former_.reset();
  });
  time_.After(away, [this] { StartOperator(); });
}

CallFate World::FateOfCall() {
  if (time_.now() >= api_fails_until_ || !random_.Chance(400)) return CallFate::kDone;
  ++coverage_.calls_failed;
  return random_.Chance(500) ? CallFate::kRefused : CallFate::kAnswerLost;
}

// It is busy with other jobs, too.
void World::OperatorWakes() {
  if (operator_ == nullptr) return;
  const auto due = operator_->NextLook();
  if (!due) return;
  const Micros at =
      std::max<Micros>(
          time_.now(),
          std::chrono::duration_cast<std::chrono::microseconds>(due->time_since_epoch()).count() +
              1) +
      random_.Between(kMs, random_.Chance(20) ? kSecond : 20 * kMs);
  if (look_set_ && look_at_ <= at) return;
  look_set_ = true;
  look_at_ = at;
  time_.At(at, [this, number = ++look_number_] {
    if (number != look_number_) return;
    look_set_ = false;
    if (operator_ != nullptr) OperatorLooks(operator_.get());
    OperatorWakes();
  });
}

void World::OperatorLooks(OperatorProcess* process) {
  const auto due = process->NextLook();
  if (!due || *due > OperatorClock().steady()) return;
  ++coverage_.looks;
  process->LookAtNext();
}

void World::TellOperator(const kube::Resource& resource, const Change& change) {
  if (operator_ == nullptr) return;
  const Micros late = random_.Chance(50) ? 900 * kMs : 10 * kMs;
  const bool stalls = options_.at_operators && random_.Chance(30);
  watch_ = std::max(watch_, time_.now() + random_.Between(kMs, stalls ? 6 * kSecond : late));
  time_.At(watch_, [this, &resource, change, life = operator_life_] {
    if (life != operator_life_ || operator_ == nullptr) return;
    operator_->Take(resource, {change.type, *change.object});
    OperatorWakes();
  });
}

void World::AskRecord(int index, const membership::Message& message) {
  if (!ReachesOperator(index) || random_.Chance(loss_)) return;
  const Micros asked = time_.now();
  auto text = membership::EncodeMessage(message);
  time_.After(
      random_.Between(500, 10 * kMs), [this, index, asked, text, life = pods_[index]->life] {
        if (!ReachesOperator(index)) return;
        const bool former = former_ != nullptr && random_.Chance(500);
        const auto answer = (former ? former_ : operator_)->AskRecord(text);
        if (!answer || random_.Chance(loss_)) return;
        time_.After(random_.Between(500, 10 * kMs), [this, index, asked, answer = *answer, life] {
          if (!ReachesOperator(index) || time_.now() - asked > 500 * kMs) return;
          ToAgent(index, life, [answer](Agent& agent) { agent.peers().OnRecordAnswer(answer); });
        });
      });
}

// ---- The streams

bool World::ReachesOperator(int index) const {
  return operator_ != nullptr && !(operator_apart_ && side_[index] == 1);
}

// What is under way on a stream is lost only with the stream: both ends find out.
void World::OperatorLoses(std::uint64_t stream, bool at_once) {
  if (operator_ == nullptr || stream == 0) return;
  const Micros late = at_once ? LinkDelay() : random_.Between(kSecond, 8 * kSecond);
  time_.After(late, [this, stream, life = operator_life_] {
    if (life != operator_life_ || operator_ == nullptr) return;
    operator_->StreamEnded(stream);
    OperatorWakes();
  });
}

void World::OpenSession(int index) {
  SimPod& pod = *pods_[index];
  job::Registration registration;
  registration.job_namespace = "default";
  registration.job_name = registration.job_uid = "job";
  registration.pod_name = pod.name;
  registration.pod_uid = pod.uid;
  registration.http_address = pod.uid + ":1";
  registration.epoch = pod.news;
  rendezvous::OperatorSession::Forgets forgets;
  forgets.readiness = options_.without.Has(GlueClause::kReadyAgain);
  forgets.view = options_.without.Has(GlueClause::kViewAgain);
  pod.to_operator = OperatorStream();
  pod.to_operator.carry = [this, index] { CarryReport(index); };
  pod.session = std::make_unique<rendezvous::OperatorSession>(std::move(registration),
                                                              CallbacksOf(index), forgets);
}

// As Sidecar has them. They are called from work that ToAgent() does.
rendezvous::OperatorCallbacks World::CallbacksOf(int index) {
  const auto agent = [this, index]() -> Agent& { return *pods_[index]->agent; };
  rendezvous::OperatorCallbacks callbacks;
  callbacks.on_connection = [agent](bool connected) { agent().orders().OnConnection(connected); };
  callbacks.on_accepted = [agent] { agent().orders().OnAccepted(); };
  callbacks.on_found = [agent](const std::string& view) { agent().orders().OnViewDecided(view); };
  callbacks.on_drain = [agent](const std::vector<std::string>& pods, const std::string& reason,
                               std::int64_t deadline, std::optional<std::int64_t> left_ms) {
    agent().orders().OnDrain(pods, reason, deadline, left_ms);
  };
  callbacks.on_pod_gone = [agent](const std::string& pod, const std::string& reason) {
    agent().peers().OnSuspect(pod, reason);
  };
  callbacks.on_target = [agent](std::uint32_t min_pods, std::uint32_t expected) {
    agent().orders().OnTarget(min_pods, expected);
  };
  callbacks.on_finish = [agent](const std::string& reason) { agent().orders().OnFinish(reason); };
  callbacks.on_recover = [agent](std::uint64_t lineage, bool fresh) {
    agent().orders().OnRecover(lineage, fresh);
  };
  return callbacks;
}

void World::DialOperator(int index, std::uint32_t life) {
  ToAgent(index, life, [this, index](Agent&) {
    SimPod& pod = *pods_[index];
    pod.to_operator.unsent.clear();
    pod.to_operator.held_up = 0;
    pod.to_operator.number = next_operator_stream_++;
    operator_streams_[pod.to_operator.number] = index;
    pod.to_operator.begun = time_.now();
    pod.session->Begin(&pod.to_operator);
    if (ReachesOperator(index)) return;
    // Refused at once, or nobody answers.
    time_.After(random_.Between(kMs, kConnect), [this, index, number = pod.to_operator.number] {
      if (pods_[index]->to_operator.number == number) StreamEnds(index);
    });
  });
}

void World::CarryReport(int index) {
  OperatorStream& stream = pods_[index]->to_operator;
  stream.reports = std::max(stream.reports, time_.now() + LinkDelay());
  time_.At(stream.reports, [this, index, number = stream.number] {
    OperatorStream& now = pods_[index]->to_operator;
    if (now.number != number || now.unsent.empty()) return;
    if (!ReachesOperator(index)) {
      ++now.held_up;
      return OperatorLoses(number, false);
    }
    // Whatever was held up on a stream that an operator takes after all comes first.
    for (int left = 1 + std::exchange(now.held_up, 0); left > 0 && now.number == number; --left) {
      if (now.unsent.empty()) return;
      const v1::SidecarReport report = std::move(now.unsent.front().report);
      now.unsent.pop_front();
      OperatorHears(index, number, report);
    }
  });
}

void World::StreamEnds(int index) {
  const std::uint64_t number = pods_[index]->to_operator.number;
  ToAgent(index, pods_[index]->life, [this, index, number](Agent&) {
    SimPod& pod = *pods_[index];
    if (pod.to_operator.number != number) return;
    OperatorLoses(number, ReachesOperator(index));
    pod.to_operator.number = 0;
    std::vector<rendezvous::QueuedReport> unsent;
    for (auto& queued : std::exchange(pod.to_operator.unsent, {})) {
      if (queued.must_arrive) unsent.push_back(std::move(queued));
    }
    const Micros wait = pod.session->End(std::move(unsent)).count() * kMs;
    time_.After(wait, [this, index, life = pod.life] { DialOperator(index, life); });
  });
}

// Notices that the stream is broken: by keep-alive, or because its other end says so.
void World::OperatorPoll(int index) {
  SimPod& pod = *pods_[index];
  if (pod.agent == nullptr) return;
  time_.After(kPoll, [this, index, life = pod.life] {
    if (pods_[index]->life == life) OperatorPoll(index);
  });
  if (Asleep(pod) || pod.to_operator.number == 0) return;
  const bool established = operator_ != nullptr && operator_->Has(pod.to_operator.number);
  if (established && ReachesOperator(index)) return;
  if (!established && time_.now() < pod.to_operator.begun + kConnect) return;
  StreamEnds(index);
}

void World::OperatorHears(int index, std::uint64_t number, const v1::SidecarReport& report) {
  // Of another process that was there before.
  if (!report.has_registration() && !operator_->Has(number)) return;
  const std::string refused = operator_->Take(number, report);
  if (!refused.empty()) {
    Trace([&] { return "operator refuses " + pods_[index]->uid + ": " + refused; });
    time_.After(LinkDelay(), [this, index, number] {
      if (pods_[index]->to_operator.number == number) StreamEnds(index);
    });
  }
  OperatorWakes();
}

void World::SendNotice(std::uint64_t number, v1::OperatorNotice notice) {
  AddTimeLeft(kUnixMs + time_.now() / kMs, &notice);
  const int index = operator_streams_.at(number);
  OperatorStream& stream = pods_[index]->to_operator;
  if (stream.number != number) return;
  // An operator that is busy answers late, and all that it says on the stream afterwards is later.
  const Micros delay = random_.Between(200, random_.Chance(10) ? 2 * kSecond : 5 * kMs);
  stream.notices = std::max(stream.notices, time_.now() + delay);
  time_.At(stream.notices, [this, index, number, notice] {
    if (pods_[index]->to_operator.number != number) return;
    if (!ReachesOperator(index)) return OperatorLoses(number, false);
    ToAgent(index, pods_[index]->life, [this, index, number, notice](Agent&) {
      if (pods_[index]->to_operator.number == number) pods_[index]->session->OnNotice(notice);
    });
  });
}

}  // namespace ringmaster::app::sim
