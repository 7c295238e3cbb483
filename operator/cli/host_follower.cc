#include "operator/cli/host_follower.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/api/time.h"
#include "operator/cli/kube_failure.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr std::chrono::seconds kPeriod{1};  // between two questions to the script, as in Horovod
// A host that fails is tried again soon; from the third failure on it is left out for longer and
// longer.
constexpr int kFailuresToLeaveOut = 3;
constexpr std::chrono::seconds kSoon{1}, kShortestPause{10}, kLongestPause{300};
// A node that has run for so long begins anew.
constexpr std::chrono::seconds kProven{60};

constexpr std::chrono::seconds kAbandonHere{20};

std::chrono::seconds PauseAfter(int failures) {
  if (failures < kFailuresToLeaveOut) return kSoon;
  const int doublings = std::min(failures - kFailuresToLeaveOut, 5);
  return std::min(kLongestPause, kShortestPause * (1 << doublings));
}

bool HasAnnotation(const Json& pod, const char* name) {
  return !fields::Text(fields::At(pod, "/metadata/annotations"), name).empty();
}

bool IsLeaving(const Json& pod) {
  return HasAnnotation(pod, api::kDrainAnnotation) ||
         fields::At(pod, "/metadata").contains("deletionTimestamp");
}

bool HasEnded(const Json& pod) {
  const std::string phase = fields::TextAt(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

bool IsOn(const Json& pod, const std::string& node) {
  return fields::TextAt(pod, "/spec/nodeName") == node;
}

int Index(const Json& pod) {
  const std::string name = fields::TextAt(pod, "/metadata/name");
  return std::atoi(name.substr(name.rfind('-') + 1).c_str());
}

// The pods of a job that stay on a node, the highest index first.
std::vector<Json> StayingOn(const std::vector<Json>& pods, const std::string& node) {
  std::vector<Json> staying;
  for (const Json& pod : pods)
    if (IsOn(pod, node) && !IsLeaving(pod) && !HasEnded(pod)) staying.push_back(pod);
  std::sort(staying.begin(), staying.end(),
            [](const Json& a, const Json& b) { return Index(a) > Index(b); });
  return staying;
}

// Who kills the run on this machine kills what it has here.
MachineOptions WithOwnEnd(MachineOptions options) {
  options.abandon_after_here = std::min(options.abandon_after, kAbandonHere);
  return options;
}

bool IsCordoned(const Json& node) {
  return fields::Member(fields::At(node, "/spec"), "unschedulable") == Json(true);
}

}  // namespace

HostFollower::HostFollower(const HostFollowerOptions& options, Say say, const std::stop_token& stop)
    : options_(options),
      say_(std::move(say)),
      script_(options.script, options.slots_per_host),
      deadline_(Clock::now() + options.patience),
      on_stop_(stop, [this] { stop_.request_stop(); }),
      setup_(WithOwnEnd(options.machine), stop_.get_token()),
      thread_([this] { Run(stop_.get_token()); }) {}

HostFollower::~HostFollower() { Stop(); }

void HostFollower::Stop() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.join();
  for (auto& [name, place] : places_)
    if (place.work.joinable()) place.work.join();
  TakeResults();
}

Outcome<std::string> HostFollower::AwaitAddress() {
  if (!options_.machine.address.empty()) {
    if (auto own = ChooseAddress(options_.machine.address, {}); !own) return own;
  }
  const std::stop_token stop = stop_.get_token();
  const sync::MutexLock lock(&mu_);
  while (address_.empty() && first_error_.empty() && changed_.WaitUntil(&mu_, stop, deadline_)) {
  }
  if (stop.stop_requested())
    return Fail(ExitCode::kInterrupted, "interrupted: nothing was started");
  if (!first_error_.empty()) return Fail(ExitCode::kUsage, first_error_);
  if (address_.empty()) return Fail(ExitCode::kMachineLacks, WhyFew());
  return address_;
}

void HostFollower::Serve(std::shared_ptr<kube::KubeApi> api,
                         const std::filesystem::path& kubeconfig) {
  const sync::MutexLock lock(&mu_);
  cluster_.api = std::move(api);
  cluster_.kubeconfig = kubeconfig;
  changed_.NotifyAll();
}

