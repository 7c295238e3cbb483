// What of the logs of a job's pods is shown as the output of rank 0, though rank 0 moves: nothing
// that its worker prints while it has rank 0 is lost, and no line comes twice.
//
// That another worker has rank 0 is heard a moment after it is so. Until then its lines are held;
// a line is given up when its pod's sidecar, asked after the line had come, still knows of no view
// in which that worker has rank 0. So some lines from just before a worker got rank 0 are shown,
// too. Of a worker that has lost rank 0 its last words are shown, until its place has a rank again.
// Pure.
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

  // A line of a pod's log. Returns what is to be shown now, as it is shown.
  Lines OnLine(const JobRun& job, const std::string& pod, const std::string& line);
  // `job` has taken a status of this pod's sidecar in. Returns as OnLine.
  Lines OnStatus(const JobRun& job, const std::string& pod);
  // A pod begins that may have the name of one that is gone.
  void OnNewPod(const std::string& pod);

 private:
  struct HeldLine {
    std::uint64_t statuses;  // of its pod, when it came
    std::string text;
  };
  struct PodLines {
    std::uint64_t statuses = 0;
    std::deque<HeldLine> held;
  };

  Lines TakeHeld(const JobRun& job, const std::string& pod);

  std::map<std::string, PodLines> pods_;
  std::optional<inspection::RankStatus> rank_zero_;  // now; nullopt: there has been no view
  std::optional<inspection::RankStatus> before_;     // which had it last
};

}  // namespace ringmaster::cli
