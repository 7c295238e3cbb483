#include "collectives/engine/recovery.h"

#include <algorithm>

#include "collectives/engine/exchange.h"

namespace ringmaster::engine {

std::vector<std::byte> WriteHolding(const Holding& holding) {
  ByteWriter out;
  out.Put(static_cast<uint8_t>(holding.has_state));
  out.Put(static_cast<uint8_t>(holding.at_boundary));
  out.Put(holding.next_number);
  out.Put(holding.step);
  holding.sets.Write(&out);
  out.Put(holding.fusion_bytes);
  out.Put(static_cast<uint32_t>(holding.results.size()));
  for (const Holding::Result& result : holding.results) {
    Write(&out, result.response);
    out.Put(static_cast<uint8_t>(result.holds));
    out.Put(static_cast<uint32_t>(result.parts.size()));
    for (const auto& part : result.parts) {
      out.Put(part.bytes);
      out.Put(static_cast<uint32_t>(part.rows_by_rank.size()));
      for (size_t rows : part.rows_by_rank) out.Put(static_cast<uint64_t>(rows));
    }
  }
  if (!holding.ranks_epoch) return out.bytes();
  out.Put(*holding.ranks_epoch);
  out.Put(static_cast<uint8_t>(holding.armed));
  return out.bytes();
}

namespace {

bool ReadResult(ByteReader* in, Holding::Result* result) {
  result->response = ReadResponse(in);
  result->holds = in->Get<uint8_t>() != 0;
  const auto parts = in->Get<uint32_t>();
  for (uint32_t i = 0; i < parts && in->ok(); ++i) {
    Holding::Result::Part part;
    part.bytes = in->Get<uint64_t>();
    const auto ranks = in->Get<uint32_t>();
    for (uint32_t r = 0; r < ranks && in->ok(); ++r)
      part.rows_by_rank.push_back(in->Get<uint64_t>());
    result->parts.push_back(std::move(part));
  }
  const Response& response = result->response;
  return !response.requests.empty() &&
         (parts == 0 || (response.error == RM_OK && parts == response.batches.size()));
}

}  // namespace

bool ReadHolding(std::span<const std::byte> bytes, Holding* holding) {
  ByteReader in(bytes);
  holding->has_state = in.Get<uint8_t>() != 0;
  holding->at_boundary = in.Get<uint8_t>() != 0;
  holding->next_number = in.Get<uint64_t>();
  holding->step = in.Get<uint64_t>();
  holding->sets.Read(&in);
  holding->fusion_bytes = in.Get<uint64_t>();
  const auto results = in.Get<uint32_t>();
  for (uint32_t i = 0; i < results && in.ok(); ++i) {
    Holding::Result result;
    if (!ReadResult(&in, &result)) return false;
    holding->results.push_back(std::move(result));
  }
  if (in.ok() && !in.at_end()) holding->ranks_epoch = in.Get<uint64_t>();
  if (in.ok() && !in.at_end()) holding->armed = in.Get<uint8_t>() != 0;
  return in.ok();
}

Status ExchangeHoldings(Communicator* communicator, const Holding& mine,
                        std::vector<Holding>* by_rank) {
  std::vector<std::vector<std::byte>> messages;
  if (Status s = ExchangeMessages(communicator, WriteHolding(mine), &messages); !s.ok()) return s;
  by_rank->assign(messages.size(), {});
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    if (!ReadHolding(messages[rank], &(*by_rank)[rank])) {
      return {RM_ERR_INTERNAL,
              "rank " + std::to_string(rank) + " speaks another version of the library"};
    }
  }
  return {};
}

Status ShareStepRanks(Communicator* communicator, int from, StepRanks* ranks) {
  ByteWriter out;
  out.Put(ranks->epoch);
  out.Put(static_cast<uint32_t>(ranks->workers.size()));
  for (const std::string& worker : ranks->workers) out.PutString(worker);
  std::vector<std::byte> bytes = out.bytes();
  uint64_t length = bytes.size();
  if (Status s = communicator->Broadcast(&length, sizeof(length), from); !s.ok()) return s;
  bytes.resize(length);
  if (Status s = communicator->Broadcast(bytes.data(), length, from); !s.ok()) return s;
  ByteReader in(bytes);
  *ranks = {in.Get<uint64_t>(), {}};
  const auto count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) ranks->workers.push_back(in.GetString());
  return {};
}

