#include "operator/cli/machines.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <thread>

#include "operator/cli/program_files.h"

namespace ringmaster::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds kLookTime{60};
constexpr std::chrono::minutes kInstallTime{10};
constexpr std::chrono::seconds kStartTime{60};

// Whether an interface of this machine has the address. To bind a socket to it says less: with
// net.ipv4.ip_nonlocal_bind every address can be bound.
bool IsOwnAddress(in_addr address) {
  if (ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET) return true;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const auto* own = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (own->sin_addr.s_addr == address.s_addr) return true;
  }
  return false;
}

bool IsOwnAddress(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 && IsOwnAddress(address);
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string Machine() {
  utsname name{};
  uname(&name);
  return std::string(name.sysname) + "/" + name.machine;
}

// What follows the last line of `text` that begins with `mark` and a space; a shell's start files
// may print things, too.
std::string After(const std::string& text, const std::string& mark) {
  std::istringstream lines(text);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(mark + " ")) found = line.substr(mark.size() + 1);
  }
  return found;
}

std::string Words(std::string text, const std::string& otherwise) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.empty() ? otherwise : text;
}

tl::unexpected<Failure> Lacks(const std::string& why) { return Fail(ExitCode::kMachineLacks, why); }

std::string LookScript(const std::string& key, const fs::path& work_dir) {
  return fmt::format(
      "echo ringmaster-from \"$SSH_CONNECTION\"; echo ringmaster-machine \"$(uname -s)/$(uname "
      "-m)\"; d=\"${{XDG_CACHE_HOME:-$HOME/.cache}}/ringmaster/{}\"; echo ringmaster-programs "
      "\"$d\"; [ -x \"$d/bin/ringmaster\" ] && echo ringmaster-has programs; cd {} && echo "
      "ringmaster-has directory; exit 0",
      key, Quoted(work_dir.string()));
}

}  // namespace

bool IsThisMachine(const std::string& host) {
  const std::string own = HostName();
  if (host == "localhost" || host == own || host == own.substr(0, own.find('.'))) return true;
  if (host.find('@') != std::string::npos) return false;  // another user
  addrinfo hints{};
  hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (!IsOwnAddress(reinterpret_cast<const sockaddr_in*>(one->ai_addr)->sin_addr)) return false;
  }
  return true;
}

Machines::Machines(const MachinesOptions& options, const std::vector<Host>& hosts,
                   const std::vector<int>& pods)
    : options_(options) {
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (pods[i] == 0) continue;
    machines_.push_back({.host = hosts[i],
                         .node = NodeNameOf(hosts[i], static_cast<int>(i)),
                         .pods = pods[i],
                         .here = IsThisMachine(hosts[i].name)});
  }
}

Outcome<void> Machines::OnEach(const std::function<Outcome<void>(Machine*)>& work) {
  std::vector<Outcome<void>> outcomes(machines_.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < machines_.size(); ++i)
      threads.emplace_back([&, i] { outcomes[i] = work(&machines_[i]); });
  }
  Failure all;
  for (size_t i = 0; i < machines_.size(); ++i) {
    if (outcomes[i]) continue;
    all.code = outcomes[i].error().code;
    all.message += fmt::format("{}host {}: {}", all.message.empty() ? "" : "\n",
                               machines_[i].host.name, outcomes[i].error().message);
  }
  if (all.message.empty()) return {};
  return tl::unexpected(all);
}

Outcome<SshAnswer> Machines::Ask(const Machine& machine, const std::string& script,
                                 const fs::path& input, std::chrono::milliseconds patience) {
  return Do(SshWords(options_.ssh, machine.here ? "" : machine.host.name, script), input, patience);
}

Outcome<void> Machines::Look(Machine* machine, const std::string& key) {
  if (machine->here) {
    machine->programs = options_.bin_dir.parent_path();
    machine->has_programs = true;
    return {};
  }
  auto answer = Ask(*machine, LookScript(key, options_.work_dir), "", kLookTime);
  if (!answer) return tl::unexpected(answer.error());
  const std::string kind = After(answer->out, "ringmaster-machine");
  if (answer->code != 0 || kind.empty()) {
    return Lacks(fmt::format("ssh can't run a command there: {}",
                             Words(answer->error, fmt::format("exit status {}", answer->code))));
  }
  if (kind != cli::Machine())
    return Lacks(
        fmt::format("is a {} machine, and this one is {}: programs of this one don't run "
                    "there",
                    kind, cli::Machine()));
  if (answer->out.find("ringmaster-has directory\n") == std::string::npos) {
    return Lacks(
        fmt::format("there is no directory {}: the command's script and data have to be "
                    "at the same path on every machine",
                    options_.work_dir.string()));
  }
  std::istringstream connection(After(answer->out, "ringmaster-from"));
  std::string port;
  connection >> machine->seen_from >> port >> machine->address;
  machine->programs = After(answer->out, "ringmaster-programs");
  machine->has_programs = answer->out.find("ringmaster-has programs\n") != std::string::npos;
  return {};
}

