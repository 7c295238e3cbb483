// Ends connections whose time is over, whatever httplib is doing with them: connecting, shaking
// hands, waiting for a header that comes a byte a minute.
//
// Thread rule: safe from any thread. One thread of its own shuts sockets down; it runs no caller's
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

// The socket of one connection, so that another thread can end it. It holds a duplicate of the
// descriptor: the number can't come to mean another connection while it is used here.
class AbortableSocket {
 public:
  AbortableSocket() = default;
  ~AbortableSocket();
  AbortableSocket(const AbortableSocket&) = delete;

  void Use(int fd);  // a new socket for the same connection
  void Abort();      // and every later one, until Reset
  void Reset();
  bool aborted() const;
  // Whether the server has closed it (or there is none): not worth sending anything.
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

  // Aborts `socket` at `deadline`, unless the Timer is gone before.
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
  std::map<Key, AbortableSocket*> waiting_ GUARDED_BY(mu_);  // what was aborted is no longer in it
  std::jthread thread_;
};

}  // namespace ringmaster::kube
