#include "collectives/nccl/nccl_group.h"

#include <utility>

namespace ringmaster::nccl {

Status NcclGroup::Connect(Communicator* host, const Patience::Over& over) {
  ConnectPlan plan;
  if (Status s = Exchange(host, &plan); !s.ok()) return s;
  const Patience patience(limits_.connect, over);
  Status status;
  switch (plan.how) {
    case ConnectPlan::How::kHost:
      why_on_host_ = plan.why;
      break;
    case ConnectPlan::How::kKeep:
      break;
    case ConnectPlan::How::kShrink:
      status = Shrink(plan, patience);
      break;
    case ConnectPlan::How::kInit:
      status = Init(host, patience);
      break;
  }
  connected_ = status.ok();
  faults_ = 0;
  if (status.ok()) return {};
  // So that the next view doesn't try the same once more.
  std::vector<Comm> failed;
  GiveUp(&failed);
  (void)AbortAll(api_, failed, limits_.quiet);
  return status;
}

Status NcclGroup::Exchange(Communicator* host, ConnectPlan* plan) {
  ConnectFacts mine;
  if (api_ != nullptr) mine.version = api_->version();
  if (link_ != nullptr) {
    mine.rank = link_->rank();
    mine.size = link_->size();
    mine.revoked = link_->revoked();
    mine.faults = faults_;
    mine.launched = link_->launched();
    mine.lineage = link_->lineage();
  }
  std::vector<ConnectFacts> by_rank(static_cast<size_t>(host->size()));
  const std::vector<size_t> bytes(by_rank.size(), sizeof(ConnectFacts));
  if (Status s = host->Allgatherv(&mine, by_rank.data(), bytes); !s.ok()) return s;
  return PlanConnect(by_rank, plan);
}

Status NcclGroup::Shrink(const ConnectPlan& plan, const Patience& patience) {
  const std::unique_ptr<NcclLink> parent = std::move(link_);
  Status status;
  if (plan.revoke) {
    parent->MarkRevoked();
    status = parent->AwaitRevoked(patience);
  }
  if (status.ok()) {
    const int flags = plan.abort ? kShrinkAbort : kShrinkDefault;
    status = parent->Shrink(plan.excluded, flags, patience, &link_);
  }
  // Never destroyed: that waits for ranks that are gone.
  const Status given_up = AbortAll(api_, {parent->Release()}, limits_.quiet);
  return status.ok() ? given_up : status;
}

Status NcclGroup::Init(Communicator* host, const Patience& patience) {
  std::vector<Comm> old;
  GiveUp(&old);
  if (Status s = AbortAll(api_, old, limits_.quiet); !s.ok()) return s;
  struct {
    Result result = Result::kSuccess;
    UniqueId id = {};
  } message;
  if (host->rank() == 0) message.result = api_->GetUniqueId(&message.id);
  if (Status s = host->Broadcast(&message, sizeof(message), 0); !s.ok()) return s;
  if (Status s = StatusOf(api_.get(), message.result, nullptr, "an id for a communicator");
      !s.ok()) {
    return s;
  }
  return NcclLink::Init(api_, message.id, host->size(), host->rank(), patience, &link_);
}

void NcclGroup::MarkRevoked() {
  if (link_ != nullptr) link_->MarkRevoked();
}

bool NcclGroup::AwaitRevoked() {
  return link_ == nullptr || link_->AwaitRevoked(Patience(limits_.quiet, {})).ok();
}

void NcclGroup::GiveUp(std::vector<Comm>* comms) {
  connected_ = false;
  const std::unique_ptr<NcclLink> link = std::move(link_);
  if (link == nullptr) return;
  if (Comm comm = link->Release(); comm != nullptr) comms->push_back(comm);
}

}  // namespace ringmaster::nccl
