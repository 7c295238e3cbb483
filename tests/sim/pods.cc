#include "tests/sim/pods.h"

#include <algorithm>
#include <utility>

namespace ringmaster::app::sim {

Micros Pods::Local(const SimPod& pod) const {
  return time_->now() + time_->now() / 1'000'000 * pod.drift_ppm - pod.stood_still;
}

bool Pods::Asleep(const SimPod& pod) const {
  return std::max(pod.paused_until, pod.machine_until) > time_->now();
}

bool Pods::Frozen(const Worker& worker) const {
  return std::max(worker.stopped_until, pods_[worker.pod]->machine_until) > time_->now();
}

void Pods::ToWorker(const WorkerPtr& worker, std::function<void()> work) {
  if (!worker->alive) return;
  if (!Frozen(*worker)) return work();
  worker->asleep.push_back([this, worker, work = std::move(work)] { ToWorker(worker, work); });
}

WorkerPtr Pods::Find(int index, int slot, std::uint64_t incarnation) const {
  for (const Child& child : pods_[index]->launcher.children) {
    if (child.slot == slot && child.incarnation == incarnation) return child.worker;
  }
  return nullptr;
}

std::vector<WorkerPtr> Pods::RanksOf(const membership::View& view) const {
  std::vector<WorkerPtr> ranks;
  for (const membership::RankEntry& rank : view.ranks) {
    ranks.push_back(
        Find(IndexOf(view.pods[rank.pod].uid), static_cast<int>(rank.slot), rank.incarnation));
  }
  return ranks;
}

std::string Pods::NameOf(const Worker& worker) const {
  return pods_[worker.pod]->uid + "/" +
         (worker.slot < 0 ? std::string("standby") : std::to_string(worker.slot)) + "." +
         std::to_string(worker.incarnation);
}

}  // namespace ringmaster::app::sim
