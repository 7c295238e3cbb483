// For the tests of a member's parts: a view, this pod's state in it, and an outbox whose actions a
// test reads as text. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/membership/local_workers.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/peer_status.h"
#include "common/membership/rank_status.h"

namespace ringmaster::membership {

// The actions as texts: "persist", "promise p1" (kind and receiver), "decided record", "stop 1.1",
// "arm 1.1", "report". InstallView, LeftByPlan and Log are left out.
inline std::vector<std::string> Texts(const std::vector<Action>& actions) {
  std::vector<std::string> texts;
  for (const Action& action : actions) {
    if (std::get_if<Persist>(&action)) texts.push_back("persist");
    if (const auto* send = std::get_if<Send>(&action)) {
      texts.push_back(std::string(MessageKindText(send->message.kind)) + " " + send->to);
    }
    if (const auto* send = std::get_if<SendToRecord>(&action)) {
      texts.push_back(std::string(MessageKindText(send->message.kind)) + " record");
    }
    if (const auto* stop = std::get_if<StopWorkers>(&action)) {
      texts.push_back("stop " + EpochText(stop->epoch));
    }
    if (const auto* arm = std::get_if<ArmWorkers>(&action)) {
      texts.push_back("arm " + EpochText(arm->epoch));
    }
    if (std::get_if<ReportToOperator>(&action)) texts.push_back("report");
  }
  return texts;
}

using Strings = std::vector<std::string>;

inline Candidate TestCandidate(int i, std::uint64_t incarnation = 1) {
  const std::string uid = "p" + std::to_string(i);
  Candidate candidate;
  candidate.pod = {uid, uid, incarnation, "n", "z", uid + ":1", "", ""};
  candidate.workers = {{0, incarnation, "", "", true}};
  return candidate;
}

// View 1.1 of p0, p1 ... with one worker each; p0 is its coordinator.
inline ViewPtr TestView(int pods) {
  std::vector<Candidate> candidates;
  for (int i = 0; i < pods; ++i) candidates.push_back(TestCandidate(i));
  return std::make_shared<const View>(BootstrapView(candidates, 1));
}

// The view after `view`, without its last pod.
inline ViewPtr TestSuccessor(const View& view) {
  View next = view;
  next.parent = view.epoch;
  ++next.epoch;
  next.pods.pop_back();
  next.ranks.pop_back();
  return std::make_shared<const View>(std::move(next));
}

inline PersistentState StoredIn(ViewPtr view) {
  PersistentState stored;
  stored.incarnation = 1;
  stored.view = std::move(view);
  return stored;
}

constexpr std::chrono::milliseconds kHearsay{500};

// The parts that most other parts need.
struct Floor {
  explicit Floor(int pods, int self = 0, ClauseSet without = {})
      : Floor(StoredIn(TestView(pods)), self, without) {}
  Floor(PersistentState stored, int self, ClauseSet without = {})
      : view(stored.view),
        outbox("p" + std::to_string(self), 1, retry),
        state("p" + std::to_string(self), std::move(stored), without, &outbox),
        peers(&state, kHearsay),
        workers(&state, &outbox) {
    ranks.EnterView(view);
    outbox.Begin(now, &actions);
  }
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;

  void Pass(Duration time) {
    now += time;
    outbox.Begin(now, &actions);
  }
  // The actions since the last call.
  Strings Take() { return Texts(std::exchange(actions, {})); }
  Message From(int pod, MessageKind kind, Ballot ballot = {}) const {
    Message message;
    message.kind = kind;
    message.from = "p" + std::to_string(pod);
    message.incarnation = 1;
    message.view = view ? view->epoch : 0;
    message.ballot = std::move(ballot);
    return message;
  }

  static constexpr Duration retry = std::chrono::milliseconds(100);
  ViewPtr view;
  TimePoint now{std::chrono::seconds(1)};
  std::vector<Action> actions;
  Outbox outbox;
  MemberState state;
  PeerStatus peers;
  RankStatus ranks;
  LocalWorkers workers;
};

}  // namespace ringmaster::membership
