#include "tests/sim/operator_sessions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/membership/message_json.h"
#include "operator/app/notice_proto.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kPoll = 300 * kMs;
constexpr Micros kConnect = 2 * kSecond;  // as long as an attempt to reach the operator may take

}  // namespace

// ---- The record

void OperatorSessions::AskRecord(int index, const membership::Message& message) {
  if (!ReachesOperator(index) || parts_.network.Loses()) return;
  const Micros asked = parts_.time.now();
  auto text = membership::EncodeMessage(message);
  parts_.time.After(parts_.random.Between(500, 10 * kMs), [this, index, asked, text,
                                                           life = parts_.pods[index]->life] {
    if (!ReachesOperator(index)) return;
    const auto answer = parts_.operators.AskRecord(text);
    if (!answer || parts_.network.Loses()) return;
    parts_.time.After(
        parts_.random.Between(500, 10 * kMs), [this, index, asked, answer = *answer, life] {
          if (!ReachesOperator(index) || parts_.time.now() - asked > 500 * kMs) return;
          parts_.to_agent(index, life,
                          [answer](Agent& agent) { agent.peers().OnRecordAnswer(answer); });
        });
  });
}

// ---- The streams

bool OperatorSessions::ReachesOperator(int index) const {
  return parts_.operators.running() && parts_.network.ReachesOperator(index);
}

void OperatorSessions::Open(int index) {
  SimPod& pod = *parts_.pods[index];
  job::Registration registration;
  registration.job_namespace = "default";
  registration.job_name = registration.job_uid = "job";
  registration.pod_name = pod.name;
  registration.pod_uid = pod.uid;
  registration.http_address = pod.uid + ":1";
  registration.epoch = pod.news;
  rendezvous::OperatorSession::Forgets forgets;
  forgets.readiness = parts_.options.without.Has(GlueClause::kReadyAgain);
  forgets.view = parts_.options.without.Has(GlueClause::kViewAgain);
  pod.to_operator = OperatorStream();
  pod.to_operator.carry = [this, index] { Carry(index); };
  pod.session = std::make_unique<rendezvous::OperatorSession>(std::move(registration),
                                                              CallbacksOf(index), forgets);
}

// As Sidecar has them. They are called from work that parts_.to_agent() does.
rendezvous::OperatorCallbacks OperatorSessions::CallbacksOf(int index) {
  const auto agent = [this, index]() -> Agent& { return *parts_.pods[index]->agent; };
  rendezvous::OperatorCallbacks callbacks;
  callbacks.on_connection = [agent](bool connected) { agent().orders().OnConnection(connected); };
  callbacks.on_accepted = [agent] { agent().orders().OnAccepted(); };
  callbacks.on_found = [agent](const std::string& view) { agent().orders().OnViewDecided(view); };
  callbacks.on_drain = [agent](const std::vector<std::string>& pods, const std::string& reason,
                               std::int64_t deadline, std::optional<std::int64_t> left_ms,
                               std::optional<bool> all_leave) {
    agent().orders().OnDrain(pods, reason, deadline, left_ms, all_leave);
  };
  callbacks.on_pod_gone = [agent](const std::string& pod, const std::string& reason) {
    agent().peers().OnSuspect(pod, reason);
  };
  callbacks.on_target = [agent](const membership::Sizes& sizes, std::uint32_t expected) {
    agent().orders().OnTarget(sizes, expected);
  };
  callbacks.on_finish = [agent](const std::string& reason) { agent().orders().OnFinish(reason); };
  callbacks.on_recover = [agent](std::uint64_t lineage, bool fresh) {
    agent().orders().OnRecover(lineage, fresh);
  };
  return callbacks;
}

void OperatorSessions::Dial(int index, std::uint32_t life) {
  parts_.to_agent(index, life, [this, index](Agent&) {
    SimPod& pod = *parts_.pods[index];
    pod.to_operator.unsent.clear();
    pod.to_operator.held_up = 0;
    pod.to_operator.number = parts_.operators.OpenStream(index);
    pod.to_operator.begun = parts_.time.now();
    pod.session->Begin(&pod.to_operator);
    if (ReachesOperator(index)) return;
    // Refused at once, or nobody answers.
    parts_.time.After(parts_.random.Between(kMs, kConnect),
                      [this, index, number = pod.to_operator.number] {
                        if (parts_.pods[index]->to_operator.number == number) End(index);
                      });
  });
}

