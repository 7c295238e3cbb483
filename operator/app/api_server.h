// The API server at the start of the operator: waits until it is there and knows HorovodJobs, and
// says what is missing meanwhile.
//
// Thread rule: one thread.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::app {

struct ApiProblem {
  bool unreachable = false;  // else it answers, but something has to be done there
  std::string what;          // for people: what is wrong and what to do
};
// What the error of a list of HorovodJobs (`ns` empty: of all namespaces) means for who runs the
// operator.
ApiProblem ExplainApiError(const kube::Error& error, const std::string& ns);

struct ApiWaitOptions {
  std::vector<std::string> namespaces;         // that are watched; empty: all
  std::chrono::milliseconds timeout{300'000};  // unreachable for so long, without a break
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds last_pause{2'000};
  std::chrono::milliseconds say_again{5'000};
  // Told each time that something else is wrong; empty: nothing any more.
  std::function<void(const std::string& what)> on_problem;
};

// Ok when HorovodJobs can be listed. An error when the API server could not be reached for
// `timeout`, or `stop` was requested. What somebody has to install or allow is waited for without a
// limit.
kube::Result<void> WaitForApiServer(kube::KubeApi* api, const ApiWaitOptions& options,
                                    std::stop_token stop);

}  // namespace ringmaster::app
