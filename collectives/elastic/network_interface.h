// Finds where a process listens: the address of a network interface that a variable names as
// NCCL_SOCKET_IFNAME does, and addresses with a port.
#pragma once

#include <string>

#include "ringmaster/status.h"

namespace ringmaster::elastic {

// "fd00::1" and "[fd00::1]" are IPv6; everything without a colon is IPv4.
enum class AddressFamily { kIpv4, kIpv6 };
AddressFamily FamilyOf(const std::string& host);

// `host` with port 0, which stands for any free port: "10.0.0.1:0", "[fd00::1]:0".
std::string FreePortOf(const std::string& host);

// `choice`: prefixes of interface names, separated by commas ("eth,ib"). After `=` they are whole
// names; after `^` they are excluded ("^docker"), and so is the loopback. *out becomes the address
// of the first chosen interface that is up and has an address of `family`; if none has, one of the
// other family. Link-local IPv6 addresses don't count. RM_ERR_INVALID: no interface is chosen; the
// message names those that there are.
Status AddressOfInterface(const std::string& choice, AddressFamily family, std::string* out);

}  // namespace ringmaster::elastic
