// A host discovery script, as for Horovod's elastic training: it prints the hosts that may run
// workers now.
//
// Thread rule: any thread.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/cli/hosts.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

class HostScript {
 public:
  // `slots` is for hosts that are named without a number. A path that doesn't exist is looked up in
  // PATH.
  HostScript(const std::filesystem::path& path, int slots);

  // Runs the script. The failure quotes its error output and names the option.
  Outcome<std::vector<Host>> Ask(const std::stop_token& stop) const;

 private:
  tl::unexpected<Failure> Wrong(const std::string& why) const;

  const std::string path_;
  const int slots_;
};

}  // namespace ringmaster::cli
