// The simulated operator: the record's voter, what it tells the pods, and the recovery from quorum
// loss, as operator/planner and operator/controllers do these.
#include <algorithm>
#include <utility>

#include "common/membership/message_json.h"
#include "common/membership/quorum_loss.h"
#include "common/membership/view_json.h"
#include "sidecar/app/sim/world.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kPoll = 300 * kMs, kLook = 500 * kMs;
constexpr Micros kSettle = 2 * kSecond, kPatience = 5 * kSecond;
constexpr Micros kDrainGrace = 8 * kSecond;
constexpr std::int64_t kUnixMs = 1'700'000'000'000;

}  // namespace

// ---- The streams

bool World::ReachesOperator(int index) const {
  return time_.now() >= operator_back_ && !(operator_apart_ && side_[index] == 1);
}

Registered* World::RegisteredOf(int index) {
  auto it = registered_.find(index);
  return it == registered_.end() ? nullptr : &it->second;
}

// What is under way on a stream is lost only with the stream: both ends find out.
void World::BreakStream(int index, std::uint64_t number) {
  Registered* registered = RegisteredOf(index);
  if (registered != nullptr && registered->stream == number) registered->stream = 0;
}

bool World::Proven(int index) const {
  const SimPod& pod = *pods_[index];
  return pod.gone && pod.proven_at >= 0 && pod.proven_at <= time_.now();
}

// The sidecar's operator client: connects, and notices that its stream is broken.
void World::OperatorPoll(int index) {
  SimPod& pod = *pods_[index];
  if (pod.agent == nullptr) return;
  time_.After(kPoll, [this, index, life = pod.life] {
    if (pods_[index]->life == life) OperatorPoll(index);
  });
  if (Asleep(pod)) return;
  OperatorStream& stream = pod.to_operator;
  if (stream.connected) {
    Registered* known = RegisteredOf(index);
    if (ReachesOperator(index) && known != nullptr && known->stream == stream.number) return;
    stream.connected = false;
    return ToAgent(index, pod.life, [](Agent& agent) { agent.orders().OnConnection(false); });
  }
  if (!ReachesOperator(index)) return;
  stream.connected = true;
  stream.number = next_operator_stream_++;
  pod.registered = true;
  Registered& registered = registered_[index];
  auto report = std::exchange(registered.report, std::nullopt);
  registered = Registered();
  registered.report = std::move(report);
  registered.stream = stream.number;
  registered.unable_since = time_.now();
  registered.epoch = pod.news;
  registered.candidate = stream.candidate;
  HearOf(stream.view);
  registered.ready = stream.all_slots;
  job_finished_ = job_finished_ || stream.finished;
  ToAgent(index, pod.life, [](Agent& agent) {
    agent.orders().OnConnection(true);
    agent.orders().OnAccepted();
  });
  OperatorSoon();
}

// The process ends and another begins: it knows only what the API server has, and hears the rest
// from the sidecars.
void World::OperatorStops(Micros away) {
  operator_back_ = time_.now() + away;
  registered_.clear();
  view_seen_.clear();
  reported_ = nullptr;
  job_finished_ = false;
  ready_since_ = -1;
}

void World::AskRecord(int index, const membership::Message& message) {
  if (!ReachesOperator(index) || random_.Chance(loss_)) return;
  const Micros asked = time_.now();
  auto text = membership::EncodeMessage(message);
  time_.After(
      random_.Between(500, 10 * kMs), [this, index, asked, text, life = pods_[index]->life] {
        if (!ReachesOperator(index) || !record_) return;
        const auto asks = membership::DecodeMessage(text);
        if (!asks) return Fail("a message to the record that can't be read: " + asks.error());
        const membership::RecordResult result = membership::AnswerAsRecord(*record_, *asks);
        if (result.changed) record_ = result.state;
        const std::string answer = membership::EncodeMessage(result.answer);
        if (random_.Chance(loss_)) return;
        time_.After(random_.Between(500, 10 * kMs), [this, index, asked, answer, life] {
          if (!ReachesOperator(index) || time_.now() - asked > 500 * kMs) return;
          ToAgent(index, life, [answer](Agent& agent) { agent.peers().OnRecordAnswer(answer); });
        });
      });
}

// ---- A look at the job

void World::OperatorSoon() {
  if (std::exchange(operator_soon_, true)) return;
  time_.After(random_.Between(2 * kMs, 50 * kMs), [this] {
    operator_soon_ = false;
    OperatorLook();
  });
}

