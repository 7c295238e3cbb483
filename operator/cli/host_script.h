// A host discovery script: which hosts may run workers now, as Horovod's elastic training asks.
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
  // `slots`: of a host that it names without a number. A path that is not there is a name on PATH.
  HostScript(const std::filesystem::path& path, int slots);

  // Runs it. The failure says what it said, and names the option.
  Outcome<std::vector<Host>> Ask(const std::stop_token& stop) const;

 private:
  tl::unexpected<Failure> Wrong(const std::string& why) const;

  const std::string path_;
  const int slots_;
};

}  // namespace ringmaster::cli
