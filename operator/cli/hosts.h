// The machines of `run --hosts` as users name them, and the placement of a job's pods on them.
//
// Pure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

struct Host {
  std::string name;  // as ssh accepts it: a name of ~/.ssh/config, USER@NAME, an address
  int slots = 1;     // most workers at a time
};

struct SshOptions {
  int port = 0;                         // 0: ssh's own choice
  std::filesystem::path identity_file;  // empty: ssh's own choice
};

// Parses "a:2,user@b:4": hosts with their slots, one slot if there is no number.
Outcome<std::vector<Host>> ParseHosts(const std::string& text);

// Parses the output of a discovery script: lines HOST or HOST:SLOTS. `slots` is for lines without a
// number. If a host is named twice the last line counts; a host with 0 slots is omitted.
Outcome<std::vector<Host>> ParseHostLines(const std::string& text, int slots);

int SlotsOf(const std::vector<Host>& hosts);

// The host's name in the cluster, a valid Node name. `index` makes it unique.
std::string NodeNameOf(const Host& host, int index);

// The pods that hold the workers of a command.
struct Layout {
  int slots_per_pod = 1;
  int pods = 1;                   // at the start
  std::vector<int> pods_of_host;  // the most pods at a time; 0: the host is not needed
};

// Places `np` workers, on the first hosts first. Uses as few pods as possible, given that all have
// the same size, because the workers of one pod are those of one machine to each other
// (local_rank). `elastic`: one pod per worker, and all slots of a host may be used. There must be
// at least `np` slots.
Layout LayOut(const std::vector<Host>& hosts, int np, bool elastic);

}  // namespace ringmaster::cli
