// A TCP port of this pod that is kept for a process that will listen on it later.
//
// The socket is bound and does not listen, so that the process, which sets SO_REUSEADDR as every
// server does, can bind the same port, and nobody gets it by chance.
#pragma once

#include <string>

namespace ringmaster::launcher {

class ReservedPort {
 public:
  // `host`: an IP address of this machine.
  explicit ReservedPort(const std::string& host);
  ~ReservedPort();
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  // host:port; empty: there is none, and error() says why.
  const std::string& address() const { return address_; }
  const std::string& error() const { return error_; }

 private:
  int fd_ = -1;
  std::string address_, error_;
};

}  // namespace ringmaster::launcher
