// Processes of a pod that have failed, maybe only because another one of their view did before.
//
// When a process dies the others' collectives fail, and so do they. Each failure waits here until
// the end of its view explains it by an earlier one, or until it is clear that none does: then it
// counts as the process's own. Plain data; time is handed in.
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "sidecar/launcher/children.h"
#include "sidecar/launcher/clock.h"

namespace ringmaster::launcher {

// The process may have ended so because its connections broke: it exited by itself, or by abort,
// which is how some libraries end for that. Any other signal is nobody's answer to a lost peer.
bool MayFollowAnother(const ChildExit& exit);

class UnexplainedFailures {
 public:
  // By then the sidecar knows of a death, even of a pod's that went without a word, and has stopped
  // the view.
  static constexpr std::chrono::seconds kExplainedWithin{5};
  // Between the first word that a view is broken and the end of that view, at least: the patience
  // of the sidecar.
  static constexpr std::chrono::milliseconds kBreaks{1500};

  void Add(const ChildExit& exit, TimePoint now);
  // The sidecar has been told that this failure broke its view: nobody waits for more.
  void BrokeView(int slot);
  // The view of that slot is over. True: it ended sooner than our word can end it, so it had been
  // broken before, which explains the failure. Else that was the first one, and it is due now.
  bool OnViewOver(int slot, TimePoint now);

  // Nothing: none waits there.
  std::optional<ChildExit> Take(int slot);
  // The earliest of those that are due: it explains those that came after it.
  std::optional<ChildExit> TakeDue(TimePoint now);
  std::optional<TimePoint> NextWake() const;

 private:
  struct Failure {
    ChildExit exit;
    TimePoint at{}, due_at{};
    bool broke_view = false;
  };

  std::map<int, Failure> failures_;  // by slot
};

}  // namespace ringmaster::launcher
