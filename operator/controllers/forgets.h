// FOR TESTS: promises of the code between the planner and the API server, each of which a
// simulation takes out to see what breaks (sidecar/app/glue_clauses.md). The product keeps all.
//
// Plain data.
#pragma once

namespace ringmaster::controllers {

struct Forgets {
  bool versions = false;     // the record is written over whatever is there
  bool lineages = false;     // a lineage begins without the job's status saying so first
  bool old_reports = false;  // a sidecar that comes back is asked anew what it has promised
};

}  // namespace ringmaster::controllers
