// The jobs that wait for their pods, in the order in which the operator lets them start
// (docs/scheduling.md, "The line"), as far as the API server shows it. Pure.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "operator/api/time.h"

namespace ringmaster::page {

// The priority of a job's pods, as the API server has stored it; nullopt if it is unknown.
using PriorityOf = std::function<std::optional<int>(const nlohmann::json& job)>;

// An object for each of the first `most` waiting jobs: {"namespace", "name", "state",
// "place": from 1 (null: its Kueue queue decides; such jobs come last),
// "queue": of Kueue, or "", "priority": null if it is unknown, which counts as 0,
// "priorityClass": the name, or "", "pods": running ones, "least": the fewest with which it trains,
// "wanted": pods, "grows": it trains and could have more, "waited": seconds,
// "reason", "lacks": why it waits, in the words of its condition}.
nlohmann::json WaitingLine(const std::vector<nlohmann::json>& jobs, const PriorityOf& priority_of,
                           api::Time now, std::size_t most);

}  // namespace ringmaster::page
