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
constexpr Micros kConnect = 2 * kSecond;  // as long as an attempt to reach the operator may take
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

void World::OpenSession(int index) {
  SimPod& pod = *pods_[index];
  job::Registration registration;
  registration.pod_uid = pod.uid;
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
    pod.to_operator.number = next_operator_stream_++;
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
    if (!ReachesOperator(index)) return BreakStream(index, number);
    const v1::SidecarReport report = std::move(now.unsent.front().report);
    now.unsent.pop_front();
    OperatorHears(index, number, report);
  });
}

void World::StreamEnds(int index) {
  const std::uint64_t number = pods_[index]->to_operator.number;
  ToAgent(index, pods_[index]->life, [this, index, number](Agent&) {
    SimPod& pod = *pods_[index];
    if (pod.to_operator.number != number) return;
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
  const Registered* known = RegisteredOf(index);
  const bool established = known != nullptr && known->stream == pod.to_operator.number;
  if (established && ReachesOperator(index)) return;
  if (!established && time_.now() < pod.to_operator.begun + kConnect) return;
  StreamEnds(index);
}

// ---- What a sidecar says

void World::OperatorHears(int index, std::uint64_t number, const v1::SidecarReport& report) {
  if (report.has_registration()) {
    pods_[index]->registered = true;
    Registered& registered = registered_[index];
    auto kept = std::exchange(registered.report, std::nullopt);
    registered = Registered();
    registered.report = std::move(kept);
    registered.stream = number;
    registered.unable_since = time_.now();
    registered.epoch = report.registration().epoch();
    v1::OperatorNotice accepted;
    accepted.mutable_accepted();
    SendNotice(index, number, accepted);
  }
  Registered* registered = RegisteredOf(index);
  if (registered == nullptr || registered->stream != number) return;  // of another operator
  HearOfPod(registered, report);
  OperatorSoon();
}

void World::HearOfPod(Registered* registered, const v1::SidecarReport& report) {
  switch (report.kind_case()) {
    case v1::SidecarReport::kReadiness: {
      auto candidate = membership::DecodeCandidate(report.readiness().member());
      if (!candidate) return Fail("a candidate that can't be read: " + candidate.error());
      registered->candidate = std::move(*candidate);
      registered->ready = report.readiness().ready();
      return;
    }
    case v1::SidecarReport::kView:
      return HearOf(report.view().view());
    case v1::SidecarReport::kFinished:
      job_finished_ = true;
      return;
    case v1::SidecarReport::kHealth:
      registered->able = report.health().able();
      registered->unable_since = time_.now() - report.health().unable_ms() * kMs;
      return;
    case v1::SidecarReport::kRecovery: {
      auto made = membership::DecodeReport(report.recovery().report());
      if (!made) return Fail("a report that can't be read: " + made.error());
      registered->report = std::move(*made);
      return;
    }
    default:
      return;
  }
}

void World::SendNotice(int index, std::uint64_t number, const v1::OperatorNotice& notice) {
  OperatorStream& stream = pods_[index]->to_operator;
  // An operator that is busy answers late, and all that it says on the stream afterwards is later.
  const Micros delay = random_.Between(200, random_.Chance(10) ? 2 * kSecond : 5 * kMs);
  stream.notices = std::max(stream.notices, time_.now() + delay);
  time_.At(stream.notices, [this, index, number, notice] {
    if (pods_[index]->to_operator.number != number) return;
    if (!ReachesOperator(index)) return BreakStream(index, number);
    ToAgent(index, pods_[index]->life, [this, index, number, notice](Agent&) {
      if (pods_[index]->to_operator.number == number) pods_[index]->session->OnNotice(notice);
    });
  });
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

void World::HearOf(const std::string& text) {
  auto view = membership::DecodeView(text);
  if (!view) return Fail("a view that can't be read: " + view.error());
  if (view->epoch > membership::EpochOf(reported_))
    reported_ = std::make_shared<const membership::View>(std::move(*view));
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
void World::Notify(int index, const std::string& topic, const v1::OperatorNotice& notice) {
  Registered* registered = RegisteredOf(index);
  const std::string what = notice.SerializeAsString();
  const auto told = registered->told.find(topic);
  if (told != registered->told.end() && told->second == what) return;
  registered->told[topic] = what;
  SendNotice(index, registered->stream, notice);
}

void World::NotifyPod(int index) {
  const SimPod& pod = *pods_[index];
  if (pod.gone || !ReachesOperator(index)) return;
  v1::OperatorNotice notice;
  notice.mutable_target()->set_min_pods(min_pods_);
  notice.mutable_target()->set_expected_pods(static_cast<std::uint32_t>(wanted_));
  Notify(index, "target", notice);
  if (job_finished_) {
    notice.mutable_finish()->set_reason("all ranks agreed");
    return Notify(index, "finish", notice);
  }
  const ViewPtr known = OperatorsView();
  if (known == nullptr) return;
  const membership::View& view = *known;
  const bool lost = record_ && membership::QuorumLost(*record_);
  const bool member = view.FindPod(pod.uid) >= 0;
  const bool behind = membership::EpochLineage(pod.news) < membership::EpochLineage(view.epoch);
  const bool skip = !member && (pod.leaving || lost);
  if (!skip && (!member || behind)) {
    notice.mutable_view_decided()->set_view(membership::EncodeView(view));
    Notify(index, "view", notice);
  }
  NotifyDrains(index, view);
  if (!lost) return;
  notice.mutable_recover()->set_lineage(record_->lineage);
  notice.mutable_recover()->set_fresh_workers(RegisteredOf(index)->fresh);
  Notify(index, "recover", notice);
}

void World::NotifyDrains(int index, const membership::View& view) {
  for (const auto& pod : pods_) {
    const std::string uid = pod->uid;
    v1::OperatorNotice notice;
    if (pod->gone && view.FindPod(uid) >= 0) {
      notice.mutable_pod_gone()->set_pod_uid(uid);
      notice.mutable_pod_gone()->set_reason("PodGone");
      Notify(index, "gone " + uid, notice);
    }
    const bool told = pod->index == index || view.coordinator == pods_[index]->uid;
    if (!pod->leaving || pod->gone || !told) continue;
    notice.mutable_drain()->add_pod_uids(uid);
    notice.mutable_drain()->set_reason("drained");
    notice.mutable_drain()->set_deadline_unix_ms(kUnixMs + (pod->leaves_at + kDrainGrace) / kMs);
    Notify(index, "drain " + uid, notice);
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
    const bool connected =
        registered != nullptr && pods_[index]->to_operator.number == registered->stream;
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