Outcome<int> HostFollower::AwaitWorkers() {
  const std::stop_token stop = stop_.get_token();
  const sync::MutexLock lock(&mu_);
  while (ready_slots_ < options_.np && changed_.WaitUntil(&mu_, stop, deadline_)) {
  }
  if (stop.stop_requested())
    return Fail(ExitCode::kInterrupted, "interrupted: no worker was started");
  if (ready_slots_ < options_.np) return Fail(ExitCode::kMachineLacks, WhyFew());
  return std::min(ready_slots_, options_.max_np);
}

void HostFollower::Follow(const std::string& ns, const std::string& job, int workers) {
  const sync::MutexLock lock(&mu_);
  cluster_.ns = ns;
  cluster_.job = job;
  cluster_.workers = workers;
}

std::string HostFollower::WhyFew() const {
  std::string why = fmt::format(
      "-np {}: the hosts that --host-discovery-script names offered {} slots after {} s",
      options_.np, ready_slots_, options_.patience.count());
  for (const auto& [host, trouble] : troubles_) why += fmt::format("\nhost {}: {}", host, trouble);
  return why;
}

void HostFollower::Run(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "host-follower");
  auto next_question = Clock::now();
  while (!stop.stop_requested()) {
    if (Clock::now() >= next_question) {
      AskScript();
      next_question = Clock::now() + kPeriod;
    }
    TakeResults();
    Welcome();
    FindAddress();
    Cluster cluster;
    {
      const sync::MutexLock lock(&mu_);
      cluster = cluster_;
    }
    if (cluster.api) {
      if (const auto seen = Observe(cluster)) {
        EndUnknownNodes(cluster, *seen);
        TendNodes(cluster, *seen);
        if (!cluster.job.empty()) Scale(cluster, *seen);
      }
    }
    Publish();
    const sync::MutexLock lock(&mu_);
    while (results_.empty() && cluster_.api == cluster.api &&
           changed_.WaitUntil(&mu_, stop, next_question)) {
    }
  }
}

// A script that fails changes nothing, and is said once.
void HostFollower::AskScript() {
  auto hosts = script_.Ask(stop_.get_token());
  if (stop_.stop_requested()) return;
  if (hosts) {
    desired_ = std::move(*hosts);
    script_said_.clear();
    asked_ = true;
    return;
  }
  const std::string& why = hosts.error().message;
  if (!asked_) {
    const sync::MutexLock lock(&mu_);
    first_error_ = why;
    changed_.NotifyAll();
  } else if (why != script_said_) {
    say_(why);
  }
  asked_ = true;
  script_said_ = why;
}

void HostFollower::TakeResults() {
  std::deque<Result> results;
  {
    const sync::MutexLock lock(&mu_);
    results.swap(results_);
  }
  for (Result& result : results) TakeResult(std::move(result));
}

void HostFollower::TakeResult(Result result) {
  Place& place = places_.at(result.host);
  if (place.work.joinable()) place.work.join();
  place.machine = std::move(result.machine);
  if (!result.outcome) {
    if (!stop_.stop_requested()) OnFailure(&place, result.outcome.error().message);
    place.stage = Stage::kFailed;
    return;
  }
  const bool joined = place.stage == Stage::kJoining;
  place.stage = joined ? Stage::kRuns : Stage::kSeen;
  if (!joined) return;
  place.running_since = Clock::now();
  place.said.clear();
  say_(fmt::format("host {} has joined, slots: {}", result.host, place.machine.pods));
}

void HostFollower::OnFailure(Place* place, const std::string& why) {
  place->stage = Stage::kFailed;
  const std::chrono::seconds pause = PauseAfter(++place->failures);
  place->retry_at = Clock::now() + pause;
  const std::string& host = place->machine.host.name;
  if (why != place->said) say_(fmt::format("host {}: {}", host, why));
  place->said = why;
  if (place->failures == kFailuresToLeaveOut) {
    say_(fmt::format("host {} has failed {} times: it is left out for {} s, then for longer", host,
                     place->failures, pause.count()));
  }
}

