// The process's side of every connection: its listener, its own arena and the peers' arenas that it
// has mapped already.
//
// Thread rule: one thread at a time builds communicators; the listener has a thread of its own.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "collectives/transport/arena.h"
#include "collectives/transport/listener.h"
#include "ringmaster/endpoint.h"
#include "ringmaster/status.h"

namespace ringmaster::transport {

class EndpointImpl : public Endpoint {
 public:
  static Status Create(const Options& options, std::unique_ptr<EndpointImpl>* out);

  PeerEndpoint Address() const override { return address_; }

  Status SetKey(const std::string& key) override;

  RingCredentials credentials() const { return listener_->credentials(); }
  Listener& listener() { return *listener_; }
  // Null without shared memory.
  const std::shared_ptr<Arena>& arena() const { return arena_; }

  // Maps the peer's arena, or returns the mapping that an earlier view has made. After an error
  // *out is null.
  Status Attach(const std::string& shm_name, const UniqueFd& fd, uint64_t arena_id, size_t bytes,
                std::shared_ptr<ArenaMap>* out);

  // Call before a view is built: forgets the arenas of processes that aren't in the view. If such a
  // process still lives it might write into this process's arena later, so this process takes a new
  // arena.
  void KeepOnly(std::span<const PeerEndpoint> peers);

 private:
  explicit EndpointImpl(const Options& options) : arena_bytes_(options.arena_bytes) {}

  // Constant after Create.
  const size_t arena_bytes_;
  PeerEndpoint address_;
  std::unique_ptr<Listener> listener_;

  // Of the thread that builds communicators.
  std::shared_ptr<Arena> arena_;
  // Former arenas in which callers may still read buffers. Others go with the communicators that
  // use them.
  std::vector<std::shared_ptr<Arena>> retired_;
  std::map<std::string, std::shared_ptr<ArenaMap>> mapped_;  // by the peer's abstract socket
};

// Writes one line to stderr: the library has no other log.
void LogLine(const std::string& text);

}  // namespace ringmaster::transport
