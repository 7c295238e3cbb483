#include "sidecar/link_server/link_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "common/fields/fields.h"
#include "common/worker_link/frame.h"

namespace ringmaster::link_server {
namespace {

using nlohmann::json;
using worker_link::EncodeFrame;
using worker_link::FrameReader;
using worker_link::kLinkVersion;
using Protocol = asio::local::stream_protocol;

constexpr size_t kMaxPath = 107;
// A peer that doesn't read (stopped by a debugger, say) must not fill our memory.
constexpr size_t kMaxQueuedBytes = 64u << 20;

class Connection;

// What a connection tells its server.
struct ConnectionOwner {
  virtual ~ConnectionOwner() = default;
  virtual void OnFrame(ConnectionId id, const json& frame) = 0;
  virtual void OnClosed(ConnectionId id, const std::string& why) = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionId id, Protocol::socket socket, ConnectionOwner* owner)
      : id_(id), socket_(std::move(socket)), hello_timer_(socket_.get_executor()), owner_(owner) {}

  void Start(std::chrono::milliseconds hello_deadline) {
    hello_timer_.expires_after(hello_deadline);
    hello_timer_.async_wait([self = shared_from_this()](std::error_code error) {
      if (!error) self->Close("no hello in time");
    });
    Read();
  }

  int PeerPid() {
    ucred peer{};
    socklen_t size = sizeof peer;
    return getsockopt(socket_.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
               ? peer.pid
               : 0;
  }

  void GreetingCame() { hello_timer_.cancel(); }

  void Send(const json& frame) {
    if (closed_ || closing_) return;
    queue_.push_back(EncodeFrame(frame));
    queued_bytes_ += queue_.back().size();
    if (queued_bytes_ > kMaxQueuedBytes) return Close("it does not read");
    if (queue_.size() == 1) Write();
  }

  void Refuse(const std::string& message) {
    if (closed_ || closing_) return;
    Send({{"t", "error"}, {"message", message}});
    closing_ = true;
    refusal_ = message;
    if (queue_.empty()) Close(message);
  }

  // The owner hears it after this call.
  void Drop() {
    if (closed_ || closing_) return;
    closing_ = true;
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->Close("dropped"); });
  }

  void Close(const std::string& why) {
    if (closed_) return;
    closed_ = true;
    hello_timer_.cancel();
    std::error_code ignored;
    socket_.close(ignored);
    if (owner_ != nullptr) owner_->OnClosed(id_, why);
  }

  void Abandon() {
    owner_ = nullptr;
    Close("");
  }

 private:
  void Read() {
    socket_.async_read_some(asio::buffer(chunk_),
                            [self = shared_from_this()](std::error_code error, size_t bytes) {
                              if (self->closed_) return;
                              if (error) return self->Close(error.message());
                              self->reader_.Feed({self->chunk_.data(), bytes});
                              self->TakeFrames();
                              if (!self->closed_ && !self->closing_) self->Read();
                            });
  }

  void TakeFrames() {
    json frame;
    FrameReader::Result result;
    while (!closed_ && !closing_ &&
           (result = reader_.Next(&frame)) != FrameReader::Result::kNeedMore) {
      if (result == FrameReader::Result::kError) return Refuse(reader_.error());
      owner_->OnFrame(id_, frame);
    }
  }

  void Write() {
    asio::async_write(socket_, asio::buffer(queue_.front()),
                      [self = shared_from_this()](std::error_code error, size_t) {
                        if (self->closed_) return;
                        if (error) return self->Close(error.message());
                        self->queued_bytes_ -= self->queue_.front().size();
                        self->queue_.pop_front();
                        if (!self->queue_.empty()) return self->Write();
                        if (self->closing_) self->Close(self->refusal_);
                      });
  }

  const ConnectionId id_;
  Protocol::socket socket_;
  asio::steady_timer hello_timer_;
  ConnectionOwner* owner_;
  FrameReader reader_;
  std::array<char, 16384> chunk_;
  std::deque<std::string> queue_;
  size_t queued_bytes_ = 0;
  bool closing_ = false;  // nothing more is read; closed when the queue is written
  bool closed_ = false;
  std::string refusal_;
};

class Server final : public LinkServer, private ConnectionOwner {
 public:
  Server(asio::io_context* loop, std::string path, LinkCallbacks callbacks,
         std::chrono::milliseconds hello_deadline)
      : loop_(loop),
        acceptor_(*loop),
        retry_(*loop),
        path_(std::move(path)),
        callbacks_(std::move(callbacks)),
        hello_deadline_(hello_deadline) {}
  ~Server() override { Stop(); }

