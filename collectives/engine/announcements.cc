#include "collectives/engine/announcements.h"

#include <algorithm>
#include <utility>

namespace ringmaster::engine {

void Announcements::Clear() {
  by_key_.clear();
  order_.clear();
}

void Announcements::ForgetSet(int32_t process_set) {
  std::erase_if(by_key_, [&](const auto& entry) { return SetOfKey(entry.first) == process_set; });
  std::erase_if(order_, [&](const std::string& key) { return SetOfKey(key) == process_set; });
}

void Announcements::Hear(int rank, Request request) {
  auto [entry, first] = by_key_.try_emplace(request.key());
  if (first) order_.push_back(request.key());
  entry->second[rank] = std::move(request);
}

const Announcements::ByRank* Announcements::Find(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &found->second;
}

bool Announcements::IsComplete(const ByRank& by_rank) const {
  const Request& request = by_rank.begin()->second;
  const std::vector<int>& ranks = ranks_->Of(request);
  if (by_rank.size() == ranks.size()) return true;
  if (!GoesOnWithoutJoined(request.kind)) return false;
  size_t present = by_rank.size();
  for (int rank : joined_->ranks())
    present += ranks_->TakesPart(request, rank) && !by_rank.contains(rank);
  return present == ranks.size();
}

std::vector<Request> Announcements::TakeWithGroups(const std::string& key,
                                                   std::set<Group>* groups) {
  std::vector<Request> taken;
  std::vector<std::string> keys = {key};
  while (!keys.empty()) {
    const auto heard = by_key_.extract(keys.back());
    keys.pop_back();
    if (heard.empty()) continue;
    for (const auto& [rank, request] : heard.mapped()) {
      if (request.group.size == 0 || !groups->insert(request.group).second) continue;
      for (const auto& [other, by_rank] : by_key_) {
        for (const auto& [of, member] : by_rank) {
          if (member.group == request.group) keys.push_back(other);
        }
      }
    }
    taken.push_back(heard.mapped().begin()->second);
  }
  std::erase_if(order_, [&](const std::string& heard) { return !by_key_.contains(heard); });
  return taken;
}

std::vector<Request> Announcements::TakeReady(std::vector<Request>* voted) {
  std::map<Group, uint32_t> present;
  for (const Request& request : *voted) ++present[request.group];
  for (const auto& [key, by_rank] : by_key_) {
    if (IsComplete(by_rank)) ++present[by_rank.begin()->second.group];
  }
  const auto waits = [&](const Request& request) {
    return request.group.size > 0 && present[request.group] < request.group.size;
  };
  std::erase_if(*voted, waits);
  std::vector<Request> ready;
  std::vector<std::string> waiting;
  for (const std::string& key : order_) {
    const auto heard = by_key_.find(key);
    if (key == kJoinName || !IsComplete(heard->second) || waits(heard->second.begin()->second)) {
      waiting.push_back(key);
      continue;
    }
    ready.push_back(std::move(heard->second.begin()->second));
    by_key_.erase(heard);
  }
  order_ = std::move(waiting);
  return ready;
}

std::optional<Announcements::ByRank> Announcements::TakeComplete(const std::string& key) {
  const auto heard = by_key_.find(key);
  if (heard == by_key_.end() || !IsComplete(heard->second)) return std::nullopt;
  ByRank taken = std::move(heard->second);
  by_key_.erase(heard);
  std::erase(order_, key);
  return taken;
}

std::vector<Unanswered> Announcements::FindUnanswered(const Late& late) const {
  std::vector<Unanswered> unanswered;
  const ByRank* shut = Find(kShutdownName);
  for (const auto& [key, since] : late) {
    const ByRank* heard = Find(key);
    if (heard == nullptr) continue;
    const Request& request = heard->begin()->second;
    // A join is meant to wait for the other ranks.
    if (request.kind == Kind::kJoin) continue;
    Unanswered one{
        .tensor = request.name.front() == kReservedPrefix ? KindName(request.kind) : request.name,
        .process_set = request.process_set,
        .since = since,
        .is_shutdown = request.kind == Kind::kShutdown};
    for (int rank : ranks_->Of(request)) {
      if (heard->contains(rank)) {
        one.asked.push_back(rank);
      } else if (!joined_->Has(rank)) {
        one.missing.push_back(rank);
        if (shut != nullptr && shut->contains(rank)) one.in_shutdown.push_back(rank);
      }
    }
    if (!one.missing.empty()) unanswered.push_back(std::move(one));
  }
  return unanswered;
}

}  // namespace ringmaster::engine
