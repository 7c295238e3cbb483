#include "collectives/engine/negotiator.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "collectives/engine/exchange.h"
#include "collectives/engine/operation_check.h"

namespace ringmaster::engine {

void Negotiator::Reset(std::vector<std::string> workers) {
  ranks_.Reset(std::move(workers));
  Void();
}

void Negotiator::Void() {
  cache_.Clear();
  vote_.Clear();
  heard_.Clear();
  joined_.Reset();
}

void Negotiator::ForgetSet(int32_t process_set) {
  vote_.ForgetSet(process_set);
  heard_.ForgetSet(process_set);
  cache_.EvictSet(process_set);
  ranks_.ForgetSet(process_set);
}

Status Negotiator::Round(Communicator* communicator, uint64_t number,
                         const std::vector<const Request*>& pending, const Late& late, bool armed,
                         RoundResult* result) {
  const bool joins = std::any_of(pending.begin(), pending.end(),
                                 [](const Request* r) { return r->kind == Kind::kJoin; });
  if (!joins) joined_.ForgetOwn();  // this rank's last join may have ended by a hand-over
  const Late known = vote_.Announced(late);
  std::vector<const Request*> announce;
  const Votes own = vote_.Vote(communicator->rank(), pending, late, armed, &announce);
  std::vector<uint8_t> least(own.bytes().size());
  Status status =
      communicator->Allreduce(own.bytes().data(), least.data(), least.size(), RM_UINT8, RM_MIN);
  if (!status.ok()) return status;
  const Votes agreed(std::move(least));

  std::vector<std::vector<std::byte>> messages;
  if (!agreed.announces_nothing()) {
    status = ExchangeMessages(communicator, Announcement(announce, number), &messages);
    if (!status.ok()) return status;
  }

  vote_.Heard(pending, announce);
  std::vector<Request> voted = TakeVoted(agreed);
  HearAnnouncements(messages);
  result->anything_new = !agreed.nothing_new();
  result->responses = FailWhatDiffers(&voted);
  // A rank whose join is announced in this very round may have voted "armed", but it does not stand
  // in rm_step_end.
  const bool armed_by_all = agreed.armed() && joined_.empty();
  for (Response& response :
       Fuse(TakeReady(std::move(voted), agreed.only_joins()), fusion_, armed_by_all, &ranks_)) {
    result->responses.push_back(std::move(response));
  }
  for (const Response& response : result->responses) {
    for (const Request& request : response.requests) vote_.Forget(request);
  }
  result->unanswered = heard_.FindUnanswered(known);
  return {};
}

std::vector<std::byte> Negotiator::Announcement(const std::vector<const Request*>& requests,
                                                uint64_t number) {
  ByteWriter message;
  message.Put(static_cast<uint32_t>(requests.size()));
  for (const Request* request : requests) {
    Request announced = *request;
    if (request->kind == Kind::kJoin) announced.count = joined_.OwnNumber(number);
    Write(&message, announced);
  }
  return message.bytes();
}

std::vector<Request> Negotiator::TakeVoted(const Votes& agreed) {
  std::vector<Request> voted;
  for (size_t slot = 0; slot < agreed.slots(); ++slot) {
    if (!agreed.has(slot)) continue;
    voted.push_back(cache_.Agreed(slot));
    cache_.Touch(slot);
  }
  return voted;
}

void Negotiator::HearAnnouncements(const std::vector<std::vector<std::byte>>& by_rank) {
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    ByteReader reader(by_rank[rank]);
    const auto count = reader.Get<uint32_t>();
    for (uint32_t i = 0; i < count && reader.ok(); ++i) {
      Request request = ReadRequest(&reader);
      // Another rank may have voted for the cached request of this key. Without the slot it
      // announces its own request in full in its next round, and then the two are compared.
      cache_.Evict(request.key());
      EvictRivals(request);
      if (request.kind == Kind::kJoin) HearJoin(static_cast<int>(rank));
      heard_.Hear(static_cast<int>(rank), std::move(request));
    }
  }
}

// Broadcasts from the joined rank, and transfers to and from it, can't run any more. Without their
// slots they are announced in full, and then CheckOperation finds them wrong.
void Negotiator::HearJoin(int rank) {
  joined_.Hear(rank);
  cache_.EvictWorker(ranks_.WorkerAt(rank));
}

