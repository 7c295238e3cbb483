#include "operator/controllers/pod_reader.h"

#include <algorithm>
#include <utility>

#include "operator/controllers/pod_facts.h"
#include "operator/controllers/pod_identity.h"

namespace ringmaster::controllers {
namespace {

// `read` gives the facts about a pod.
template <class F>
std::vector<planner::PodFacts> ReadOwned(const api::HorovodJob& job,
                                         const std::vector<runtime::ObjectPtr>& pods,
                                         const F& read) {
  std::vector<planner::PodFacts> facts;
  for (const runtime::ObjectPtr& pod : pods) {
    if (!IsOwnedBy(*pod, job.uid)) continue;
    planner::PodFacts of_pod = read(pod);
    // The pod's labels were just removed; this reconcile restores them.
    if (of_pod.index < 0) of_pod.index = IndexOf(job, of_pod.name).value_or(-1);
    if (of_pod.index >= 0) facts.push_back(std::move(of_pod));
  }
  std::sort(facts.begin(), facts.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  return facts;
}

}  // namespace

std::vector<planner::PodFacts> ReadPodsOf(const api::HorovodJob& job,
                                          const std::vector<runtime::ObjectPtr>& pods) {
  return ReadOwned(job, pods, [](const runtime::ObjectPtr& pod) { return ReadPod(*pod); });
}

std::vector<planner::PodFacts> PodReader::Read(const api::HorovodJob& job,
                                               const std::vector<runtime::ObjectPtr>& pods) {
  Pods before = Take(job.Key()), now;
  auto facts = ReadOwned(job, pods, [&](const runtime::ObjectPtr& pod) {
    auto known = before.extract(pod.get());
    if (!known.empty()) return now.insert(std::move(known)).position->second.facts;
    return now.try_emplace(pod.get(), Known{pod, ReadPod(*pod)}).first->second.facts;
  });
  const sync::MutexLock lock(&mu_);
  if (!now.empty()) known_[job.Key()] = std::move(now);
  return facts;
}

PodReader::Pods PodReader::Take(const std::string& job_key) {
  const sync::MutexLock lock(&mu_);
  auto known = known_.extract(job_key);
  return known.empty() ? Pods() : std::move(known.mapped());
}

void PodReader::Forget(const std::string& job_key) { (void)Take(job_key); }

}  // namespace ringmaster::controllers
