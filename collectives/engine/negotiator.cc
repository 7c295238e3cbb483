#include "collectives/engine/negotiator.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "collectives/engine/exchange.h"
#include "collectives/engine/fusion.h"

namespace ringmaster::engine {
namespace {

int32_t SetOfKey(const std::string& key) {
  const size_t at = key.rfind(kSetSeparator);
  return at == std::string::npos ? 0 : std::atoi(key.c_str() + at + 1);
}

enum Header { kAnnouncesNothing, kNothingNew, kArmed, kOnlyJoins, kHeaderSize };

}  // namespace

void Negotiator::Reset(std::vector<std::string> workers) {
  ranks_.Reset(std::move(workers));
  cache_.Clear();
  voted_.clear();
  announced_.clear();
  heard_.clear();
  heard_order_.clear();
  joined_.clear();
}

void Negotiator::ForgetSet(int32_t process_set) {
  const auto forget = [&](std::set<std::string>* keys) {
    std::erase_if(*keys, [&](const std::string& key) { return SetOfKey(key) == process_set; });
  };
  forget(&voted_);
  forget(&announced_);
  std::erase_if(heard_, [&](const auto& entry) { return SetOfKey(entry.first) == process_set; });
  std::erase_if(heard_order_, [&](const std::string& key) { return SetOfKey(key) == process_set; });
  cache_.EvictSet(process_set);
  ranks_.ForgetSet(process_set);
}

bool Negotiator::IsActive(int32_t process_set) {
  const std::vector<int>& ranks = ranks_.OfSet(process_set);
  return std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return !HasJoined(rank); });
}

Negotiator::Vote Negotiator::MakeVote(const std::vector<const Request*>& pending, const Late& late,
                                      bool armed) {
  Vote vote;
  vote.bytes.assign(kHeaderSize + cache_.slots(), 0);
  vote.bytes[kNothingNew] = 1;
  vote.bytes[kArmed] = armed && joined_.empty();
  vote.bytes[kOnlyJoins] = std::all_of(pending.begin(), pending.end(),
                                       [](const Request* r) { return r->kind == Kind::kJoin; });
  // Who has joined votes for all that the cache has. Where all have, nobody knows by that what one
  // of them still waits for, so that one says it in full.
  const bool all_joined = joined_.size() == ranks_.size();
  for (const Request* request : pending) {
    if (!voted_.contains(request->key())) vote.bytes[kNothingNew] = 0;
    if (announced_.contains(request->key())) continue;
    if (const auto slot = cache_.Find(*request);
        slot && !all_joined && !late.contains(request->key())) {
      vote.bytes[kHeaderSize + *slot] = 1;
    } else {
      vote.announce.push_back(request);
      vote.bytes[kNothingNew] = 0;  // also when it was voted for before and its slot has gone
    }
  }
  vote.bytes[kAnnouncesNothing] = vote.announce.empty();
  VoteAsOutsider(&vote);
  if (HasJoined(self_) && !all_joined) VoteAsJoined(&vote);
  return vote;
}

// Not all have joined: so what is agreed on now is wanted by one that has not. A planned change
// waits until all have, because nobody stands in rm_step_end here.
void Negotiator::VoteAsJoined(Vote* vote) {
  for (size_t slot = 0; slot < cache_.slots(); ++slot) {
    if (cache_.IsUsed(slot) && GoesOnWithoutJoined(cache_.At(slot).kind) &&
        IsActive(cache_.At(slot).process_set)) {
      vote->bytes[kHeaderSize + slot] = 1;
    }
  }
}

void Negotiator::VoteAsOutsider(Vote* vote) {
  if (sets_->sets().empty()) return;
  for (size_t slot = 0; slot < cache_.slots(); ++slot) {
    if (!cache_.IsUsed(slot) || cache_.At(slot).process_set == 0) continue;
    const int32_t set = cache_.At(slot).process_set;
    if (!ranks_.IsIn(set, self_) && IsActive(set)) vote->bytes[kHeaderSize + slot] = 1;
  }
}

void Negotiator::EvictRivals(const Request& request) {
  if (sets_->sets().empty()) return;
  for (size_t slot = 0; slot < cache_.slots(); ++slot) {
    if (!cache_.IsUsed(slot)) continue;
    const Request& other = cache_.At(slot);
    if (other.name != request.name || other.process_set == request.process_set) continue;
    std::vector<int> common;
    const std::vector<int> mine = ranks_.OfSet(request.process_set),
                           theirs = ranks_.OfSet(other.process_set);
    std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                          std::back_inserter(common));
    if (common.size() > 1) cache_.Evict(std::string(other.key()));
  }
}

