// How a command of `ringmaster` ends: with a value, or with a sentence for people and an exit
// status.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace ringmaster::cli {

enum class ExitCode : int {
  kDone = 0,
  kJobFailed = 1,     // the job failed, or the cluster refused what was asked
  kUsage = 2,         // the command line or a manifest is wrong
  kMachineLacks = 3,  // a port, a directory, a package: the message says what and how to get it
  kInterrupted = 130,
};

struct Failure {
  ExitCode code = ExitCode::kJobFailed;
  std::string message;  // may have several lines, one for each thing that is wrong
};

template <class T>
using Outcome = tl::expected<T, Failure>;

inline tl::unexpected<Failure> Fail(ExitCode code, std::string message) {
  return tl::unexpected<Failure>(Failure{code, std::move(message)});
}

}  // namespace ringmaster::cli
