// What must hold, and what must come about.
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "tests/sim/world.h"

namespace ringmaster::app::sim {
namespace {

using membership::EpochText;

constexpr Micros kEndPatience = 60 * kSecond;

// What the agents log, between what happens.
class TraceSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit TraceSink(std::string* trace) : trace_(trace) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    trace_->append("                 log: ").append(message.payload.data(), message.payload.size());
    trace_->push_back('\n');
  }
  void flush_() override {}

  std::string* const trace_;
};

}  // namespace

// ---- Views

// Somebody takes this view as decided.
void World::Announce(const ViewPtr& view) {
  Decided& known = views_.Of(view->epoch);
  if (known.view != nullptr) {
    if (*known.view != *view)
      journal_.Fail("I2: two views " + EpochText(view->epoch) + ": [" +
                    membership::Describe(*known.view) + "] and [" + membership::Describe(*view) +
                    "]");
    return;
  }
  journal_.Trace([&] { return "decided: " + membership::Describe(*view); });
  views_.Add(view);
  ++journal_.coverage().views;
  journal_.coverage().planned_views += view->planned ? 1 : 0;
  journal_.coverage().held_views += view->train ? 0 : 1;
  if (membership::EpochNumber(view->epoch) == 1 && membership::EpochLineage(view->epoch) > 1)
    return BeginLineage(*view);  // it may know of no view before it
  if (view->parent == 0) return;
  const ViewPtr& before = views_.Of(view->parent).view;
  if (view->reason == membership::Reason::kLinkBroken && !view->planned && before != nullptr) {
    const bool smaller = view->pods.size() < before->pods.size();
    ++(smaller ? journal_.coverage().left_out : journal_.coverage().reconnects);
    if (smaller && !view->train)
      journal_.Fail("held: " + EpochText(view->epoch) +
                    " leaves a pod out for its link and is too small");
  }
  if (const ViewPtr parent = views_.Of(view->parent).view) CheckTorn(*view, *parent);
}

// A joiner must find the others at a boundary: a state copied in the middle of a step is torn.
void World::CheckTorn(const membership::View& view, const membership::View& parent) {
  const bool admits =
      std::any_of(view.ranks.begin(), view.ranks.end(), [&](const membership::RankEntry& rank) {
        return parent.FindRank(view.pods[rank.pod].uid, rank.slot, rank.incarnation) < 0;
      });
  for (const membership::RankEntry& rank : view.ranks) {
    if (!admits || rank.joined) continue;
    const WorkerPtr worker = FindProcess(IndexOf(view.pods[rank.pod].uid),
                                         static_cast<int>(rank.slot), rank.incarnation);
    if (worker != nullptr && worker->alive && worker->epoch == parent.epoch &&
        worker->boundary_epoch != parent.epoch) {
      journal_.Fail("torn: " + EpochText(view.epoch) + " admits a joiner and " + Name(*worker) +
                    " is in the middle of a step");
    }
  }
}

// The first view of a lineage: the job goes on from what its members hold, and no living pod may
// hold more.
void World::BeginLineage(const membership::View& view) {
  const bool restart = view.reason == membership::Reason::kBootstrap;
  std::int64_t step = 0;
  std::uint64_t lowest = restart ? 0 : agreement_.final_number();
  for (const WorkerPtr& worker : RanksOf(view)) {
    if (restart || worker == nullptr || !worker->holds) continue;
    step = std::max(step, worker->step);
    lowest = std::min(lowest, worker->log.next_number());
  }
  for (const auto& pod : pods_) {
    if (pod->gone || pod->leaving || !pod->disk || pod->disk->view == nullptr) continue;
    if (pod->disk->view->FindMember(pod->uid, pod->disk->incarnation) < 0) continue;
    for (const Child& child : pod->launcher.children) {
      const Worker& worker = *child.worker;
      const bool counts = worker.alive && worker.holds && worker.ran != 0 && !worker.ended;
      if (counts && (worker.step > step || restart))
        journal_.Fail("I5: " + EpochText(view.epoch) + " begins at step " + std::to_string(step) +
                      ", but " + Name(worker) + " lives and holds step " +
                      std::to_string(worker.step));
    }
  }
  agreement_.BeginLineage(lowest);
}

// ---- What a pod promises

// Whether the worker may complete a step in a view up to this one.
bool World::MayUse(const Worker& worker, Epoch epoch) const {
  if (!worker.alive || worker.ended) return false;
  // Its fence comes first when it wakes.
  const bool fenced = worker.answered != 0 && time_.now() >= worker.answered + 10 * kSecond;
  if (fenced && Frozen(worker)) return false;
  // A view whose successor is decided completes no step, whatever its workers do.
  if (worker.phase != Phase::kNoView && worker.epoch <= epoch && !views_.IsOver(worker.epoch))
    return true;
  const Stream* stream = streams_.Find(worker.stream);
  if (stream == nullptr) return false;
  return std::any_of(stream->views.begin(), stream->views.end(), [&](Epoch view) {
    return view <= epoch && view > worker.stopped && view > worker.epoch && !views_.IsOver(view);
  });
}

