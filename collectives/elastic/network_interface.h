// The address of a network interface that a variable names, in the way NCCL's does.
#pragma once

#include <string>

#include "ringmaster/status.h"

namespace ringmaster::elastic {

// `choice`: beginnings of names, with commas between them ("eth,ib"); after `=` whole names; after
// `^` those that are not meant ("^docker"), and the loopback isn't either. `out`: the IPv4 address
// of the first interface that is up and meant. RM_ERR_INVALID names those that there are.
Status AddressOfInterface(const std::string& choice, std::string* out);

}  // namespace ringmaster::elastic
