#include "sidecar/app/worker_table.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "common/membership/view_json.h"
#include "common/worker_link/frame.h"

namespace ringmaster::app {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using worker_link::BoolField;
using worker_link::IntField;
using worker_link::StringField;
using worker_link::UnsignedField;

// A connection that the peer opens again is seldom longer away than this, and a launcher that lives
// tells of an exit sooner.
constexpr milliseconds kLauncherGrace{500};

// Plain reads: a stream throws when the process goes while it is read.
bool ProcessEnded(int64_t pid) {
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return true;
  int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  char text[512];
  ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return true;
  text[got] = '\0';
  const char* end = std::strrchr(text, ')');
  return end != nullptr && end[1] == ' ' && (end[2] == 'Z' || end[2] == 'X');
}

}  // namespace

WorkerTable::WorkerTable(WorkerTableOptions options, WorkerTableCallbacks callbacks)
    : options_(std::move(options)), callbacks_(std::move(callbacks)) {}

// ---- Who is there

void WorkerTable::OnHello(uint64_t connection, bool launcher, const json& hello, int peer_pid,
                          SteadyTime now) {
  if (launcher) {
    OnLauncherHello(connection, hello);
  } else {
    OnWorkerHello(connection, hello, peer_pid, now);
  }
}

void WorkerTable::OnLauncherHello(uint64_t connection, const json& hello) {
  int64_t slots = IntField(hello, "slots");
  if (slots != options_.slots) {
    callbacks_.refuse(connection, "launcher has " + std::to_string(slots) +
                                      " slots, this pod has " + std::to_string(options_.slots));
    return;
  }
  launcher_ = connection;
  launcher_seen_ = true;
  launcher_lost_.reset();
  if (finishing_) callbacks_.send(launcher_, {{"t", "finish"}});
  if (auto running = hello.find("running"); running != hello.end() && running->is_array())
    TakeRunning(*running);
}

// The launcher is the workers' parent: whom it does not name is dead, whatever was said before.
void WorkerTable::TakeRunning(const json& running) {
  std::set<std::pair<int, uint64_t>> named;
  for (const json& process : running) {
    if (WorkerProcess* worker = OnStarted(process))
      named.emplace(worker->slot, worker->incarnation);
  }
  std::erase_if(processes_, [&](const WorkerProcess& worker) {
    return named.count({worker.slot, worker.incarnation}) == 0;
  });
  callbacks_.changed();
  CheckStopped();
  CheckBoundary();
}

void WorkerTable::OnWorkerHello(uint64_t connection, const json& hello, int peer_pid,
                                SteadyTime now) {
  const bool standby = BoolField(hello, "standby");
  const uint64_t incarnation = UnsignedField(hello, "incarnation");
  const int slot = standby ? -1 : static_cast<int>(IntField(hello, "slot", -1));
  if (!standby && (slot < 0 || slot >= options_.slots)) {
    callbacks_.refuse(connection, "slot is " + std::to_string(slot) + ", 0 to " +
                                      std::to_string(options_.slots - 1) + " are allowed");
    return;
  }
  WorkerProcess* worker = standby ? FindStandby(incarnation) : Find(slot, incarnation);
  for (const WorkerProcess& other : processes_) {
    if (!standby && other.slot == slot && other.incarnation > incarnation) {
      callbacks_.refuse(connection, "slot " + std::to_string(slot) + " belongs to incarnation " +
                                        std::to_string(other.incarnation) + " now");
      return;
    }
  }
  // The launcher's word comes by another socket and may come later.
  if (worker == nullptr) worker = Add(slot, incarnation);
  worker->connection = connection;
  worker->greeted = true;
  worker->says_standby = standby;
  worker->welcomed = false;
  worker->closed_at.reset();
  worker->heard = now;
  worker->tcp = StringField(hello, "tcp");
  worker->shm = StringField(hello, "shm");
  if (peer_pid != 0 && peer_pid == IntField(hello, "pid")) {
    worker->pid = peer_pid;
    worker->same_pids = true;
  }
  // A worker that has a view is connecting again; what it was told before, it was told by this
  // connection's forerunner.
  worker->installed = UnsignedField(hello, "epoch");
  worker->sent = worker->installed;
  worker->stop_sent = 0;
  worker->ready = worker->ready || worker->installed > 0;
  Welcome(worker);
  callbacks_.changed();
}

