#include "operator/cli/host_script.h"

#include <fmt/format.h>

#include <chrono>

#include "operator/cli/ssh.h"

namespace ringmaster::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds kPatience{60};
// A shell's exit codes for a program that can't be run, or that doesn't exist.
constexpr int kNoProgram = 126, kNotFound = 127;

std::string Resolved(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) ? fs::absolute(path, error).string() : path.string();
}

// The shell's error about a program that it can't start, without its own name.
std::string WithoutShell(const std::string& error) {
  const std::string mark = "exec: ";
  const size_t at = error.find(mark);
  return at == std::string::npos ? error : error.substr(at + mark.size());
}

}  // namespace

HostScript::HostScript(const fs::path& path, int slots) : path_(Resolved(path)), slots_(slots) {}

tl::unexpected<Failure> HostScript::Wrong(const std::string& why) const {
  return Fail(ExitCode::kUsage, fmt::format("--host-discovery-script {}: {}", path_, why));
}

Outcome<std::vector<Host>> HostScript::Ask(const std::stop_token& stop) const {
  const auto answer = Do({path_}, "", kPatience, stop);
  if (!answer) return Wrong(answer.error().message);
  const std::string error = answer->error.substr(0, answer->error.find_last_not_of("\r\n") + 1);
  if (answer->code == kNoProgram || answer->code == kNotFound)
    return Wrong("can't be run: " + WithoutShell(error));
  if (answer->code != 0)
    return Wrong(fmt::format("ended with exit code {}: {}", answer->code,
                             error.empty() ? "no message" : error));
  if (answer->out.size() >= kMostOutput)
    return Wrong(fmt::format("has printed more than {} bytes", kMostOutput));
  auto hosts = ParseHostLines(answer->out, slots_);
  if (!hosts) return Wrong(hosts.error().message);
  return hosts;
}

}  // namespace ringmaster::cli
