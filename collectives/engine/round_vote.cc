#include "collectives/engine/round_vote.h"

#include <algorithm>

namespace ringmaster::engine {

Votes RoundVote::Vote(int self, const std::vector<const Request*>& pending, const Late& late,
                      bool armed, std::vector<const Request*>* announce) const {
  Votes votes = Votes::Empty(cache_->slots());
  votes.set_armed(armed && joined_->empty());
  votes.set_only_joins(std::all_of(pending.begin(), pending.end(),
                                   [](const Request* r) { return r->kind == Kind::kJoin; }));
  // A rank that has joined votes for everything in the cache. If all ranks have joined, such votes
  // would not show what one of them still waits for, so that rank announces it in full.
  const bool all_joined = joined_->size() == ranks_->size();
  bool nothing_new = true;
  for (const Request* request : pending) {
    if (!voted_.contains(request->key())) nothing_new = false;
    if (announced_.contains(request->key())) continue;
    if (const auto slot = cache_->Find(*request);
        slot && !all_joined && !late.contains(request->key())) {
      votes.Add(*slot);
    } else {
      announce->push_back(request);
      nothing_new = false;  // also when it was voted for before and its slot has gone
    }
  }
  votes.set_nothing_new(nothing_new);
  votes.set_announces_nothing(announce->empty());
  VoteAsOutsider(self, &votes);
  if (joined_->Has(self) && !all_joined) VoteAsJoined(*announce, &votes);
  return votes;
}

// Called only if some rank has not joined: its vote decides, so what is agreed on is what it wants.
// This rank doesn't vote "armed": a planned change waits until all ranks have joined, because
// nobody stands in rm_step_end here. What it announces in this round it doesn't vote for, too: the
// others would run it and still have the announcement.
void RoundVote::VoteAsJoined(const std::vector<const Request*>& announced, Votes* votes) const {
  for (size_t slot = 0; slot < cache_->slots(); ++slot) {
    if (!cache_->IsUsed(slot)) continue;
    const Request& request = cache_->At(slot);
    if (!GoesOnWithoutJoined(request.kind) || !IsActive(request)) continue;
    const bool announces = std::any_of(announced.begin(), announced.end(), [&](const Request* own) {
      return own->key() == request.key();
    });
    if (!announces) votes->Add(slot);
  }
}

void RoundVote::VoteAsOutsider(int self, Votes* votes) const {
  if (!sets_->HasOutsiders()) return;
  for (size_t slot = 0; slot < cache_->slots(); ++slot) {
    if (!cache_->IsUsed(slot) || !cache_->At(slot).is_partial()) continue;
    const Request& request = cache_->At(slot);
    if (!ranks_->TakesPart(request, self) && IsActive(request)) votes->Add(slot);
  }
}

void RoundVote::Heard(const std::vector<const Request*>& pending,
                      const std::vector<const Request*>& announced) {
  for (const Request* request : pending) voted_.insert(request->key());
  for (const Request* request : announced) announced_[request->key()] = request->priority;
}

int32_t RoundVote::SaidPriority(const Request& request) const {
  const auto said = announced_.find(request.key());
  return said == announced_.end() ? request.priority : said->second;
}

Late RoundVote::Announced(const Late& late) const {
  Late announced;
  for (const auto& [key, since] : late) {
    if (announced_.contains(key)) announced[key] = since;
  }
  return announced;
}

void RoundVote::Forget(const Request& request) {
  voted_.erase(request.key());
  announced_.erase(request.key());
}

void RoundVote::ForgetSet(int32_t process_set) {
  const auto is_of_set = [&](const std::string& key) { return SetOfKey(key) == process_set; };
  std::erase_if(voted_, is_of_set);
  std::erase_if(announced_, [&](const auto& said) { return is_of_set(said.first); });
}

void RoundVote::Clear() {
  voted_.clear();
  announced_.clear();
}

}  // namespace ringmaster::engine
