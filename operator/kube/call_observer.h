// An observer is told how the API server answers; the operator's metrics use it.
//
// Thread rule: called from the thread that made the call, so from any thread and from several at
// once. It must be quick and must not call the API itself.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

namespace ringmaster::kube {

struct Resource;

// One exchange with the server. A repeated call (429, an expired token, a read whose connection
// broke) is reported once for each try.
struct CallReport {
  // "get", "list", "watch", "create", "update", "patch" (also server-side apply), "delete",
  // "evict", "log".
  std::string_view verb;
  const Resource& resource;
  std::string_view subresource;  // "", "status", "scale"
  int code = 0;                  // HTTP status; 0: no answer (no connection, deadline)
  // From sending to the end of the answer; for watch and log to the beginning of the answer.
  std::chrono::duration<double> seconds{0};
  // The time that the call waited for the client's rate limit before; not part of `seconds`.
  std::chrono::duration<double> throttled{0};
};

using CallObserver = std::function<void(const CallReport&)>;

}  // namespace ringmaster::kube
