// The image of our containers where nobody names another one.
#pragma once

namespace ringmaster::api {

inline constexpr char kDefaultSidecarImage[] = "ringmaster.dev/sidecar:latest";

}  // namespace ringmaster::api