void World::OperatorLook() {
  if (!std::exchange(operator_soon_, true)) {
    time_.After(kLook, [this] {
      operator_soon_ = false;
      OperatorLook();
    });
  }
  if (time_.now() < operator_back_) return;
  // Pods that have ended in order tell by their phase that the job has, whatever became of the
  // news.
  for (const auto& pod : pods_)
    job_finished_ =
        job_finished_ || (finishing_ && pod->gone && pod->launcher.ended && !pod->leaving);
  // A job that has had a view is never begun anew beside it.
  if (OperatorsView() == nullptr && !has_had_view_) MakeFirstView();
  if (const ViewPtr view = OperatorsView()) {
    view_seen_.try_emplace(view->epoch, time_.now());
    has_had_view_ = true;
    if (!job_finished_) {
      record_&& membership::QuorumLost(*record_) ? FinishRecovery() : BeginIfStalled();
    }
  }
  std::vector<int> connected;
  for (const auto& [index, registered] : registered_) connected.push_back(index);
  for (const int index : connected) NotifyPod(index);
}

void World::HearOf(const ViewPtr& view) {
  if (membership::EpochOf(view) > membership::EpochOf(reported_)) reported_ = view;
}

ViewPtr World::OperatorsView() const {
  const Epoch recorded = record_ ? membership::EpochOf(record_->view) : 0;
  return recorded > membership::EpochOf(reported_) ? record_->view : reported_;
}

void World::MakeFirstView() {
  std::vector<membership::Candidate> ready;
  for (const auto& [index, registered] : registered_) {
    if (pods_[index]->gone || pods_[index]->leaving || !registered.ready) continue;
    if (static_cast<int>(ready.size()) < wanted_) ready.push_back(*registered.candidate);
  }
  if (ready.size() < min_pods_ || ready.empty()) return;
  if (ready_since_ < 0) ready_since_ = time_.now();
  if (static_cast<int>(ready.size()) < wanted_ && time_.now() < ready_since_ + kSettle) return;
  const auto first = std::make_shared<const membership::View>(
      membership::BootstrapView(std::move(ready), min_pods_));
  Announce(first);
  record_ = membership::NewRecord(first);
}

// Each stream is told the same once: only what differs from the last about that is sent.
void World::Notify(int index, const std::string& topic, const std::string& what,
                   std::function<void(Agent&)> tell) {
  Registered* registered = RegisteredOf(index);
  const auto told = registered->told.find(topic);
  if (told != registered->told.end() && told->second == what) return;
  registered->told[topic] = what;
  const std::uint64_t number = registered->stream;
  time_.After(random_.Between(200, 5 * kMs), [this, index, number, tell = std::move(tell)] {
    const OperatorStream& stream = pods_[index]->to_operator;
    if (!stream.connected || stream.number != number) return;
    if (!ReachesOperator(index)) return BreakStream(index, number);
    ToAgent(index, pods_[index]->life, tell);
  });
}

void World::NotifyPod(int index) {
  const SimPod& pod = *pods_[index];
  if (pod.gone || !ReachesOperator(index)) return;
  const std::uint32_t min = min_pods_;
  const auto wanted = static_cast<std::uint32_t>(wanted_);
  Notify(index, "target", std::to_string(min) + " " + std::to_string(wanted),
         [min, wanted](Agent& agent) { agent.orders().OnTarget(min, wanted); });
  if (job_finished_) {
    return Notify(index, "finish", "",
                  [](Agent& agent) { agent.orders().OnFinish("all ranks agreed"); });
  }
  const ViewPtr known = OperatorsView();
  if (known == nullptr) return;
  const membership::View& view = *known;
  const bool lost = record_ && membership::QuorumLost(*record_);
  const bool member = view.FindPod(pod.uid) >= 0;
  const bool behind = membership::EpochLineage(pod.news) < membership::EpochLineage(view.epoch);
  const bool skip = !member && (pod.leaving || lost);
  if (!skip && (!member || behind)) {
    const std::string text = membership::EncodeView(view);
    Notify(index, "view", text, [text](Agent& agent) { agent.orders().OnViewDecided(text); });
  }
  NotifyDrains(index, view);
  if (!lost) return;
  const std::uint64_t lineage = record_->lineage;
  const bool fresh = RegisteredOf(index)->fresh;
  Notify(index, "recover", std::to_string(lineage) + (fresh ? " fresh" : ""),
         [lineage, fresh](Agent& agent) { agent.orders().OnRecover(lineage, fresh); });
}

