// The machines of `run --hosts`, as people name them, and how a job's pods are laid out on them.
//
// Pure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/cli/outcome.h"

namespace ringmaster::cli {

struct Host {
  std::string name;  // as ssh takes it: a name of ~/.ssh/config, USER@NAME, an address
  int slots = 1;     // workers at a time
};

struct SshOptions {
  int port = 0;                         // 0: ssh's own choice
  std::filesystem::path identity_file;  // empty: ssh's own choice
};

// "a:2,user@b:4": each with its slots; without a number it has one.
Outcome<std::vector<Host>> ParseHosts(const std::string& text);

// What a discovery script prints: a line HOST or HOST:SLOTS each. `slots`: of a host without a
// number. Of a host that is named twice the last line counts, and one with 0 slots is not there.
Outcome<std::vector<Host>> ParseHostLines(const std::string& text, int slots);

int SlotsOf(const std::vector<Host>& hosts);

// What the cluster calls the host: a name of a Node. `index` makes it unique among all.
std::string NodeNameOf(const Host& host, int index);

// Which pods make up the workers of a command.
struct Layout {
  int slots_per_pod = 1;
  int pods = 1;                   // to begin with
  std::vector<int> pods_of_host;  // at most, at a time; 0: the host is not needed
};

// `np` workers, the first hosts first. As few pods as there can be where all of them have to be of
// one size, for the workers of a pod know each other as those of one machine (local_rank).
// `elastic`: a pod for each worker, and every slot of a host may be used. At least `np` slots.
Layout LayOut(const std::vector<Host>& hosts, int np, bool elastic);

}  // namespace ringmaster::cli