// A name is in flight once on a rank. So if one waits for the other in its set and the other for
// the one in another set, neither can ever ask for what the other has.
std::string Negotiator::DescribeRivals(const std::map<int, Request>& one,
                                       const std::map<int, Request>& other) {
  const Request& first = one.begin()->second;
  const Request& second = other.begin()->second;
  if (first.name != second.name || first.process_set == second.process_set) return {};
  const auto asks_in = [&](const std::map<int, Request>& by_rank, int32_t set) {
    for (const auto& [rank, request] : by_rank) {
      if (ranks_.IsIn(set, rank)) return rank;
    }
    return -1;
  };
  const int a = asks_in(one, second.process_set), b = asks_in(other, first.process_set);
  if (a < 0 || b < 0) return {};
  for (int32_t set : {first.process_set, second.process_set}) {
    for (int rank : ranks_.OfSet(set)) {
      if (!one.contains(rank) && !other.contains(rank) && !HasJoined(rank)) return {};
    }
  }
  return "tensor '" + first.name + "' differs between ranks: process set is " +
         std::to_string(first.process_set) + " on rank " + std::to_string(a) + " and " +
         std::to_string(second.process_set) + " on rank " + std::to_string(b);
}

std::vector<Response> Negotiator::FailSetsThatDiffer(std::vector<Request>* voted) {
  std::vector<Response> failed;
  if (sets_->sets().empty()) return failed;
  const std::vector<std::string> keys = heard_order_;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t k = i + 1; k < keys.size(); ++k) {
      const auto one = heard_.find(keys[i]), other = heard_.find(keys[k]);
      if (one == heard_.end() || other == heard_.end()) continue;
      std::string why = DescribeRivals(one->second, other->second);
      if (why.empty()) continue;
      std::vector<Request> requests = TakeWithGroups(keys[i], voted);
      for (Request& request : TakeWithGroups(keys[k], voted))
        requests.push_back(std::move(request));
      Response response = Response::Of(std::move(requests));
      response.error = RM_ERR_MISMATCH;
      response.message = std::move(why);
      failed.push_back(std::move(response));
    }
  }
  return failed;
}

bool Negotiator::HasJoined(int rank) const {
  return std::find(joined_.begin(), joined_.end(), rank) != joined_.end();
}

Request Negotiator::Announced(const Request& request, uint64_t number) {
  Request announced = request;
  if (request.kind == Kind::kJoin) {
    if (!join_number_) join_number_ = number;
    announced.count = *join_number_;
  }
  return announced;
}

int Negotiator::LastJoined(const std::map<int, Request>& joins) const {
  int last = joined_.front();
  for (int rank : joined_) {
    if (joins.at(rank).count >= joins.at(last).count) last = rank;
  }
  return last;
}

Status Negotiator::Round(Communicator* communicator, uint64_t number,
                         const std::vector<const Request*>& pending, const Late& late, bool armed,
                         RoundResult* result) {
  self_ = communicator->rank();
  const bool joins = std::any_of(pending.begin(), pending.end(),
                                 [](const Request* r) { return r->kind == Kind::kJoin; });
  if (!joins) join_number_.reset();  // another rank has handed over the end of the last one
  const Late known = AnnouncedBefore(late);
  const Vote vote = MakeVote(pending, late, armed);
  std::vector<uint8_t> agreed(vote.bytes.size());
  Status status =
      communicator->Allreduce(vote.bytes.data(), agreed.data(), agreed.size(), RM_UINT8, RM_MIN);
  if (!status.ok()) return status;

  std::vector<std::vector<std::byte>> messages;
  if (!agreed[kAnnouncesNothing]) {
    ByteWriter message;
    message.Put(static_cast<uint32_t>(vote.announce.size()));
    for (const Request* request : vote.announce) {
      Write(&message, Announced(*request, number));
    }
    status = ExchangeMessages(communicator, message.bytes(), &messages);
    if (!status.ok()) return status;
  }

  for (const Request* request : pending) voted_.insert(request->key());
  for (const Request* request : vote.announce) announced_.insert(request->key());
  std::vector<Request> voted;
  for (size_t slot = 0; kHeaderSize + slot < agreed.size(); ++slot) {
    if (!agreed[kHeaderSize + slot]) continue;
    voted.push_back(cache_.At(slot));
    cache_.Touch(slot);
  }
  HearAnnouncements(messages);
  result->anything_new = !agreed[kNothingNew];
  result->responses = FailWhatDiffers(&voted);
  // Who joins in this very round has voted before: it does not stand in rm_step_end.
  const bool armed_by_all = agreed[kArmed] && joined_.empty();
  for (Response& response : Fuse(TakeReady(std::move(voted), agreed[kOnlyJoins]), fusion_bytes_,
                                 armed_by_all, &ranks_)) {
    result->responses.push_back(std::move(response));
  }
  for (const Response& response : result->responses) {
    for (const Request& request : response.requests) {
      voted_.erase(request.key());
      announced_.erase(request.key());
    }
  }
  result->unanswered = FindUnanswered(known);
  return {};
}

