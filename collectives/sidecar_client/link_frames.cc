#include "collectives/sidecar_client/link_frames.h"

#include <nlohmann/json.hpp>

#include "common/fields/reader.h"

namespace ringmaster::sidecar_client {
namespace {

Status StatusOf(const fields::Reader& reader) {
  return reader.ok() ? Status() : Status(RM_ERR_INVALID, reader.error());
}

}  // namespace

Status ReadTimes(const nlohmann::json& welcome, LinkTimes* times) {
  fields::Reader reader(welcome, "welcome");
  reader.Unsigned("pingMs", &times->ping_ms, false);
  reader.Unsigned("fenceMs", &times->fence_ms, false);
  return StatusOf(reader);
}

Status ReadPong(const nlohmann::json& pong, uint64_t* number) {
  *number = 0;
  fields::Reader reader(pong, "pong");
  reader.Unsigned("n", number, false);
  return StatusOf(reader);
}

}  // namespace ringmaster::sidecar_client
