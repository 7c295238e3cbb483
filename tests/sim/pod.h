// A simulated pod: its kubelet, clocks, disk, sidecar and launcher. Plain data.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/membership/member.h"
#include "sidecar/app/agent.h"
#include "sidecar/launcher/shutdown.h"
#include "sidecar/launcher/slots.h"
#include "sidecar/launcher/standby_schedule.h"
#include "sidecar/rendezvous/operator_session.h"
#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

// Does work in the sidecar of the pod that has this life. It is dropped where that is gone by then.
using AgentPost =
    std::function<void(int pod, std::uint32_t life, std::function<void(Agent&)> work)>;

// How many pods the job wants, and what is in each.
struct JobSize {
  int slots = 1, standbys = 0, wanted = 1;
  std::uint32_t min_pods = 1;
  std::vector<std::uint32_t> allowed;  // empty: every number of pods

  membership::Sizes Sizes() const { return {min_pods, allowed}; }
  int Pods() const {
    return allowed.empty() ? wanted
                           : static_cast<int>(Sizes().AtMost(static_cast<std::size_t>(wanted)));
  }
};

struct Child {
  int slot = -1;
  std::uint64_t incarnation = 0, standby_incarnation = 0;
  WorkerPtr worker;
  launcher::TimePoint began;
  launcher::TimePoint began_local = {};  // by its pod's clock
  bool ended_by_us = false;
};

// What a launcher process decides by is the product's; its processes and its socket are played.
struct Launcher {
  explicit Launcher(int count) : slots(count) {}

  std::uint64_t stream = 0;
  Micros backoff = 0;
  std::deque<json> pending;  // until it is connected
  std::vector<Child> children;
  launcher::Slots slots;
  launcher::StandbySchedule standby;
  launcher::Shutdown shutdown;
  std::uint64_t timer = 0;
  bool begun = false, ended = false, sidecar_seen = false;
  bool ending() const { return shutdown.ending(); }
};

// What a sidecar's heartbeats know of another pod.
struct Watched {
  bool suspected = false, unreachable = false;
  Micros silence = 0;
};

// A sidecar's stream to the operator: played, what goes over it is not.
struct OperatorStream : rendezvous::ReportSink {
  bool Send(const rendezvous::QueuedReport& queued) override {
    if (number == 0) return false;
    unsent.push_back(queued);
    carry();
    return true;
  }

  std::uint64_t number = 0;  // 0: there is none
  Micros begun = 0;
  std::deque<rendezvous::QueuedReport> unsent;
  int held_up = 0;                  // of `unsent`: their time has come, and no operator was there
  std::function<void()> carry;      // sets the newest on its way
  Micros reports = 0, notices = 0;  // each direction keeps its order
};

struct SimPod {
  explicit SimPod(int slots) : launcher(slots) {}

  int index = 0;
  std::string uid, name;
  bool gone = false;     // for good
  bool leaving = false;  // its object says so
  int exit_code = 137;   // of its worker container

  // Its kubelet.
  bool placed = false, deleting = false, deletion_seen = false;
  bool end_told = false;  // that all of its containers have terminated

  // Clocks.
  std::int64_t drift_ppm = 0;
  Micros stood_still = 0;  // how long its steady clock did
  Micros wall_step = 0;

  // Disk. No state: never written, or lost.
  std::optional<membership::PersistentState> disk;
  std::uint64_t newest_incarnation = 0;
  bool disk_fails = false;

  // The sidecar.
  std::unique_ptr<Agent> agent;  // null: it is not running
  std::uint32_t life = 0;
  bool starts_again = true;
  bool terminated = false;  // the sidecar got SIGTERM
  int crash_after = -1;     // dies after so many more outputs
  bool crashed = false;     // in the middle of a call: what it still does has not happened
  bool timer_set = false;
  Micros wake = 0;
  std::uint64_t timer = 0;
  int woken_in_vain = 0;
  Micros paused_until = 0;                    // the sidecar
  Micros machine_until = 0;                   // all of the pod
  std::vector<std::function<void()>> asleep;  // what came meanwhile
  std::map<std::string, Watched> watched;     // by pod uid
  Epoch news = 0;
  std::uint64_t news_step = 0;
  std::unique_ptr<rendezvous::OperatorSession> session;  // with the operator
  OperatorStream to_operator;
  Launcher launcher;
};

}  // namespace ringmaster::app::sim
