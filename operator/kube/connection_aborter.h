// Closes connections whose deadline has passed, whatever httplib is doing with them: connecting,
// shaking hands, or waiting for a header that arrives a byte a minute.
//
// Thread rule: safe from any thread. A thread of its own shuts sockets down; it runs no caller's
// code.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stop_token>
#include <thread>
#include <utility>

#include "common/sync/mutex.h"

namespace ringmaster::kube {

// The socket of one connection, so that another thread can shut it down. It holds a duplicate of
// the descriptor, so that the number can't be reused for another connection meanwhile.
class AbortableSocket {
 public:
  AbortableSocket() = default;
  ~AbortableSocket();
  AbortableSocket(const AbortableSocket&) = delete;

  void Use(int fd);  // a new socket for the same connection
  void Abort();      // shuts down this socket, and every later one until Reset
  void Reset();
  bool aborted() const;
  // The server has closed the connection, or there is none: nothing should be sent.
  bool ClosedByPeer() const;

 private:
  mutable sync::Mutex mu_;
  int fd_ GUARDED_BY(mu_) = -1;
  bool aborted_ GUARDED_BY(mu_) = false;
};

class ConnectionAborter {
 public:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<Clock::time_point, uint64_t>;
  ConnectionAborter();

  // Aborts `socket` at `deadline`, unless the Timer is destroyed before.
  class Timer {
   public:
    Timer(ConnectionAborter& aborter, Clock::time_point deadline, AbortableSocket& socket);
    ~Timer();
    Timer(const Timer&) = delete;

   private:
    ConnectionAborter& aborter_;
    Key key_;
  };

 private:
  void Run(std::stop_token stop);

  sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  uint64_t last_id_ GUARDED_BY(mu_) = 0;
  // Without the sockets that were aborted.
  std::map<Key, AbortableSocket*> waiting_ GUARDED_BY(mu_);
  std::jthread thread_;
};

}  // namespace ringmaster::kube
