#include "collectives/transport/parked_hellos.h"

#include <utility>

namespace ringmaster::transport {
namespace {

// How many lineages and views a process may be behind. A connection whose Hello is beyond that is
// closed. It isn't lost: its dialer tries again until this process builds the view.
constexpr uint64_t kMaxLineages = 1024;
constexpr uint64_t kMaxViews = uint64_t{1} << 20;
constexpr int kLineageShift = 40;

}  // namespace

bool MayFollow(uint64_t epoch, uint64_t current) {
  const uint64_t mask = (uint64_t{1} << kLineageShift) - 1;
  return (epoch >> kLineageShift) <= (current >> kLineageShift) + kMaxLineages &&
         (epoch & mask) <= (current & mask) + kMaxViews;
}

size_t ParkedHellos::size() const {
  size_t count = 0;
  for (const auto& [epoch, ranks] : by_epoch_) count += ranks.size();
  return count;
}

void ParkedHellos::Add(Arrival arrival, Clock::time_point now) {
  const uint64_t epoch = arrival.hello.epoch;
  const uint32_t rank = arrival.hello.rank;
  const auto at = by_epoch_.find(epoch);
  const bool replaces = at != by_epoch_.end() && at->second.count(rank) != 0;
  if (!replaces && size() >= limits_.arrivals) return;
  by_epoch_[epoch].insert_or_assign(rank, Parked{std::move(arrival), now});
  if (by_epoch_.size() > limits_.epochs) by_epoch_.erase(by_epoch_.begin());
}

void ParkedHellos::Release(ByRank ranks, std::vector<Arrival>* out) {
  for (auto& [rank, parked] : ranks) out->push_back(std::move(parked.arrival));
}

std::vector<Arrival> ParkedHellos::Take(uint64_t epoch) {
  std::vector<Arrival> taken;
  if (auto node = by_epoch_.extract(epoch)) Release(std::move(node.mapped()), &taken);
  return taken;
}

std::vector<Arrival> ParkedHellos::TakeBefore(uint64_t epoch) {
  std::vector<Arrival> taken;
  while (!by_epoch_.empty() && by_epoch_.begin()->first < epoch) {
    Release(std::move(by_epoch_.extract(by_epoch_.begin()).mapped()), &taken);
  }
  return taken;
}

void ParkedHellos::Expire(Clock::time_point now) {
  for (auto& [epoch, ranks] : by_epoch_) {
    std::erase_if(ranks, [&](const auto& at) { return now - at.second.since > limits_.age; });
  }
  std::erase_if(by_epoch_, [](const auto& at) { return at.second.empty(); });
}

}  // namespace ringmaster::transport
