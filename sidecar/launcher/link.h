// The launcher's end of the worker link: a nonblocking unix socket that is connected again for
// ever.
//
// Driven by the launcher's poll loop: Poll() after every wake-up. What is sent while nobody listens
// is kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/worker_link/frame.h"

namespace ringmaster::launcher {

class Link {
 public:
  using Clock = std::chrono::steady_clock;

  // `greet` returns the bytes that open every connection: hello, and what runs now.
  // `receive` gets every frame.
  Link(std::string path, std::function<std::string()> greet,
       std::function<void(const nlohmann::json&)> receive);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Kept until a connection takes it.
  void Send(const nlohmann::json& frame);

  // Whether the sidecar has read everything that was sent over this connection; true while there is
  // none.
  bool IsRead() const;

  // Ends the connection, and forgets what is to be sent. The next one opens by itself.
  void Drop(Clock::time_point now);

  // Connects if it is time to, writes what is pending, reads what came.
  void Poll(Clock::time_point now);

  // What to hand to poll(2); fd() is -1 while not connected.
  int fd() const { return fd_; }
  // How many connections were made, this one included.
  uint64_t connections() const { return connections_; }
  short events() const;
  // When Poll should run even if nothing happens.
  Clock::time_point wake_at() const;

 private:
  void Connect(Clock::time_point now);
  void Write(Clock::time_point now);
  void Read(Clock::time_point now);
  void Close(Clock::time_point now);

  const std::string path_;
  const std::function<std::string()> greet_;
  const std::function<void(const nlohmann::json&)> receive_;

  int fd_ = -1;
  uint64_t connections_ = 0;
  Clock::time_point retry_at_{};
  std::chrono::milliseconds backoff_{50};
  worker_link::FrameReader reader_;
  std::string writing_;              // bytes of frames that this connection has begun
  std::deque<std::string> pending_;  // frames that no connection has taken yet
};

}  // namespace ringmaster::launcher
