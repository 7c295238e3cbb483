// What the machine's settings of NCCL say, which NCCL takes before anything that a program asks
// for.
//
// Thread rule: any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace ringmaster::nccl {

// The value of a variable of the environment; no value: there is none.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// Why all communicators are blocking, whatever is asked for: NCCL_COMM_BLOCKING is 1 in the
// environment or in a file of NCCL's (NCCL_CONF_FILE, else ~/.nccl.conf; /etc/nccl.conf). No value:
// they aren't. A call on such a communicator may never return, and can't be given up.
std::optional<std::string> WhyBlocking(const Environment& environment);

}  // namespace ringmaster::nccl
