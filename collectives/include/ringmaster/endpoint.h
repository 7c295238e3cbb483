// Where a process is reached by its peers, and the sockets and the memory that stand behind it.
//
// Thread rule: an Endpoint is used by one thread at a time; PeerEndpoint is a value.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "ringmaster/status.h"

namespace ringmaster {

// How one rank of a view is reached.
struct PeerEndpoint {
  std::string tcp;  // "host:port" of its listener
  std::string shm;  // abstract unix socket that hands out its arena; empty: none
  int pod = 0;      // index of its pod: ranks of one pod have the same
};

// The listener and the shared-memory arena of this process. They outlive communicators, so that a
// rebuild only opens what is new: one Endpoint for a process, many communicators one after the
// other.
class RM_API Endpoint {
 public:
  struct Options {
    std::string bind = "127.0.0.1:0";  // port 0: chosen free
    std::string job;                   // uid; peers of another job are refused
    size_t arena_bytes = 0;            // 0: default
    bool shared_memory = true;
  };
  static Status Create(const Options& options, std::unique_ptr<Endpoint>* out);
  virtual ~Endpoint() = default;
  virtual PeerEndpoint Address() const = 0;
};

}  // namespace ringmaster