void WorkerTable::OnFrame(uint64_t connection, const json& frame, SteadyTime now) {
  if (connection == launcher_) return OnLauncherFrame(frame);
  WorkerProcess* worker = ByConnection(connection);
  if (worker == nullptr) return;
  worker->heard = now;
  OnWorkerFrame(worker, frame);
}

void WorkerTable::OnClosed(uint64_t connection, SteadyTime now) {
  if (connection == launcher_) {
    launcher_ = 0;
    launcher_lost_ = now;
    return;
  }
  WorkerProcess* worker = ByConnection(connection);
  if (worker == nullptr) return;
  worker->connection = 0;
  worker->welcomed = false;
  worker->closed_at = now;
  Tick(now);
}

bool WorkerTable::Doubtful() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const WorkerProcess& worker) { return worker.closed_at.has_value(); });
}

bool WorkerTable::LooksDead(const WorkerProcess& worker, SteadyTime now) const {
  if (worker.closed_at) {
    if (worker.same_pids && ProcessEnded(worker.pid)) return true;
    // Workers die with their launcher.
    if (launcher_lost_ && now - *launcher_lost_ > kLauncherGrace) return true;
    if (worker.left || worker.finished) return true;
    return now - *worker.closed_at > options_.fence + milliseconds(1000);
  }
  // Silent past its own fence: stopped or wedged. Its library will not use the view when it wakes;
  // it says hello again.
  return worker.connection != 0 && now - worker.heard > options_.fence + milliseconds(1000);
}

void WorkerTable::Tick(SteadyTime now) {
  bool changed = false;
  for (size_t i = 0; i < processes_.size();) {
    if (!LooksDead(processes_[i], now)) {
      ++i;
      continue;
    }
    const WorkerProcess dead = processes_[i];
    processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(i));
    if (dead.connection != 0)
      callbacks_.refuse(dead.connection, "no ping for longer than the fence");
    // It may only be stopped; fenced it is of no use, and a new process is.
    const bool ended = dead.closed_at && dead.same_pids && ProcessEnded(dead.pid);
    if (launcher_ != 0 && !ended && !dead.left && !dead.finished) {
      callbacks_.send(launcher_, {{"t", "kill"},
                                  {"slot", dead.slot},
                                  {"incarnation", dead.incarnation},
                                  {"reason", "silent for longer than the fence"}});
    }
    changed = true;
  }
  if (!changed) return;
  callbacks_.changed();
  CheckStopped();
  CheckBoundary();
}

// ---- To the launcher

void WorkerTable::Finish() {
  if (finishing_) return;
  finishing_ = true;
  if (launcher_ != 0) callbacks_.send(launcher_, {{"t", "finish"}});
}

void WorkerTable::KillUsed(const std::string& reason) {
  for (const WorkerProcess& worker : processes_) {
    if (worker.standby() || worker.installed == 0 || launcher_ == 0) continue;
    callbacks_.send(launcher_, {{"t", "kill"},
                                {"slot", worker.slot},
                                {"incarnation", worker.incarnation},
                                {"reason", reason}});
  }
}

void WorkerTable::StopLauncher(int grace_seconds, const std::string& reason) {
  if (launcher_ == 0) return;
  callbacks_.send(launcher_, {{"t", "stop"}, {"graceSeconds", grace_seconds}, {"reason", reason}});
}

// ---- What the membership wants

void WorkerTable::Stop(Epoch epoch) {
  stopping_ = std::max(stopping_, epoch);
  armed_ = armed_ <= epoch ? 0 : armed_;
  for (WorkerProcess& worker : processes_) {
    if (!worker.standby() && worker.welcomed) SendStop(&worker, epoch);
  }
  CheckStopped();
}

void WorkerTable::SendStop(WorkerProcess* worker, Epoch epoch) {
  const bool may_use = worker->sent != 0 || worker->installed != 0;
  if (worker->stop_sent >= epoch || !may_use) return;
  worker->stop_sent = epoch;
  callbacks_.send(worker->connection, {{"t", "stop"}, {"epoch", epoch}});
}

// A worker that never got a view, by us or by a forerunner of this sidecar, has nothing to stop.
bool WorkerTable::MayUse(const WorkerProcess& worker, Epoch epoch) const {
  if (worker.standby() || worker.stopped >= epoch) return false;
  return worker.sent > 0 || worker.installed > 0 || (!worker.greeted && InView(worker));
}

void WorkerTable::CheckStopped() {
  if (stopping_ == 0) return;
  for (const WorkerProcess& worker : processes_) {
    if (MayUse(worker, stopping_)) return;
  }
  callbacks_.stopped(std::exchange(stopping_, 0));
}

