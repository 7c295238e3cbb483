// What `ringmaster run` shows: lines that stay, and below them on a terminal one line that is
// redrawn.
//
// Thread rule: one thread; MakeSharedDisplay's any.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "operator/cli/progress.h"

namespace ringmaster::cli {

class Display {
 public:
  virtual ~Display() = default;
  virtual void Line(const std::string& text) = 0;
  // The newest progress, with the time in front: redrawn in place, or without a terminal a line
  // every few seconds; of a text that stays the same, one a minute.
  virtual void Progress(const std::string& clock, const std::string& text, TimePoint now) = 0;
  virtual void Finish() = 0;  // the progress line is taken away
  virtual int width() const = 0;
};

std::unique_ptr<Display> MakeTerminalDisplay(std::FILE* out);
std::unique_ptr<Display> MakePlainDisplay(std::FILE* out, std::chrono::milliseconds period);
// `display`, for several threads.
std::unique_ptr<Display> MakeSharedDisplay(std::unique_ptr<Display> display);

}  // namespace ringmaster::cli