void World::CheckNobodyUses(int index, Epoch epoch, const std::string& when) {
  for (const Child& child : pods_[index]->launcher.children) {
    if (MayUse(*child.worker, epoch))
      journal_.Fail(pods_[index]->uid + " " + when + ", and " + Name(*child.worker) +
                    " may still use " + EpochText(child.worker->epoch));
  }
}

void World::CheckPromise(int index, const membership::PersistentState& state) {
  if (state.view == nullptr) return;
  const auto& before = pods_[index]->disk;
  const bool same = before && membership::EpochOf(before->view) == state.view->epoch;
  const bool accepts =
      state.accepted_value != nullptr &&
      !(same && before->accepted_value != nullptr && before->accepted == state.accepted);
  const bool resigns = state.resigned && !(same && before->resigned);
  if (accepts)
    CheckNobodyUses(index, state.view->epoch,
                    "accepts a successor of " + EpochText(state.view->epoch));
  if (!resigns) return;
  ++journal_.coverage().resignations;
  CheckNobodyUses(index, state.view->epoch, "resigns from " + EpochText(state.view->epoch));
}

// ---- Operations. A vote is the moment to look: all ranks of the view have come to it, so nobody
// is without what came before.

void World::CheckVote(const Stage& stage, const membership::View& view) {
  const Given& first = stage.given.front();
  for (const Given& given : stage.given) agreement_.CheckSame(first, given, view.epoch);
  const std::vector<WorkerPtr> ranks = RanksOf(view);
  const bool ends = script_.AsksForEnd(first.done);
  // One that has given its part and left the view since takes part in nothing that comes after: the
  // others can leave this vote, and no later one.
  const bool all = std::all_of(ranks.begin(), ranks.end(), [&](const WorkerPtr& worker) {
    return InView(worker, view.epoch) && worker->phase != Phase::kBroken;
  });
  if (all) CheckOver(view);
  agreement_.CheckFinal(first, view.epoch, all);
  if (!ends) return;
  views_.Of(view.epoch).last_step = time_.now();
  ++journal_.coverage().steps;
  journal_.Trace(
      [&] { return "step " + std::to_string(first.step + 1) + " in " + EpochText(view.epoch); });
}

// All ranks of the view take part in it: so no view may have been decided that follows.
void World::CheckOver(const membership::View& view) {
  const std::string name = EpochText(view.epoch);
  if (const auto later = views_.SuccessorOf(view.epoch))
    journal_.Fail("I3: " + name + " goes on after " + EpochText(*later) + " was decided");
  const Epoch before = views_.Train(view.epoch);
  if (view.epoch < before) journal_.Fail("I3: " + name + " goes on after " + EpochText(before));
  for (const WorkerPtr& worker : RanksOf(view)) {
    if (worker->stopped >= view.epoch)
      journal_.Fail(Name(*worker) + " goes on in a view that it has stopped");
  }
}

// ---- The end

bool World::PodHealthy(const SimPod& pod, std::string* why) {
  const auto wrong = [&](const std::string& what) {
    *why = pod.uid + " " + what;
    return false;
  };
  if (pod.gone) return views_.newest()->FindPod(pod.uid) < 0 || wrong("is gone and in the view");
  if (pod.leaving) return wrong("has not left");
  if (pod.agent == nullptr) return wrong("has no sidecar");
  if (Asleep(pod)) return wrong("sleeps");
  for (int slot = 0; slot < job_.slots; ++slot) {
    const auto& children = pod.launcher.children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [&](const Child& c) { return c.slot == slot; });
    const std::string name = "slot " + std::to_string(slot);
    if (child == children.end()) return wrong(name + " is empty");
    if (views_.newest()->FindRank(pod.uid, static_cast<std::uint32_t>(slot), child->incarnation) <
        0)
      return wrong(name + " is not in the newest view");
    if (child->worker->epoch != views_.newest()->epoch || child->worker->phase != Phase::kActive)
      return wrong(name + " has not installed the newest view");
    if (views_.newest()->train && !pod.agent->Ready())
      return wrong("does not say that it is ready");
  }
  return true;
}

// What the API server has of it.
bool World::JobHealthy(std::string* why) {
  if (script_.finished()) {
    *why = "the job is not said to have succeeded";
    return JobIs("Succeeded");
  }
  const auto living =
      std::count_if(pods_.begin(), pods_.end(), [](const auto& pod) { return !pod->gone; });
  *why = std::to_string(living) + " pods live, not " + std::to_string(job_.wanted);
  return living == job_.wanted;
}

