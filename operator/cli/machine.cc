#include "operator/cli/machine.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

namespace ringmaster::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds kLookTime{60};
constexpr std::chrono::minutes kInstallTime{10};
constexpr std::chrono::seconds kStartTime{60};

// An interface of this machine has the address. Binding a socket to it would not prove that: with
// net.ipv4.ip_nonlocal_bind every address can be bound.
bool HasAddress(in_addr address) {
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

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string KindOfThisMachine() {
  utsname name{};
  uname(&name);
  return std::string(name.sysname) + "/" + name.machine;
}

// Identifies the network whose loopback addresses are those of this process: the start of the
// kernel, and the network namespace, because a container is no other machine to the kernel. Empty:
// it isn't known.
constexpr const char* kNetworkCommand =
    "b=$(cat /proc/sys/kernel/random/boot_id) && n=$(readlink /proc/self/ns/net) && echo "
    "ringmaster-network \"$b $n\"";

std::string OwnNetwork() {
  std::error_code error;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const fs::path network = fs::read_symlink("/proc/self/ns/net", error);
  return boot.empty() || error ? "" : boot + " " + network.string();
}

// What follows the last line of `text` that begins with `mark` and a space, because a shell's start
// files may print text, too.
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

tl::unexpected<Failure> NodeLacks(const SshAnswer& answer) {
  return Lacks(
      Words(answer.error, fmt::format("`ringmaster node` ended with exit status {}", answer.code)));
}

std::string LookScript(const std::string& key, const fs::path& work_dir) {
  return fmt::format(
      "echo ringmaster-from \"$SSH_CONNECTION\"; echo ringmaster-machine \"$(uname -s)/$(uname "
      "-m)\"; d=\"${{XDG_CACHE_HOME:-$HOME/.cache}}/ringmaster/{}\"; echo ringmaster-programs "
      "\"$d\"; [ -x \"$d/bin/ringmaster\" ] && echo ringmaster-has programs; cd {} && echo "
      "ringmaster-has directory; {}; exit 0",
      key, Quoted(work_dir.string()), kNetworkCommand);
}

}  // namespace

bool IsOwnAddress(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 && HasAddress(address);
}

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
    if (!HasAddress(reinterpret_cast<const sockaddr_in*>(one->ai_addr)->sin_addr)) return false;
  }
  return true;
}

std::string OwnAddress() {
  // Nothing is sent: connecting a datagram socket only looks up the route. The address is one that
  // is reserved for documentation.
  sockaddr_in far{};
  far.sin_family = AF_INET;
  far.sin_port = htons(9);
  inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);
  sockaddr_in own{};
  socklen_t size = sizeof own;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool found = fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&far), sizeof far) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  if (fd >= 0) close(fd);
  char text[INET_ADDRSTRLEN] = "127.0.0.1";
  if (found) {
    inet_ntop(AF_INET, &own.sin_addr, text, sizeof text);
    return text;
  }
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return text;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    break;
  }
  return text;
}

Machine MachineOf(const Host& host, int pods, int index) {
  return {.host = host,
          .node = NodeNameOf(host, index),
          .pods = pods,
          .here = IsThisMachine(host.name)};
}

MachineSetup::MachineSetup(const MachineOptions& options, std::stop_token stop)
    : options_(options), stop_(std::move(stop)) {}

MachineSetup::~MachineSetup() {
  const sync::MutexLock lock(&mu_);
  std::error_code ignored;
  if (programs_ && !programs_->archive.empty()) fs::remove(programs_->archive, ignored);
}

Outcome<SshAnswer> MachineSetup::Ask(const Machine& machine, const std::string& script,
                                     const fs::path& input, std::chrono::milliseconds patience) {
  return Do(SshWords(options_.ssh, machine.here ? "" : machine.host.name, script), input, patience,
            stop_);
}

// Identifies the programs that other machines need. They are looked for at the first use.
Outcome<std::string> MachineSetup::Key() {
  const sync::MutexLock lock(&mu_);
  if (!programs_) {
    auto files = FindProgramFiles(options_.bin_dir);
    if (!files) return tl::unexpected(files.error());
    programs_ = Programs{*files, KeyOf(*files), {}};
  }
  return programs_->key;
}

