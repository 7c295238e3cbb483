// What `ringmaster run` shows: lines that stay, and below them on a terminal one line that is
// redrawn.
//
// Thread rule: one thread; MakeSharedDisplay's any.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "operator/cli/progress.h"

namespace ringmaster::cli {

// What holds a job up.
struct HeldUp {
  std::string job;  // its name with a colon, where there are several; else empty
  std::string why;
  friend bool operator==(const HeldUp&, const HeldUp&) = default;
};

struct ProgressNews {
  std::string text;  // of all jobs, in one line
  std::vector<HeldUp> held_up;
};

class Display {
 public:
  virtual ~Display() = default;
  virtual void Line(const std::string& text) = 0;
  // The newest progress, with the time in front: redrawn in place, or without a terminal a line
  // every few seconds; of a text that stays the same, one a minute. What holds a job up is to be
  // read in whole: where a terminal's line has no room for it, and it lasts, it gets a line that
  // stays.
  virtual void Progress(const std::string& clock, const ProgressNews& news, TimePoint now) = 0;
  virtual void Finish() = 0;  // the progress line is taken away
  virtual int width() const = 0;
};

std::unique_ptr<Display> MakeTerminalDisplay(std::FILE* out);
std::unique_ptr<Display> MakePlainDisplay(std::FILE* out, std::chrono::milliseconds period);
// `display`, for several threads.
std::unique_ptr<Display> MakeSharedDisplay(std::unique_ptr<Display> display);

}  // namespace ringmaster::cli