void Negotiator::EvictRivals(const Request& request) {
  if (sets_->sets().empty() || request.kind == Kind::kTransfer) return;
  Request rival;  // its key depends on name and set alone
  rival.name = request.name;
  const auto evict_in = [&](int32_t set) {
    rival.process_set = set;
    if (set == request.process_set || !cache_.Has(rival.key())) return;
    std::vector<int> common;
    const std::vector<int> mine = ranks_.OfSet(request.process_set), theirs = ranks_.OfSet(set);
    std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                          std::back_inserter(common));
    if (common.size() > 1) cache_.Evict(std::string(rival.key()));
  };
  evict_in(0);
  for (const auto& [set, workers] : sets_->sets()) evict_in(set);
}

std::vector<Response> Negotiator::FailWhatDiffers(std::vector<Request>* voted) {
  std::vector<Response> failed = FailSetsThatDiffer(voted);
  for (const std::string& key : std::vector(heard_.keys())) {
    const auto* heard = heard_.Find(key);
    if (heard == nullptr || !heard_.IsComplete(*heard)) continue;
    const Status why = CheckOperation(*heard, *sets_, &ranks_);
    if (why.ok()) continue;
    Response response = Response::Of(TakeWithGroups(key, voted));
    response.error = why.code();
    response.message = why.message();
    failed.push_back(std::move(response));
  }
  return failed;
}

std::vector<Response> Negotiator::FailSetsThatDiffer(std::vector<Request>* voted) {
  std::vector<Response> failed;
  if (sets_->sets().empty()) return failed;
  // Only operations of one name can be rivals: each name has at most one in each set.
  const std::vector<std::string> keys = heard_.keys();
  std::map<std::string, std::vector<std::string>> keys_of;  // by name, in the order of keys()
  for (const std::string& key : keys) {
    const Request& request = heard_.Find(key)->begin()->second;
    if (request.kind != Kind::kTransfer) keys_of[request.name].push_back(key);
  }
  for (const std::string& key : keys) {
    const auto* one = heard_.Find(key);
    if (one == nullptr || one->begin()->second.kind == Kind::kTransfer) continue;
    const std::vector<std::string>& same = keys_of[one->begin()->second.name];
    for (auto other = std::find(same.begin(), same.end(), key) + 1; other != same.end(); ++other)
      FailRivals(key, *other, voted, &failed);
  }
  return failed;
}

void Negotiator::FailRivals(const std::string& key, const std::string& other_key,
                            std::vector<Request>* voted, std::vector<Response>* failed) {
  const auto *one = heard_.Find(key), *other = heard_.Find(other_key);
  if (one == nullptr || other == nullptr) return;
  std::string why = DescribeRivals(*one, *other, joined_, &ranks_);
  if (why.empty()) return;
  std::vector<Request> requests = TakeWithGroups(key, voted);
  for (Request& request : TakeWithGroups(other_key, voted)) requests.push_back(std::move(request));
  Response response = Response::Of(std::move(requests));
  response.error = RM_ERR_MISMATCH;
  response.message = std::move(why);
  failed->push_back(std::move(response));
}

// All ranks take the same requests, because the announcements and the cache are the same on all.
std::vector<Request> Negotiator::TakeWithGroups(const std::string& key,
                                                std::vector<Request>* voted) {
  std::set<Group> groups;
  std::vector<Request> taken = heard_.TakeWithGroups(key, &groups);
  for (const Group& group : groups) {
    for (Request& request : cache_.TakeGroup(group)) taken.push_back(std::move(request));
    std::erase_if(*voted, [&](const Request& request) { return request.group == group; });
  }
  return taken;
}

// A voted request that has to wait for its group is voted for again in the next round.
std::vector<Request> Negotiator::TakeReady(std::vector<Request> voted, bool only_joins) {
  std::vector<Request> announced = heard_.TakeReady(&voted);
  std::vector<Request> ready = std::move(voted);
  for (Request& request : announced) {
    if (GoesOnWithoutJoined(request.kind)) cache_.Insert(request, vote_.SaidPriority(request));
    ready.push_back(std::move(request));
  }
  if (only_joins) TakeJoin(&ready);
  return ready;
}

// Called last, when no rank has anything but its join pending: the other operations are complete
// only as long as the joined ranks count as joined.
void Negotiator::TakeJoin(std::vector<Request>* ready) {
  const auto joins = heard_.TakeComplete(kJoinName);
  if (!joins) return;
  ready->push_back(joins->begin()->second);
  ready->back().count = static_cast<uint64_t>(joined_.Last(*joins));
  joined_.End();
}

}  // namespace ringmaster::engine