Negotiator::Late Negotiator::AnnouncedBefore(const Late& late) const {
  Late known;
  for (const auto& [key, since] : late) {
    if (announced_.contains(key)) known[key] = since;
  }
  return known;
}

std::vector<Unanswered> Negotiator::FindUnanswered(const Late& known) {
  std::vector<Unanswered> unanswered;
  for (const auto& [key, since] : known) {
    const auto heard = heard_.find(key);
    if (heard == heard_.end()) continue;
    const Request& request = heard->second.begin()->second;
    // These two wait for the others by their nature.
    if (request.kind == Kind::kJoin || request.kind == Kind::kShutdown) continue;
    Unanswered one{
        .tensor = request.name.front() == kReservedPrefix ? KindName(request.kind) : request.name,
        .process_set = request.process_set,
        .since = since};
    for (int rank : ranks_.OfSet(request.process_set)) {
      if (heard->second.contains(rank)) {
        one.asked.push_back(rank);
      } else if (!HasJoined(rank)) {
        one.missing.push_back(rank);
      }
    }
    if (!one.missing.empty()) unanswered.push_back(std::move(one));
  }
  return unanswered;
}

void Negotiator::HearAnnouncements(const std::vector<std::vector<std::byte>>& by_rank) {
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    ByteReader reader(by_rank[rank]);
    const auto count = reader.Get<uint32_t>();
    for (uint32_t i = 0; i < count && reader.ok(); ++i) {
      Request request = ReadRequest(&reader);
      auto [entry, first] = heard_.try_emplace(request.key());
      if (first) heard_order_.push_back(request.key());
      // Another rank may have voted for the cached form: without its slot it announces in full, and
      // they are compared.
      cache_.Evict(request.key());
      EvictRivals(request);
      if (request.kind == Kind::kJoin) HearJoin(static_cast<int>(rank));
      entry->second[static_cast<int>(rank)] = std::move(request);
    }
  }
}

// What it would be the root of must be announced again, and is then found wrong.
void Negotiator::HearJoin(int rank) {
  joined_.push_back(rank);
  cache_.EvictRoot(ranks_.WorkerAt(rank));
}

Status Negotiator::Check(const std::map<int, Request>& by_rank) {
  for (const auto& [rank, request] : by_rank) {
    if (!request.problem.empty()) {
      return {RM_ERR_INVALID, "tensor '" + request.name + "': " + request.problem + " on rank " +
                                  std::to_string(rank)};
    }
    // Some ranks may have asked when another worker had the root's rank: what they meant is gone,
    // and whoever has the rank now has other data.
    if (!request.root.empty() && ranks_.RankOf(request.root) < 0) {
      return {RM_ERR_ROOT_LOST, "broadcast '" + request.name + "': its root, " + request.root +
                                    ", has died or left, and nobody else has its data"};
    }
    if (!request.root.empty() && !ranks_.IsIn(request.process_set, ranks_.RankOf(request.root))) {
      return {RM_ERR_INVALID, "broadcast '" + request.name + "': its root, " + request.root +
                                  ", is not in process set " + std::to_string(request.process_set)};
    }
    if (request.kind == Kind::kRemoveSet && !sets_->Has(request.removed_set)) {
      return {RM_ERR_INVALID, "process set " + std::to_string(request.removed_set) +
                                  " is unknown: it was never added, or has been removed"};
    }
    if (!request.root.empty() && !by_rank.contains(ranks_.RankOf(request.root))) {
      return {RM_ERR_INVALID,
              "broadcast '" + request.name + "': its root, " + request.root + ", has joined"};
    }
    if (request.kind == Kind::kJoin) return {};  // each says when it was asked for
  }
  if (std::string why = DescribeMismatch(by_rank); !why.empty()) {
    return {RM_ERR_MISMATCH, std::move(why)};
  }
  return {};
}