  tl::expected<void, std::string> Open() {
    std::error_code code;
    ::unlink(path_.c_str());
    acceptor_.open(Protocol(), code);
    if (!code) acceptor_.bind(Protocol::endpoint(path_), code);
    if (!code) acceptor_.listen(asio::socket_base::max_listen_connections, code);
    if (code) {
      return tl::unexpected("cannot listen on RINGMASTER_SOCKET " + path_ + ": " + code.message());
    }
    // The worker container may run as another user; which users may connect is decided by the
    // directory's mode.
    ::chmod(path_.c_str(), 0666);
    Accept();
    return {};
  }

  void Send(ConnectionId to, const json& frame) override {
    auto it = connections_.find(to);
    if (it != connections_.end()) std::shared_ptr<Connection>(it->second.connection)->Send(frame);
  }

  int PeerPid(ConnectionId id) const override {
    auto it = connections_.find(id);
    return it == connections_.end() ? 0 : it->second.connection->PeerPid();
  }

  void Refuse(ConnectionId id, const std::string& message) override {
    auto it = connections_.find(id);
    if (it != connections_.end())
      std::shared_ptr<Connection>(it->second.connection)->Refuse(message);
  }

  void Drop(ConnectionId id) override {
    auto it = connections_.find(id);
    if (it != connections_.end()) it->second.connection->Drop();
  }

  void Stop() override {
    if (stopped_) return;
    stopped_ = true;
    std::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
    ::unlink(path_.c_str());
    for (auto& [id, entry] : connections_) entry.connection->Abandon();
    connections_.clear();
  }

 private:
  struct Entry {
    std::shared_ptr<Connection> connection;
    bool greeted = false;
  };

  void Accept() {
    acceptor_.async_accept([this](std::error_code error, Protocol::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) {  // out of descriptors: try again when some may be free
        retry_.expires_after(std::chrono::milliseconds(100));
        retry_.async_wait([this](std::error_code cancelled) {
          if (!cancelled) Accept();
        });
        return;
      }
      ConnectionId id = next_id_++;
      auto connection =
          std::make_shared<Connection>(id, std::move(socket), static_cast<ConnectionOwner*>(this));
      connections_[id] = {connection, false};
      connection->Start(hello_deadline_);
      Accept();
    });
  }

  void OnFrame(ConnectionId id, const json& frame) override {
    auto it = connections_.find(id);
    if (it == connections_.end()) return;
    if (it->second.greeted) return callbacks_.on_frame(id, frame);
    if (fields::Text(frame, "t") != "hello") {
      return Refuse(id,
                    "the first frame is '" + fields::Text(frame, "t") + "', 'hello' is expected");
    }
    int64_t version = fields::Integer(frame, "version", -1);
    if (version != kLinkVersion) {
      return Refuse(id, "worker link version " + std::to_string(version) +
                            ", this sidecar speaks version " + std::to_string(kLinkVersion));
    }
    std::string role = fields::Text(frame, "role");
    if (role != "launcher" && role != "worker") {
      return Refuse(id, "role is '" + role + "', 'launcher' or 'worker' is expected");
    }
    it->second.greeted = true;
    it->second.connection->GreetingCame();
    callbacks_.on_hello(id, role == "launcher" ? Role::kLauncher : Role::kWorker, frame);
  }

  void OnClosed(ConnectionId id, const std::string& why) override {
    auto it = connections_.find(id);
    if (it == connections_.end()) return;
    const bool greeted = it->second.greeted;
    connections_.erase(it);
    if (greeted) callbacks_.on_closed(id, why);
  }

  asio::io_context* const loop_;
  Protocol::acceptor acceptor_;
  asio::steady_timer retry_;
  const std::string path_;
  const LinkCallbacks callbacks_;
  const std::chrono::milliseconds hello_deadline_;
  std::unordered_map<ConnectionId, Entry> connections_;
  ConnectionId next_id_ = 1;
  bool stopped_ = false;
};

}  // namespace

tl::expected<std::unique_ptr<LinkServer>, std::string> LinkServer::Listen(
    asio::io_context* loop, const std::string& path, LinkCallbacks callbacks,
    std::chrono::milliseconds hello_deadline) {
  if (path.empty() || path.size() > kMaxPath) {
    return tl::unexpected("RINGMASTER_SOCKET has " + std::to_string(path.size()) +
                          " bytes, 1 to 107 are allowed: '" + path + "'");
  }
  auto server = std::make_unique<Server>(loop, path, std::move(callbacks), hello_deadline);
  const auto listens = server->Open();
  if (!listens) return tl::unexpected(listens.error());
  return server;
}

}  // namespace ringmaster::link_server
