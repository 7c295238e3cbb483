// The lines in the log of a worker pod: which of them the launcher has written of its own doing,
// and which worker has printed one. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::cli {

// A line that the launcher has written of its own doing: for who looks into a log, not for who
// looks at what workers print. Its errors are for both.
bool IsLaunchersAccount(std::string_view line);

// Whether the launcher puts the workers' numbers in front of the lines of this job. It doesn't if a
// pod has only one process.
bool LabelsLines(const nlohmann::json& job);

// The line as it is shown if the worker with this number has printed it, with the number in front;
// nullopt if another has. A line without a number (`labelled` is false) is that of the pod's only
// worker.
std::optional<std::string> LineOfWorker(int number, bool labelled, const std::string& line);

// "it has workers 0-3, 6-7", of the pods with these numbers; "it has no pods".
std::string WorkersText(std::vector<int> pods, int slots);

}  // namespace ringmaster::cli
