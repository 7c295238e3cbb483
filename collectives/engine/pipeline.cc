#include "collectives/engine/pipeline.h"

#include <utility>

namespace ringmaster::engine {

void Pipeline::Install(Communicator* host) {
  host_ = host;
  backend_->Install(host);
  negotiator_.Reset();
}

void Pipeline::Uninstall() {
  host_ = nullptr;
  backend_->Uninstall();
}

Status Pipeline::Agree(bool armed, RoundResult* result) {
  if (Status s = negotiator_.Round(host_, pending_.Requests(), armed, result); !s.ok()) return s;
  log_.Trim();  // all have entered this round, so all have finished the one before
  return {};
}

Status Pipeline::Execute(Response response, const Retained** result) {
  response.number = log_.next_number();
  Retained executed;
  if (Status s = backend_->Execute(response, pending_, &executed); !s.ok()) return s;
  *result = &log_.Append(std::move(executed));
  return {};
}

Status Pipeline::HandOver(const RecoveryPlan::Handover& handover, bool lacks,
                          const Retained** result) {
  const Holding::Result& what = handover.result;
  const bool lacking = lacks && log_.next_number() <= what.response.number;
  const Retained* held = log_.Find(what.response.number);
  Retained handed{what.response, nullptr, what.bytes, what.rows_by_rank};
  Status status =
      backend_->HandOver(handover.holder, held == nullptr ? nullptr : held->data, &handed);
  if (!status.ok()) return status;
  *result = lacking ? &log_.Keep(std::move(handed)) : nullptr;
  return {};
}

}  // namespace ringmaster::engine
