#include "collectives/nccl/nccl_group.h"

#include <algorithm>
#include <utility>

namespace ringmaster::nccl {

Status NcclGroup::Connect(Communicator* host, int device, int* failed, const Patience::Over& over) {
  if (link_ != nullptr && link_->device() != device) {
    if (Status s = AbortOwn(Patience(limits_.collective, over)); !s.ok()) return s;
  }
  ConnectPlan plan;
  if (Status s = Exchange(host, failed, &plan); !s.ok()) return s;
  Status status;
  switch (plan.how) {
    case ConnectPlan::How::kHost:
      // This rank may have a communicator of an earlier view, with other ranks or after an attempt
      // that has failed elsewhere. Nobody may use it in this view, nor take it for a later one's.
      why_on_host_ = plan.why;
      status = AbortOwn(Patience(limits_.collective, over));
      break;
    case ConnectPlan::How::kKeep:
      break;
    case ConnectPlan::How::kShrink:
      status = Shrink(plan, Patience(limits_.connect, over), over);
      break;
    case ConnectPlan::How::kInit:
      status = Init(host, device, over);
      break;
  }
  faults_ = 0;
  if (status.ok()) {
    by_ = plan.how == ConnectPlan::How::kHost ? By::kHost : By::kNccl;
    return {};
  }
  // So that the next view doesn't try to use what is left.
  if (link_ != nullptr) (void)AbortOwn(Patience(limits_.quiet, {}));
  return status;
}

Status NcclGroup::AbortOwn(const Patience& patience) {
  std::vector<GivenUp> own;
  GiveUp(&own);
  return Abort(own, patience);
}

Status NcclGroup::Abort(const std::vector<GivenUp>& comms, const Patience& patience) {
  if (!comms.empty()) aborted_ = Both(std::move(aborted_), StartAborts(gpu_, comms));
  if (!aborted_) return {};
  const Status ended = AwaitAborts(aborted_, patience);
  if (ended.code() != RM_ERR_TIMEOUT && ended.code() != RM_ERR_EPOCH_MOVED) aborted_ = {};
  return ended;
}

Status NcclGroup::Exchange(Communicator* host, int* failed, ConnectPlan* plan) {
  ConnectFacts mine;
  mine.failed = *failed;
  if (gpu_.nccl != nullptr) mine.version = gpu_.nccl->version();
  if (link_ != nullptr) {
    mine.rank = link_->rank();
    mine.size = link_->size();
    mine.revoked = link_->revoked();
    mine.faults = faults_;
    mine.launched = link_->launched();
    mine.origin = link_->origin();
  }
  std::vector<ConnectFacts> by_rank(static_cast<size_t>(host->size()));
  const std::vector<size_t> bytes(by_rank.size(), sizeof(ConnectFacts));
  if (Status s = host->Allgatherv(&mine, by_rank.data(), bytes); !s.ok()) return s;
  *plan = PlanConnect(by_rank);
  if (plan->how == ConnectPlan::How::kHost) return {};
  // The first rank whose attempt fails ends the view for all, another one each time. Counted by
  // each for itself it would take a view for every rank until one of them has failed too often.
  for (const ConnectFacts& facts : by_rank) *failed = std::max(*failed, int{facts.failed});
  return {};
}

Status NcclGroup::Shrink(const ConnectPlan& plan, const Patience& patience,
                         const Patience::Over& over) {
  const std::unique_ptr<NcclLink> parent = std::move(link_);
  Status status;
  // The end of the view is no reason to give up here: the abort would free what is being revoked.
  if (plan.revoke) status = RevokeAll(gpu_, {parent.get()}, Patience(limits_.quiet, {}));
  if (status.ok()) {
    const int flags = plan.abort ? kShrinkAbort : kShrinkDefault;
    status = parent->Shrink(plan.excluded, flags, patience, &link_);
  }
  // The parent is aborted and never destroyed: to destroy it would wait for ranks that are gone.
  const Status given_up = Abort({*parent->Release()}, Patience(limits_.collective, over));
  return status.ok() ? given_up : status;
}

Status NcclGroup::Init(Communicator* host, int device, const Patience::Over& over) {
  if (Status s = AbortOwn(Patience(limits_.collective, over)); !s.ok()) return s;
  // That may have taken much longer on one rank than on the others, whose patience with it begins
  // only when all have come here.
  if (Status s = host->Barrier(); !s.ok()) return s;
  struct {
    Result result = Result::kSuccess;
    UniqueId id = {};
  } message;
  if (host->rank() == 0) message.result = gpu_.nccl->GetUniqueId(&message.id);
  if (Status s = host->Broadcast(&message, sizeof(message), 0); !s.ok()) return s;
  if (Status s = StatusOf(gpu_.nccl.get(), message.result, nullptr, "an id for a communicator");
      !s.ok()) {
    return s;
  }
  return NcclLink::Init(gpu_.nccl, device, message.id, host->size(), host->rank(),
                        Patience(limits_.connect, over), &link_);
}

void NcclGroup::GiveUp(std::vector<GivenUp>* comms) {
  by_ = By::kNothing;
  const std::unique_ptr<NcclLink> link = std::move(link_);
  if (link == nullptr) return;
  if (auto given_up = link->Release()) comms->push_back(std::move(*given_up));
}

}  // namespace ringmaster::nccl
