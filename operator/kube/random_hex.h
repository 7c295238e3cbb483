// Random digits for a bearer token or an id that nobody may guess.
//
// Thread rule: any thread.
#pragma once

#include <string>

namespace ringmaster::kube {

// Two digits for each of the random bytes.
std::string RandomHex(int bytes);

}  // namespace ringmaster::kube
