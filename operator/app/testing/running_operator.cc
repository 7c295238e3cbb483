#include "operator/app/testing/running_operator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <sstream>

extern char** environ;

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using support::Until;

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Our own environment, without variables that a test machine may have.
std::vector<std::string> Environment(const std::map<std::string, std::string>& more) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("POD_") && !text.starts_with("KUBE")) entries.emplace_back(text);
  }
  for (const auto& [name, value] : more) entries.push_back(name + "=" + value);
  return entries;
}

}  // namespace

RunningOperator::RunningOperator(const Options& options)
    : log_(options.dir / (options.name + ".log")) {
  const std::string program = options.program.empty() ? OPERATOR_BINARY : options.program.string();
  std::vector<std::string> arguments = {program, "--health-listen", "127.0.0.1:0",
                                        "--metrics-listen", "127.0.0.1:0"};
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  std::vector<std::string> entries = Environment(options.env);
  const auto argv = Pointers(arguments);
  const auto envp = Pointers(entries);
  const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execve(program.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  close(log);
}

RunningOperator::~RunningOperator() {
  if (running()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (testing::Test::HasFailure()) {
    std::cerr << "---- " << log_.filename().string() << "\n" << Log();
  }
}

void RunningOperator::Signal(int signal) {
  if (running()) kill(pid_, signal);
}

bool RunningOperator::running() {
  if (exit_code_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

std::optional<int> RunningOperator::Exited(milliseconds patience) {
  Until([this] { return !running(); }, patience);
  return exit_code_;
}

std::string RunningOperator::Log() const {
  std::ifstream file(log_);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int RunningOperator::Port() {
  if (port_ != 0) return port_;
  Until([this] {
    const std::string log = Log();
    std::size_t at = log.find("port=");  // or, as JSON, "port":
    if (at == std::string::npos) at = log.find("port\":");
    if (at == std::string::npos || log.find('\n', at) == std::string::npos) return !running();
    at = log.find_first_of("0123456789", at);
    port_ = std::atoi(log.c_str() + at);
    return true;
  });
  return port_;
}

RunningOperator::Answer RunningOperator::Get(const std::string& path) {
  if (!running()) return {};
  httplib::Client client("127.0.0.1", Port());
  client.set_connection_timeout(5);
  client.set_read_timeout(10);
  const auto answer = client.Get(path);
  return answer ? Answer{answer->status, answer->body} : Answer{};
}

std::optional<double> RunningOperator::Metric(const std::string& series) {
  std::istringstream text(Get("/metrics").body);
  for (std::string line; std::getline(text, line);) {
    if (line.rfind(series + " ", 0) == 0) return std::stod(line.substr(series.size() + 1));
  }
  return std::nullopt;
}

double RunningOperator::Sum(const std::string& name, const std::vector<std::string>& parts) {
  double sum = 0;
  std::istringstream text(Get("/metrics").body);
  for (std::string line; std::getline(text, line);) {
    bool fits = line.rfind(name, 0) == 0;
    for (const std::string& part : parts) fits = fits && line.find(part) != std::string::npos;
    if (fits) sum += std::stod(line.substr(line.rfind(' ') + 1));
  }
  return sum;
}

}  // namespace ringmaster::app
