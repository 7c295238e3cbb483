// Commands on other machines, by the `ssh` of this one: its configuration, its keys, its agent. It
// asks nobody anything; where it would have to, it fails.
//
// Thread rule: Do from any thread; the others are values.
#pragma once

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/cli/hosts.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Of a command, and of what it says of errors; what comes after it is dropped.
inline constexpr size_t kMostOutput = 64 * 1024;

struct SshAnswer {
  int code = 0;  // of the script; 255: of ssh, mostly
  std::string out, error;
};

// For a POSIX shell: one word, whatever is in it.
std::string Quoted(const std::string& text);

// The words that run a script of a POSIX shell on `host`; empty: on this machine, without ssh.
std::vector<std::string> SshWords(const SshOptions& options, const std::string& host,
                                  const std::string& script);

// What a person types for `command` there: the same port and key.
std::string SshLine(const SshOptions& options, const std::string& host, const std::string& command);

// Whether what ssh has said stays so until a person does something: the host is not the one that is
// known, lets nobody in, or doesn't exist.
bool StaysSo(const std::string& said);

// Runs it, with `input` as its standard input. The failure, where it can't be run, has not ended
// after `patience` or when `stop` was requested, doesn't name the host.
Outcome<SshAnswer> Do(const std::vector<std::string>& words, const std::filesystem::path& input,
                      std::chrono::milliseconds patience, const std::stop_token& stop = {});

}  // namespace ringmaster::cli
