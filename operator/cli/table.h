// `ringmaster get` without -o json: jobs, and their pods below. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/time.h"

namespace ringmaster::cli {

struct TableColumns {
  bool pods = false;        // the pods of each job below
  bool wide = false;        // more of each pod
  bool namespaces = false;  // the jobs' namespaces in front
  api::Time now;            // for how long something is not as it should be
};

// `jobs`: with status.pods, as `get -o json` prints them. Below them stands what is not as it
// should be, in the words of `why`: with the pods all of it, else what explains the rest.
std::string JobsTable(const std::vector<nlohmann::json>& jobs, const TableColumns& columns);

// The pods of one of them.
std::string PodsTable(const nlohmann::json& job, bool wide);

// `get -w`: a row for each change, the first with a head; columns only get wider.
class WatchTable {
 public:
  explicit WatchTable(bool namespaces) : namespaces_(namespaces) {}
  // `state` empty: the job's own.
  std::string Row(const nlohmann::json& job, const std::string& state);

 private:
  const bool namespaces_;
  std::vector<size_t> widths_;
};

// What of a job's row makes a new line: all but the step, which always changes.
std::string WatchKey(const nlohmann::json& job, const std::string& state);

}  // namespace ringmaster::cli
