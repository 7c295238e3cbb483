// Opens a rank's file of a timeline. A file system that hangs holds up who opens a file on it for
// as long as it likes, so a thread of its own does it; after a deadline that thread is left to
// itself, and ends if the file system ever answers.
//
// Thread rule: any thread.
#pragma once

#include <memory>
#include <string>

#include "collectives/timeline/trace_file.h"
#include "ringmaster/status.h"

namespace ringmaster::timeline {

// Sets *file to one that is open: for rank 0 `path` itself, for others a file beside it
// ("t.rank2.json" for "t.json"). `later`: a file that exists is left as it is, and the next name is
// taken ("t.rank2-2.json"). RM_ERR_INVALID says why there can be no such file.
Status OpenTrace(const std::string& path, bool later, const Process& process,
                 Clock::time_point deadline, std::unique_ptr<TraceFile>* file);

}  // namespace ringmaster::timeline
