#include "operator/scheduler/admission.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/object_key.h"

namespace ringmaster::scheduler {
namespace {

bool AskForTheSame(const AdmissionRequest& a, const AdmissionRequest& b) {
  const auto same = [](const auto& pod, const auto& other) {
    return api::KeyOf(*pod) == api::KeyOf(*other);
  };
  return a.state == b.state && a.priority == b.priority && a.preempts == b.preempts &&
         a.since == b.since && a.calls_alone == b.calls_alone && a.sizes == b.sizes &&
         a.near == b.near &&
         std::equal(a.pods.begin(), a.pods.end(), b.pods.begin(), b.pods.end(), same);
}

// The request of a stored pod may differ from that of its template, because admission plugins or
// people have changed the pod.
bool IsAsBefore(const WaitingJob& waiting, const AdmissionRequest& request, Shapes* shapes) {
  if (!AskForTheSame(waiting.request, request)) return false;
  for (std::size_t i = 0; i < request.pods.size(); ++i) {
    if (request.pods[i] == waiting.request.pods[i]) continue;
    if (shapes->Of(*request.pods[i]) != waiting.anywhere[i]) return false;
  }
  return true;
}

// A job's pods are mostly alike, and comparing them costs less than to find out what they request.
std::vector<ShapePtr> ShapesOf(const std::vector<std::shared_ptr<const Json>>& pods,
                               Shapes* shapes) {
  std::vector<ShapePtr> of;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const bool as_before =
        i > 0 && fields::Object(*pods[i], "spec") == fields::Object(*pods[i - 1], "spec");
    of.push_back(as_before ? of.back() : shapes->Of(*pods[i]));
  }
  return of;
}

using Demands = std::map<std::string, std::vector<PodDemand>>;  // by the job that is to give

Demands AllDemands(const Takers& takers, const WaitingLine& line) {
  Demands demands;
  for (const auto& [job, taken] : takers.taken()) {
    const AdmissionRequest& request = line.At(job).request;
    for (const TakenPod& pod : taken) {
      demands[pod.job].push_back({pod.uid, job, request.priority, request.Least(), pod.whole});
    }
  }
  return demands;
}

// The parts of an answer whose change callers are told of.
struct Told {
  explicit Told(const GangFit& answer)
      : decided(answer.decided),
        fit(answer.fit),
        domain(answer.domain),
        leavers(answer.leavers),
        calls_for_nodes(answer.calls_for_nodes) {}

  bool decided;
  int fit;
  std::string domain;
  std::vector<GangFit::Leaver> leavers;
  bool calls_for_nodes;
  friend bool operator==(const Told&, const Told&) = default;
};

}  // namespace

GangFit Admission::Ask(AdmissionRequest request, const std::vector<std::string>& started,
                       bool at_once) {
  const std::string job = request.job;
  WaitingJob& waiting = line_.Of(job);
  if (waiting.request.may_call != request.may_call) {
    waiting.request.may_call = request.may_call;
    trigger_.Ask();
  }
  // A pod that was created and has gone since then no longer holds its place.
  if (!grants_.HoldsAllOf(waiting) || !IsAsBefore(waiting, request, &capacity_.shapes())) {
    Replace(&waiting, std::move(request), started);
  }
  if (at_once && !waiting.Satisfied() && !line_.HasOthersThan(job)) {
    capacity_.PlaceFloating();
    grants_.ForgetBounds();
    topology_.Forget();
    topology_.Choose(&waiting, takers_.Has(job));
    grants_.Grow(&waiting, waiting.request.Most());
    if (topology_.Widen(&waiting)) grants_.Grow(&waiting, waiting.request.Most());
    if (!waiting.CanNotStart()) ForgetTakers();
    // The next pass finds out which jobs could make room for it.
    if (waiting.CanNotStart() && takers_.MayTake(waiting.request)) trigger_.Ask();
    // The next pass notes since when somebody's pod keeps room in vain.
    if (waiting.CanNotStart() && capacity_.HoldsForRefused()) trigger_.Ask();
    // The next pass also notes since when the job has lacked room.
    if (!waiting.CanNotStart()) waiting.lacks_since.reset();
    if (waiting.CanNotStart() && node_calls_.rules().calls && !waiting.lacks_since) trigger_.Ask();
  }
  line_.Keep(job);
  if (!waiting.answer.decided) {
    trigger_.Ask();
    waiting.answer.why = "it stands in line";
  }
  return waiting.answer;
}

void Admission::Withdraw(const std::string& job, const std::vector<std::string>& started) {
  // The room that was kept for the job is free, whether others gave up pods for it, it had waited
  // for long or it was its turn to call for nodes; and other jobs may have counted on the pods it
  // took.
  const bool stood_in_line = line_.Remove(job);
  if (takers_.Remove(job) || stood_in_line) trigger_.Ask();
  grants_.Drop(job, started);
}

void Admission::SetHolding(Holding holding) {
  const int priority = holding.priority;
  if (!takers_.SetHolding(std::move(holding))) return;
  if (line_.HasTakerFrom(priority)) trigger_.Ask();
}

void Admission::RemoveHolding(const std::string& job) {
  if (takers_.RemoveHolding(job) && !DemandsOn(job).empty()) trigger_.Ask();
}

void Admission::SetCalling(const std::string& job, bool calls, bool alone) {
  // Another job may have its turn to call.
  if (node_calls_.SetCalling(job, calls, alone)) trigger_.Ask();
}

