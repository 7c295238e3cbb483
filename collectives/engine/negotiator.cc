#include "collectives/engine/negotiator.h"

#include <algorithm>

#include "collectives/engine/exchange.h"

namespace ringmaster::engine {
namespace {

enum Header { kAnnouncesNothing, kNothingNew, kArmed, kHeaderSize };

// A root that has left with its worker can't give its data any more.
void CheckRoot(const Request& request, int size, Response* response) {
  if (request.kind != Kind::kBroadcast || request.root < size) return;
  response->error = RM_ERR_INVALID;
  response->message = "broadcast '" + request.name + "': root " + std::to_string(request.root) +
                      " is not in the view of " + std::to_string(size) + " ranks";
}

}  // namespace

void Negotiator::Reset() {
  cache_.Clear();
  voted_.clear();
  announced_.clear();
  heard_.clear();
  heard_order_.clear();
}

Negotiator::Vote Negotiator::MakeVote(const std::vector<const Request*>& pending,
                                      bool armed) const {
  Vote vote;
  vote.bytes.assign(kHeaderSize + cache_.slots(), 0);
  vote.bytes[kNothingNew] = 1;
  vote.bytes[kArmed] = armed;
  for (const Request* request : pending) {
    if (!voted_.contains(request->name)) vote.bytes[kNothingNew] = 0;
    if (announced_.contains(request->name)) continue;
    if (const auto slot = cache_.Find(*request)) {
      vote.bytes[kHeaderSize + *slot] = 1;
    } else {
      vote.announce.push_back(request);
      vote.bytes[kNothingNew] = 0;  // also when it was voted for before and its slot has gone
    }
  }
  vote.bytes[kAnnouncesNothing] = vote.announce.empty();
  return vote;
}

Status Negotiator::Round(Communicator* communicator, const std::vector<const Request*>& pending,
                         bool armed, RoundResult* result) {
  const Vote vote = MakeVote(pending, armed);
  std::vector<uint8_t> agreed(vote.bytes.size());
  Status status =
      communicator->Allreduce(vote.bytes.data(), agreed.data(), agreed.size(), RM_UINT8, RM_MIN);
  if (!status.ok()) return status;

  std::vector<std::vector<std::byte>> messages;
  if (!agreed[kAnnouncesNothing]) {
    ByteWriter message;
    message.Put(static_cast<uint32_t>(vote.announce.size()));
    for (const Request* request : vote.announce) Write(&message, *request);
    status = ExchangeMessages(communicator, message.bytes(), &messages);
    if (!status.ok()) return status;
  }

  for (const Request* request : pending) voted_.insert(request->name);
  for (const Request* request : vote.announce) announced_.insert(request->name);
  std::vector<Request> ready;
  for (size_t slot = 0; kHeaderSize + slot < agreed.size(); ++slot) {
    if (!agreed[kHeaderSize + slot]) continue;
    ready.push_back(cache_.At(slot));
    cache_.Touch(slot);
  }
  std::vector<Response> failed;
  HearAnnouncements(messages);
  TakeComplete(communicator->size(), &ready, &failed);

  result->anything_new = !agreed[kNothingNew];
  result->responses = std::move(failed);
  for (Response& response : Fuse(ready, agreed[kArmed])) {
    CheckRoot(response.requests.front(), communicator->size(), &response);
    result->responses.push_back(std::move(response));
  }
  for (const Response& response : result->responses) {
    for (const Request& request : response.requests) {
      voted_.erase(request.name);
      announced_.erase(request.name);
    }
  }
  return {};
}

void Negotiator::HearAnnouncements(const std::vector<std::vector<std::byte>>& by_rank) {
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    ByteReader reader(by_rank[rank]);
    const auto count = reader.Get<uint32_t>();
    for (uint32_t i = 0; i < count && reader.ok(); ++i) {
      Request request = ReadRequest(&reader);
      auto [entry, first] = heard_.try_emplace(request.name);
      if (first) heard_order_.push_back(request.name);
      // Another rank may have voted for the cached form: without its slot it announces in full, and
      // they are compared.
      cache_.Evict(request.name);
      entry->second[static_cast<int>(rank)] = std::move(request);
    }
  }
}

void Negotiator::TakeComplete(int size, std::vector<Request>* ready,
                              std::vector<Response>* failed) {
  std::vector<std::string> waiting;
  for (const std::string& name : heard_order_) {
    auto& by_rank = heard_[name];
    if (static_cast<int>(by_rank.size()) < size) {
      waiting.push_back(name);
      continue;
    }
    std::vector<Request> requests;
    for (auto& [rank, request] : by_rank) requests.push_back(std::move(request));
    heard_.erase(name);
    if (std::string why = DescribeMismatch(requests); !why.empty()) {
      Response response;
      response.requests = {requests.front()};
      response.error = RM_ERR_MISMATCH;
      response.message = std::move(why);
      failed->push_back(std::move(response));
      continue;
    }
    cache_.Insert(requests.front());
    ready->push_back(std::move(requests.front()));
  }
  heard_order_ = std::move(waiting);
}

std::vector<Response> Negotiator::Fuse(const std::vector<Request>& ready, bool armed) const {
  std::vector<Response> responses;
  std::vector<bool> taken(ready.size(), false);
  for (size_t i = 0; i < ready.size(); ++i) {
    if (taken[i]) continue;
    Response response;
    response.requests = {ready[i]};
    response.armed = armed && ready[i].kind == Kind::kStepEnd;
    uint64_t bytes = ready[i].bytes();
    for (size_t j = i + 1; ready[i].kind == Kind::kAllreduce && j < ready.size(); ++j) {
      const Request& other = ready[j];
      if (taken[j] || other.kind != Kind::kAllreduce || other.dtype != ready[i].dtype ||
          other.op != ready[i].op || bytes + other.bytes() > fusion_bytes_) {
        continue;
      }
      taken[j] = true;
      bytes += other.bytes();
      response.requests.push_back(other);
    }
    responses.push_back(std::move(response));
  }
  // A step ends after all else that the same round has made ready.
  std::stable_partition(responses.begin(), responses.end(), [](const Response& r) {
    return r.kind() != Kind::kStepEnd && r.kind() != Kind::kShutdown;
  });
  return responses;
}

}  // namespace ringmaster::engine
