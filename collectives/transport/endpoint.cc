#include "collectives/transport/endpoint.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "collectives/transport/socket.h"

namespace ringmaster {

Status Endpoint::Create(const Options& options, std::unique_ptr<Endpoint>* out) {
  std::unique_ptr<transport::EndpointImpl> impl;
  Status status = transport::EndpointImpl::Create(options, &impl);
  *out = std::move(impl);
  return status;
}

}  // namespace ringmaster

namespace ringmaster::transport {
namespace {

constexpr size_t kJobInName = 48;

constexpr size_t kRandomInName = 16;

std::string RandomName(const std::string& job) {
  return "rm-" + job.substr(0, kJobInName) + "-" + RandomHex(kRandomInName);
}

}  // namespace

void LogLine(const std::string& text) { std::fprintf(stderr, "ringmaster: %s\n", text.c_str()); }

Status EndpointImpl::Create(const Options& options, std::unique_ptr<EndpointImpl>* out) {
  if (options.job.size() >= kJobBytes) {
    return Status(RM_ERR_INVALID, "job '" + options.job + "' is longer than " +
                                      std::to_string(kJobBytes - 1) + " bytes");
  }
  RingKey key;
  if (Status status = RingKey::Create(options.key, &key); !status.ok()) return status;
  std::unique_ptr<EndpointImpl> endpoint(new EndpointImpl(options));
  UniqueFd tcp_fd, unix_fd;
  Status status = ListenTcp(options.bind, &tcp_fd, &endpoint->address_.tcp);
  if (!status.ok()) return status;
  if (options.shared_memory) {
    std::string name = RandomName(options.job);
    status = Arena::Create(options.arena_bytes, &endpoint->arena_);
    if (status.ok()) status = ListenUnix(name, &unix_fd);
    if (status.ok()) {
      endpoint->address_.shm = name;
    } else {
      endpoint->arena_.reset();
      LogLine("no shared memory, using TCP only: " + status.message());
    }
  }
  const PeerEndpoint& address = endpoint->address_;
  endpoint->listener_ =
      std::make_unique<Listener>(Listener::Socket{std::move(tcp_fd), address.tcp},
                                 Listener::Socket{std::move(unix_fd), address.shm},
                                 RingCredentials{options.job, key, options.encrypt});
  status = endpoint->listener_->Start();
  if (status.ok()) *out = std::move(endpoint);
  return status;
}

Status EndpointImpl::SetKey(const std::string& key) {
  RingKey parsed;
  Status status = RingKey::Create(key, &parsed);
  if (status.ok()) listener_->SetKey(parsed);
  return status;
}

Status EndpointImpl::Attach(const std::string& shm_name, const UniqueFd& fd, uint64_t arena_id,
                            size_t bytes, std::shared_ptr<ArenaMap>* out) {
  out->reset();
  std::shared_ptr<ArenaMap>& entry = mapped_[shm_name];
  if (entry == nullptr || entry->id() != arena_id || entry->bytes() != bytes) {
    entry.reset();
    Status status = ArenaMap::Attach(fd, arena_id, bytes, &entry);
    if (!status.ok()) {
      mapped_.erase(shm_name);
      return status;
    }
  }
  *out = entry;
  return Status();
}

void EndpointImpl::KeepOnly(std::span<const PeerEndpoint> peers) {
  bool dropped_one_lives = false;
  std::erase_if(mapped_, [&](const auto& entry) {
    auto same = [&](const PeerEndpoint& peer) { return peer.shm == entry.first; };
    if (std::any_of(peers.begin(), peers.end(), same)) return false;
    dropped_one_lives |= UnixListenerExists(entry.first);
    return true;
  });
  if (!dropped_one_lives || arena_ == nullptr) return;
  std::shared_ptr<Arena> fresh;
  Status status = Arena::Create(arena_bytes_, &fresh);
  if (!status.ok()) LogLine("no shared memory, using TCP only: " + status.message());
  arena_->CloseFile();
  if (arena_->lent()) retired_.push_back(std::move(arena_));
  arena_ = std::move(fresh);
}

}  // namespace ringmaster::transport