// Takes the next step with each host that is named and is no node yet.
void HostFollower::Welcome() {
  std::erase_if(places_, [this](const auto& entry) {
    const Stage stage = entry.second.stage;
    return (stage == Stage::kFailed || stage == Stage::kSeen) && Desired(entry.first) == nullptr;
  });
  std::filesystem::path kubeconfig;
  std::string address;
  {
    const sync::MutexLock lock(&mu_);
    kubeconfig = cluster_.kubeconfig;
    address = address_;
  }
  for (const Host& host : desired_) {
    Place& place = places_[host.name];
    if (place.stage == Stage::kFailed && Clock::now() >= place.retry_at) {
      place.machine = {.host = host};
      // What resolves the host's name may take its time.
      StartWork(host.name, &place, Stage::kLooking,
                [this, host, index = next_index_++](Machine* m) {
                  *m = MachineOf(host, host.slots, index);
                  return setup_.Look(m);
                });
    } else if (place.stage == Stage::kSeen && !kubeconfig.empty()) {
      place.machine.pods = host.slots;
      if (place.machine.here) place.machine.address = address;
      if (!place.machine.has_programs) say_("bringing the programs to " + host.name);
      StartWork(host.name, &place, Stage::kJoining, [this, kubeconfig](Machine* machine) {
        auto installed = setup_.Install(machine);
        return installed ? setup_.StartNode(machine, kubeconfig) : installed;
      });
    }
  }
}

void HostFollower::StartWork(const std::string& host, Place* place, Stage stage,
                             std::function<Outcome<void>(Machine*)> work) {
  place->stage = stage;
  place->work =
      std::jthread([this, host, machine = place->machine, work = std::move(work)]() mutable {
        pthread_setname_np(pthread_self(), "host");
        auto outcome = work(&machine);
        const sync::MutexLock lock(&mu_);
        results_.push_back({host, std::move(machine), std::move(outcome)});
        changed_.NotifyAll();
      });
}

// As the first host sees it. Where all that could be looked at are this machine, others may still
// come: then by an address that they may reach.
void HostFollower::FindAddress() {
  {
    const sync::MutexLock lock(&mu_);
    if (!address_.empty()) return;
  }
  std::vector<Machine*> seen;
  bool looking = false;
  for (const Host& host : desired_) {
    Place& place = places_.at(host.name);
    looking = looking || place.stage == Stage::kLooking;
    if (place.stage == Stage::kSeen) seen.push_back(&place.machine);
  }
  const bool alone =
      std::all_of(seen.begin(), seen.end(), [](const Machine* m) { return m->here; });
  if (seen.empty() || (alone && looking)) return;
  const std::string wanted = !options_.machine.address.empty() ? options_.machine.address
                             : alone                           ? OwnAddress()
                                                               : "";
  const auto address = ChooseAddress(wanted, seen);
  if (!address) {
    for (Machine* machine : seen)
      OnFailure(&places_.at(machine->host.name), address.error().message);
    return;
  }
  const sync::MutexLock lock(&mu_);
  address_ = *address;
}

Outcome<HostFollower::Observed> HostFollower::Observe(const Cluster& cluster) {
  Observed seen;
  const auto nodes = cluster.api->ListAll(kube::Nodes(), "", {});
  if (!nodes) return tl::unexpected(FromKube(nodes.error()));
  for (const Json& node : nodes->items) seen.nodes[fields::TextAt(node, "/metadata/name")] = node;
  if (cluster.job.empty()) return seen;
  auto pods = cluster.api->ListAll(
      kube::Pods(), cluster.ns,
      {.label_selector = fmt::format("{}={}", api::kJobNameLabel, cluster.job)});
  if (!pods) return tl::unexpected(FromKube(pods.error()));
  seen.pods = std::move(pods->items);
  const auto job = cluster.api->Get(kube::HorovodJobs(), cluster.ns, cluster.job);
  if (!job) return tl::unexpected(FromKube(job.error()));
  const auto now = std::chrono::system_clock::now();
  for (const Json& node : fields::ListAt(*job, "/status/troubledNodes")) {
    const auto until = api::ParseTime(fields::Text(node, "avoidUntil"));
    if (until && *until > now) seen.troubled.insert(fields::Text(node, "name"));
  }
  return seen;
}

