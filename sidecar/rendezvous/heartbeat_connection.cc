#include "sidecar/rendezvous/heartbeat_connection.h"

#include <asio/io_context.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <istream>
#include <utility>

namespace ringmaster::rendezvous {
namespace {

// This process lacks something that a connection needs.
bool IsOwnLack(const std::error_code& error) {
  const int lack = error.value();
  return lack == EMFILE || lack == ENFILE || lack == ENOBUFS || lack == ENOMEM;
}

}  // namespace

HeartbeatConnection::HeartbeatConnection(asio::io_context* loop, HeartbeatTarget target,
                                         HeartbeatEvents events)
    : socket_(*loop),
      target_(std::move(target)),
      events_(std::move(events)),
      hello_{target_.job, target_.self, target_.key.empty() ? "" : MakeHeartbeatNonce()} {}

void HeartbeatConnection::Dial(const asio::ip::tcp::endpoint& endpoint) {
  socket_.async_connect(endpoint, [self = shared_from_this()](std::error_code error) {
    if (self->closed_) return;
    if (IsOwnLack(error)) return self->End(self->events_.on_unable);
    if (error) return self->End(self->events_.on_broken, "connect: " + error.message());
    std::error_code ignored;
    // A free port may be given to the very socket that dials it, which then talks to itself.
    if (self->socket_.local_endpoint(ignored) == self->socket_.remote_endpoint(ignored))
      return self->End(self->events_.on_broken, "connect: nobody listens");
    self->socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    self->Greet();
  });
}

void HeartbeatConnection::Close() {
  closed_ = true;
  std::error_code ignored;
  socket_.close(ignored);
}

void HeartbeatConnection::Greet() {
  out_ = WriteHello(hello_);
  asio::async_write(socket_, asio::buffer(out_),
                    [self = shared_from_this()](std::error_code error, size_t) {
                      if (self->closed_) return;
                      if (error)
                        return self->End(self->events_.on_broken, "write: " + error.message());
                      self->ReadWelcome();
                    });
}

void HeartbeatConnection::ReadWelcome() {
  asio::async_read_until(
      socket_, line_, '\n', [self = shared_from_this()](std::error_code error, size_t) {
        if (self->closed_) return;
        if (error) return self->End(self->events_.on_broken, "read: " + error.message());
        std::istream in(&self->line_);
        std::string line;
        std::getline(in, line);
        self->line_.consume(self->line_.size());
        const auto welcome = rendezvous::ReadWelcome(line);
        if (!welcome) return self->End(self->events_.on_refused, "it is no sidecar's answer");
        self->OnWelcome(*welcome);
      });
}

void HeartbeatConnection::OnWelcome(const HeartbeatWelcome& welcome) {
  if (!target_.key.empty() && !welcome.proof.empty()) {
    session_ = HeartbeatSession(target_.key, hello_, welcome.watched, welcome.nonce);
    if (!session_.IsProof(welcome.proof))
      return End(events_.on_refused, "who listens there does not prove the job's key");
  } else if (target_.must_prove) {
    return End(events_.on_refused, "who listens there proves nothing, and the pod does");
  }
  // Addresses are used again: another pod listens where this one was.
  if (welcome.watched != target_.peer) return End(events_.on_other_pod);
  open_ = true;
  events_.on_open(session_.proven());
  Beat();
  ReadEcho();
}

void HeartbeatConnection::Beat() {
  if (!open_ || writing_ || closed_) return;
  writing_ = true;
  beat_ = session_.Beat(beats_++);
  asio::async_write(socket_, asio::buffer(beat_),
                    [self = shared_from_this()](std::error_code, size_t) {
                      self->writing_ = false;  // an error shows in ReadEcho
                    });
}

void HeartbeatConnection::ReadEcho() {
  if (closed_) return;
  echo_.resize(session_.size());
  asio::async_read(
      socket_, asio::buffer(echo_), [self = shared_from_this()](std::error_code error, size_t) {
        if (self->closed_) return;
        if (error) return self->End(self->events_.on_broken, "read: " + error.message());
        const auto news = self->session_.ReadEcho(self->echoes_, self->echo_);
        if (!news || self->echoes_ >= self->beats_)
          return self->End(self->events_.on_refused, "an echo does not prove the job's key");
        ++self->echoes_;
        self->events_.on_echo(*news, self->beats_ - self->echoes_);
        self->ReadEcho();
      });
}

template <class Event, class... Args>
void HeartbeatConnection::End(const Event& event, const Args&... args) {
  Close();
  event(args...);
}

}  // namespace ringmaster::rendezvous
