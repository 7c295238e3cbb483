#include "sidecar/rendezvous/heartbeat_echo.h"

#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <istream>
#include <utility>

namespace ringmaster::rendezvous {
namespace {

// A sidecar that watches beats several times a second; other peers hold a descriptor that is needed
// elsewhere.
constexpr std::chrono::seconds kEchoIdle{10};

}  // namespace

HeartbeatEcho::HeartbeatEcho(asio::ip::tcp::socket socket,
                             std::shared_ptr<const EchoSubject> subject)
    : socket_(std::move(socket)), silence_(socket_.get_executor()), subject_(std::move(subject)) {}

void HeartbeatEcho::Start() {
  ExpectBytes();
  asio::async_read_until(socket_, line_, '\n',
                         [self = shared_from_this()](std::error_code error, size_t) {
                           if (error) return self->Close();
                           std::istream in(&self->line_);
                           std::string line;
                           std::getline(in, line);
                           self->Welcome(line);
                         });
}

void HeartbeatEcho::Close() {
  std::error_code ignored;
  silence_.cancel();
  socket_.close(ignored);
}

void HeartbeatEcho::ExpectBytes() {
  silence_.expires_after(kEchoIdle);
  silence_.async_wait([self = shared_from_this()](std::error_code cancelled) {
    if (!cancelled) self->Close();
  });
}

void HeartbeatEcho::Welcome(const std::string& line) {
  const auto hello = ReadHello(line);
  if (!hello || hello->job != subject_->job) return Close();  // a stranger
  HeartbeatWelcome welcome{subject_->self, "", ""};
  // A watcher of a version before there were proofs has no nonce. What it is told is no secret.
  if (!subject_->key.empty() && !hello->nonce.empty()) {
    welcome.nonce = MakeHeartbeatNonce();
    session_ = HeartbeatSession(subject_->key, *hello, subject_->self, welcome.nonce);
    welcome.proof = session_.Proof();
  }
  line_.consume(line_.size());
  Write(WriteWelcome(welcome));
}

void HeartbeatEcho::Write(const std::string& bytes) {
  answer_ = bytes;
  asio::async_write(socket_, asio::buffer(answer_),
                    [self = shared_from_this()](std::error_code error, size_t) {
                      if (error) return self->Close();
                      self->Read();
                    });
}

void HeartbeatEcho::Read() {
  ExpectBytes();
  beat_.resize(session_.size());
  asio::async_read(socket_, asio::buffer(beat_),
                   [self = shared_from_this()](std::error_code error, size_t) {
                     if (error) return self->Close();
                     if (!self->session_.IsBeat(self->beats_, self->beat_))
                       return self->Refuse("a beat does not prove the job's key");
                     self->Write(self->session_.Echo(self->beats_, self->subject_->news));
                     ++self->beats_;
                   });
}

void HeartbeatEcho::Refuse(const std::string& why) {
  std::error_code unknown;
  const auto from = socket_.remote_endpoint(unknown);
  Close();
  subject_->on_refused(unknown ? "unknown" : from.address().to_string(), why);
}

}  // namespace ringmaster::rendezvous
