// Chooses which lines of a job's pod logs are shown as the output of rank 0, although rank 0 moves
// between workers: no line is lost that a worker prints while it has rank 0, and no line is shown
// twice.
//
// We learn a moment late that another worker has got rank 0, so lines of all workers are held for
// some time. A held line is dropped when the pod's sidecar, asked after the line had arrived, still
// knows no view in which that worker has rank 0. Some lines from just before a worker got rank 0
// are therefore shown, too. After a worker has lost rank 0 its last lines are shown until its place
// has a rank again. Pure.
//
// Thread rule: the loop thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/cli/job_run.h"

namespace ringmaster::cli {

class RankZeroOutput {
 public:
  using Lines = std::vector<std::string>;

  // Handles a line of a pod's log. Returns the lines to show now, as they are shown.
  Lines OnLine(const JobRun& job, const std::string& pod, const std::string& line);
  // `job` has just received a status of this pod's sidecar. Returns lines as OnLine does.
  Lines OnStatus(const JobRun& job, const std::string& pod);
  // A new pod starts, perhaps with the name of one that is gone.
  void OnNewPod(const std::string& pod);

 private:
  struct HeldLine {
    std::uint64_t statuses;  // statuses of its pod when the line came
    std::string text;
  };
  struct PodLines {
    std::uint64_t statuses = 0;
    std::deque<HeldLine> held;
  };

  Lines TakeHeld(const JobRun& job, const std::string& pod);

  std::map<std::string, PodLines> pods_;
  std::optional<inspection::RankHolder> rank_zero_;  // now; nullopt: there has been no view
  std::optional<inspection::RankHolder> before_;     // which had it last
};

}  // namespace ringmaster::cli
