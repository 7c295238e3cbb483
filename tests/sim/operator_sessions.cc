// What sidecars and operator say to each other: votes for the record, and a stream of reports and
// notices for each sidecar. What goes over it is the product's (operator_process.h).
#include <algorithm>
#include <utility>

#include "common/membership/message_json.h"
#include "tests/sim/world.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kPoll = 300 * kMs;
constexpr Micros kConnect = 2 * kSecond;  // as long as an attempt to reach the operator may take

}  // namespace

// ---- The record

void World::AskRecord(int index, const membership::Message& message) {
  if (!ReachesOperator(index) || network_.Loses()) return;
  const Micros asked = time_.now();
  auto text = membership::EncodeMessage(message);
  time_.After(
      random_.Between(500, 10 * kMs), [this, index, asked, text, life = pods_[index]->life] {
        if (!ReachesOperator(index)) return;
        const auto answer = operators_.AskRecord(text);
        if (!answer || network_.Loses()) return;
        time_.After(random_.Between(500, 10 * kMs), [this, index, asked, answer = *answer, life] {
          if (!ReachesOperator(index) || time_.now() - asked > 500 * kMs) return;
          ToAgent(index, life, [answer](Agent& agent) { agent.peers().OnRecordAnswer(answer); });
        });
      });
}

// ---- The streams

bool World::ReachesOperator(int index) const {
  return operators_.running() && network_.ReachesOperator(index);
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
                               std::int64_t deadline) {
    agent().orders().OnDrain(pods, reason, deadline);
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
    pod.to_operator.number = operators_.OpenStream(index);
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
  stream.reports = std::max(stream.reports, time_.now() + network_.LinkDelay());
  time_.At(stream.reports, [this, index, number = stream.number] {
    OperatorStream& now = pods_[index]->to_operator;
    if (now.number != number || now.unsent.empty()) return;
    if (!ReachesOperator(index)) {
      ++now.held_up;
      return operators_.LoseStream(number, false);
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
    operators_.LoseStream(number, ReachesOperator(index));
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
  const bool established = operators_.Has(pod.to_operator.number);
  if (established && ReachesOperator(index)) return;
  if (!established && time_.now() < pod.to_operator.begun + kConnect) return;
  StreamEnds(index);
}

void World::OperatorHears(int index, std::uint64_t number, const v1::SidecarReport& report) {
  // Of another process that was there before.
  if (!report.has_registration() && !operators_.Has(number)) return;
  const std::string refused = operators_.Take(number, report);
  if (!refused.empty()) {
    journal_.Trace([&] { return "operator refuses " + pods_[index]->uid + ": " + refused; });
    time_.After(network_.LinkDelay(), [this, index, number] {
      if (pods_[index]->to_operator.number == number) StreamEnds(index);
    });
  }
  operators_.Wake();
}

void World::SendNotice(std::uint64_t number, const v1::OperatorNotice& notice) {
  const int index = operators_.PodOf(number);
  OperatorStream& stream = pods_[index]->to_operator;
  if (stream.number != number) return;
  // An operator that is busy answers late, and all that it says on the stream afterwards is later.
  const Micros delay = random_.Between(200, random_.Chance(10) ? 2 * kSecond : 5 * kMs);
  stream.notices = std::max(stream.notices, time_.now() + delay);
  time_.At(stream.notices, [this, index, number, notice] {
    if (pods_[index]->to_operator.number != number) return;
    if (!ReachesOperator(index)) return operators_.LoseStream(number, false);
    ToAgent(index, pods_[index]->life, [this, index, number, notice](Agent&) {
      if (pods_[index]->to_operator.number == number) pods_[index]->session->OnNotice(notice);
    });
  });
}

}  // namespace ringmaster::app::sim
