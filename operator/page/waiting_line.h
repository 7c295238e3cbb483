// Which jobs wait for their pods, in the order in which the operator lets them start
// (docs/scheduling.md, "The line"), by what the API server has of them. Pure.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "operator/api/time.h"

namespace ringmaster::page {

// The priority of a job's pods, as the API server has stored it; nullopt: it is not known.
using PriorityOf = std::function<std::optional<int>(const nlohmann::json& job)>;

// Of each job that waits {"namespace", "name", "state", "place": from 1 (null: its queue of Kueue
// decides, they come last), "queue": that of Kueue, or "", "priority" (null: it is not known yet
// and counts as 0), "priorityClass": the name, or "", "pods": that run, "least": with which it
// trains, "wanted", "grows": it trains and could have more, "waited": seconds, "reason" and
// "lacks": why, in the words of its condition}. At most `most`, the first.
nlohmann::json WaitingLine(const std::vector<nlohmann::json>& jobs, const PriorityOf& priority_of,
                           api::Time now, std::size_t most);

}  // namespace ringmaster::page
