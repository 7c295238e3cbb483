// What the agent needs of the outside: the clock, the disk, and the three links. The sidecar fills
// these in with sockets, tests with fakes.
//
// Thread rule: the sidecar's loop only. Outputs may be called at any time inside a call of the
// agent and must not call back in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "common/job/gpu_health.h"
#include "common/job/stall.h"
#include "common/job/worker_exit.h"
#include "common/membership/member.h"
#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

struct AgentClock {
  std::function<SteadyTime()> now;
  std::function<int64_t()> unix_ms;
};

using PersistState =
    std::function<tl::expected<void, std::string>(const membership::PersistentState&)>;

// The launcher and the workers of this pod.
struct LinkOutputs {
  SendFrame send;
  std::function<void(uint64_t connection, const std::string& message)> refuse;
  std::function<void(uint64_t connection)> drop;  // closes it without a word
};

// The other sidecars.
struct PeerOutputs {
  // `change`: goes in place of the message's view; empty: the view itself goes.
  std::function<void(const std::string& pod, const std::string& address, const membership::Message&,
                     const std::string& change)>
      deliver;
  // A message of HistoryHandover; null: nobody is asked.
  std::function<void(const std::string& pod, const std::string& address, const std::string& body)>
      hand_history;
  // The pods of the view that is installed now, the own one included.
  std::function<void(const std::vector<membership::Pod>&)> watch;
  std::function<bool(const std::string& pod)> suspects;
  // Of the pods around this one those of which it is not known whether they live (accusations.h).
  std::function<std::vector<std::string>(const std::string& pod)> look_around;
  // Its sidecar's connection is closed: it is suspected soon, unless it comes back.
  std::function<bool(const std::string& pod)> unreachable;
  std::function<void(Epoch, uint64_t step)> set_news;  // what heartbeats say
};

struct OperatorOutputs {
  std::function<void(const membership::Message&)> ask_record;
  std::function<void(bool ready, const std::vector<uint32_t>& missing,
                     const std::string& candidate)>
      report_readiness;
  std::function<void(const membership::ViewPtr& view, const std::string& rebuild, uint64_t step)>
      report_view;
  std::function<void(const job::WorkerExit&)> report_exit;
  std::function<void(Epoch)> report_finished;
  // Whether this pod is in a view that can train, as far as it knows; else for how long not.
  std::function<void(bool able, std::chrono::milliseconds unable)> report_health;
  std::function<void(const membership::RecoveryReport&)> report_recovery;
  std::function<void(const std::vector<job::Stall>&)> report_stalls;
  std::function<void(const std::vector<job::GpuHealth>&)> report_failing_gpus;
  // For how long a planned change has waited for the end of a step; 0: none waits any more.
  std::function<void(std::chrono::milliseconds awaited)> report_step_awaited;
  std::function<void()> report_all_leave;
};

struct AgentOutputs {
  AgentClock clock;
  PersistState persist;
  LinkOutputs link;
  PeerOutputs peers;
  OperatorOutputs job_operator;
};

}  // namespace ringmaster::app
