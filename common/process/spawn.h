// Starts a process in a process group of its own, so that it can be ended together with the
// processes that it starts.
//
// Thread rule: any thread. But a thread that asks for a parent death signal must live as long as
// the process may, because the kernel sends the signal when the thread that forked ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ringmaster::process {

struct SpawnSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // NAME=value
  bool search_path = true;       // look for argv[0] in our own PATH; false: argv[0] is a path
  std::string working_dir;       // empty: ours
  int output = -1, error = -1;   // files for its standard output and error; -1: ours
  // True: the process inherits no other file of ours, and no signal that we ignore. False: only
  // SIGPIPE is reset.
  bool isolated = false;
  int parent_death_signal = 0;  // 0: the process outlives us
};

struct SpawnResult {
  pid_t pid = -1;
  int error = 0;     // an errno where pid is -1
  std::string step;  // what failed: "pipe", "fork", "open /dev/null", "dup2", "working directory",
                     // "exec"
};

// The process's standard input is /dev/null, and no signal is blocked in it. Returns when the
// program runs, or when it could not be started.
SpawnResult Spawn(const SpawnSpec& spec);

}  // namespace ringmaster::process
