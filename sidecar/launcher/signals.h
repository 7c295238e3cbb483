// The signals that the launcher gets, as a file that poll(2) waits for.
//
// Thread rule: the launcher's one thread.
#pragma once

#include <sys/types.h>

namespace ringmaster::launcher {

class Signals {
 public:
  struct Received {
    int terminate = 0;      // how often: SIGTERM, SIGINT or SIGHUP
    bool orphaned = false;  // our parent is gone
  };

  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // From here on children of descendants that end become ours. False: an errno says why not.
  bool Open();
  int fd() const { return fd_; }
  Received Read() const;

 private:
  const pid_t parent_;
  int fd_ = -1;
};

}  // namespace ringmaster::launcher
