// Starts worker processes, and finds and kills all that descend from them: the only file of the
// launcher that reads /proc.
//
// Thread rule: the launcher's one thread.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace ringmaster::launcher {

// Marks in its environment which worker a process descends from: a data-loader child that outlives
// its parent becomes a child of the launcher (a subreaper), and only this tells which worker
// started it.
inline constexpr char kFamilyVariable[] = "RINGMASTER_PROCESS";

// `base` and `extra` (NAME=value), which replaces what `base` says.
std::vector<std::string> MergeEnvironment(const std::vector<std::string>& base,
                                          const std::vector<std::string>& extra);

struct StartedProcess {
  pid_t pid = -1;
  std::string error;     // why not, e.g. the command does not exist
  int error_number = 0;  // the errno of that
};

// Starts `command` in a process group of its own that dies with the launcher. `family` goes into
// kFamilyVariable; `extra` (NAME=value) replaces what `environment` says; `output` and `error` are
// its files, -1: ours.
StartedProcess StartProcess(const std::vector<std::string>& command,
                            const std::vector<std::string>& environment,
                            const std::vector<std::string>& extra, int family, int output,
                            int error);

// As in /proc/PID/stat: 'T' where a signal stopped it, 't' where a debugger holds it; 'X' if there
// is no such process.
char StateOfProcess(pid_t pid);

// SIGKILLs the descendants of this process that belong to no living worker: neither below one of
// `workers` nor of one of `families`. Of some it can't be told who started them (a daemon with an
// environment of its own, one that may not be looked at): `unmarked` says whether they go, too.
// Returns how many it found; until a later call finds none, some may still be dying or have forked.
int KillStrays(const std::set<pid_t>& workers, const std::set<int>& families, bool unmarked);

// SIGKILLs every descendant and reaps until none is left, or for two seconds.
void KillEverything();

}  // namespace ringmaster::launcher
