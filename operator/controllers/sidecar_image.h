// The image of our containers where nobody names another one.
#pragma once

namespace ringmaster::controllers {

inline constexpr char kDefaultSidecarImage[] = "ringmaster.dev/sidecar:latest";

}  // namespace ringmaster::controllers
