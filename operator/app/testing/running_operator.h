// A ringmaster-operator process for tests: started with flags and environment, observed by its
// endpoints and its log, and always stopped at the end.
//
// Thread rule: one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/until.h"

namespace ringmaster::app {

class RunningOperator {
 public:
  struct Options {
    std::string name;                // name of its log file
    std::filesystem::path dir;       // for its log
    std::vector<std::string> flags;  // in addition to --health-listen and --metrics-listen
    std::map<std::string, std::string> env;
    std::filesystem::path program;  // empty: the one of this build
  };
  explicit RunningOperator(const Options& options);
  ~RunningOperator();  // SIGKILL
  RunningOperator(const RunningOperator&) = delete;

  void Signal(int signal);
  // The exit code, 128+n for signal n; nullopt if it still runs.
  std::optional<int> Exited(std::chrono::milliseconds patience = support::kPatience);
  bool running();
  pid_t pid() const { return pid_; }

  struct Answer {
    int status = 0;  // 0: no answer
    std::string body;
  };
  Answer Get(const std::string& path);
  bool Ready() { return Get("/readyz").status == 200; }
  // The value of a series, with its labels as served; nullopt if there is none.
  std::optional<double> Metric(const std::string& series);
  // The sum over all series that begin with `name` and contain all of `parts`.
  double Sum(const std::string& name, const std::vector<std::string>& parts = {});
  std::string Log() const;

 private:
  int Port();

  const std::filesystem::path log_;
  pid_t pid_ = -1;
  int port_ = 0;  // of both endpoints; 0: unknown yet
  std::optional<int> exit_code_;
};

}  // namespace ringmaster::app