Outcome<void> Machines::Install(Machine* machine, const fs::path& archive) {
  if (machine->has_programs) return {};
  auto answer = Ask(*machine, InstallScript(machine->programs), archive, kInstallTime);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->code == 0) return {};
  return Lacks(fmt::format("the programs, brought to {}, don't run there: {}",
                           machine->programs.string(),
                           Words(answer->error, fmt::format("exit status {}", answer->code))));
}

Outcome<void> Machines::ChooseAddress() {
  address_ = options_.address;
  for (const Machine& machine : machines_)
    if (address_.empty() && !machine.here) address_ = machine.seen_from;
  const bool alone = std::all_of(machines_.begin(), machines_.end(),
                                 [](const Machine& machine) { return machine.here; });
  if (address_.empty() && alone) address_ = "127.0.0.1";
  if (IsOwnAddress(address_)) {
    for (Machine& machine : machines_)
      if (machine.here) machine.address = address_;
    return {};
  }
  if (!options_.address.empty())
    return Fail(ExitCode::kUsage,
                fmt::format("--address {} is no IPv4 address of this machine", options_.address));
  return Lacks(
      fmt::format("the first host sees this machine as \"{}\", which is none of its "
                  "addresses: name the one by which the hosts reach it with --address",
                  address_));
}

Outcome<void> Machines::Prepare(const std::function<void(const std::string&)>& say) {
  const auto files = FindProgramFiles(options_.bin_dir);
  if (!files) return tl::unexpected(files.error());
  const std::string key = KeyOf(*files);
  if (auto looked = OnEach([&](Machine* machine) { return Look(machine, key); }); !looked)
    return looked;
  if (auto chosen = ChooseAddress(); !chosen) return chosen;
  std::string lacking;
  for (const Machine& machine : machines_)
    if (!machine.has_programs) lacking += (lacking.empty() ? "" : ", ") + machine.host.name;
  if (lacking.empty()) return {};
  say("bringing the programs to " + lacking);
  const fs::path archive = options_.run_dir / "programs.tar";
  if (auto packed = WriteArchive(*files, archive); !packed) return packed;
  auto installed = OnEach([&](Machine* machine) { return Install(machine, archive); });
  std::error_code ignored;
  fs::remove(archive, ignored);
  return installed;
}

Outcome<void> Machines::StartNode(Machine* machine, const fs::path& kubeconfig) {
  const fs::path program =
      machine->here ? options_.bin_dir / "ringmaster" : machine->programs / "bin/ringmaster";
  const std::string script = fmt::format(
      "exec {} node --kubeconfig - --node-name {} --address {} --pods {} --abandon-after {} "
      "--detach",
      Quoted(program.string()), machine->node, Quoted(machine->address), machine->pods,
      options_.abandon_after.count());
  auto answer = Ask(*machine, script, kubeconfig, kStartTime);
  if (!answer) return tl::unexpected(answer.error());
  const std::string ready = After(answer->out, "ready");
  machine->pid = std::atoi(ready.c_str());
  if (answer->code == 0 && machine->pid > 0) return {};
  return Lacks(Words(answer->error,
                     fmt::format("`ringmaster node` ended with exit status {}", answer->code)));
}

Outcome<void> Machines::StartNodes(const fs::path& kubeconfig) {
  return OnEach([&](Machine* machine) { return StartNode(machine, kubeconfig); });
}

std::string Machines::EndByHand(const std::string& node) const {
  for (const Machine& machine : machines_) {
    if (machine.node != node || machine.pid == 0) continue;
    return machine.here
               ? fmt::format("kill {}", machine.pid)
               : SshLine(options_.ssh, machine.host.name, fmt::format("kill {}", machine.pid));
  }
  return "";
}

}  // namespace ringmaster::cli