bool World::Healthy(std::string* why) {
  if (!JobHealthy(why)) return false;
  if (script_.finished()) {
    for (const auto& pod : pods_) {
      if (pod->gone || (pod->launcher.ended && pod->launcher.children.empty())) continue;
      *why = pod->uid + " has not ended with its job";
      return false;
    }
    return true;
  }
  if (views_.newest() == nullptr) {
    *why = "there is no view";
    return false;
  }
  for (const auto& pod : pods_) {
    if (!PodHealthy(*pod, why)) return false;
  }
  *why = "the newest view does not train";
  if (views_.newest()->train != (views_.newest()->pods.size() >= job_.min_pods)) return false;
  if (views_.newest()->train)
    return views_.Of(views_.newest()->epoch).last_step > time_.now() - 500 * kMs;
  const auto ranks = RanksOf(*views_.newest());
  return std::all_of(ranks.begin(), ranks.end(), [&](const WorkerPtr& worker) {
    return worker->boundary_epoch == views_.newest()->epoch;
  });
}

void World::TraceEnd() {
  journal_.Trace([&] { return "status of the job: " + JobStatus(); });
  for (const auto& pod : pods_) {
    journal_.Trace([&] {
      std::string text = pod->uid + (pod->gone ? " gone" : "") + (pod->leaving ? " leaving" : "");
      if (pod->agent != nullptr) text += " " + pod->agent->Status().dump();
      for (const Child& child : pod->launcher.children) {
        const Worker& w = *child.worker;
        text += "\n    " + Name(w) + " role " + std::to_string(static_cast<int>(w.role)) +
                " phase " + std::to_string(static_cast<int>(w.phase)) + " epoch " +
                EpochText(w.epoch) + " stopped " + EpochText(w.stopped) + " boundary " +
                EpochText(w.boundary_epoch) + (w.welcomed ? " welcomed" : "") +
                (w.wants_to_enter ? " wants to enter" : "") + (w.detached ? " detached" : "") +
                (w.entered ? " entered" : "") + (w.standing ? " standing" : "") +
                (w.ended ? " ended" : "") + (Frozen(w) ? " frozen" : "");
      }
      return text;
    });
  }
}

void World::CheckEnd() {
  std::string why;
  if (Healthy(&why)) {
    over_ = true;
  } else if (time_.now() > *faults_.healed_at() + kEndPatience) {
    TraceEnd();
    journal_.Fail("liveness: a minute after the last fault " + why + "; newest: " +
                  (views_.newest() == nullptr ? "none" : membership::Describe(*views_.newest())));
  } else {
    time_.After(500 * kMs, [this] { CheckEnd(); });
  }
}

// ---- What a run covers

void Coverage::Add(const Coverage& o) {
  for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += o.faults[i];
  schedules += o.schedules, events += o.events, steps += o.steps, views += o.views;
  planned_views += o.planned_views, held_views += o.held_views, late_hellos += o.late_hellos;
  promotions += o.promotions, fenced += o.fenced, kills += o.kills;
  resignations += o.resignations, left += o.left, recoveries += o.recoveries;
  restarts += o.restarts, finished += o.finished;
  looks += o.looks, calls_failed += o.calls_failed;
  reconnects += o.reconnects, left_out += o.left_out;
  interrupted += o.interrupted, repeated += o.repeated, handed_over += o.handed_over;
  unconfirmed += o.unconfirmed, committed += o.committed;
}

std::string Coverage::Text() const {
  std::string text;
  const auto line = [&](const std::string& name, std::uint64_t n) {
    text += "  " + name + std::string(name.size() < 32 ? 32 - name.size() : 1, ' ') +
            std::to_string(n) + "\n";
  };
  line("schedules", schedules), line("events", events);
  for (std::size_t i = 0; i < faults.size(); ++i)
    line(std::string("fault: ") + FaultName(static_cast<Fault>(i)), faults[i]);
  line("steps completed", steps), line("ranks interrupted in a call", interrupted);
  line("  results handed over", handed_over), line("  operations run again", repeated);
  line("  results not confirmed", unconfirmed), line("    that count after all", committed);
  line("views", views), line("  planned", planned_views);
  line("  held below min", held_views), line("resignations", resignations);
  line("  for a broken link", reconnects), line("  for one that breaks often", left_out);
  line("workers that reconnect with a view", late_hellos), line("standbys promoted", promotions);
  line("workers fenced", fenced), line("kills asked for", kills), line("pods left", left);
  line("recoveries begun", recoveries), line("  ended with a restart", restarts);
  line("looks of the operator", looks), line("calls to the API server failed", calls_failed);
  line("jobs finished", finished);
  return text;
}

Outcome RunSchedule(const Options& options) {
  spdlog::set_level(spdlog::level::off);
  return World(options).Run();
}

std::string Explain(const Options& options, const std::string& violation) {
  std::string trace;
  Options again = options;
  again.trace = &trace;
  const auto before = spdlog::default_logger();
  auto logger = std::make_shared<spdlog::logger>("trace", std::make_shared<TraceSink>(&trace));
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::info);
  World(again).Run();
  spdlog::set_default_logger(before);
  return violation + "\n" + trace;
}

}  // namespace ringmaster::app::sim
