#include "operator/cli/node_restarter.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ringmaster::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kNodeCheckPeriod{1};  // between two observations of the nodes

NodeRevival::Sight SightOf(const RunNodes& seen, const std::string& name) {
  const auto node = seen.nodes.find(name);
  if (node == seen.nodes.end()) return NodeRevival::Sight::kGone;
  return node->second.silent ? NodeRevival::Sight::kSilent : NodeRevival::Sight::kHeard;
}

NodeRevival::Attempt Failed(const std::string& why) {
  return {.end = NodeRevival::Attempt::End::kFailed, .why = why, .stays_so = StaysSo(why)};
}

}  // namespace

NodeRestarter::NodeRestarter(MachineSetup* setup, std::vector<Machine>* machines,
                             std::shared_ptr<kube::KubeApi> api,
                             const std::filesystem::path& kubeconfig, Say say)
    : setup_(setup),
      machines_(machines),
      api_(std::move(api)),
      kubeconfig_(kubeconfig),
      say_(std::move(say)) {
  for (const Machine& machine : *machines_)
    revivals_.try_emplace(machine.node, machine.host.name, Clock::now());
  thread_ = std::jthread([this] { Run(setup_->stop()); });
}

NodeRestarter::~NodeRestarter() {
  thread_.join();
  work_.clear();  // joins the threads
}

void NodeRestarter::Run(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "node-restarter");
  while (!stop.stop_requested()) {
    const auto next = Clock::now() + kNodeCheckPeriod;
    TakeResults();
    const auto seen = ObserveRunNodes(api_.get(), "", "", std::chrono::system_clock::now());
    if (seen) Tend(*seen);  // otherwise the next observation tries again
    if (!stop.stop_requested()) Report();
    const sync::MutexLock lock(&mu_);
    while (results_.empty() && changed_.WaitUntil(&mu_, stop, next)) {
    }
  }
}

void NodeRestarter::TakeResults() {
  std::deque<Result> results;
  {
    const sync::MutexLock lock(&mu_);
    results.swap(results_);
  }
  for (const Result& result : results) {
    work_.erase(result.node);  // joins the thread
    revivals_.at(result.node).Finish(result.attempt, Clock::now());
  }
}

void NodeRestarter::Tend(const RunNodes& seen) {
  for (Machine& machine : *machines_) {
    const auto sight = SightOf(seen, machine.node);
    if (revivals_.at(machine.node).Look(sight, Clock::now())) Begin(&machine);
  }
}

void NodeRestarter::Begin(Machine* machine) {
  work_[machine->node] = std::jthread([this, machine] {
    pthread_setname_np(pthread_self(), "host");
    auto attempt = Try(machine);
    const sync::MutexLock lock(&mu_);
    results_.push_back({machine->node, std::move(attempt)});
    changed_.NotifyAll();
  });
}

// Repeats all steps, because the machine may have been reinstalled without the programs.
NodeRevival::Attempt NodeRestarter::Try(Machine* machine) {
  machine->has_programs = false;
  if (auto looked = setup_->Look(machine); !looked) return Failed(looked.error().message);
  if (auto installed = setup_->Install(machine); !installed)
    return Failed(installed.error().message);
  const auto revival = setup_->StartNodeAgain(machine, kubeconfig_);
  if (!revival) return Failed(revival.error().message);
  return {.end = *revival == MachineSetup::Revival::kStarted
                     ? NodeRevival::Attempt::End::kStarted
                     : NodeRevival::Attempt::End::kRanAllTheTime};
}

void NodeRestarter::Report() {
  for (auto& [node, revival] : revivals_) {
    const auto messages = revival.TakeMessages();
    std::for_each(messages.begin(), messages.end(), say_);
  }
}

}  // namespace ringmaster::cli
