// The tables of `ringmaster get`: jobs, with their pods below. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/time.h"

namespace ringmaster::cli {

struct TableColumns {
  bool pods = false;        // the pods below each job
  bool wide = false;        // more columns for each pod
  bool namespaces = false;  // a column with the jobs' namespaces
  api::Time now;            // for the ages of problems
};

// `jobs` have status.pods, as `get -o json` prints them. Problems stand below, in the words of
// `why`: all of them if pods are shown, else the one that explains the rest.
std::string JobsTable(const std::vector<nlohmann::json>& jobs, const TableColumns& columns);

// The table of one job's pods.
std::string PodsTable(const nlohmann::json& job, bool wide);

// `get -w`: a row for each change, the first one with a header; columns only grow.
class WatchTable {
 public:
  explicit WatchTable(bool namespaces) : namespaces_(namespaces) {}
  // `state` empty: the job's own state.
  std::string Row(const nlohmann::json& job, const std::string& state);

 private:
  const bool namespaces_;
  std::vector<size_t> widths_;
};

// The parts of a job's row whose change makes a new line: all but the step, which changes always.
std::string WatchKey(const nlohmann::json& job, const std::string& state);

}  // namespace ringmaster::cli
