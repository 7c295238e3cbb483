#include "collectives/nccl/connector.h"

#include <cstdio>
#include <string>

namespace ringmaster::nccl {
namespace {

// A network that fails now and then is worth another view; one that never works isn't.
constexpr int kMostFailedConnects = 3;

}  // namespace

Status Connector::Connect(RankGroup* ranks) {
  if (ranks->group->connected()) return {};
  const Status connected = ranks->group->Connect(ranks->host, view_->Asker());
  if (connected.ok()) {
    failed_ = 0;
    if (ranks->group->link() == nullptr && !said_why_) {
      said_why_ = true;
      std::fprintf(stderr, "ringmaster: tensors on GPUs go through the host's memory: %s\n",
                   ranks->group->why_on_host().c_str());
    }
    return {};
  }
  if (view_->over() || ++failed_ < kMostFailedConnects) return connected;
  return {RM_ERR_INTERNAL,
          connected.message() + ", in " + std::to_string(failed_) + " views one after the other"};
}

}  // namespace ringmaster::nccl
