#include "common/membership/quorum.h"

#include <algorithm>

namespace ringmaster::membership {

void VoterSet::Add(std::size_t voter) {
  if (words_.size() <= voter / 64) words_.resize(voter / 64 + 1);
  words_[voter / 64] |= std::uint64_t{1} << (voter % 64);
}

bool VoterSet::Has(std::size_t voter) const {
  return voter / 64 < words_.size() && (words_[voter / 64] >> (voter % 64) & 1);
}

std::size_t RecordIndex(const View& view) { return view.pods.size(); }

bool RecordHasVote(const View& view, ClauseSet without) {
  return view.pods.size() % 2 == 0 && !without.Has(Clause::kRecordVotes);
}

std::size_t MajorityOf(const View& view, ClauseSet without) {
  std::size_t voters = view.pods.size() + (RecordHasVote(view, without) ? 1 : 0);
  if (without.Has(Clause::kMajority)) return std::max<std::size_t>(1, voters / 2);
  return voters / 2 + 1;
}

Quorum FindQuorum(const View& view, const Ballot& ballot, const VoterSet& yes,
                  const std::vector<const Resignation*>& resigned, ClauseSet without) {
  std::size_t votes = 0;
  std::size_t accounted = 0;  // 6b: said yes, or resigned with a promise not above the ballot
  std::size_t resignation_votes = 0;
  for (std::size_t i = 0; i < view.pods.size(); ++i) {
    if (yes.Has(i)) {
      ++votes;
      ++accounted;
    } else if (resigned[i]) {
      ++resignation_votes;
      if (resigned[i]->promised <= ballot || without.Has(Clause::kResignationPromise)) ++accounted;
    }
  }
  if (without.Has(Clause::kResignationNoVote)) votes += resignation_votes;
  std::size_t majority = MajorityOf(view, without);
  if (votes >= majority) return Quorum::kMajority;
  bool enough = votes > 0 || without.Has(Clause::kOneAccepted);
  if (accounted == view.pods.size() && enough) return Quorum::kAll;
  if (RecordHasVote(view, without) && yes.Has(RecordIndex(view)) && votes + 1 >= majority) {
    return Quorum::kRecord;
  }
  return Quorum::kNone;
}

}  // namespace ringmaster::membership
