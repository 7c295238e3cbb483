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
    std::string key;                   // of the job's ring: 32 bytes; empty: none
    size_t arena_bytes = 0;            // 0: default
    bool shared_memory = true;
    // What goes over TCP is encrypted. Needs the key; the members of a job should agree on it (a
    // connection is encrypted if either end wants it).
    bool encrypt = false;
  };
  static Status Create(const Options& options, std::unique_ptr<Endpoint>* out);
  virtual ~Endpoint() = default;
  virtual PeerEndpoint Address() const = 0;
  // The key became known after Create. All members of a job have the same key, or all have none.
  // From any thread; for what connects from now on. RM_ERR_INVALID: it isn't a key.
  virtual Status SetKey(const std::string& key) = 0;
};

}  // namespace ringmaster
