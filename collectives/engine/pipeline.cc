#include "collectives/engine/pipeline.h"

#include <utility>

namespace ringmaster::engine {

void Pipeline::Install(Communicator* host, const std::vector<std::string>& workers, bool planned) {
  host_ = host;
  self_ = workers[static_cast<size_t>(host->rank())];
  backend_->ExpectView(planned);
  backend_->Install(host, workers);
  negotiator_.Reset(workers);
}

void Pipeline::Uninstall() {
  host_ = nullptr;
  backend_->Uninstall();
}

void Pipeline::Void() {
  for (const auto& [set, workers] : sets_.sets()) {
    negotiator_.ForgetSet(set);
    backend_->ForgetSet(set);
  }
  sets_.Clear();
  negotiator_.Void();
}

Status Pipeline::Agree(bool armed, std::chrono::steady_clock::time_point long_ago,
                       RoundResult* result) {
  // What this rank has prepared in an earlier view and the recovery has not committed was published
  // by no survivor. So it will never count, and its number goes to another operation.
  log_.DropPrepared();
  if (Status s = negotiator_.Round(host_, log_.next_number(), pending_->Requests(),
                                   pending_->AskedBefore(long_ago), armed, result);
      !s.ok())
    return s;
  log_.Trim();  // all ranks have entered this round, so all have finished the one before
  return {};
}

Status Pipeline::Execute(Response response, const Retained** result) {
  response.number = log_.next_number();
  Retained executed;
  if (Status s = backend_->Execute(response, *pending_, &executed); !s.ok()) return s;
  if (!executed.response.needs_confirmation() || !executed.holds) {
    *result = &log_.Append(std::move(executed));
    return {};
  }
  // Such a result can't be handed over, so it is published only after a barrier over all ranks that
  // take part. If one survivor has left the barrier, the others have their results, too, and commit
  // them in the recovery; if none has left it, the operation runs once more.
  const Status confirmed = backend_->Confirm();
  if (!confirmed.ok()) {
    backend_->Withdraw(&executed, *pending_);
    log_.Prepare(std::move(executed));
    return confirmed;
  }
  for (Part& part : executed.parts) part.input.reset();
  *result = &log_.AppendConfirmed(std::move(executed));
  return {};
}

Status Pipeline::HandOver(const RecoveryPlan::Handover& handover, bool lacks,
                          const Retained** result) {
  const Holding::Result& what = handover.result;
  const bool lacking = lacks && log_.next_number() <= what.response.number;
  *result = nullptr;
  if (handover.holder < 0) {  // the number is skipped; the operation stays pending
    if (lacking) log_.Keep({what.response, {}, false});
    return {};
  }
  if (what.response.needs_confirmation())
    return lacking ? CommitOwn(what.response, result) : Status();
  const Retained* held = log_.Find(what.response.number);
  Retained handed{what.response, {}};
  for (const auto& part : what.parts) {
    handed.parts.push_back({nullptr, part.bytes, part.rows_by_rank});
    for (size_t rows : part.rows_by_rank) handed.parts.back().rows += rows;
  }
  if (Status s = backend_->HandOver(handover.holder, held, &handed); !s.ok()) return s;
  if (lacking) *result = &log_.Keep(std::move(handed));
  return {};
}

Status Pipeline::CommitOwn(const Response& response, const Retained** result) {
  *result = sets_.Has(response.process_set(), self_) ? log_.Commit(response.number)
                                                     : &log_.Keep({response, {}, false});
  if (*result != nullptr) return {};
  return {RM_ERR_INTERNAL, "operation " + std::to_string(response.number) +
                               " was completed elsewhere and never executed here"};
}

Status Pipeline::CheckSet(int32_t process_set) const {
  if (!sets_.Has(process_set)) {
    return {RM_ERR_INVALID, "process set " + std::to_string(process_set) +
                                " is unknown: it was never added, or has been removed"};
  }
  if (sets_.Has(process_set, self_)) return {};
  return {RM_ERR_INVALID,
          "this worker, " + self_ + ", is not in process set " + std::to_string(process_set)};
}

std::vector<std::shared_ptr<Operation>> Pipeline::ApplySets(const Retained& result) {
  std::vector<std::shared_ptr<Operation>> left_over;
  const Request& request = result.response.requests.front();
  if (request.kind == Kind::kTransfer) sets_.SeeTransfer();
  if (result.response.error == RM_OK && request.kind == Kind::kAddSet) {
    const int32_t set = sets_.Add(request.members);
    if (const auto operation = pending_->Find(request.key())) operation->process_set = set;
  }
  if (result.response.error == RM_OK && request.kind == Kind::kRemoveSet) {
    sets_.Remove(request.removed_set);
    negotiator_.ForgetSet(request.removed_set);
    backend_->ForgetSet(request.removed_set);
    left_over = pending_->TakeOfSet(request.removed_set);
  }
  return left_over;
}

}  // namespace ringmaster::engine
