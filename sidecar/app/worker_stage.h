// Where a worker stands between its init() and its end.
//
// Plain data of the sidecar's loop.
#pragma once

#include <utility>

namespace ringmaster::app {

class WorkerStage {
 public:
  // Its script has called init() and waits to be in a view. `takes_state`: the state of others can
  // be given to it. True: that it waits is news.
  bool Enter(bool takes_state) {
    takes_state_ = takes_state;
    return !std::exchange(ready_, true);
  }
  // It connects again. `listed`: in the newest view, so it is ready without a word. One that rests
  // says so again, after the welcome.
  void Reconnected(bool listed) {
    ready_ = ready_ || listed;
    resting_ = false;
  }
  // It was told last that it begins the job, so it believes that it holds the state.
  void BeginsJob(bool begins) { begins_ = begins; }
  // A view does not list it: it says `enter` when it has heard of that.
  void LeftOut() { ready_ = false; }
  // After a shutdown that all ranks have agreed on; it may begin again.
  void Rests(bool rests) { resting_ = rests; }
  void Finished() { finished_ = true; }
  // It was told to leave. It may not have heard it.
  void Left() { left_ = true; }
  // Its last word, after which it closes its connection.
  void SaidBye() { left_ = said_bye_ = true; }

  bool ready() const { return ready_; }
  bool begins() const { return begins_; }
  bool takes_state() const { return takes_state_; }
  bool resting() const { return resting_; }
  bool finished() const { return finished_; }
  bool left() const { return left_; }
  // It uses no view any more.
  bool done() const { return said_bye_ || finished_; }
  // It ends by itself.
  bool over() const { return left_ || finished_; }

 private:
  bool ready_ = false;
  bool begins_ = false;
  bool takes_state_ = true;
  bool resting_ = false;
  bool finished_ = false;
  bool left_ = false;
  bool said_bye_ = false;
};

}  // namespace ringmaster::app
