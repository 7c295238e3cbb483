// What the client itself needs of the sidecar's frames (docs/contracts.md, section 2); everything
// else in them is for the handler. RM_ERR_INVALID names the field that is wrong, its value and what
// is allowed.
//
// Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "ringmaster/status.h"

namespace ringmaster::sidecar_client {

struct LinkTimes {
  int ping_ms;
  int fence_ms;
};

// Reads the times of a `welcome`. What it doesn't say stays in *times as it is.
Status ReadTimes(const nlohmann::json& welcome, LinkTimes* times);
// Reads which ping a `pong` answers; 0 if it doesn't say.
Status ReadPong(const nlohmann::json& pong, uint64_t* number);

}  // namespace ringmaster::sidecar_client
