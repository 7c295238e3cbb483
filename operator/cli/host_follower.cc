#include "operator/cli/host_follower.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "operator/api/labels.h"
#include "operator/cli/host_scaling.h"
#include "operator/cli/run_address.h"
#include "operator/cli/run_nodes.h"

namespace ringmaster::cli {
namespace {

constexpr std::chrono::seconds kPeriod{1};  // between two calls of the script, as in Horovod
constexpr std::chrono::seconds kAbandonHere{20};

// If the run on this machine is killed, its processes here should end soon.
MachineOptions WithOwnEnd(MachineOptions options) {
  options.abandon_after_here = std::min(options.abandon_after, kAbandonHere);
  return options;
}

// A failed write is repeated after the next observation.
void Write(kube::KubeApi* api, const NodeWrite& write) {
  switch (write.kind) {
    case NodeWrite::Kind::kCordon:
    case NodeWrite::Kind::kUncordon:
      (void)api->Patch(kube::Nodes(), "", write.node,
                       {{"spec", {{"unschedulable", write.kind == NodeWrite::Kind::kCordon}}}}, {});
      return;
    case NodeWrite::Kind::kSetPods:
      (void)api->Patch(kube::Nodes(), "", write.node,
                       {{"status", {{"allocatable", {{"pods", std::to_string(write.pods)}}}}}},
                       {.subresource = "status"});
      return;
    case NodeWrite::Kind::kDelete:
      (void)api->Delete(kube::Nodes(), "", write.node, {});
      return;
  }
}

}  // namespace

HostFollower::HostFollower(const HostFollowerOptions& options, Say say, const std::stop_token& stop)
    : options_(options),
      say_(std::move(say)),
      script_(options.script, options.slots_per_host),
      on_stop_(stop, [this] { stop_.request_stop(); }),
      setup_(WithOwnEnd(options.machine), stop_.get_token()),
      awaited_(options.np, options.patience),
      table_(options.min_np),
      thread_([this] { Run(stop_.get_token()); }) {}

HostFollower::~HostFollower() { Stop(); }

void HostFollower::Stop() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.join();
  work_.clear();  // joins the threads
  TakeResults();
}

Outcome<std::string> HostFollower::AwaitAddress() {
  if (!options_.machine.address.empty()) {
    if (auto own = ChooseAddress(options_.machine.address, {}, IsOwnAddress); !own) return own;
  }
  return awaited_.AwaitAddress(stop_.get_token());
}

void HostFollower::Serve(std::shared_ptr<kube::KubeApi> api,
                         const std::filesystem::path& kubeconfig) {
  const sync::MutexLock lock(&mu_);
  cluster_.api = std::move(api);
  cluster_.kubeconfig = kubeconfig;
  changed_.NotifyAll();
}

Outcome<int> HostFollower::AwaitWorkers() {
  return awaited_.AwaitSlots(stop_.get_token()).map([this](int slots) {
    return std::min(slots, options_.max_np);
  });
}

void HostFollower::Follow(const std::string& ns, const std::string& job, int workers) {
  const sync::MutexLock lock(&mu_);
  cluster_.ns = ns;
  cluster_.job = job;
  cluster_.workers = workers;
}

HostFollower::Cluster HostFollower::cluster() const {
  const sync::MutexLock lock(&mu_);
  return cluster_;
}

void HostFollower::Run(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "host-follower");
  auto next_question = Clock::now();
  while (!stop.stop_requested()) {
    if (Clock::now() >= next_question) {
      AskScript();
      next_question = Clock::now() + kPeriod;
    }
    const Cluster cluster = this->cluster();
    TakeResults();
    BeginSteps(cluster);
    FindAddress();
    if (cluster.api) Tend(cluster);
    Report();
    const sync::MutexLock lock(&mu_);
    while (results_.empty() && cluster_.api == cluster.api &&
           changed_.WaitUntil(&mu_, stop, next_question)) {
    }
  }
}

// A script that fails changes nothing, and is reported once.
void HostFollower::AskScript() {
  auto hosts = script_.Ask(stop_.get_token());
  if (stop_.stop_requested()) return;
  if (hosts) {
    table_.SetNamed(std::move(*hosts));
    script_said_ = "";
    return;
  }
  const std::string& why = hosts.error().message;
  if (!script_said_) {
    awaited_.SetFirstError(why);
  } else if (why != *script_said_) {
    say_(why);
  }
  script_said_ = why;
}