void WorkerTable::Arm(Epoch epoch) {
  if (!view_ || view_->epoch != epoch) return;
  armed_ = epoch;
  for (const WorkerProcess& worker : processes_) {
    if (worker.welcomed && InView(worker))
      callbacks_.send(worker.connection, {{"t", "arm"}, {"epoch", epoch}});
  }
  CheckBoundary();
}

void WorkerTable::CheckBoundary() {
  if (armed_ == 0) return;
  for (const WorkerProcess& worker : processes_) {
    if (InView(worker) && worker.boundary < armed_) return;
  }
  callbacks_.boundary(std::exchange(armed_, 0));
}

void WorkerTable::Install(ViewPtr view) {
  view_ = std::move(view);
  armed_ = 0;
  settled_ = true;
  for (WorkerProcess& worker : processes_) {
    if (worker.standby() || worker.connection == 0) continue;
    if (!worker.welcomed) {
      Welcome(&worker);
    } else {
      SendView(&worker);
    }
  }
}

void WorkerTable::SendView(WorkerProcess* worker) {
  // What it has stopped it will never use again, also where it had not built it yet.
  if (std::max(worker->sent, worker->stopped) >= view_->epoch) return;
  const int self =
      view_->FindRank(options_.pod_uid, static_cast<uint32_t>(worker->slot), worker->incarnation);
  // A joiner that the view does not list goes on waiting; it has nothing to hear.
  if (self < 0 && worker->sent == 0) return;
  if (worker->stopped < view_->parent) SendStop(worker, view_->parent);
  json donors = json::array();
  for (size_t rank = 0; rank < view_->ranks.size(); ++rank) {
    if (!view_->ranks[rank].joined) donors.push_back(rank);
  }
  callbacks_.send(worker->connection, {{"t", "view"},
                                       {"view", membership::ToJson(*view_)},
                                       {"self", self},
                                       {"donors", std::move(donors)}});
  worker->sent = view_->epoch;
  if (self < 0) {  // a joiner again
    worker->ready = false;
    worker->sent = 0;
    callbacks_.changed();
  }
}

void WorkerTable::Leave(Epoch epoch, const std::string& reason) {
  left_ = std::max(left_, epoch);
  left_reason_ = reason;
  Finish();
  for (WorkerProcess& worker : processes_) SendLeft(&worker, epoch, reason);
}

void WorkerTable::GiveUp(const std::string& message) {
  given_up_ = message;
  for (const WorkerProcess& worker : processes_) {
    if (worker.welcomed) callbacks_.send(worker.connection, {{"t", "error"}, {"message", message}});
  }
}

void WorkerTable::LeaveJoiners(Epoch epoch, const std::string& reason) {
  for (WorkerProcess& worker : processes_) {
    if (!InView(worker)) SendLeft(&worker, epoch, reason);
  }
}

void WorkerTable::SendLeft(WorkerProcess* worker, Epoch epoch, const std::string& reason) {
  if (!worker->welcomed) return;
  worker->left = true;
  callbacks_.send(worker->connection, {{"t", "left"}, {"epoch", epoch}, {"reason", reason}});
}

// ---- Welcome

void WorkerTable::SettleWelcome() {
  if (std::exchange(settled_, true)) return;
  for (WorkerProcess& worker : processes_) {
    if (worker.connection != 0 && !worker.welcomed) Welcome(&worker);
  }
}

void WorkerTable::Welcome(WorkerProcess* worker) {
  if (!settled_ && !worker->says_standby && worker->installed == 0)
    return;  // bootstrap or joining: not known yet
  worker->welcomed = true;
  const char* state = "bootstrap";
  if (worker->says_standby) {
    state = "standby";
  } else if (InView(*worker)) {
    state = "member";  // also where it had not built the view yet when the connection broke
  } else if (view_ != nullptr) {
    state = "joining";
  }
  json frame = Place(*worker);
  frame.update({{"t", "welcome"},
                {"version", worker_link::kLinkVersion},
                {"job", options_.job},
                {"pod", options_.pod},
                {"slot", std::max(worker->slot, 0)},
                {"incarnation", worker->incarnation},
                {"state", state},
                {"epoch", view_ ? view_->epoch : 0},
                {"pingMs", options_.ping.count()},
                {"fenceMs", options_.fence.count()}});
  callbacks_.send(worker->connection, frame);
  if (worker->says_standby && !worker->standby()) SendPromoted(*worker);
  if (worker->standby()) return;
  if (left_ != 0) return SendLeft(worker, left_, left_reason_);
  if (!given_up_.empty())
    return callbacks_.send(worker->connection, {{"t", "error"}, {"message", given_up_}});
  if (view_ != nullptr) SendView(worker);
  if (stopping_ != 0) SendStop(worker, stopping_);
  if (armed_ != 0 && InView(*worker))
    callbacks_.send(worker->connection, {{"t", "arm"}, {"epoch", armed_}});
}

