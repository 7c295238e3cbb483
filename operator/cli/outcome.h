// The result of a command of `ringmaster`: a value, or a message for people with an exit status.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace ringmaster::cli {

enum class ExitCode : int {
  kDone = 0,
  // The job failed, the cluster refused the request, or it has no job or pod of that name.
  kJobFailed = 1,
  // The command line or a manifest is wrong; also a file, a run or a context that an option names.
  kUsage = 2,
  // A port, a directory, a package: the message says what is missing and how to get it.
  kMachineLacks = 3,
  kInterrupted = 130,
};

struct Failure {
  ExitCode code = ExitCode::kJobFailed;
  std::string message;  // may have several lines, one for each error
};

template <class T>
using Outcome = tl::expected<T, Failure>;

inline tl::unexpected<Failure> Fail(ExitCode code, std::string message) {
  return tl::unexpected<Failure>(Failure{code, std::move(message)});
}

}  // namespace ringmaster::cli
