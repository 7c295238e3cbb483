// Ends connections whose time is over, whatever httplib is doing with them: connecting, shaking
// hands, waiting for a header that comes a byte a minute.
//
// Thread rule: safe from any thread. One thread of its own shuts sockets down; it runs no caller's
// code.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace ringmaster::kube {

// The socket of one connection, so that another thread can end it. It holds a duplicate of the
// descriptor: the number can't come to mean another connection while it is used here.
class CuttableSocket {
 public:
  CuttableSocket() = default;
  ~CuttableSocket();
  CuttableSocket(const CuttableSocket&) = delete;

  void Use(int fd);  // a new socket for the same connection
  void Cut();        // and every later one, until Reset
  void Reset();
  bool was_cut() const;
  // Whether the server has closed it (or there is none): not worth sending anything.
  bool ClosedByPeer() const;

 private:
  mutable std::mutex mu_;
  int fd_ = -1;       // guarded by mu_
  bool cut_ = false;  // guarded by mu_
};

class ConnectionCutter {
 public:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<Clock::time_point, uint64_t>;
  ConnectionCutter();

  // Cuts `socket` at `deadline`, unless the Timer is gone before.
  class Timer {
   public:
    Timer(ConnectionCutter& cutter, Clock::time_point deadline, CuttableSocket& socket);
    ~Timer();
    Timer(const Timer&) = delete;

   private:
    ConnectionCutter& cutter_;
    Key key_;
  };

 private:
  void Run(std::stop_token stop);

  std::mutex mu_;
  std::condition_variable_any changed_;
  uint64_t last_id_ = 0;                    // guarded by mu_
  std::map<Key, CuttableSocket*> waiting_;  // guarded by mu_; what was cut is no longer in it
  std::jthread thread_;
};

}  // namespace ringmaster::kube
