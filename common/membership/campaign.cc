#include "common/membership/campaign.h"

#include <algorithm>

namespace ringmaster::membership {

void CampaignTimer::Shorten(TimePoint now, int position) {
  if (at_) at_ = std::min(*at_, now + Wait(position));
}

Duration CampaignTimer::Wait(int position) {
  if (position == 0) return Duration::zero();
  const auto jitter = static_cast<std::int64_t>(Random() % 1024);
  return step_ * position + step_ * jitter / 1024;
}

std::uint64_t CampaignTimer::Random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

}  // namespace ringmaster::membership
