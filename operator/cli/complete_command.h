// `ringmaster __complete`, which the shells' completion calls, and what answers that of kubectl.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/connection.h"

namespace ringmaster::cli {

// Prints what the last word may become. It prints nothing on standard error, and takes about a
// second at most, whatever the cluster does.
void Complete(const std::vector<std::string>& words, const Surroundings& around);

}  // namespace ringmaster::cli
