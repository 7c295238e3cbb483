// Waits for the API server when the operator starts, until it answers and knows HorovodJobs, and
// meanwhile reports what is missing.
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
  bool unreachable = false;  // false: it answers, but something has to be set up there
  std::string what;          // for people: the problem and what to do about it
};
// Explains the error of a list of HorovodJobs (`ns` empty: in all namespaces) to whoever runs the
// operator.
ApiProblem ExplainApiError(const kube::Error& error, const std::string& ns);

struct ApiWaitOptions {
  std::vector<std::string> namespaces;         // the watched ones; empty: all
  std::chrono::milliseconds timeout{300'000};  // how long it may be unreachable without a break
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds last_pause{2'000};
  std::chrono::milliseconds say_again{5'000};
  // Called each time the problem changes; empty: it is solved.
  std::function<void(const std::string& what)> on_problem;
};

// Returns when HorovodJobs can be listed. Fails if the API server can't be reached for `timeout`,
// or if `stop` is requested. There is no time limit for what people have to install or allow.
kube::Result<void> WaitForApiServer(kube::KubeApi* api, const ApiWaitOptions& options,
                                    std::stop_token stop);

}  // namespace ringmaster::app
