// Where a process listens: the address of a network interface that a variable names, in the way
// NCCL's does, and addresses with a port.
#pragma once

#include <string>

#include "ringmaster/status.h"

namespace ringmaster::elastic {

// "fd00::1" and "[fd00::1]" are IPv6, all without a colon is IPv4.
enum class AddressFamily { kIpv4, kIpv6 };
AddressFamily FamilyOf(const std::string& host);

// A free port of `host`: "10.0.0.1:0", "[fd00::1]:0".
std::string FreePortOf(const std::string& host);

// `choice`: beginnings of names, with commas between them ("eth,ib"); after `=` whole names; after
// `^` those that are not meant ("^docker"), and the loopback isn't either. `out`: the address of
// the first interface that is up, is meant and has one of `family`; if none has, of the other
// family. IPv6 addresses that only neighbours on the same link can reach don't count.
// RM_ERR_INVALID names the interfaces that there are.
Status AddressOfInterface(const std::string& choice, AddressFamily family, std::string* out);

}  // namespace ringmaster::elastic
