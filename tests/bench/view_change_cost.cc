// What a change of a large view costs the view's coordinator: messages, bytes and CPU, with views
// sent whole and as what changed. The coordinator is the product's member with its codecs; the
// other members are played: they answer each message as a member does that has nothing to add.
//
//   build/release/bin/view_change_cost [PODS ...]
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/membership/member.h"
#include "common/membership/message_json.h"
#include "common/membership/state_json.h"
#include "common/membership/view_changes.h"

namespace {

using namespace ringmaster::membership;

constexpr int kMostWhole = 1000;  // pods for which whole views are measured too

std::string Uid(int i) { return "0b7d6a2e-3d3f-4b7c-9f0e-" + std::to_string(100'000'000'000 + i); }

Candidate CandidateOf(int i) {
  const std::string n = std::to_string(i);
  const std::string host = "10." + std::to_string(i >> 8) + "." + std::to_string(i & 255) + ".7";
  Candidate candidate;
  candidate.pod.uid = Uid(i);
  candidate.pod.name = "training-worker-" + n;
  candidate.pod.incarnation = 1;
  candidate.pod.node = "node-" + n;
  candidate.pod.zone = "zone-a";
  candidate.pod.address = host + ":9401";
  candidate.pod.heartbeat = host + ":9402";
  candidate.pod.http = host + ":9403";
  candidate.pod.proves_heartbeats = candidate.pod.reads_changes = true;
  candidate.workers.push_back({.slot = 0, .incarnation = 1, .tcp = host + ":40123", .ready = true});
  return candidate;
}

ViewPtr FirstView(int pods) {
  std::vector<Candidate> candidates;
  for (int i = 0; i < pods; ++i) candidates.push_back(CandidateOf(i));
  return std::make_shared<const View>(BootstrapView(std::move(candidates), 1));
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The state of the first coordinator of `view`, whose members have all completed an operation.
PersistentState StateIn(const ViewPtr& view) {
  PersistentState state;
  state.incarnation = 1;
  state.view = view;
  state.ran = true;
  return state;
}

Config ConfigOf(const ViewPtr& view) {
  Config config;
  config.self = view->pods.front();
  return config;
}

class Coordinator {
 public:
  Coordinator(const ViewPtr& view, bool as_changes)
      : as_changes_(as_changes), member_(ConfigOf(view), StateIn(view)) {
    changes_.Know(view);
    others_.Know(view);
    Give(Started{});
    Give(WorkersChanged{{{.slot = 0, .incarnation = 1, .used = true, .holds = view->epoch}}});
    in_.clear();
    messages_ = bytes_out_ = bytes_in_ = 0;
    cpu_ = 0;
  }

  // Until the next view is decided, and told to all.
  void Change(const Event& event) {
    const Epoch before = member_.current()->epoch;
    Give(event);
    while (member_.current()->epoch == before || !in_.empty()) {
      if (!in_.empty()) {
        const std::string body = std::move(in_.front());
        in_.pop_front();
        Receive(body);
        continue;
      }
      const auto deadline = member_.NextDeadline();
      if (!deadline) std::exit((std::fprintf(stderr, "nothing happens any more\n"), 1));
      now_ = std::max(now_, *deadline);
      Give(Tick{});
    }
  }

  void Print(const char* what, int pods) const {
    std::printf("| %d pods, %s | %s | %zu | %.2f MB | %.2f MB | %.0f ms |\n", pods, what,
                as_changes_ ? "changes" : "whole", messages_, static_cast<double>(bytes_out_) / 1e6,
                static_cast<double>(bytes_in_) / 1e6, cpu_ * 1e3);
    std::fflush(stdout);
  }

 private:
  void Give(const Event& event) {
    std::vector<Event> own;
    const double begin = CpuSeconds();
    struct Sent {
      Message message;
      std::string to, change;
    };
    std::vector<Sent> sent;
    for (const Action& action : member_.Step(event, now_)) {
      if (const auto* persist = std::get_if<Persist>(&action)) {
        stored_ = EncodeState(persist->state);
      } else if (const auto* send = std::get_if<Send>(&action)) {
        sent.push_back({send->message, send->to, Encode(*send)});
      } else if (const auto* stop = std::get_if<StopWorkers>(&action)) {
        own.emplace_back(WorkersStopped{stop->epoch});
      } else if (const auto* arm = std::get_if<ArmWorkers>(&action)) {
        own.emplace_back(BoundaryReached{arm->epoch});
      }
    }
    cpu_ += CpuSeconds() - begin;
    for (const Sent& one : sent) Answer(one.message, one.to, one.change);
    for (const Event& next : own) Give(next);
  }

  // Returns what went in place of the view.
  std::string Encode(const Send& send) {
    const std::string change = as_changes_ ? changes_.Encode(send.message, send.to) : "";
    changes_.Know(member_.current());
    bytes_out_ += EncodeMessage(send.message, change).size();
    ++messages_;
    return change;
  }

  void Receive(const std::string& body) {
    bytes_in_ += body.size();
    const double begin = CpuSeconds();
    std::string change;
    auto message = DecodeMessage(body, &change);
    if (!message) std::exit((std::fprintf(stderr, "%s\n", message.error().c_str()), 1));
    if (!change.empty()) message->value = changes_.Decode(change, message->from);
    cpu_ += CpuSeconds() - begin;
    Give(MessageReceived{std::move(*message), ""});
  }

  // Puts the answer of the member `from` into the coordinator's inbox.
  void Answer(const Message& asked, const std::string& from, const std::string& change) {
    Message answer;
    answer.from = from;
    answer.incarnation = 1;
    answer.view = asked.view;
    answer.ballot = asked.ballot;
    if (asked.kind == MessageKind::kPropose) {
      answer.kind = MessageKind::kAccepted;
      answer.value = asked.value;
    } else if (asked.kind == MessageKind::kPrepare) {
      answer.kind = MessageKind::kPromise;
    } else if (asked.kind == MessageKind::kPlan) {
      answer.kind = MessageKind::kBoundary;
      answer.number = asked.number;
    } else {
      return;
    }
    const std::string to = member_.current()->coordinator;
    if (!change.empty()) others_.Decode(change, to);  // as this one has just read it
    in_.push_back(EncodeMessage(answer, as_changes_ ? others_.Encode(answer, to) : ""));
  }

  const bool as_changes_;
  Member member_;
  ViewChanges changes_, others_;
  TimePoint now_{std::chrono::hours(1)};
  std::deque<std::string> in_;
  std::string stored_;
  std::size_t messages_ = 0, bytes_out_ = 0, bytes_in_ = 0;
  double cpu_ = 0;
};

Event JoinOf(int i, Epoch view) {
  Message join;
  join.kind = MessageKind::kJoin;
  join.candidate = CandidateOf(i);
  join.from = join.candidate.pod.uid;
  join.incarnation = 1;
  join.view = view;
  return MessageReceived{join, join.candidate.pod.address};
}

Event LeaveOf(int i, Epoch view) {
  Message leave;
  leave.kind = MessageKind::kLeave;
  leave.from = Uid(i);
  leave.incarnation = 1;
  leave.view = view;
  leave.pods = {leave.from};
  return MessageReceived{leave, ""};
}

void Measure(int pods) {
  const ViewPtr view = FirstView(pods);
  const std::pair<const char*, Event> events[] = {
      {"a pod is lost", PodSuspected{Uid(pods / 2), "silent"}},
      {"a pod joins", JoinOf(pods, view->epoch)},
      {"a pod leaves", LeaveOf(pods / 2, view->epoch)}};
  for (const auto& [what, event] : events) {
    for (const bool as_changes : {false, true}) {
      if (!as_changes && pods > kMostWhole) continue;
      Coordinator coordinator(view, as_changes);
      coordinator.Change(event);
      coordinator.Print(what, pods);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    sizes.push_back(std::atoi(argv[i]));
    if (sizes.back() < 3 || sizes.back() > 10'000) {
      std::fprintf(stderr, "PODS: is '%s', allowed is 3 to 10000\n", argv[i]);
      return 2;
    }
  }
  if (sizes.empty()) sizes = {100, 1000, 10'000};
  std::printf("| what | views | messages | sent | received | CPU |\n|---|---|---|---|---|---|\n");
  for (const int pods : sizes) Measure(pods);
  return 0;
}
