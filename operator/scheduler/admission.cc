#include "operator/scheduler/admission.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ringmaster::scheduler {
namespace {

// In one pass: each costs a look at all nodes and pods.
constexpr int kMostReservationsTried = 16;
constexpr std::size_t kMostTakersTried = 16;
// So many passes may follow from what jobs that take pods from others decide about each other.
constexpr int kMostRepeats = 8;

bool Contains(const std::vector<std::string>& paths, const std::string& path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

bool AskForTheSame(const AdmissionRequest& a, const AdmissionRequest& b) {
  const auto same = [](const auto& pod, const auto& other) {
    return PathOf(*pod) == PathOf(*other);
  };
  return a.standing == b.standing && a.priority == b.priority && a.preempts == b.preempts &&
         a.since == b.since && a.sizes == b.sizes &&
         std::equal(a.pods.begin(), a.pods.end(), b.pods.begin(), b.pods.end(), same);
}

// The largest size that is of use and at most this; 0: none is.
int SizeOfUse(const AdmissionRequest& request, int most) {
  int best = 0;
  for (const int size : request.sizes) {
    if (size <= most) best = size;
  }
  return best;
}

// `lowest`: the priority of the least important job that could give.
bool MayTake(const AdmissionRequest& request, std::optional<int> lowest) {
  return request.preempts && lowest && *lowest < request.priority;
}

int Least(const AdmissionRequest& request) {
  return request.sizes.empty() ? 0 : request.sizes.front();
}
int Most(const AdmissionRequest& request) {
  return request.sizes.empty() ? 0 : request.sizes.back();
}

}  // namespace

GangFit Admission::Ask(AdmissionRequest request, const std::vector<std::string>& started,
                       bool at_once) {
  const std::string job = request.job;
  Waiting& waiting = waiting_[job];
  // A pod that was made and is gone again has taken its place along.
  if (!HoldsAllGranted(waiting) || !IsAsBefore(waiting, request)) {
    Replace(&waiting, std::move(request), started);
  }
  if (at_once && !waiting.Satisfied() && !OthersWait(job)) {
    capacity_.PlaceFloating();
    bounds_.clear();
    Grow(&waiting, Most(waiting.request));
    if (!CanNotStart(waiting)) ForgetTakers();
    // Who could make room for it is for the pass to see.
    if (CanNotStart(waiting) && MayTake(waiting.request, LowestPriority(holdings_))) asked_ = true;
  }
  KeepInLine(job, waiting);
  if (!waiting.answer.decided) {
    asked_ = true;
    waiting.answer.why = "it stands in line";
  }
  return waiting.answer;
}

// Pods that were counted by the template turn out to take something else once they are stored:
// admission plugins change them, and people do.
bool Admission::IsAsBefore(const Waiting& waiting, const AdmissionRequest& request) {
  if (!AskForTheSame(waiting.request, request)) return false;
  for (std::size_t i = 0; i < request.pods.size(); ++i) {
    if (request.pods[i] == waiting.request.pods[i]) continue;
    if (capacity_.ShapeOf(*request.pods[i]) != waiting.shapes[i]) return false;
  }
  return true;
}

void Admission::Withdraw(const std::string& job, const std::vector<std::string>& started) {
  waiting_.erase(job);
  line_.erase(job);
  // What was kept for it is free, and others may have counted on what it took.
  if (taken_.erase(job) != 0) asked_ = true;
  Drop(job, started);
}

void Admission::SetHolding(Holding holding) {
  Holding& known = holdings_[holding.job];
  if (known == holding) return;
  known = std::move(holding);
  asked_ = asked_ || std::any_of(line_.begin(), line_.end(), [&](const std::string& job) {
             const AdmissionRequest& request = waiting_.at(job).request;
             return request.preempts && request.priority > known.priority;
           });
}

void Admission::RemoveHolding(const std::string& job) {
  if (holdings_.erase(job) != 0 && !DemandsOn(job).empty()) asked_ = true;
}

std::vector<PodDemand> Admission::DemandsOn(const std::string& job) const {
  const auto demands = Demands();
  const auto on = demands.find(job);
  return on == demands.end() ? std::vector<PodDemand>() : on->second;
}

// By the job that is to give.
std::map<std::string, std::vector<PodDemand>> Admission::Demands() const {
  std::map<std::string, std::vector<PodDemand>> demands;
  for (const auto& [job, taken] : taken_) {
    const AdmissionRequest& request = waiting_.at(job).request;
    for (const TakenPod& pod : taken) {
      demands[pod.job].push_back({pod.uid, job, request.priority, Least(request)});
    }
  }
  return demands;
}

// Its pods are alike: what was held for some of them does for others.
void Admission::Replace(Waiting* waiting, AdmissionRequest request,
                        const std::vector<std::string>& started) {
  const int held = Drop(request.job, started);
  *waiting = {.request = std::move(request)};
  waiting->answer.decided = false;
  for (const auto& pod : waiting->request.pods) waiting->shapes.push_back(capacity_.ShapeOf(*pod));
  const int kept = SizeOfUse(waiting->request, held);
  bounds_.clear();
  if (kept > 0) Grow(waiting, kept);
  // Whether it gets more than that is to be seen.
  waiting->answer.decided = waiting->Satisfied();
}

bool Admission::HoldsAllGranted(const Waiting& waiting) const {
  const auto begin = waiting.request.pods.begin();
  return std::all_of(begin, begin + waiting.answer.fit,
                     [this](const auto& pod) { return capacity_.Holds(PathOf(*pod)); });
}

// Also what was granted and isn't asked for any more. A pod that is there and may start goes on
// taking its place, whoever asked for it. Returns how many places are free again.
int Admission::Drop(const std::string& job, const std::vector<std::string>& keep) {
  const auto granted = granted_.find(job);
  if (granted == granted_.end()) return 0;
  int dropped = 0;
  std::erase_if(granted->second, [&](const std::string& path) {
    if (!capacity_.Holds(path) || capacity_.HoldsForMade(path)) return true;
    if (Contains(keep, path)) return false;
    capacity_.Release(path);
    ++dropped;
    return true;
  });
  if (granted->second.empty()) granted_.erase(granted);
  return dropped;
}

bool Admission::CanNotStart(const Waiting& waiting) {
  return waiting.answer.fit == 0 && waiting.request.standing != Standing::kRuns;
}

bool Admission::OthersWait(const std::string& job) const { return line_.size() > line_.count(job); }

void Admission::KeepInLine(const std::string& job, const Waiting& waiting) {
  if (waiting.Satisfied()) {
    line_.erase(job);
  } else {
    line_.insert(job);
  }
}

bool Admission::IsPassDue() const {
  return asked_ || again_ || capacity_.HasLost() || (capacity_.HasGrown() && !line_.empty());
}

std::vector<Admission::Waiting*> Admission::InOrder() {
  std::vector<Waiting*> order;
  for (const std::string& job : line_) order.push_back(&waiting_.at(job));
  // Those that came at the same time go by their names.
  std::stable_sort(order.begin(), order.end(), [this](const Waiting* a, const Waiting* b) {
    // For whom others give up pods comes before those to whom these would go.
    const auto rank = [this](const AdmissionRequest& r) {
      const bool first = r.standing == Standing::kShort || taken_.count(r.job) != 0;
      return std::tuple(!first, -r.priority, r.since);
    };
    return rank(a->request) < rank(b->request);
  });
  return order;
}

// With their nodes places have gone that were held: who had them stands in line again.
void Admission::ForgetLost() {
  if (!capacity_.TakeLost()) return;
  for (auto& [job, waiting] : waiting_) {
    if (HoldsAllGranted(waiting)) continue;
    std::vector<std::string> others;
    if (const auto granted = granted_.find(job); granted != granted_.end()) {
      others = granted->second;
    }
    for (int i = 0; i < waiting.answer.fit; ++i)
      std::erase(others, PathOf(*waiting.request.pods[i]));
    Replace(&waiting, waiting.request, others);
    KeepInLine(job, waiting);
  }
}

std::vector<std::string> Admission::Pass(Moment now) {
  const auto told = [](const GangFit& answer) {
    return Told{answer.decided, answer.fit, answer.leavers};
  };
  std::map<std::string, Told> before;
  for (const auto& [job, waiting] : waiting_) before[job] = told(waiting.answer);
  const auto demands_before = Demands();
  const std::set<std::string> taken_before = TakenForOthers("");
  const bool changed_since = asked_ || capacity_.HasLost() || capacity_.HasGrown();
  ForgetLost();
  asked_ = again_ = false;
  capacity_.TakeGrown();
  capacity_.PlaceFloating();
  bounds_.clear();
  reserved_ = {};
  reservations_tried_ = 0;
  BeginTurns(changed_since);
  look_again_.reset();
  lowest_held_ = LowestPriority(holdings_);
  const std::vector<Waiting*> order = InOrder();
  for (Waiting* waiting : order) {
    waiting->answer.leavers.clear();
    GrowInTurn(waiting, std::max(waiting->answer.fit, Least(waiting->request)));
    const bool stuck = CanNotStart(*waiting);
    if (stuck && TakeForIt(waiting, now)) continue;
    if (stuck && now - waiting->request.since >= kPatience) Reserve(*waiting);
  }
  for (Waiting* waiting : order) {
    if (waiting->answer.fit > 0) GrowInTurn(waiting, Most(waiting->request));
  }
  LiftReservation();
  LiftClaims();
  ForgetTakers();
  EndTurns();
  RepeatIfSomeStay(taken_before);
  std::set<std::string> changed;
  for (const Waiting* waiting : order) {
    const std::string& job = waiting->request.job;
    KeepInLine(job, *waiting);
    if (before[job] != told(waiting->answer)) changed.insert(job);
  }
  const auto demands = Demands();
  for (const auto& [job, asked] : demands) {
    const auto was = demands_before.find(job);
    if (was == demands_before.end() || was->second != asked) changed.insert(job);
  }
  return {changed.begin(), changed.end()};
}

// Pods of less important jobs leave, so that it can start. Until they have gone it has the room
// where they were, and what is free beside them: who is behind it gets none of that.
bool Admission::TakeForIt(Waiting* waiting, Moment now) {
  const AdmissionRequest& request = waiting->request;
  const bool begins = taken_.count(request.job) == 0;
  std::vector<TakenPod> before;
  if (const auto taken = taken_.extract(request.job)) before = taken.mapped();
  if (!MayTake(request, lowest_held_)) return false;
  if (begins && !IsItsTurn()) return false;
  const auto least = static_cast<std::size_t>(Least(request));
  const Need need{request.job,
                  request.priority,
                  {request.pods.begin(), request.pods.begin() + least},
                  {waiting->shapes.begin(), waiting->shapes.begin() + least}};
  auto preemption = Preempt(&capacity_, need, holdings_, before, TakenForOthers(request.job), now);
  if (!preemption) {
    if (begins) ++turns_.failed;
    return false;
  }
  for (std::size_t i = 0; i < least; ++i) {
    capacity_.Hold(*need.pods[i], need.shapes[i], preemption->nodes[i], request.job);
    claims_.push_back(PathOf(*need.pods[i]));
  }
  for (const TakenPod& pod : preemption->taken) {
    waiting->answer.leavers.push_back({pod.job, pod.name});
  }
  taken_[request.job] = std::move(preemption->taken);
  if (preemption->late_at) {
    look_again_ = std::min(look_again_.value_or(*preemption->late_at), *preemption->late_at);
  }
  return true;
}

// Each that has begun to take pods is looked at in each pass. Those that have not come in turn,
// some in each pass: none of them is kept from it by many that can't have enough.
bool Admission::IsItsTurn() {
  if (turns_.seen++ < turns_.begin || turns_.tried >= kMostTakersTried) return false;
  ++turns_.tried;
  return true;
}

void Admission::BeginTurns(bool changed) {
  turns_.changed = turns_.changed || (changed && turns_.begin > 0);
  turns_.seen = turns_.tried = turns_.failed = 0;
  if (changed) repeats_ = 0;
}

// Where all have had a turn and nothing has changed since the first of them, no pass follows.
void Admission::EndTurns() {
  if (turns_.begin + turns_.tried < turns_.seen) {
    turns_.begin += std::max<std::size_t>(turns_.failed, 1);  // those that have begun come no more
    again_ = true;
  } else {
    again_ = turns_.changed;
    turns_ = {};
  }
}

// A job may have counted on a pod that was taken for another one. Nobody asks for that pod any
// more.
void Admission::RepeatIfSomeStay(const std::set<std::string>& taken_before) {
  if (taken_.empty()) return;
  const std::set<std::string> taken = TakenForOthers("");
  const bool some = std::any_of(taken_before.begin(), taken_before.end(), [&](const auto& uid) {
    return taken.count(uid) == 0 && capacity_.leaving().count(uid) == 0 &&
           capacity_.PlacementOf(uid);
  });
  if (some && repeats_++ < kMostRepeats) again_ = true;
}

std::set<std::string> Admission::TakenForOthers(const std::string& job) const {
  std::set<std::string> uids;
  for (const auto& [taker, taken] : taken_) {
    if (taker == job) continue;
    for (const TakenPod& pod : taken) uids.insert(pod.uid);
  }
  return uids;
}

void Admission::LiftClaims() {
  for (const std::string& path : claims_) capacity_.Undo(path);
  claims_.clear();
}

// For those that may start now, or train already, nobody has to leave any more.
void Admission::ForgetTakers() {
  std::erase_if(taken_, [this](const auto& taken) {
    Waiting& waiting = waiting_.at(taken.first);
    if (CanNotStart(waiting)) return false;
    waiting.answer.leavers.clear();
    return true;
  });
}

// Whom the job with the reservation waits for is not held up by it: when a job that runs ends, its
// pods go, however many they are, and until then the job doesn't fit.
void Admission::GrowInTurn(Waiting* waiting, int target) {
  const int before = waiting->answer.fit;
  Grow(waiting, target);
  const AdmissionRequest& request = waiting->request;
  if (waiting->answer.fit > before || reserved_.job == nullptr || before >= Most(request)) return;
  if (request.standing != Standing::kRuns) return;
  if (reserved_.refused.count(waiting->shapes[before]) != 0) return;
  if (reserved_.prospect->Beside(request.job) >= Least(reserved_.job->request)) return;
  const Reservation reserved = reserved_;
  LiftReservation();
  bounds_.clear();
  Grow(waiting, target);
  reserved_ = reserved;
  if (waiting->answer.fit == before) reserved_.refused.insert(waiting->shapes[before]);
  HoldReserved();
}

// Holds places for more of its pods, up to so many.
void Admission::Grow(Waiting* waiting, int target) {
  const AdmissionRequest& request = waiting->request;
  GangFit& answer = waiting->answer;
  answer.decided = true;
  answer.why.clear();
  if (answer.fit >= Most(request)) return;
  if (IsSureToFail(*waiting, target)) {
    const Bound& bound = bounds_.at(waiting->shapes[answer.fit]);
    answer.why = bound.why;
    answer.tried = answer.fit + bound.fits;
    return;
  }
  int placed = answer.fit;
  std::string why;
  for (; placed < target; ++placed) {
    const ShapePtr& shape = waiting->shapes[placed];
    const auto node = capacity_.Place(*shape);
    if (!node) {
      why = node.error();
      break;
    }
    capacity_.Hold(*request.pods[placed], shape, *node, request.job);
  }
  const int of_use = std::max(answer.fit, SizeOfUse(request, placed));
  for (int i = of_use; i < placed; ++i) capacity_.Undo(PathOf(*request.pods[i]));
  for (int i = answer.fit; i < of_use; ++i) {
    granted_[request.job].push_back(PathOf(*request.pods[i]));
  }
  if (placed < target) {
    int alike = 0;  // of those that were given back, before the one that found no place
    for (int i = of_use; i < placed; ++i) alike += waiting->shapes[i] == waiting->shapes[placed];
    if (alike == placed - of_use) bounds_[waiting->shapes[placed]] = {alike, why};
  }
  answer.fit = of_use;
  answer.tried = placed;
  answer.why = std::move(why);
}

// It needs more pods of one shape than are known to fit.
bool Admission::IsSureToFail(const Waiting& waiting, int target) const {
  const int fit = waiting.answer.fit;
  const auto& sizes = waiting.request.sizes;
  const auto next = std::upper_bound(sizes.begin(), sizes.end(), fit);
  if (next == sizes.end() || *next > target) return false;
  const ShapePtr& shape = waiting.shapes[fit];
  const auto bound = bounds_.find(shape);
  if (bound == bounds_.end()) return false;
  int alike = 0;
  while (fit + alike < *next && waiting.shapes[fit + alike] == shape) ++alike;
  return alike > bound->second.fits;
}

// As much of what it needs as is free: nobody behind it in line shall have that. Only where it
// fits some day: not beside what others than jobs have, nor where its own pods are in its way.
void Admission::Reserve(const Waiting& waiting) {
  if (reserved_.job != nullptr) return;
  const auto bound = bounds_.find(waiting.shapes.front());
  if (bound != bounds_.end() && bound->second.fits == 0) return;  // there is nothing to keep
  if (reservations_tried_++ >= kMostReservationsTried) return;
  reserved_.job = &waiting;
  reserved_.prospect = std::make_shared<const Prospect>(capacity_, waiting.shapes.front());
  if (reserved_.prospect->Beside(waiting.request.job) < Least(waiting.request)) {
    reserved_ = {};
    return;
  }
  HoldReserved();
  if (reserved_.paths.empty()) reserved_ = {};
}

void Admission::HoldReserved() {
  const Waiting& waiting = *reserved_.job;
  reserved_.paths.clear();
  for (int i = 0; i < Least(waiting.request); ++i) {
    const auto node = capacity_.Place(*waiting.shapes[i]);
    if (!node) break;
    capacity_.Hold(*waiting.request.pods[i], waiting.shapes[i], *node, waiting.request.job);
    reserved_.paths.push_back(PathOf(*waiting.request.pods[i]));
  }
}

void Admission::LiftReservation() {
  for (const std::string& path : reserved_.paths) capacity_.Undo(path);
  reserved_ = {};
}

}  // namespace ringmaster::scheduler