void HostFollower::TakeResults() {
  std::deque<Result> results;
  {
    const sync::MutexLock lock(&mu_);
    results.swap(results_);
  }
  for (Result& result : results) {
    work_.erase(result.host);  // joins the thread
    table_.Finish(result.host, std::move(result.machine), result.outcome, Clock::now());
  }
}

void HostFollower::BeginSteps(const Cluster& cluster) {
  const std::filesystem::path& kubeconfig = cluster.kubeconfig;
  for (HostTable::Step& step :
       table_.NextSteps(!kubeconfig.empty(), awaited_.address(), Clock::now())) {
    const std::string host = step.host.name;
    work_[host] = std::jthread([this, kubeconfig, step = std::move(step)]() mutable {
      pthread_setname_np(pthread_self(), "host");
      auto outcome = Take(step, kubeconfig, &step.machine);
      const sync::MutexLock lock(&mu_);
      results_.push_back({step.host.name, std::move(step.machine), std::move(outcome)});
      changed_.NotifyAll();
    });
  }
}

// Runs on the step's own thread, because even resolving the host's name may take long.
Outcome<void> HostFollower::Take(const HostTable::Step& step,
                                 const std::filesystem::path& kubeconfig, Machine* machine) {
  if (step.kind == HostTable::Step::Kind::kLook) {
    *machine = MachineOf(step.host, step.host.slots, step.index);
    return setup_.Look(machine);
  }
  auto installed = setup_.Install(machine);
  return installed ? setup_.StartNode(machine, kubeconfig) : installed;
}

// Uses the address that the first host sees. If all inspected hosts are this machine, others may
// join later, so it is an address that they may reach.
void HostFollower::FindAddress() {
  if (!awaited_.address().empty()) return;
  const std::vector<Machine*> looked = table_.Looked();
  const bool alone = AllHere(looked);
  if (looked.empty() || (alone && table_.IsLooking())) return;
  const std::string wanted = !options_.machine.address.empty() ? options_.machine.address
                             : alone                           ? OwnAddress()
                                                               : "";
  const auto address = ChooseAddress(wanted, looked, IsOwnAddress);
  if (address) return awaited_.SetAddress(*address);
  for (const Machine* machine : looked)
    table_.Fail(machine->host.name, address.error().message, Clock::now());
}

void HostFollower::Tend(const Cluster& cluster) {
  const auto seen =
      ObserveRunNodes(cluster.api.get(), cluster.ns, cluster.job, std::chrono::system_clock::now());
  if (!seen) return;  // the next observation tries again
  for (const NodeWrite& write : table_.Tend(*seen, Clock::now())) Write(cluster.api.get(), write);
  if (!cluster.job.empty()) Scale(cluster, *seen);
}

void HostFollower::Scale(const Cluster& cluster, const RunNodes& seen) {
  const NodeSlots slots = table_.Slots();
  const ScaleStep step =
      PlanScale(slots, seen, {options_.min_np, options_.max_np}, cluster.workers);
  for (const std::string& pod : step.drains) {
    (void)cluster.api->Patch(
        kube::Pods(), cluster.ns, pod,
        {{"metadata", {{"annotations", {{api::kDrainAnnotation, "FewerSlots"}}}}}}, {});
  }
  if (!step.replicas) return;
  const auto done =
      cluster.api->Patch(kube::HorovodJobs(), cluster.ns, cluster.job,
                         {{"spec", {{"worker", {{"replicas", *step.replicas}}}}}}, {});
  if (!done) return;  // the next observation tries again
  say_(fmt::format("slots: {}; workers wanted: {} instead of {}", slots.Sum(), *step.replicas,
                   cluster.workers));
  const sync::MutexLock lock(&mu_);
  cluster_.workers = *step.replicas;
}

void HostFollower::Report() {
  const auto messages = table_.TakeMessages();
  if (!stop_.stop_requested()) std::for_each(messages.begin(), messages.end(), say_);
  awaited_.SetSlots(table_.Slots().Sum(), table_.Troubles());
}

std::string HostFollower::EndByHand(const std::string& node) const {
  const Machine* machine = table_.MachineOfNode(node);
  return machine == nullptr ? "" : setup_.EndByHand(*machine);
}

}  // namespace ringmaster::cli
