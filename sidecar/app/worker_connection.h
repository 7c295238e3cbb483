// The socket between a worker process and this sidecar, and what was said when it opened.
//
// Plain data of the sidecar's loop.
#pragma once

#include <cstdint>

namespace ringmaster::app {

class WorkerConnection {
 public:
  // The process has said hello on this connection.
  void Open(uint64_t id, bool says_standby, bool keeps_timeline) {
    id_ = id;
    greeted_ = true;
    welcomed_ = told_it_joins_ = false;
    says_standby_ = says_standby;
    keeps_timeline_ = keeps_timeline;
  }
  void Close() {
    id_ = 0;
    welcomed_ = false;
  }
  // The welcome has gone out: what comes after it may be sent. `as_joiner`: it says that what the
  // worker held before is void.
  void Welcomed(bool as_joiner) {
    welcomed_ = true;
    told_it_joins_ = as_joiner;
  }

  uint64_t id() const { return id_; }  // 0: there is none now
  bool open() const { return id_ != 0; }
  // It has said hello to this sidecar, on this connection or an earlier one.
  bool greeted() const { return greeted_; }
  bool welcomed() const { return welcomed_; }
  bool told_it_joins() const { return told_it_joins_; }
  // By its newest hello it is a standby, though it may have been given a slot since.
  bool says_standby() const { return says_standby_; }
  // It can be asked for its newest events.
  bool keeps_timeline() const { return keeps_timeline_; }

 private:
  uint64_t id_ = 0;
  bool greeted_ = false;
  bool welcomed_ = false;
  bool told_it_joins_ = false;
  bool says_standby_ = false;
  bool keeps_timeline_ = false;
};

}  // namespace ringmaster::app
