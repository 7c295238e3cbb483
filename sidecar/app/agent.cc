#include "sidecar/app/agent.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/logging/log.h"
#include "sidecar/app/status_document.h"
#include "sidecar/app/timeline_document.h"

namespace ringmaster::app {
namespace {

using membership::EpochText;
using std::chrono::milliseconds;

membership::Config MemberConfig(const membership::Pod& self) {
  membership::Config config;
  config.self = self;
  config.seed = std::hash<std::string>()(self.uid) | 1;
  return config;
}

// Nothing of the job was before it.
bool IsFirst(const membership::View& view) {
  return view.reason == membership::Reason::kBootstrap && !view.planned &&
         membership::EpochLineage(view.epoch) == 1;
}

WorkerTableOptions TableOptions(const SidecarOptions& options) {
  return {.job = options.job_uid,
          .pod = options.pod_name,
          .pod_uid = options.pod_uid,
          .ring_key = options.ring_key,
          .version = options.version,
          .slots = options.slots,
          .stopped_for = options.stopped_worker,
          .without = options.without};
}

}  // namespace

Agent::Agent(const SidecarOptions& options, membership::Pod self, membership::PersistentState state,
             AgentOutputs outputs, health::Metrics* metrics)
    : options_(options),
      self_(std::move(self)),
      outputs_(std::move(outputs)),
      history_(options.slots, metrics),
      handover_(self_.uid, &history_, outputs_.peers.hand_history),
      reports_(outputs_.job_operator),
      membership_(MemberConfig(self_), std::move(state), Hooks()),
      table_(TableOptions(options), TableCallbacks()),
      departure_(self_.uid, options.grace, outputs_.clock, &membership_, &table_),
      peers_(self_.uid, outputs_.clock, outputs_.peers, &membership_, &departure_,
             &history_.tracker()),
      workers_(self_.uid, outputs_.clock,
               {.membership = &membership_,
                .table = &table_,
                .departure = &departure_,
                .peers = &peers_,
                .reports = &reports_,
                .history = &history_,
                .metrics = metrics}),
      orders_(outputs_.clock, &membership_, &table_, &departure_, &reports_),
      reporter_(self_, options.init_timeout, outputs_.clock,
                {.membership = &membership_,
                 .table = &table_,
                 .departure = &departure_,
                 .orders = &orders_,
                 .reports = &reports_,
                 .metrics = metrics}),
      lost_state_(!options.operator_target.empty(), options.init_timeout, outputs_.clock,
                  {.membership = &membership_,
                   .departure = &departure_,
                   .orders = &orders_,
                   .table = &table_}) {}

MembershipHooks Agent::Hooks() {
  MembershipHooks hooks;
  hooks.now = outputs_.clock.now;
  hooks.persist = outputs_.persist;
  hooks.run = [this](const membership::Action& action) { Run(action); };
  hooks.stepped = [this] {
    if (membership_.member().changing())
      history_.tracker().Noticed(outputs_.clock.now(), outputs_.clock.unix_ms());
  };
  hooks.settled = [this] { AfterEvents(); };
  return hooks;
}

WorkerTableCallbacks Agent::TableCallbacks() {
  WorkerTableCallbacks callbacks;
  callbacks.send = outputs_.link.send;
  callbacks.refuse = outputs_.link.refuse;
  callbacks.drop = outputs_.link.drop;
  callbacks.changed = [this] { workers_.OnChanged(); };
  callbacks.stopped = [this](Epoch epoch) { workers_.OnStopped(epoch); };
  callbacks.boundary = [this](Epoch epoch) { workers_.OnBoundary(epoch); };
  callbacks.rebuilt = [this](const job::Rebuild& figures) { workers_.OnRebuilt(figures); };
  callbacks.ran = [this](Epoch epoch) {
    peers_.OnRan(epoch);
    membership_.Feed(membership::FirstOperationDone{epoch});
  };
  callbacks.suspects = [this](Epoch epoch, int rank, const std::string& why) {
    peers_.OnWorkerSuspects(epoch, rank, why);
  };
  callbacks.broken = [this](Epoch epoch, int rank, const std::string& why) {
    peers_.OnWorkerBroken(epoch, rank, why);
  };
  callbacks.finished = [this](Epoch epoch) { workers_.OnFinished(epoch); };
  callbacks.exited = [this](const job::WorkerExit& exit) { workers_.OnExited(exit); };
  callbacks.terminate = [this] { departure_.DrainOnSignal(); };
  return callbacks;
}

void Agent::Start() {
  const SteadyTime now = outputs_.clock.now();
  reporter_.Start();
  const ViewPtr view = membership_.member().current();
  workers_.Start(view != nullptr);
  if (view != nullptr) {
    membership_.SetInstalled(view);
    table_.orders().Restore(view, now);
    table_.orders().SettleWelcome();
    logging::Info("state reloaded epoch={} incarnation={}", EpochText(view->epoch),
                  membership_.member().state().incarnation);
    peers_.Watch(view->pods);
    peers_.SetNews(view->epoch);
    if (view->FindPod(self_.uid) >= 0) handover_.Entered(*view, /*begins=*/false, now);
    // This pod may be the only one that can tell the view to an operator that finds no record, even
    // if it has begun to leave the view and hands it out to no other pod any more.
    reports_.View(view, nullptr, 0);
  }
  if (options_.operator_target.empty()) table_.orders().SettleWelcome();
  membership_.Feed(membership::Started{});
}

// ---- What the membership decides

void Agent::Run(const membership::Action& action) {
  if (auto* send = std::get_if<membership::Send>(&action)) {
    peers_.Deliver(*send);
  } else if (auto* record = std::get_if<membership::SendToRecord>(&action)) {
    outputs_.job_operator.ask_record(record->message);
  } else if (auto* stop = std::get_if<membership::StopWorkers>(&action)) {
    const SteadyTime now = outputs_.clock.now();
    history_.tracker().Noticed(now, outputs_.clock.unix_ms());
    history_.tracker().StopAsked(now);
    table_.orders().Stop(stop->epoch);
  } else if (auto* arm = std::get_if<membership::ArmWorkers>(&action)) {
    table_.orders().Arm(arm->epoch);
  } else if (auto* install = std::get_if<membership::InstallView>(&action)) {
    Install(install->view);
  } else if (std::get_if<membership::LeftByPlan>(&action) != nullptr) {
    departure_.LeaveByPlan();
  } else if (auto* report = std::get_if<membership::ReportToOperator>(&action)) {
    membership::RecoveryReport full = report->report;
    full.candidate.workers = table_.processes().Living();  // with whether each has been in a view
    reports_.Recovery(full);
  } else if (auto* log = std::get_if<membership::Log>(&action)) {
    logging::Info("membership note=\"{}\" epoch={}", log->text, EpochText(membership_.epoch()));
  }
}

void Agent::Install(const ViewPtr& view) {
  const SteadyTime now = outputs_.clock.now();
  const ViewPtr before = membership_.SetInstalled(view);
  const bool listed = view->FindPod(self_.uid) >= 0;
  logging::Info(
      "view installed epoch={} reason={} pods={} ranks={} train={} planned={} coordinator={} "
      "listed={}",
      EpochText(view->epoch), membership::ReasonText(view->reason), view->pods.size(),
      view->ranks.size(), view->train, view->planned, view->coordinator, listed);
  table_.orders().Install(view, now, departure_.EntersArmed(view->epoch));
  peers_.SetNews(view->epoch);
  peers_.EnterView(*view);
  const job::Rebuild* rebuild =
      history_.Installed(before.get(), *view, now, outputs_.clock.unix_ms());
  reports_.View(view, rebuild, history_.progress().Step(table_.processes().all()));
  if (listed) handover_.Entered(*view, IsFirst(*view), now);
}

void Agent::AfterEvents() {
  const ViewPtr& current = membership_.member().current();
  peers_.SetNews(membership_.epoch());
  if (current != nullptr && membership_.installed() == nullptr) {
    // A view that does not list us: workers that come now are joiners.
    table_.orders().Restore(current, outputs_.clock.now());
    table_.orders().SettleWelcome();
  }
  reporter_.AfterEvents();
}

// ---- Time

void Agent::Tick() {
  table_.Tick(outputs_.clock.now());
  if (orders_.HasLooked()) table_.orders().SettleWelcome();
  workers_.CheckKnown();
  departure_.CheckEverybodyLeaves();
  membership_.Feed(membership::Tick{});
  peers_.CheckSuspicions();
  reporter_.CheckInitTimeout();
  lost_state_.Check();
  reporter_.Tick();
  history_.Sample(table_.processes().all(), membership_.installed(), outputs_.clock.now(),
                  outputs_.clock.unix_ms());
  handover_.Tick(outputs_.clock.now(), membership_.member().changing());
  orders_.CheckFresh();
  // Of a rank of another pod, after a shutdown of all.
  if (membership_.member().finishing()) workers_.OnFinished(membership_.epoch());
  departure_.CheckFinish();
  departure_.CheckEverybodyLeaves();
  departure_.CheckTermination();
}

SteadyTime Agent::NextWake() const {
  const SteadyTime now = outputs_.clock.now();
  SteadyTime wake = now + milliseconds(250);
  if (auto deadline = membership_.member().NextDeadline()) wake = std::min(wake, *deadline);
  if (membership_.waits()) return now + milliseconds(50);  // its deadlines can't be met before
  if (departure_.terminating()) wake = std::min(wake, now + milliseconds(50));
  if (auto look = table_.NextWake()) wake = std::min(wake, *look);
  if (table_.processes().Doubtful()) wake = std::min(wake, now + milliseconds(5));
  return wake;
}

// ---- What is shown

bool Agent::Ready() const {
  const ViewPtr& installed = membership_.installed();
  return installed != nullptr && installed->train &&
         table_.processes().AllInstalled(table_.view()) && table_.gpus().Failing().empty();
}

nlohmann::json Agent::History() const { return history_.record().ToJson(); }

std::function<std::optional<std::string>()> Agent::Timeline(const TimelineAsk& ask) {
  const auto gathering =
      table_.timelines().Ask(ask, table_.processes().all(), table_.view(), outputs_.clock.now());
  if (gathering == nullptr) return nullptr;
  const int64_t since = outputs_.clock.unix_ms() - int64_t{1000} * ask.seconds;
  return [this, gathering, since]() -> std::optional<std::string> {
    if (!gathering->Done(outputs_.clock.now())) return std::nullopt;
    table_.timelines().Forget(gathering->number());
    return TimelineDocument({.options = options_,
                             .gathering = *gathering,
                             .rebuilds = history_.rebuilds().all(),
                             .coordinator = membership_.member().is_coordinator(),
                             .since_unix_ms = since});
  };
}

nlohmann::json Agent::Status(std::size_t rebuilds) const {
  return StatusDocument({.options = options_,
                         .member = membership_.member(),
                         .processes = table_.processes(),
                         .gpus = table_.gpus(),
                         .history = history_,
                         .rebuilds = rebuilds,
                         .exits = workers_.exits(),
                         .broken_links = peers_.BrokenLinks(),
                         .installed = membership_.installed(),
                         .finishing = departure_.finishing(),
                         .leaving = departure_.draining() || departure_.left(),
                         .operator_connected = orders_.connected()});
}

}  // namespace ringmaster::app
