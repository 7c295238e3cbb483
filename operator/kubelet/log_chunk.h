// A piece of a container's log on its way from the node to the API server: an object that is only
// ever created, as a TokenReview is, and not stored. Its answer says from where the log goes on.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

#include "operator/kube/kube_api.h"

namespace ringmaster::kubelet {

const kube::Resource& LogChunks();

struct LogChunk {
  std::string ns, pod, uid, container;
  std::uint64_t at = 0;     // the place of `bytes` in the node's file
  std::uint64_t start = 0;  // where the container's current or last process began
  bool running = false;     // more may come
  std::string bytes;
};

kube::Json ToJson(const LogChunk& chunk);
// The error names the field.
tl::expected<LogChunk, std::string> ParseLogChunk(const kube::Json& object);

// Where in the node's file the next piece begins, as an answer and out of it.
kube::Json LogAnswer(std::uint64_t next);
std::uint64_t NextOf(const kube::Json& answer);

}  // namespace ringmaster::kubelet