Outcome<fs::path> MachineSetup::Archive() {
  const sync::MutexLock lock(&mu_);
  if (!programs_->archive.empty()) return programs_->archive;
  const fs::path archive = options_.run_dir / "programs.tar";  // run_files.h knows its names
  if (auto packed = WriteArchive(programs_->files, archive, stop_); !packed)
    return tl::unexpected(packed.error());
  programs_->archive = archive;
  return archive;
}

Outcome<void> MachineSetup::Look(Machine* machine) {
  if (machine->here) {
    machine->programs = options_.bin_dir.parent_path();
    machine->has_programs = true;
    return {};
  }
  const auto key = Key();
  if (!key) return tl::unexpected(key.error());
  auto answer = Ask(*machine, LookScript(*key, options_.work_dir), "", kLookTime);
  if (!answer) return tl::unexpected(answer.error());
  const std::string kind = After(answer->out, "ringmaster-machine");
  if (answer->code != 0 || kind.empty()) {
    return Lacks(fmt::format("ssh can't run a command there: {}",
                             Words(answer->error, fmt::format("exit status {}", answer->code))));
  }
  if (kind != KindOfThisMachine())
    return Lacks(
        fmt::format("is a {} machine, and this one is {}: programs of this one don't run "
                    "there",
                    kind, KindOfThisMachine()));
  if (answer->out.find("ringmaster-has directory\n") == std::string::npos) {
    return Lacks(
        fmt::format("there is no directory {}: the command's script and data have to be "
                    "at the same path on every machine",
                    options_.work_dir.string()));
  }
  std::istringstream connection(After(answer->out, "ringmaster-from"));
  std::string port;
  connection >> machine->seen_from >> port >> machine->address;
  const std::string network = After(answer->out, "ringmaster-network");
  machine->same_network = !network.empty() && network == OwnNetwork();
  machine->programs = After(answer->out, "ringmaster-programs");
  machine->has_programs = answer->out.find("ringmaster-has programs\n") != std::string::npos;
  return {};
}

Outcome<void> MachineSetup::Install(Machine* machine) {
  if (machine->has_programs) return {};
  const auto archive = Archive();
  if (!archive) return tl::unexpected(archive.error());
  auto answer = Ask(*machine, InstallScript(machine->programs), *archive, kInstallTime);
  if (!answer) return tl::unexpected(answer.error());
  machine->has_programs = answer->code == 0;
  if (machine->has_programs) return {};
  return Lacks(fmt::format("the programs, brought to {}, don't run there: {}",
                           machine->programs.string(),
                           Words(answer->error, fmt::format("exit status {}", answer->code))));
}

Outcome<SshAnswer> MachineSetup::AskForNode(const Machine& machine, const std::string& more,
                                            const fs::path& kubeconfig) {
  const fs::path program =
      machine.here ? options_.bin_dir / "ringmaster" : machine.programs / "bin/ringmaster";
  const std::string script = fmt::format(
      "exec {} node --kubeconfig - --node-name {} --address {} --pods {} --abandon-after {} "
      "--detach{}",
      Quoted(program.string()), machine.node, Quoted(machine.address), machine.pods,
      (machine.here ? options_.abandon_after_here : options_.abandon_after).count(), more);
  return Ask(machine, script, kubeconfig, kStartTime);
}

Outcome<void> MachineSetup::StartNode(Machine* machine, const fs::path& kubeconfig) {
  auto answer = AskForNode(*machine, "", kubeconfig);
  if (!answer) return tl::unexpected(answer.error());
  machine->pid = std::atoi(After(answer->out, "ready").c_str());
  if (answer->code == 0 && machine->pid > 0) return {};
  return NodeLacks(*answer);
}

Outcome<MachineSetup::Revival> MachineSetup::StartNodeAgain(Machine* machine,
                                                            const fs::path& kubeconfig) {
  auto answer = AskForNode(*machine, " --again", kubeconfig);
  if (!answer) return tl::unexpected(answer.error());
  const int started = std::atoi(After(answer->out, "ready").c_str());
  const int ran = std::atoi(After(answer->out, "runs").c_str());
  if (answer->code != 0 || (started == 0 && ran == 0)) return NodeLacks(*answer);
  machine->pid = started > 0 ? started : ran;
  return started > 0 ? Revival::kStarted : Revival::kRanAllTheTime;
}

std::string MachineSetup::EndByHand(const Machine& machine) const {
  const std::string command = fmt::format("kill {}", machine.pid);
  return machine.here ? command : SshLine(options_.ssh, machine.host.name, command);
}

}  // namespace ringmaster::cli
