// Is told how the API server answers: the operator's metrics.
//
// Thread rule: called from the thread that made the call, so from any thread and from several at
// once. It must be quick and must not call the API itself.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

namespace ringmaster::kube {

struct Resource;

// One exchange with the server. A call that is repeated (429, an expired token, a read whose
// connection broke) is told once for each time.
struct CallReport {
  // "get", "list", "watch", "create", "update", "patch" (also server-side apply), "delete",
  // "evict", "log".
  std::string_view verb;
  const Resource& resource;
  std::string_view subresource;  // "", "status", "scale"
  int code = 0;                  // HTTP status; 0: no answer (no connection, deadline)
  // From sending to the end of the answer; for watch and log to its beginning.
  std::chrono::duration<double> seconds{0};
  // What the client's own rate limit cost before it, not part of `seconds`.
  std::chrono::duration<double> throttled{0};
};

using CallObserver = std::function<void(const CallReport&)>;

}  // namespace ringmaster::kube
