// Runs a credential plugin (client.authentication.k8s.io) and reads its answer. It gets no
// terminal and no input: what needs a person to answer must be logged in beforehand.
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

// The error's message names the program, what was wrong, and the last of what it wrote to stderr. A
// program that runs at the deadline, or when `stop` comes, is killed with its children.
Result<ExecAnswer> RunExecPlugin(const ExecPlugin& plugin,
                                 std::chrono::steady_clock::time_point deadline,
                                 std::stop_token stop = {});

// What the program has printed.
Result<ExecAnswer> ReadExecAnswer(const ExecPlugin& plugin, const std::string& text);

// RFC 3339 with fractions and offsets; nullopt: not one.
std::optional<std::chrono::system_clock::time_point> ParseTimestamp(const std::string& text);

}  // namespace ringmaster::kube
