#include "operator/cli/run_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>

namespace ringmaster::cli {
namespace {

bool IsHere(const Machine& machine) { return machine.here || machine.same_network; }

// The machine whose sight of this one counts: one behind a tunnel, which sees a loopback address,
// only where no other is there. Null: all are this machine.
const Machine* FirstElsewhere(const std::vector<Machine*>& machines) {
  const Machine* first = nullptr;
  for (const Machine* machine : machines) {
    if (IsHere(*machine)) continue;
    if (!IsLoopback(machine->seen_from)) return machine;
    if (first == nullptr) first = machine;
  }
  return first;
}

}  // namespace

bool IsLoopback(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, address.c_str(), &four) == 1)
    return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
  if (inet_pton(AF_INET6, address.c_str(), &six) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&six) ||
         (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == IN_LOOPBACKNET);
}

bool AllHere(const std::vector<Machine*>& machines) {
  return std::all_of(machines.begin(), machines.end(),
                     [](const Machine* machine) { return IsHere(*machine); });
}

Outcome<std::string> ChooseAddress(const std::string& wanted, const std::vector<Machine*>& machines,
                                   const std::function<bool(const std::string&)>& is_own) {
  const Machine* other = FirstElsewhere(machines);
  if (!wanted.empty()) {
    if (!is_own(wanted))
      return Fail(ExitCode::kUsage,
                  fmt::format("--address {} is no IPv4 address of this machine", wanted));
    if (other != nullptr && IsLoopback(wanted))
      return Fail(ExitCode::kUsage,
                  fmt::format("--address {} is a loopback address, by which host {} can't reach "
                              "this machine",
                              wanted, other->host.name));
    return wanted;
  }
  if (other == nullptr) return "127.0.0.1";
  if (is_own(other->seen_from) && !IsLoopback(other->seen_from)) return other->seen_from;
  return Fail(
      ExitCode::kMachineLacks,
      fmt::format("host {} sees this machine as \"{}\", which is {}: name the one by which "
                  "the hosts reach it with --address",
                  other->host.name, other->seen_from,
                  IsLoopback(other->seen_from) ? "a loopback address" : "none of its addresses"));
}

Outcome<void> GiveAddress(const std::string& chosen, Machine* machine) {
  if (IsHere(*machine)) {
    machine->address = chosen;
    return {};
  }
  if (IsLoopback(chosen))
    return Fail(ExitCode::kMachineLacks,
                fmt::format("the run listens on the loopback address {}, which can't be reached "
                            "from there: start it with --address",
                            chosen));
  if (IsLoopback(machine->address))
    return Fail(ExitCode::kMachineLacks,
                fmt::format("ssh reaches it by its loopback address {} (a tunnel?), by which no "
                            "other machine does: name it by an address that the others reach",
                            machine->address));
  return {};
}

}  // namespace ringmaster::cli
