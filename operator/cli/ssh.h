// Runs commands on other machines with this machine's `ssh`: its configuration, keys and agent. It
// never prompts: if ssh would have to, the command fails.
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

// Most bytes kept of a command's output, and of its error output.
inline constexpr size_t kMostOutput = 64 * 1024;

struct SshAnswer {
  int code = 0;  // exit code of the script; 255 is mostly ssh's own
  std::string out, error;
};

// Quotes a text so that it is one word for a POSIX shell whatever it contains, and for csh and fish
// if it is one line: csh ends what is quoted with the line.
std::string Quoted(const std::string& text);

// The words that run a POSIX shell script on `host`; if that is empty, on this machine without ssh.
// The script is one line, because the user's shell there, which may be csh, hands it on.
std::vector<std::string> SshWords(const SshOptions& options, const std::string& host,
                                  const std::string& script);

// What a person would type to run `command` there, with the same port and key.
std::string SshLine(const SshOptions& options, const std::string& host, const std::string& command);

// The error of ssh will not change until a person acts: the host key differs, the login is refused,
// or the host doesn't exist.
bool StaysSo(const std::string& said);

// Runs the words, with `input` as standard input. Fails if they can't be run, or have not ended
// after `patience` or when `stop` is requested; the failure doesn't name the host.
Outcome<SshAnswer> Do(const std::vector<std::string>& words, const std::filesystem::path& input,
                      std::chrono::milliseconds patience, const std::stop_token& stop = {});

}  // namespace ringmaster::cli
