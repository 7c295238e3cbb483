// The address at which its peers reach a process, and the sockets and shared memory behind it.
//
// Thread rule: an Endpoint is used by one thread at a time; PeerEndpoint is a value.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "ringmaster/status.h"

namespace ringmaster {

// The addresses of one rank of a view.
struct PeerEndpoint {
  std::string tcp;  // "host:port" of its listener
  std::string shm;  // name of the abstract unix socket that hands out its arena; empty: none
  int pod = 0;      // index of its pod; ranks of one pod have the same
};

// The listener and the shared-memory arena of this process. A process has one Endpoint and builds
// many communicators on it, one after the other. The Endpoint outlives them, so that a rebuild only
// opens what is new.
class RM_API Endpoint {
 public:
  struct Options {
    std::string bind = "127.0.0.1:0";  // "host:port" of the listener; port 0: any free one
    std::string job;                   // uid; peers of another job are refused
    std::string key;                   // the job's ring key, 32 bytes; empty: none
    size_t arena_bytes = 0;            // 0: the default, 256 MiB for callers' buffers
    // False: the process has no arena, and all its connections are TCP.
    bool shared_memory = true;
    // Encrypts what goes over TCP; this needs the key. A connection is encrypted if either end
    // wants it, so the members of a job should agree.
    bool encrypt = false;
  };
  // Opens the sockets and the arena. If there is no shared memory, the endpoint uses TCP only and
  // a line on stderr says so. RM_ERR_INVALID: `bind`, `job` or `key` is malformed.
  // RM_ERR_UNAVAILABLE: the listener can't be opened at `bind`.
  static Status Create(const Options& options, std::unique_ptr<Endpoint>* out);
  virtual ~Endpoint() = default;
  // Where peers reach this process. The caller sets `pod`.
  virtual PeerEndpoint Address() const = 0;
  // Sets a key that became known after Create; it counts for connections that are made from now on.
  // All members of a job have the same key, or none has one. Call it from any thread.
  // RM_ERR_INVALID: `key` has a wrong length.
  virtual Status SetKey(const std::string& key) = 0;
};

}  // namespace ringmaster
