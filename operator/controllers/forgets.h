// FOR TESTS: rules that the code between planner and API server obeys. A simulation disables each
// of them to see what breaks (sidecar/app/glue_clauses.md). The product obeys all.
//
// Plain data.
#pragma once

namespace ringmaster::controllers {

struct Forgets {
  bool versions = false;     // the record is written whatever its resourceVersion
  bool lineages = false;     // a lineage begins before the job's status says so
  bool old_reports = false;  // the report of a returning sidecar is not reset
};

}  // namespace ringmaster::controllers
