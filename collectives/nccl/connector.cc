#include "collectives/nccl/connector.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

namespace ringmaster::nccl {
namespace {

// The communicator was made while this worker had no tensor and its device was a guess. To make
// another one takes all ranks, which come together for that in a new view.
Status CheckDevice(const NcclLink* link, int device) {
  if (link == nullptr || link->device() == device) return {};
  return {RM_ERR_EPOCH_MOVED, "this worker's tensors lie on GPU " + std::to_string(device) +
                                  ", and its communicator was made on GPU " +
                                  std::to_string(link->device()) + ", before it had any"};
}

}  // namespace

void Connector::Install(std::vector<std::string> workers) {
  std::sort(workers.begin(), workers.end());
  if (workers != workers_) failures_.clear();
  workers_ = std::move(workers);
}

Status Connector::Connect(RankGroup* ranks, int device) {
  if (ranks->group->connected()) return CheckDevice(ranks->group->link(), device);
  Failures& failures = failures_[ranks->set];
  const Status connected =
      ranks->group->Connect(ranks->host, device, &failures.in_a_row, view_->Asker());
  if (connected.ok()) return CheckLink(*ranks, failures);
  if (!view_->over()) failures = {failures.in_a_row + 1, connected.message()};
  return connected;
}

// The failures are counted on as long as the ranks use the host's memory because of them.
Status Connector::CheckLink(const RankGroup& ranks, const Failures& failures) {
  if (ranks.group->link() != nullptr) {
    failures_.erase(ranks.set);
    said_.clear();
    return {};
  }
  const std::string why =
      ranks.group->why_on_host() +
      (failures.last.empty() ? "" : "; here the last reason was " + failures.last);
  if (needs_nccl_) return {RM_ERR_INTERNAL, "the job's collectives.backend is Nccl: " + why};
  if (std::exchange(said_, why) == why) return {};
  std::fprintf(stderr, "ringmaster: tensors on GPUs go through the host's memory: %s\n",
               why.c_str());
  return {};
}

}  // namespace ringmaster::nccl
