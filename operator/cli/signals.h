// SIGINT, SIGTERM and SIGHUP as calls on a thread of its own. Handlers, not a blocked mask:
// handlers end at exec, a mask would reach every container.
#pragma once

#include <functional>
#include <thread>

namespace ringmaster::cli {

class SignalThread {
 public:
  // `on_signal(signal, count)`: the count-th one. One SignalThread at a time.
  explicit SignalThread(std::function<void(int, int)> on_signal);
  ~SignalThread();  // from then on the signals do what they do by default

 private:
  int read_fd_ = -1;
  std::thread thread_;
};

}  // namespace ringmaster::cli
