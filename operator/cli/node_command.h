// `ringmaster node`: makes this machine a node of a `ringmaster run` on another one. It is started
// by ssh; people need it only to investigate problems.
#pragma once

#include <filesystem>
#include <string>

#include "operator/cli/commands.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// `node_id`: the name of its directory below /tmp/ring-nodes-UID, if the user names none.
Outcome<void> RunNode(const NodeCommandOptions& options, const std::filesystem::path& bin_dir,
                      const std::string& node_id);

}  // namespace ringmaster::cli