std::optional<Moment> Admission::look_again() const {
  std::optional<Moment> first;
  for (const auto& at : {takers_.look_again(), node_calls_.look_again(), in_vain_until_}) {
    if (at) first = std::min(first.value_or(*at), *at);
  }
  return first;
}

std::vector<PodDemand> Admission::DemandsOn(const std::string& job) const {
  const Demands demands = AllDemands(takers_, line_);
  const auto on = demands.find(job);
  return on == demands.end() ? std::vector<PodDemand>() : on->second;
}

// The job's pods are alike, so the places that were held for some of them serve others.
void Admission::Replace(WaitingJob* waiting, AdmissionRequest request,
                        const std::vector<std::string>& started) {
  const int held = grants_.Drop(request.job, started);
  const bool stays =
      (held > 0 || takers_.Has(request.job)) && request.near == waiting->request.near;
  const std::string domain = stays ? waiting->answer.domain : "";
  *waiting = {.request = std::move(request), .lacks_since = waiting->lacks_since};
  waiting->answer.decided = false;
  waiting->anywhere = ShapesOf(waiting->request.pods, &capacity_.shapes());
  waiting->shapes = waiting->anywhere;
  topology_.Forget();
  topology_.Choose(waiting);
  topology_.Keep(domain, waiting);
  const int kept = waiting->request.SizeOfUse(held);
  grants_.ForgetBounds();
  if (kept > 0) grants_.Grow(waiting, kept);
  // The next pass decides whether the job gets more than it had.
  waiting->answer.decided = waiting->Satisfied();
}

bool Admission::IsPassDue() const { return trigger_.IsDue(!line_.IsEmpty()); }

// Held places were lost with their nodes; the jobs that had them stand in line again.
void Admission::ForgetLost() {
  for (auto& [job, waiting] : line_.all()) {
    if (grants_.HoldsAllOf(waiting)) continue;
    std::vector<std::string> others = grants_.PathsOf(job);
    for (int i = 0; i < waiting.answer.fit; ++i)
      std::erase(others, api::KeyOf(*waiting.request.pods[i]));
    Replace(&waiting, waiting.request, others);
    line_.Keep(job);
  }
}

std::vector<std::string> Admission::Pass(Moment now) {
  std::map<std::string, Told> before;
  for (const auto& [job, waiting] : line_.all()) before.emplace(job, waiting.answer);
  const Demands demands_before = AllDemands(takers_, line_);
  BeginPass(now);
  const std::vector<WaitingJob*> order =
      line_.InOrder([this](const std::string& job) { return takers_.Has(job); });
  Decide(order, now);
  std::set<std::string> changed;
  for (const WaitingJob* waiting : order) {
    const std::string& job = waiting->request.job;
    line_.Keep(job);
    if (before.at(job) != Told(waiting->answer)) changed.insert(job);
  }
  for (const auto& [job, asked] : AllDemands(takers_, line_)) {
    const auto was = demands_before.find(job);
    if (was == demands_before.end() || was->second != asked) changed.insert(job);
  }
  return {changed.begin(), changed.end()};
}

void Admission::BeginPass(Moment now) {
  takers_.BeginPass(trigger_.HasChanged());
  reservation_.BeginPass();
  growth_.BeginPass();
  if (trigger_.HasLost()) ForgetLost();
  capacity_.PlaceFloating();
  (void)capacity_.GiveUpInVain(now);
  capacity_.PlaceFloating();  // what is free now is others' before it is a job's
  in_vain_until_ = capacity_.GiveUpInVain(now);
  trigger_.BeginPass();
  grants_.ForgetBounds();
  topology_.Forget();
}

// Running jobs that are adjacent in line all could only grow, so among them the job with the
// smallest share comes first, whatever their order in line.
void Admission::Decide(const std::vector<WaitingJob*>& order, Moment now) {
  std::vector<WaitingJob*> run;  // running jobs that are adjacent in line
  for (WaitingJob* waiting : order) {
    waiting->answer.leavers.clear();
    topology_.Choose(waiting, takers_.Has(waiting->request.job));
    if (waiting->request.state == GangState::kRuns) {
      run.push_back(waiting);
      continue;
    }
    growth_.Grow(std::exchange(run, {}), true);
    GiveTheLeast(waiting, now);
  }
  growth_.Grow(run, true);
  std::vector<WaitingJob*> grow;
  for (WaitingJob* waiting : order) {
    if (waiting->answer.fit > 0) grow.push_back(waiting);
  }
  growth_.Grow(grow, false);
  reservation_.Lift();
  ForgetTakers();
  trigger_.EndPass(takers_.EndPass());
  node_calls_.Decide(order, !takers_.taken().empty(), now);
}

void Admission::GiveTheLeast(WaitingJob* waiting, Moment now) {
  growth_.GrowTo(std::max(waiting->answer.fit, waiting->request.Least()), waiting);
  const bool stuck = waiting->CanNotStart();
  if (stuck && takers_.TakeFor(waiting, now)) return;
  if (stuck && now - waiting->request.since >= kPatience) reservation_.MakeFor(*waiting);
}

// A job that may start now, or trains already, needs no other job's pods any more.
void Admission::ForgetTakers() {
  takers_.RemoveIf([this](const std::string& job) {
    WaitingJob& waiting = line_.At(job);
    if (waiting.CanNotStart()) return false;
    waiting.answer.leavers.clear();
    return true;
  });
}

}  // namespace ringmaster::scheduler
