// What the launcher does when a worker process ends, by the rules of spec.failurePolicy
// (common/failure_policy) that the operator hands it in the environment.
//
// Pure.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "common/failure_policy/failure_policy.h"

namespace ringmaster::launcher {

struct ExitDecision {
  failure_policy::Action action;
  std::string reason;  // for logs and for the `exited` frame's message
};

// Parses RINGMASTER_FAILURE_POLICY; empty text: no rules. Only rules about exit codes are the
// launcher's; rules about pod reasons (Evicted, ...) are the operator's. The error names the field,
// the value and what is allowed.
tl::expected<std::vector<failure_policy::Rule>, std::string> ParseFailurePolicy(
    const std::string& text);

// `exit_code` is 128+n for signal n.
ExitDecision DecideOnExit(const std::vector<failure_policy::Rule>& rules, int exit_code);

}  // namespace ringmaster::launcher