void WorkerTable::SendPromoted(const WorkerProcess& worker) {
  json frame = Place(worker);
  frame.update({{"t", "promoted"}, {"slot", worker.slot}, {"incarnation", worker.incarnation}});
  callbacks_.send(worker.connection, frame);
}

json WorkerTable::Place(const WorkerProcess& worker) const {
  int rank =
      view_ ? view_->FindRank(options_.pod_uid, static_cast<uint32_t>(std::max(worker.slot, 0)),
                              worker.incarnation)
            : -1;
  const int known = view_ ? static_cast<int>(view_->ranks.size()) : 0;
  const int size = rank >= 0 ? known : std::max(known + 1, options_.slots);
  if (rank < 0) rank = view_ ? known : std::max(worker.slot, 0);  // newcomers come last
  return {{"rank", rank},
          {"size", size},
          {"localRank", std::max(worker.slot, 0)},
          {"localSize", options_.slots}};
}

// ---- Lookups

bool WorkerTable::InView(const WorkerProcess& worker) const {
  return view_ != nullptr && !worker.standby() &&
         view_->FindRank(options_.pod_uid, static_cast<uint32_t>(worker.slot),
                         worker.incarnation) >= 0;
}

WorkerProcess* WorkerTable::ByConnection(uint64_t connection) {
  for (WorkerProcess& worker : processes_) {
    if (worker.connection == connection) return &worker;
  }
  return nullptr;
}

WorkerProcess* WorkerTable::Find(int slot, uint64_t incarnation) {
  for (WorkerProcess& worker : processes_) {
    if (!worker.standby() && worker.slot == slot && worker.incarnation == incarnation)
      return &worker;
  }
  return nullptr;
}

WorkerProcess* WorkerTable::FindStandby(uint64_t standby_incarnation) {
  for (WorkerProcess& worker : processes_) {
    if (worker.standby_incarnation == standby_incarnation) return &worker;
  }
  return nullptr;
}

WorkerProcess* WorkerTable::Add(int slot, uint64_t incarnation) {
  WorkerProcess worker;
  worker.slot = slot;
  worker.incarnation = incarnation;
  if (slot < 0) worker.standby_incarnation = incarnation;
  processes_.push_back(worker);
  return &processes_.back();
}

void WorkerTable::Remove(const WorkerProcess* worker) {
  processes_.erase(processes_.begin() + (worker - processes_.data()));
}

bool WorkerTable::Complete() const {
  if (launcher_seen_) return true;
  std::set<int> slots;
  for (const WorkerProcess& worker : processes_) {
    if (!worker.standby()) slots.insert(worker.slot);
  }
  return static_cast<int>(slots.size()) == options_.slots;
}

std::vector<membership::Worker> WorkerTable::Living() const {
  std::vector<membership::Worker> living;
  for (const WorkerProcess& worker : processes_) {
    if (worker.standby()) continue;
    living.push_back({static_cast<uint32_t>(worker.slot), worker.incarnation, worker.tcp,
                      worker.shm, worker.ready, worker.installed > 0});
  }
  std::sort(living.begin(), living.end(),
            [](const auto& a, const auto& b) { return a.slot < b.slot; });
  return living;
}

std::vector<uint32_t> WorkerTable::MissingSlots() const {
  std::vector<uint32_t> missing;
  for (int slot = 0; slot < options_.slots; ++slot) {
    const bool ready = std::any_of(
        processes_.begin(), processes_.end(),
        [slot](const WorkerProcess& worker) { return worker.slot == slot && worker.ready; });
    if (!ready) missing.push_back(static_cast<uint32_t>(slot));
  }
  return missing;
}

bool WorkerTable::AllInstalled(Epoch epoch) const {
  int installed = 0;
  for (const WorkerProcess& worker : processes_) {
    if (InView(worker) && worker.installed >= epoch) ++installed;
  }
  return installed == options_.slots;
}

bool WorkerTable::AnyLiving() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const WorkerProcess& worker) { return !worker.standby(); });
}

}  // namespace ringmaster::app
