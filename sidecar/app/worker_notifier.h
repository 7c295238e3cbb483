// Tells workers of this pod what they have to know: their welcome, views, and that a view or the
// job is over for them.
//
// It keeps what a worker that connects later has to hear too. No sockets: frames go out by a
// function. Thread rule: the sidecar's loop only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "common/worker_link/worker_frames.h"
#include "sidecar/app/glue_clause.h"
#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/pod_view.h"
#include "sidecar/app/worker_barrier.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

struct WorkerTableOptions {
  std::string job, pod;  // uid and name, for `welcome`
  std::string pod_uid;
  std::string ring_key;  // of the job, base64; empty: none
  std::string version;   // of this sidecar
  int slots = 1;
  std::chrono::milliseconds ping{250};
  std::chrono::milliseconds fence{10000};
  // A worker that a signal has stopped for so long is killed.
  std::chrono::milliseconds stopped_for{1000};
  GlueClauses without;  // FOR TESTS
};

class WorkerNotifier {
 public:
  // `joiner_again`: a worker has heard of a view that does not list it, and is not ready any more.
  WorkerNotifier(WorkerTableOptions options, SendFrame send, std::function<void()> joiner_again);

  // The newest view is known, from now on or by a forerunner of this sidecar.
  void Install(ViewPtr view);
  void Restore(ViewPtr view) { view_.Set(std::move(view)); }
  const PodView& view() const { return view_; }

  // It is settled whether workers start the job or join it. False: it was before.
  bool Settle();
  // Sends `welcome`, once it is known whether workers start the job or join it. `asked`: the stop
  // or arm that is outstanding, which a late worker must get too.
  void Welcome(WorkerProcess* worker, const WorkerBarrier& asked);
  void SendView(WorkerProcess* worker);
  void SendStop(WorkerProcess* worker, Epoch epoch) const;
  void SendArm(const WorkerProcess& worker, Epoch epoch) const;
  void SendPromoted(const WorkerProcess& worker) const;
  void SendLeft(WorkerProcess* worker, Epoch epoch, const std::string& reason) const;

  // Keeps that all workers leave, or fail, for those that connect later; the caller tells those
  // that are connected.
  void Leave(Epoch epoch, const std::string& reason);
  // The same for those that the view does not list.
  void LeaveJoiners(Epoch epoch, const std::string& reason) {
    joiners_left_ = Farewell{epoch, reason};
  }
  void GiveUp(const std::string& message) { given_up_ = message; }
  void SendGivenUp(const WorkerProcess& worker) const;

 private:
  struct Farewell {
    Epoch epoch = 0;  // 0: this pod was in no view
    std::string reason;
  };

  void SendWelcome(WorkerProcess* worker, const std::string& state);
  const char* StateOf(const WorkerProcess& worker) const;
  bool ComesAnew(const WorkerProcess& worker) const;
  worker_link::WorkerPlace PlaceOf(const WorkerProcess& worker) const;

  const WorkerTableOptions options_;
  const SendFrame send_;
  const std::function<void()> joiner_again_;
  PodView view_;
  bool settled_ = false;
  std::optional<Farewell> left_, joiners_left_;
  std::string given_up_;  // why, once it is
};

}  // namespace ringmaster::app
