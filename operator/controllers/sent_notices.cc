#include "operator/controllers/sent_notices.h"

#include <algorithm>
#include <variant>

namespace ringmaster::controllers {
namespace {

using planner::Notice;

// A later notice on the same topic replaces the earlier one.
bool SameTopic(const Notice& a, const Notice& b) {
  if (a.index() != b.index()) return false;
  if (const auto* gone = std::get_if<planner::PodGoneNotice>(&a)) {
    return gone->pod_uid == std::get<planner::PodGoneNotice>(b).pod_uid;
  }
  if (const auto* drain = std::get_if<planner::DrainNotice>(&a)) {
    return drain->pod_uids == std::get<planner::DrainNotice>(b).pod_uids;
  }
  return true;
}

}  // namespace

bool SentNotices::Add(const Notice& notice) {
  const auto same = std::find_if(newest_.begin(), newest_.end(),
                                 [&](const Notice& other) { return SameTopic(notice, other); });
  if (same == newest_.end()) {
    newest_.push_back(notice);
    return true;
  }
  if (*same == notice) return false;
  *same = notice;
  return true;
}

}  // namespace ringmaster::controllers
