// The addresses by which the machines of a run reach each other. A loopback address (Debian's
// /etc/hosts gives 127.0.1.1 to a machine's own name) is for runs that stay on this machine.
//
// Pure. Thread rule: values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/cli/machine.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

// Of IPv4, of IPv6, or the one written as the other.
bool IsLoopback(const std::string& address);

// No machine of these is another one than this, under whatever name and user.
bool AllHere(const std::vector<Machine*>& machines);

// Chooses the address by which the other machines reach this one: `wanted`, if it is an address of
// this machine; else the one that the first inspected of the other machines sees. `is_own` says
// whether an address is one of this machine.
Outcome<std::string> ChooseAddress(const std::string& wanted, const std::vector<Machine*>& machines,
                                   const std::function<bool(const std::string&)>& is_own);

// A machine that is this one gets `chosen` as its own address. Fails if another machine can't reach
// that, or has an address that the others can't reach; the failure doesn't name the host.
Outcome<void> GiveAddress(const std::string& chosen, Machine* machine);

}  // namespace ringmaster::cli
