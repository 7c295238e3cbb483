// Writes to a terminal or a pipe that may take nothing for a long time (`less`, Ctrl-S). It waits
// for it, but not after a signal has told the program to end.
//
// Thread rule: one thread.
#pragma once

#include <cstdio>
#include <stop_token>
#include <string_view>

namespace ringmaster::cli {

class PatientOutput {
 public:
  PatientOutput(std::FILE* out, std::stop_token end) : out_(out), end_(std::move(end)) {}

  // At once, without a buffer. What is not taken after `end` was requested is lost.
  void Write(std::string_view text);

 private:
  bool AwaitRoom(int fd);
  void SayLoss(int error);

  std::FILE* const out_;
  const std::stop_token end_;
  bool said_loss_ = false;
  bool given_up_ = false;  // from now on it writes only what is taken without waiting
};

}  // namespace ringmaster::cli
