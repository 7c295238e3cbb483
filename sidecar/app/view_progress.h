// How far a worker has come with views: which it was sent, has built, has been told to stop, has
// stopped, and in which it holds the job's state.
//
// Plain data of the sidecar's loop.
#pragma once

#include <algorithm>
#include <utility>

#include "common/membership/view.h"

namespace ringmaster::app {

using membership::Epoch;

class ViewProgress {
 public:
  // A worker that connects again says which view it has built, and which it was given before. What
  // it was told to stop, it was told by this connection's forerunner.
  void Reconnected(Epoch built, Epoch given) {
    installed_ = built;
    sent_ = std::max(built, given);
    stop_sent_ = 0;
  }
  void Sent(Epoch view) { sent_ = view; }
  // A view that does not list it was sent to it: it has none now.
  void LeftOut() { sent_ = 0; }
  // False: it has been told before, or has no view to stop.
  bool TellToStop(Epoch epoch) {
    if (stop_sent_ >= epoch || !HasHadView()) return false;
    stop_sent_ = epoch;
    return true;
  }
  void Stopped(Epoch epoch) { stopped_ = std::max(stopped_, epoch); }
  void Installed(Epoch epoch) { installed_ = std::max(installed_, epoch); }
  void AtBoundary(Epoch epoch) { boundary_ = std::max(boundary_, epoch); }
  // In this view the worker says that it has the job's state; 0: it has none. True: that is news.
  bool Holds(Epoch epoch) { return std::exchange(holds_, epoch) != epoch; }

  Epoch sent() const { return sent_; }            // the newest
  Epoch installed() const { return installed_; }  // the newest that it has built
  Epoch stopped() const { return stopped_; }
  Epoch boundary() const { return boundary_; }  // of this view; 0: it stands at none
  Epoch holds() const { return holds_; }
  bool HasHadView() const { return sent_ != 0 || installed_ != 0; }
  // A worker never uses again what it was told to stop, and does not hear either that such a view
  // leaves it out: it has to hear that of a newer one.
  bool IsPast(Epoch epoch) const { return std::max({sent_, stopped_, stop_sent_}) >= epoch; }

 private:
  Epoch sent_ = 0;
  Epoch installed_ = 0;
  Epoch stop_sent_ = 0;
  Epoch stopped_ = 0;
  Epoch boundary_ = 0;
  Epoch holds_ = 0;
};

}  // namespace ringmaster::app
