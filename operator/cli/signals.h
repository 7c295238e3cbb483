// Turns SIGINT, SIGTERM and SIGHUP into calls on a thread of its own; a SIGHUP that is ignored when
// the program starts (nohup) stays so. It uses handlers instead of a blocked mask: handlers end at
// exec, but a mask would be inherited by every container.
#pragma once

#include <functional>
#include <thread>

namespace ringmaster::cli {

class SignalThread {
 public:
  // Calls `on_signal(signal, count)`; `count` numbers the signals. Only one SignalThread may exist.
  explicit SignalThread(std::function<void(int, int)> on_signal);
  ~SignalThread();  // restores the signals' default actions

 private:
  int read_fd_ = -1;
  std::thread thread_;
};

}  // namespace ringmaster::cli
