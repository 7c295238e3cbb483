// The output of `ringmaster run`: lines that stay and, on a terminal, one line below them that is
// redrawn.
//
// Thread rule: one thread; any thread for MakeSharedDisplay.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/cli/time_point.h"

namespace ringmaster::cli {

// What prevents a job from training.
struct HeldUp {
  std::string job;  // the job's name with a colon if there are several jobs; else empty
  std::string why;
  friend bool operator==(const HeldUp&, const HeldUp&) = default;
};

struct ProgressNews {
  std::string text;  // about all jobs, in one line
  std::vector<HeldUp> held_up;
};

class Display {
 public:
  virtual ~Display() = default;
  virtual void Line(const std::string& text) = 0;
  // Shows the newest progress after the time: redrawn in place or, without a terminal, as a line
  // every few seconds (once a minute if the text doesn't change). What holds a job up must be
  // readable in full: if it lasts and the terminal's line is too short for it, it gets a line that
  // stays.
  virtual void Progress(const std::string& clock, const ProgressNews& news, TimePoint now) = 0;
  virtual void Finish() = 0;  // removes the progress line
  virtual int width() const = 0;
};

// `end`: from then on nobody waits for a terminal or a pipe that takes nothing.
std::unique_ptr<Display> MakeTerminalDisplay(std::FILE* out, std::stop_token end = {});
std::unique_ptr<Display> MakePlainDisplay(std::FILE* out, std::chrono::milliseconds period,
                                          std::stop_token end = {});
// Wraps `display` for several threads.
std::unique_ptr<Display> MakeSharedDisplay(std::unique_ptr<Display> display);

}  // namespace ringmaster::cli