void World::NotifyDrains(int index, const membership::View& view) {
  for (const auto& pod : pods_) {
    const std::string uid = pod->uid;
    if (pod->gone && view.FindPod(uid) >= 0) {
      Notify(index, "gone " + uid, "",
             [uid](Agent& agent) { agent.peers().OnSuspect(uid, "PodGone"); });
    }
    const bool told = pod->index == index || view.coordinator == pods_[index]->uid;
    if (!pod->leaving || pod->gone || !told) continue;
    const std::int64_t deadline = kUnixMs + (time_.now() + kDrainGrace) / kMs;
    Notify(index, "drain " + uid, "",
           [uid, deadline](Agent& agent) { agent.orders().OnDrain({uid}, "drained", deadline); });
  }
}

// ---- Recovery from quorum loss (rule 9)

std::vector<int> World::MustReport() const {
  std::vector<int> pods;
  for (const auto& pod : pods_) {
    if (pod->registered && !Proven(pod->index)) pods.push_back(pod->index);
  }
  return pods;
}

void World::BeginIfStalled() {
  const ViewPtr view = OperatorsView();
  // It was deleted in the middle of a recovery.
  const bool cut_short = !record_ && lineage_written_ > membership::EpochLineage(view->epoch);
  Micros since = view_seen_[view->epoch];
  for (const int index : MustReport()) {
    const Registered* registered = RegisteredOf(index);
    const bool connected = registered != nullptr && pods_[index]->to_operator.connected &&
                           pods_[index]->to_operator.number == registered->stream;
    if (!connected || (registered->able && !cut_short)) return;
    if (view->FindPod(pods_[index]->uid) >= 0) since = std::max(since, registered->unable_since);
  }
  const bool all_dead =
      std::all_of(view->pods.begin(), view->pods.end(),
                  [&](const membership::Pod& pod) { return Proven(IndexOf(pod.uid)); });
  if (!all_dead && !cut_short && time_.now() - since < kPatience) return;
  const std::uint64_t lineage = membership::NextLineage(view->epoch, lineage_written_);
  lineage_written_ = lineage;
  // Made anew it gives no votes on the views that it may have voted on.
  record_ = membership::BeginRecovery(record_ ? *record_ : membership::NewRecord(view), lineage);
  ++coverage_.recoveries;
  Trace([&] { return "operator begins lineage " + std::to_string(lineage); });
}

void World::FinishRecovery() {
  std::vector<std::string> uids;
  const std::vector<int> pods = MustReport();
  for (const int index : pods) uids.push_back(pods_[index]->uid);
  std::vector<const membership::RecoveryReport*> reports;
  for (const auto& [index, registered] : registered_) {
    if (registered.report) reports.push_back(&*registered.report);
  }
  const membership::RecoveryResult result =
      membership::RecoverFromQuorumLoss(record_->lineage, uids, reports, min_pods_);
  for (const std::string& uid : result.silent) {
    Trace([&] { return "operator waits for " + uid; });
  }
  if (result.nobody_holds) return StartAgain(pods);
  if (!result.view) return;
  Trace([&] { return "operator decides " + membership::Describe(*result.view); });
  Announce(result.view);
  record_ = membership::FinishRecovery(*record_, result.view);
}

// From the checkpoint, with fresh workers.
void World::StartAgain(const std::vector<int>& pods) {
  std::vector<membership::Candidate> ready;
  bool all = true;
  for (const int index : pods) {
    Registered* registered = RegisteredOf(index);
    if (registered == nullptr || pods_[index]->leaving) continue;
    const auto& candidate = registered->candidate;
    const bool used = candidate && std::any_of(candidate->workers.begin(), candidate->workers.end(),
                                               [](const auto& worker) { return worker.used; });
    registered->fresh = used;
    if (candidate && registered->ready && membership::ReadyToRestart(*candidate)) {
      ready.push_back(*candidate);
    } else {
      all = false;
    }
  }
  if (ready.empty() || !all) return;
  const auto view = membership::RestartView(record_->lineage, membership::EpochOf(record_->view),
                                            std::move(ready), min_pods_);
  ++coverage_.restarts;
  Trace([&] { return "operator begins again with " + membership::Describe(*view); });
  Announce(view);
  record_ = membership::FinishRecovery(*record_, view);
}

}  // namespace ringmaster::app::sim