void HostFollower::TendNodes(const Cluster& cluster, const Observed& seen) {
  LeaveOutTroubled(seen);
  for (auto it = places_.begin(); it != places_.end();) {
    const bool is_node = it->second.stage == Stage::kRuns || it->second.stage == Stage::kLeaves;
    if (is_node && TendNode(cluster, seen, &it->second, Desired(it->first) != nullptr)) {
      gone_.push_back(it->second.machine);
      it = places_.erase(it);
    } else {
      ++it;
    }
  }
}

// A node that was started by an attempt that failed all the same: the host has another one by now,
// or gets one.
void HostFollower::EndUnknownNodes(const Cluster& cluster, const Observed& seen) {
  std::set<std::string> known;
  for (const auto& [host, place] : places_)
    if (place.stage != Stage::kFailed) known.insert(place.machine.node);
  for (const auto& [name, node] : seen.nodes) {
    if (known.count(name) != 0 || fields::At(node, "/metadata").contains("deletionTimestamp"))
      continue;
    (void)cluster.api->Delete(kube::Nodes(), "", name, {});
  }
}

// Brings the node's object in line with what is wanted of the host. True: it was let go.
bool HostFollower::TendNode(const Cluster& cluster, const Observed& seen, Place* place,
                            bool wanted) {
  Machine& machine = place->machine;
  const std::string& host = machine.host.name;
  const auto node = seen.nodes.find(machine.node);
  if (node == seen.nodes.end()) {
    // Its list may be older than the node.
    if (Clock::now() - place->running_since < kPeriod * 5) return false;
    if (wanted) OnFailure(place, "its node process has ended");
    return !wanted;
  }
  if (place->failures > 0 && Clock::now() - place->running_since >= kProven) place->failures = 0;
  if (!wanted && place->stage == Stage::kRuns) {
    say_(fmt::format("host {} is no longer named: its workers leave", host));
    place->stage = Stage::kLeaves;
  } else if (wanted && place->stage == Stage::kLeaves) {
    say_(fmt::format("host {} is named again", host));
    place->stage = Stage::kRuns;
  }
  // The operator lets the pods of a cordoned node leave, as many as are not needed there.
  const bool cordon = !wanted || left_out_.count(host) != 0;
  if (cordon != IsCordoned(node->second)) {
    (void)cluster.api->Patch(kube::Nodes(), "", machine.node,
                             {{"spec", {{"unschedulable", cordon}}}}, {});
    return false;
  }
  if (!wanted) {
    if (std::any_of(seen.pods.begin(), seen.pods.end(),
                    [&](const Json& pod) { return IsOn(pod, machine.node); }))
      return false;
    say_(fmt::format("host {} is let go", host));
    (void)cluster.api->Delete(kube::Nodes(), "", machine.node, {});
    return true;
  }
  const std::string pods = std::to_string(Desired(host)->slots);
  if (fields::TextAt(node->second, "/status/allocatable/pods") != pods) {
    (void)cluster.api->Patch(kube::Nodes(), "", machine.node,
                             {{"status", {{"allocatable", {{"pods", pods}}}}}},
                             {.subresource = "status"});
  }
  machine.pods = Desired(host)->slots;
  return false;
}

// A host on which workers fail again and again, as long as the others have enough slots.
void HostFollower::LeaveOutTroubled(const Observed& seen) {
  std::set<std::string> left_out;
  int slots = 0;
  for (const auto& [name, place] : places_) {
    if (place.stage != Stage::kRuns || Desired(name) == nullptr) continue;
    if (seen.troubled.count(place.machine.node) != 0)
      left_out.insert(name);
    else
      slots += place.machine.pods;
  }
  if (slots < options_.min_np) left_out.clear();
  for (const std::string& name : left_out)
    if (left_out_.count(name) == 0)
      say_(fmt::format("host {} is left out for a while: workers fail on it", name));
  for (const std::string& name : left_out_)
    if (left_out.count(name) == 0) say_(fmt::format("host {} is no longer left out", name));
  left_out_ = std::move(left_out);
}

