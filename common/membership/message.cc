#include "common/membership/message.h"

#include <tuple>

namespace ringmaster::membership {
namespace {

bool SameView(const ViewPtr& a, const ViewPtr& b) { return a == b || (a && b && *a == *b); }

}  // namespace

std::string BallotText(const Ballot& ballot) {
  return ballot.none() ? "none" : "(" + std::to_string(ballot.round) + "," + ballot.pod + ")";
}

std::string_view MessageKindText(MessageKind kind) {
  switch (kind) {
    case MessageKind::kPrepare:
      return "prepare";
    case MessageKind::kPromise:
      return "promise";
    case MessageKind::kPropose:
      return "propose";
    case MessageKind::kAccepted:
      return "accepted";
    case MessageKind::kRefused:
      return "refused";
    case MessageKind::kResign:
      return "resign";
    case MessageKind::kDecided:
      return "decided";
    case MessageKind::kFetch:
      return "fetch";
    case MessageKind::kJoin:
      return "join";
    case MessageKind::kWorkersLost:
      return "workersLost";
    case MessageKind::kSuspect:
      return "suspect";
    case MessageKind::kLeave:
      return "leave";
    case MessageKind::kBoundary:
      return "boundary";
    case MessageKind::kRan:
      return "ran";
    case MessageKind::kPlan:
      return "plan";
    case MessageKind::kFinishing:
      return "finishing";
  }
  return "unknown";
}

bool Message::operator==(const Message& other) const {
  auto plain = [](const Message& m) {
    return std::tie(m.kind, m.from, m.incarnation, m.view, m.ballot, m.promised, m.accepted,
                    m.number, m.reason, m.pods, m.workers, m.candidate, m.text);
  };
  return plain(*this) == plain(other) && SameView(value, other.value) && SameView(base, other.base);
}

std::string Describe(const Message& message) {
  std::string text = std::string(MessageKindText(message.kind)) + " from " + message.from +
                     " view " + EpochText(message.view);
  if (!message.ballot.none()) text += " ballot " + BallotText(message.ballot);
  if (!message.promised.none()) text += " promised " + BallotText(message.promised);
  if (!message.accepted.none()) text += " accepted " + BallotText(message.accepted);
  if (message.value) text += " value [" + Describe(*message.value) + "]";
  if (!message.candidate.pod.uid.empty()) text += " candidate " + message.candidate.pod.uid;
  for (const std::string& pod : message.pods) text += " " + pod;
  return text;
}

}  // namespace ringmaster::membership
