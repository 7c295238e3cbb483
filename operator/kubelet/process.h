// Starting and killing the processes of containers.
//
// Thread rule: Spawn from one thread that lives as long as the children may: PR_SET_PDEATHSIG
// follows the thread that forked.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace ringmaster::kubelet {

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0]: a path
  std::vector<std::string> env;   // NAME=value
  std::filesystem::path working_dir;
  std::filesystem::path log;  // stdout and stderr are appended to it
  int parent_death_signal = 9;
};

// The pid of a process that leads a group of its own, or a sentence with what failed (exec
// included).
tl::expected<pid_t, std::string> Spawn(const ProcessSpec& spec);

// As a shell would find it: a name with a slash is a path from `working_dir`, others are looked for
// in `path`.
std::optional<std::filesystem::path> FindProgram(const std::string& name, const std::string& path,
                                                 const std::filesystem::path& working_dir);

// Processes whose environment has exactly this entry ("RINGMASTER_RUN=ab12"): what a container
// started, wherever it went.
std::vector<pid_t> ProcessesWithEntry(std::string_view entry);

// SIGKILL to the group of `leader` (0: none) and to every process with the entry, until none is
// left.
void KillAll(pid_t leader, std::string_view entry);

// Waits for ended members of the group that were orphaned to us, but not for its leader.
void ReapGroup(pid_t leader);

}  // namespace ringmaster::kubelet