void HostFollower::Scale(const Cluster& cluster, const Observed& seen) {
  const int wanted = Wanted();
  const bool asked_to_leave = DrainSurplus(cluster, seen, wanted);
  if (wanted == cluster.workers) return;
  if (wanted < cluster.workers && (asked_to_leave || !OperatorKnowsWhoLeaves(seen))) return;
  const auto done = cluster.api->Patch(kube::HorovodJobs(), cluster.ns, cluster.job,
                                       {{"spec", {{"worker", {{"replicas", wanted}}}}}}, {});
  if (!done) return;  // the next look tries again
  say_(
      fmt::format("slots: {}; workers wanted: {} instead of {}", Slots(), wanted, cluster.workers));
  const sync::MutexLock lock(&mu_);
  cluster_.workers = wanted;
}

// Asks pods to leave hosts that have more of them than slots. Where the slots are fewer than the
// job must have workers, those that it must have stay all the same. True: it has asked some.
bool HostFollower::DrainSurplus(const Cluster& cluster, const Observed& seen, int wanted) {
  int staying = 0;
  for (const auto& [name, place] : places_)
    if (Offers(name, place))
      staying += static_cast<int>(StayingOn(seen.pods, place.machine.node).size());
  int may_leave = Slots() >= options_.min_np ? staying : staying - wanted;
  bool asked = false;
  for (const auto& [name, place] : places_) {
    if (!Offers(name, place)) continue;
    const auto pods = StayingOn(seen.pods, place.machine.node);
    const int surplus = std::min(static_cast<int>(pods.size()) - place.machine.pods, may_leave);
    for (int i = 0; i < surplus; ++i, --may_leave) {
      asked = true;
      (void)cluster.api->Patch(
          kube::Pods(), cluster.ns, fields::TextAt(pods[static_cast<size_t>(i)], "/metadata/name"),
          {{"metadata", {{"annotations", {{api::kDrainAnnotation, "FewerSlots"}}}}}}, {});
    }
  }
  return asked;
}

// Before the job is made smaller: else the operator would let those with the highest indexes leave,
// wherever they are.
bool HostFollower::OperatorKnowsWhoLeaves(const Observed& seen) const {
  const bool drains_known = std::all_of(seen.pods.begin(), seen.pods.end(), [](const Json& pod) {
    return !HasAnnotation(pod, api::kDrainAnnotation) ||
           HasAnnotation(pod, api::kDrainSinceAnnotation);
  });
  return drains_known && std::all_of(places_.begin(), places_.end(), [&](const auto& entry) {
           const auto& [name, place] = entry;
           if (Offers(name, place)) return true;
           const auto pods = StayingOn(seen.pods, place.machine.node);
           return std::all_of(pods.begin(), pods.end(), [](const Json& pod) {
             return HasAnnotation(pod, api::kWarnedAnnotation);
           });
         });
}

// Its slots count: it is a node, and is to have workers.
bool HostFollower::Offers(const std::string& name, const Place& place) const {
  return place.stage == Stage::kRuns && left_out_.count(name) == 0;
}

const Host* HostFollower::Desired(const std::string& name) const {
  const auto found = std::find_if(desired_.begin(), desired_.end(),
                                  [&](const Host& host) { return host.name == name; });
  return found == desired_.end() ? nullptr : &*found;
}

int HostFollower::Slots() const {
  int slots = 0;
  for (const auto& [name, place] : places_)
    if (Offers(name, place)) slots += place.machine.pods;
  return slots;
}

int HostFollower::Wanted() const { return std::clamp(Slots(), options_.min_np, options_.max_np); }

void HostFollower::Publish() {
  const int slots = Slots();
  const sync::MutexLock lock(&mu_);
  ready_slots_ = slots;
  troubles_.clear();
  for (const auto& [name, place] : places_)
    if (place.stage == Stage::kFailed && !place.said.empty()) troubles_[name] = place.said;
  changed_.NotifyAll();
}

std::string HostFollower::EndByHand(const std::string& node) const {
  for (const Machine& machine : gone_)
    if (machine.node == node) return setup_.EndByHand(machine);
  for (const auto& [name, place] : places_)
    if (place.machine.node == node && place.machine.pid != 0)
      return setup_.EndByHand(place.machine);
  return "";
}

}  // namespace ringmaster::cli
