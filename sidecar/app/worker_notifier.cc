#include "sidecar/app/worker_notifier.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/membership/view_json.h"
#include "common/worker_link/worker_frames.h"

namespace ringmaster::app {

using nlohmann::json;

WorkerNotifier::WorkerNotifier(WorkerTableOptions options, SendFrame send,
                               std::function<void()> joiner_again)
    : options_(std::move(options)),
      send_(std::move(send)),
      joiner_again_(std::move(joiner_again)),
      view_(options_.pod_uid) {}

void WorkerNotifier::Install(ViewPtr view) {
  view_.Set(std::move(view));
  settled_ = true;
}

bool WorkerNotifier::Settle() { return !std::exchange(settled_, true); }

void WorkerNotifier::Welcome(WorkerProcess* worker, const WorkerBarrier& asked) {
  if (!settled_ && !worker->connection.says_standby() && worker->views.installed() == 0)
    return;  // bootstrap or joining: not known yet
  SendWelcome(worker, StateOf(*worker));
  worker->stage.BeginsJob(!worker->standby() && view_.view() == nullptr &&
                          !options_.without.Has(GlueClause::kBegunWithout));
  if (worker->connection.says_standby() && !worker->standby()) SendPromoted(*worker);
  if (worker->standby()) return;
  if (left_) return SendLeft(worker, left_->epoch, left_->reason);
  if (!given_up_.empty()) return SendGivenUp(*worker);
  if (joiners_left_ && !view_.Lists(*worker))
    return SendLeft(worker, joiners_left_->epoch, joiners_left_->reason);
  if (view_.view() != nullptr) SendView(worker);
  if (asked.stopping() != 0) SendStop(worker, asked.stopping());
  if (asked.armed() != 0 && view_.Lists(*worker)) SendArm(*worker, asked.armed());
}

void WorkerNotifier::SendWelcome(WorkerProcess* worker, const std::string& state) {
  worker->connection.Welcomed(/*as_joiner=*/state == "joining");
  send_(worker->connection.id(),
        worker_link::ToFrame(worker_link::Welcome{.job = options_.job,
                                                  .pod = options_.pod,
                                                  .slot = std::max(worker->slot(), 0),
                                                  .incarnation = worker->identity.incarnation(),
                                                  .state = state,
                                                  .epoch = view_.epoch(),
                                                  .place = PlaceOf(*worker),
                                                  .rests = true,
                                                  .ping_ms = options_.ping.count(),
                                                  .fence_ms = options_.fence.count(),
                                                  .ring_key = options_.ring_key}));
}

const char* WorkerNotifier::StateOf(const WorkerProcess& worker) const {
  if (worker.connection.says_standby()) return "standby";
  // Also where it had not built the view yet when the connection broke.
  if (view_.Lists(worker) && !ComesAnew(worker)) return "member";
  return view_.view() != nullptr ? "joining" : "bootstrap";
}

// The view lets it in as a joiner, and it was not in the view before. It may have missed that it
// was left out, and believe that what it holds counts.
bool WorkerNotifier::ComesAnew(const WorkerProcess& worker) const {
  const membership::View& view = *view_.view();
  const bool joins = view.ranks[static_cast<size_t>(view_.RankOf(worker))].joined;
  return joins && worker.views.sent() < view.parent &&
         !options_.without.Has(GlueClause::kJoinerIsTold);
}

worker_link::WorkerPlace WorkerNotifier::PlaceOf(const WorkerProcess& worker) const {
  const ViewPtr& view = view_.view();
  const int known = view_.world_size();
  int rank =
      view ? view->FindRank(options_.pod_uid, static_cast<uint32_t>(std::max(worker.slot(), 0)),
                            worker.identity.incarnation())
           : -1;
  const int size = rank >= 0 ? known : std::max(known + 1, options_.slots);
  if (rank < 0) rank = view ? known : std::max(worker.slot(), 0);  // newcomers come last
  return {.rank = rank,
          .size = size,
          .local_rank = std::max(worker.slot(), 0),
          .local_size = options_.slots};
}

void WorkerNotifier::SendView(WorkerProcess* worker) {
  const membership::View& view = *view_.view();
  if (worker->views.IsPast(view.epoch)) return;
  const int self = view_.RankOf(*worker);
  // A joiner that the view does not list goes on waiting; it has nothing to hear. One that was to
  // begin the job hears that the job has begun without it.
  if (self < 0 && worker->views.sent() == 0 && !worker->stage.begins()) return;
  // It was welcomed when this sidecar, whose file was lost, knew of no view.
  if (self >= 0 && worker->views.sent() != 0 && !worker->connection.told_it_joins() &&
      ComesAnew(*worker)) {
    SendWelcome(worker, "joining");
  }
  if (worker->views.stopped() < view.parent) SendStop(worker, view.parent);
  json donors = json::array();
  for (size_t rank = 0; rank < view.ranks.size(); ++rank) {
    if (!view.ranks[rank].joined) donors.push_back(rank);
  }
  send_(worker->connection.id(), {{"t", "view"},
                                  {"view", membership::ToJson(view)},
                                  {"self", self},
                                  {"donors", std::move(donors)}});
  worker->views.Sent(view.epoch);
  worker->stage.BeginsJob(false);
  if (self >= 0) return;
  worker->stage.LeftOut();
  worker->views.LeftOut();
  joiner_again_();
}

void WorkerNotifier::SendStop(WorkerProcess* worker, Epoch epoch) const {
  if (!worker->views.TellToStop(epoch)) return;
  send_(worker->connection.id(), worker_link::StopFrame(epoch));
}

void WorkerNotifier::SendArm(const WorkerProcess& worker, Epoch epoch) const {
  send_(worker.connection.id(), worker_link::ArmFrame(epoch));
}

void WorkerNotifier::SendPromoted(const WorkerProcess& worker) const {
  send_(worker.connection.id(),
        worker_link::PromotedFrame(worker.slot(), worker.identity.incarnation(), PlaceOf(worker)));
}

void WorkerNotifier::SendLeft(WorkerProcess* worker, Epoch epoch, const std::string& reason) const {
  if (!worker->connection.welcomed()) return;
  worker->stage.Left();
  send_(worker->connection.id(), worker_link::LeftFrame(epoch, reason));
}

void WorkerNotifier::Leave(Epoch epoch, const std::string& reason) {
  left_ = Farewell{std::max(left_ ? left_->epoch : 0, epoch), reason};
}

void WorkerNotifier::SendGivenUp(const WorkerProcess& worker) const {
  send_(worker.connection.id(), worker_link::ErrorFrame(given_up_));
}

}  // namespace ringmaster::app