namespace {

// As RecoveryPlan::names_ranks, where all have said a ranks_epoch. `step`: the highest of all
// ranks. Views' numbers only rise, so of the ranks in this step the one with the newest view has
// executed the most.
int NamesRanks(const std::vector<Holding>& by_rank, uint64_t step) {
  const auto in_step = [&](const Holding& holding) {
    return holding.has_state && !holding.at_boundary && holding.step == step;
  };
  int names = -1;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const Holding& holding = by_rank[rank];
    if (in_step(holding) && (names < 0 || *holding.ranks_epoch > *by_rank[names].ranks_epoch))
      names = static_cast<int>(rank);
  }
  const auto knows = [&](const Holding& holding) {
    return in_step(holding) && holding.ranks_epoch == by_rank[names].ranks_epoch;
  };
  return names < 0 || std::all_of(by_rank.begin(), by_rank.end(), knows) ? -1 : names;
}

// Finds the lowest rank that holds the result of operation `number`. If the operation was executed
// but no rank that is left has a result of it, the handover's holder is -1. False: no rank that is
// left knows of the operation.
bool FindHolder(const std::vector<Holding>& by_rank, uint64_t number,
                RecoveryPlan::Handover* handover) {
  bool known = false;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (!by_rank[rank].has_state) continue;
    for (const Holding::Result& result : by_rank[rank].results) {
      if (result.response.number != number) continue;
      if (!known || result.holds) *handover = {result, result.holds ? static_cast<int>(rank) : -1};
      if (result.holds) return true;
      known = true;
    }
  }
  return known;
}

}  // namespace

Status PlanRecovery(const std::vector<Holding>& by_rank, RecoveryPlan* plan) {
  *plan = {};
  bool any_state = false;
  uint64_t lowest = UINT64_MAX;
  plan->fusion_bytes = UINT64_MAX;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const Holding& holding = by_rank[rank];
    plan->fusion_bytes = std::min(plan->fusion_bytes, holding.fusion_bytes);
    if (!holding.has_state) {
      plan->joiners.push_back(static_cast<int>(rank));
      continue;
    }
    if (!any_state) plan->donor = static_cast<int>(rank);
    any_state = true;
    lowest = std::min(lowest, holding.next_number);
    plan->next_number = std::max(plan->next_number, holding.next_number);
    plan->step = std::max(plan->step, holding.step);
  }
  if (!any_state)
    return {RM_ERR_INTERNAL, "no worker of the view has the job's state: it died with its holders"};

  for (const Holding& holding : by_rank) {
    if (holding.has_state && holding.next_number == plan->next_number) plan->sets = holding.sets;
  }
  for (uint64_t number = lowest; number < plan->next_number; ++number) {
    RecoveryPlan::Handover handover;
    if (!FindHolder(by_rank, number, &handover)) {
      return {RM_ERR_INTERNAL,
              "operation " + std::to_string(number) + " is lacking and nobody has kept its result"};
    }
    plan->handovers.push_back(std::move(handover));
  }

  plan->ranks_follow_views =
      std::any_of(by_rank.begin(), by_rank.end(), [](const Holding& h) { return !h.ranks_epoch; });
  if (!plan->ranks_follow_views) plan->names_ranks = NamesRanks(by_rank, plan->step);
  plan->all_armed = std::all_of(by_rank.begin(), by_rank.end(),
                                [](const Holding& holding) { return holding.armed; });
  plan->all_at_boundary = true;
  for (const Holding& holding : by_rank) {
    if (!holding.has_state || holding.at_boundary) continue;
    // A rank whose user still waits in step_end stands at the boundary when it is handed the end of
    // the step over.
    const bool steps_now =
        std::any_of(plan->handovers.begin(), plan->handovers.end(), [&](const auto& h) {
          return h.result.response.kind() == Kind::kStepEnd &&
                 h.result.response.number >= holding.next_number;
        });
    if (!steps_now) plan->all_at_boundary = false;
  }
  return {};
}

}  // namespace ringmaster::engine