void OperatorSessions::Carry(int index) {
  OperatorStream& stream = parts_.pods[index]->to_operator;
  stream.reports = std::max(stream.reports, parts_.time.now() + parts_.network.LinkDelay());
  parts_.time.At(stream.reports, [this, index, number = stream.number] {
    OperatorStream& now = parts_.pods[index]->to_operator;
    if (now.number != number || now.unsent.empty()) return;
    if (!ReachesOperator(index)) {
      ++now.held_up;
      return parts_.operators.LoseStream(number, false);
    }
    // Whatever was held up on a stream that an operator takes after all comes first.
    for (int left = 1 + std::exchange(now.held_up, 0); left > 0 && now.number == number; --left) {
      if (now.unsent.empty()) return;
      const v1::SidecarReport report = std::move(now.unsent.front().report);
      now.unsent.pop_front();
      Hear(index, number, report);
    }
  });
}

void OperatorSessions::End(int index) {
  const std::uint64_t number = parts_.pods[index]->to_operator.number;
  parts_.to_agent(index, parts_.pods[index]->life, [this, index, number](Agent&) {
    SimPod& pod = *parts_.pods[index];
    if (pod.to_operator.number != number) return;
    parts_.operators.LoseStream(number, ReachesOperator(index));
    pod.to_operator.number = 0;
    std::vector<rendezvous::QueuedReport> unsent;
    for (auto& queued : std::exchange(pod.to_operator.unsent, {})) {
      if (queued.must_arrive) unsent.push_back(std::move(queued));
    }
    const Micros wait = pod.session->End(std::move(unsent)).count() * kMs;
    parts_.time.After(wait, [this, index, life = pod.life] { Dial(index, life); });
  });
}

// Notices that the stream is broken: by keep-alive, or because its other end says so.
void OperatorSessions::Poll(int index) {
  SimPod& pod = *parts_.pods[index];
  if (pod.agent == nullptr) return;
  parts_.time.After(kPoll, [this, index, life = pod.life] {
    if (parts_.pods[index]->life == life) Poll(index);
  });
  if (parts_.pods.Asleep(pod) || pod.to_operator.number == 0) return;
  const bool established = parts_.operators.Has(pod.to_operator.number);
  if (established && ReachesOperator(index)) return;
  if (!established && parts_.time.now() < pod.to_operator.begun + kConnect) return;
  End(index);
}

void OperatorSessions::Hear(int index, std::uint64_t number, const v1::SidecarReport& report) {
  // Of another process that was there before.
  if (!report.has_registration() && !parts_.operators.Has(number)) return;
  const std::string refused = parts_.operators.Take(number, report);
  if (!refused.empty()) {
    parts_.journal.Trace(
        [&] { return "operator refuses " + parts_.pods[index]->uid + ": " + refused; });
    parts_.time.After(parts_.network.LinkDelay(), [this, index, number] {
      if (parts_.pods[index]->to_operator.number == number) End(index);
    });
  }
  parts_.operators.Wake();
}

void OperatorSessions::SendNotice(std::uint64_t number, v1::OperatorNotice notice) {
  AddTimeLeft(kUnixMs + parts_.time.now() / kMs, &notice);
  const int index = parts_.operators.PodOf(number);
  OperatorStream& stream = parts_.pods[index]->to_operator;
  if (stream.number != number) return;
  // An operator that is busy answers late, and all that it says on the stream afterwards is later.
  const Micros delay = parts_.random.Between(200, parts_.random.Chance(10) ? 2 * kSecond : 5 * kMs);
  stream.notices = std::max(stream.notices, parts_.time.now() + delay);
  parts_.time.At(stream.notices, [this, index, number, notice] {
    if (parts_.pods[index]->to_operator.number != number) return;
    if (!ReachesOperator(index)) return parts_.operators.LoseStream(number, false);
    parts_.to_agent(index, parts_.pods[index]->life, [this, index, number, notice](Agent&) {
      if (parts_.pods[index]->to_operator.number == number)
        parts_.pods[index]->session->OnNotice(notice);
    });
  });
}

}  // namespace ringmaster::app::sim
