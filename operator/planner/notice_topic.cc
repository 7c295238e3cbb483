#include "operator/planner/notice_topic.h"

#include <fmt/format.h>

#include <variant>

namespace ringmaster::planner {

std::string TopicOf(const Notice& notice) {
  const auto* drain = std::get_if<DrainNotice>(&notice);
  const bool alone = drain != nullptr && drain->pod_uids->size() == 1;
  return fmt::format("{} {}", notice.index(), alone ? drain->pod_uids->front() : "");
}

}  // namespace ringmaster::planner
