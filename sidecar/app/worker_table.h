// The processes of this pod, as the launcher and the workers themselves tell of them over the
// worker link.
//
// It knows who lives, who is ready, who has stopped and who stands at the boundary, and turns what
// the membership wants of "the workers" into frames. No sockets, no clock: frames go out by a
// function, time is handed in. Thread rule: the sidecar's loop only. Callbacks may call back in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/job/rebuild.h"
#include "common/job/worker_exit.h"
#include "common/membership/view.h"

namespace ringmaster::app {

using membership::Epoch;
using membership::ViewPtr;
using SteadyTime = std::chrono::steady_clock::time_point;

struct WorkerProcess {
  int slot = -1;  // -1: a standby
  uint64_t incarnation = 0;
  uint64_t standby_incarnation = 0;  // by which a promoted standby says hello
  int64_t pid = 0;
  uint64_t connection = 0;    // 0: none now
  bool greeted = false;       // has said hello to this sidecar, ever
  bool welcomed = false;      // on this connection
  bool says_standby = false;  // in its newest hello
  bool same_pids = false;     // its process ids are ours, so we can look whether it lives
  std::string tcp, shm;
  bool ready = false;   // has sent `enter`
  Epoch sent = 0;       // newest view sent to it
  Epoch installed = 0;  // newest view it has built
  Epoch stop_sent = 0, stopped = 0;
  Epoch boundary = 0;
  bool finished = false, left = false;
  uint64_t step = 0;
  std::map<std::string, double> values;
  SteadyTime heard{};                        // the last frame
  std::optional<SteadyTime> closed_at = {};  // its socket closed and nobody has said that it ended
  bool standby() const { return slot < 0; }
};

struct WorkerTableCallbacks {
  std::function<void(uint64_t connection, const nlohmann::json& frame)> send;
  std::function<void(uint64_t connection, const std::string& message)> refuse;
  std::function<void()> changed;        // who lives, or who is ready
  std::function<void(Epoch)> stopped;   // all have stopped using views up to this one
  std::function<void(Epoch)> boundary;  // all stand at the boundary of this view
  // The first operation of a view has completed there: epoch, seconds and steps_resumed are set.
  std::function<void(const job::Rebuild&)> rebuilt;
  // An operation of this view has completed; said once, by whichever worker's ping is the first.
  std::function<void(Epoch)> ran;
  std::function<void(Epoch, int rank, const std::string& reason)> suspects;
  std::function<void(Epoch)> finished;  // rm_shutdown was agreed by all ranks
  std::function<void(const job::WorkerExit&)> exited;
  std::function<void()> terminate;  // SIGTERM came to the worker container
};

struct WorkerTableOptions {
  std::string job, pod;  // uid and name, for `welcome`
  std::string pod_uid;
  int slots = 1;
  std::chrono::milliseconds ping{250};
  std::chrono::milliseconds fence{10000};
};

class WorkerTable {
 public:
  WorkerTable(WorkerTableOptions options, WorkerTableCallbacks callbacks);

  // ---- From the link server. `peer_pid`: see LinkServer::PeerPid.
  void OnHello(uint64_t connection, bool launcher, const nlohmann::json& hello, int peer_pid,
               SteadyTime now);
  void OnFrame(uint64_t connection, const nlohmann::json& frame, SteadyTime now);
  void OnClosed(uint64_t connection, SteadyTime now);
  // Looks after those whose socket closed and those who went silent.
  void Tick(SteadyTime now);
  // Tick wants to be called every few milliseconds.
  bool Doubtful() const;

  // ---- From the membership.
  // Answered by `stopped`, at once if nobody has anything to stop.
  void Stop(Epoch epoch);
  void Arm(Epoch epoch);
  void Install(ViewPtr view);
  // The stored view of a restarted sidecar: workers listed in it may be using it.
  void Restore(ViewPtr view) { view_ = std::move(view); }
  // Workers get `left`, the launcher `finish`.
  void Leave(Epoch epoch, const std::string& reason);
  // The same for those that are in no view.
  void LeaveJoiners(Epoch epoch, const std::string& reason);
  // The job can't go on: workers, those that come later too, get `error`.
  void GiveUp(const std::string& message);
  void Finish();
  // Ends workers that have been in a view, so that the launcher starts fresh ones.
  void KillUsed(const std::string& reason);
  void StopLauncher(int grace_seconds, const std::string& reason);
  // It is settled whether workers found the job or join it: those who wait for their `welcome` get
  // it.
  void SettleWelcome();

  // Whether the launcher (or, without one, every slot) has told who lives since this sidecar
  // started.
  bool Complete() const;
  std::vector<membership::Worker> Living() const;
  std::vector<uint32_t> MissingSlots() const;  // slots whose worker has not called init()
  bool AllInstalled(Epoch epoch) const;
  bool AnyLiving() const;
  bool HasLauncher() const { return launcher_ != 0; }
  const std::vector<WorkerProcess>& processes() const { return processes_; }

 private:
  void OnLauncherHello(uint64_t connection, const nlohmann::json& hello);
  void TakeRunning(const nlohmann::json& running);
  void OnWorkerHello(uint64_t connection, const nlohmann::json& hello, int peer_pid,
                     SteadyTime now);
  void OnLauncherFrame(const nlohmann::json& frame);
  void OnWorkerFrame(WorkerProcess* worker, const nlohmann::json& frame);
  void OnPing(WorkerProcess* worker, const nlohmann::json& frame);
  WorkerProcess* OnStarted(const nlohmann::json& frame);
  void OnExited(const nlohmann::json& frame);
  void OnPromoted(const nlohmann::json& frame);

  WorkerProcess* ByConnection(uint64_t connection);
  WorkerProcess* Find(int slot, uint64_t incarnation);
  WorkerProcess* FindStandby(uint64_t standby_incarnation);
  WorkerProcess* Add(int slot, uint64_t incarnation);
  void Remove(const WorkerProcess* worker);

  void Welcome(WorkerProcess* worker);
  void SendPromoted(const WorkerProcess& worker);
  void SendLeft(WorkerProcess* worker, Epoch epoch, const std::string& reason);
  void SendView(WorkerProcess* worker);
  void SendStop(WorkerProcess* worker, Epoch epoch);
  nlohmann::json Place(const WorkerProcess& worker) const;  // rank, size, localRank, localSize
  bool InView(const WorkerProcess& worker) const;
  bool MayUse(const WorkerProcess& worker, Epoch epoch) const;
  void CheckStopped();
  void CheckBoundary();
  bool LooksDead(const WorkerProcess& worker, SteadyTime now) const;

  const WorkerTableOptions options_;
  const WorkerTableCallbacks callbacks_;
  std::vector<WorkerProcess> processes_;
  uint64_t launcher_ = 0;
  bool launcher_seen_ = false;
  std::optional<SteadyTime> launcher_lost_;
  ViewPtr view_;
  bool settled_ = false;
  Epoch stopping_ = 0, armed_ = 0;  // asked for and not answered yet
  bool finishing_ = false;
  Epoch ran_ = 0;
  std::string given_up_;  // why, once it is
  Epoch left_ = 0;
  std::string left_reason_;
};

}  // namespace ringmaster::app