bool Negotiator::Complete(const std::map<int, Request>& by_rank) {
  const Request& request = by_rank.begin()->second;
  const std::vector<int>& ranks = ranks_.OfSet(request.process_set);
  if (by_rank.size() == ranks.size()) return true;
  if (!GoesOnWithoutJoined(request.kind)) return false;
  size_t present = by_rank.size();
  for (int rank : joined_)
    present += ranks_.IsIn(request.process_set, rank) && !by_rank.contains(rank);
  return present == ranks.size();
}

std::vector<Response> Negotiator::FailWhatDiffers(std::vector<Request>* voted) {
  std::vector<Response> failed = FailSetsThatDiffer(voted);
  for (const std::string& name : std::vector(heard_order_)) {
    const auto heard = heard_.find(name);
    if (heard == heard_.end() || !Complete(heard->second)) continue;
    const Status why = Check(heard->second);
    if (why.ok()) continue;
    Response response = Response::Of(TakeWithGroups(name, voted));
    response.error = why.code();
    response.message = why.message();
    failed.push_back(std::move(response));
  }
  return failed;
}

// All ranks know who has announced what and what the cache holds, so they take the same.
std::vector<Request> Negotiator::TakeWithGroups(const std::string& name,
                                                std::vector<Request>* voted) {
  std::vector<Request> taken;
  std::set<Group> groups;
  std::vector<std::string> names = {name};
  while (!names.empty()) {
    const auto heard = heard_.extract(names.back());
    names.pop_back();
    if (heard.empty()) continue;
    for (const auto& [rank, request] : heard.mapped()) {
      if (request.group.size == 0 || !groups.insert(request.group).second) continue;
      for (const auto& [other, by_rank] : heard_) {
        for (const auto& [of, member] : by_rank) {
          if (member.group == request.group) names.push_back(other);
        }
      }
    }
    taken.push_back(heard.mapped().begin()->second);
  }
  for (const Group& group : groups) {
    for (Request& request : cache_.TakeGroup(group)) taken.push_back(std::move(request));
    std::erase_if(*voted, [&](const Request& request) { return request.group == group; });
  }
  std::erase_if(heard_order_, [&](const std::string& heard) { return !heard_.contains(heard); });
  return taken;
}

// Of a group nothing is ready before all of it is. What is voted for and has to wait is voted for
// again in the next round.
std::vector<Request> Negotiator::TakeReady(std::vector<Request> voted, bool only_joins) {
  std::map<Group, uint32_t> present;
  for (const Request& request : voted) ++present[request.group];
  for (const auto& [name, by_rank] : heard_) {
    if (Complete(by_rank)) ++present[by_rank.begin()->second.group];
  }
  const auto waits = [&](const Request& request) {
    return request.group.size > 0 && present[request.group] < request.group.size;
  };
  std::vector<Request> ready = std::move(voted);
  std::erase_if(ready, waits);
  std::vector<std::string> waiting;
  for (const std::string& name : heard_order_) {
    const auto heard = heard_.find(name);
    if (name == kJoinName || !Complete(heard->second) || waits(heard->second.begin()->second)) {
      waiting.push_back(name);
      continue;
    }
    ready.push_back(std::move(heard->second.begin()->second));
    if (GoesOnWithoutJoined(ready.back().kind)) cache_.Insert(ready.back());
    heard_.erase(heard);
  }
  heard_order_ = std::move(waiting);
  if (only_joins) TakeJoin(&ready);
  return ready;
}

// Last, because what the others wait for with those that have joined is complete only as long as
// they count as joined.
void Negotiator::TakeJoin(std::vector<Request>* ready) {
  const auto heard = heard_.find(kJoinName);
  if (heard == heard_.end() || !Complete(heard->second)) return;
  const int last = LastJoined(heard->second);
  ready->push_back(std::move(heard->second.begin()->second));
  ready->back().count = static_cast<uint64_t>(last);
  joined_.clear();
  join_number_.reset();
  heard_.erase(heard);
  std::erase(heard_order_, kJoinName);
}

}  // namespace ringmaster::engine
