// Runs a credential plugin (client.authentication.k8s.io) and reads its answer. The plugin gets no
// terminal and no input, so a person must have logged in beforehand if it needs that.
//
// Thread rule: free functions, safe from any thread; RunExecPlugin blocks up to its deadline.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include "operator/kube/kubeconfig.h"

namespace ringmaster::kube {

struct ExecAnswer {
  std::string token;
  std::string client_cert_pem, client_key_pem;
  std::optional<std::chrono::system_clock::time_point> expires;
};

// The error's message names the program, the error, and the end of the program's stderr. A program
// that still runs at the deadline, or when `stop` is requested, is killed with its children.
Result<ExecAnswer> RunExecPlugin(const ExecPlugin& plugin,
                                 std::chrono::steady_clock::time_point deadline,
                                 std::stop_token stop = {});

// Parses what the program has printed.
Result<ExecAnswer> ReadExecAnswer(const ExecPlugin& plugin, const std::string& text);

// RFC 3339 with fractions and offsets; nullopt for anything else.
std::optional<std::chrono::system_clock::time_point> ParseTimestamp(const std::string& text);

}  // namespace ringmaster::kube
