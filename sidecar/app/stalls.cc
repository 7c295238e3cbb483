#include "sidecar/app/stalls.h"

#include <algorithm>
#include <string>

namespace ringmaster::app {
namespace {

// By the name that people know it by. Empty: the view has no such rank.
std::string WorkerName(const membership::View& view, int rank, int slots) {
  if (rank < 0 || rank >= static_cast<int>(view.ranks.size())) return "";
  const membership::RankEntry& entry = view.ranks[static_cast<std::size_t>(rank)];
  const std::string& pod = view.pods[entry.pod].name;
  return slots > 1 ? pod + "/" + std::to_string(entry.slot) : pod;
}

}  // namespace

std::vector<job::Stall> StallsIn(const membership::View* view,
                                 const std::vector<WorkerProcess>& workers, int slots) {
  std::vector<job::Stall> stalls;
  if (view == nullptr) return stalls;
  for (const WorkerProcess& worker : workers) {
    if (!worker.connection.open()) continue;
    for (job::Stall stall : worker.figures.StallsIn(view->epoch)) {
      stall.pods.clear();
      for (int rank : stall.missing) stall.pods.push_back(WorkerName(*view, rank, slots));
      if (stalls.size() < job::kMostStalls) stalls.push_back(std::move(stall));
    }
  }
  return stalls;
}

int CountTensors(const std::vector<job::Stall>& stalls) {
  int tensors = 0;
  for (const job::Stall& stall : stalls) tensors += std::max(stall.tensors, 1);
  return tensors;
}

}  // namespace ringmaster::app
