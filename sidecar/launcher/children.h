// The worker processes that the launcher has started, standbys included, and all that descend from
// them.
//
// Thread rule: the launcher's one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/launcher/options.h"
#include "sidecar/launcher/output.h"
#include "sidecar/launcher/process.h"
#include "sidecar/launcher/slots.h"

namespace ringmaster::launcher {

struct Child {
  int family = 0;
  int slot = -1;  // -1: a standby
  uint64_t incarnation = 0;
  uint64_t standby_incarnation = 0;  // that it had before it got a slot; 0: it has begun with one
  TimePoint began;                   // started, or promoted
  bool ended_by_us = false;          // killed, for no failure of its own
  bool stopped = false;              // by a signal, until SIGCONT
  bool standby() const { return slot < 0; }
};

struct ChildExit {
  pid_t pid = 0;
  Child child;
  int exit_code = 0;  // 128 + the signal
  int signal = 0;
};

class Children {
 public:
  explicit Children(const Options* options)
      : options_(options),
        output_(
            {.labelled = options->slots + options->standbys > 1, .keep_in = options->output_dir}) {}

  // `slot` -1: a standby. `own`: NAME=value, replaces what the worker would find else.
  StartedProcess Start(int slot, uint64_t incarnation, TimePoint now,
                       const std::vector<std::string>& own = {});
  // A standby that lives, and that no signal has stopped, gets this slot; its process id, or 0
  // where there is none.
  pid_t PromoteStandby(int slot, uint64_t incarnation, TimePoint now);
  // The next child that a signal has stopped, or that goes on since, as it stands now.
  std::optional<Child> NextHalt();
  // The next child that has ended, with its process group; it is none of ours any more.
  std::optional<ChildExit> ReapNext();

  void Kill(int64_t slot, int64_t incarnation, const std::string& reason, bool by_us);
  void Signal(int slot, int signal) const;
  void KillStandbys() const;
  void SignalAll(int signal) const;
  // Kills processes that outlive the worker they descend from; again later, where some were found.
  void SweepStrays(TimePoint now);
  bool TakeSweep(TimePoint now) { return TakeDue(&sweep_at_, now); }
  std::optional<TimePoint> NextWake() const { return sweep_at_; }

  Output* output() { return &output_; }

  bool empty() const { return children_.empty(); }
  // A signal has stopped it. False also for one that is none of ours.
  bool Stopped(pid_t pid) const;
  // For `hello`.
  nlohmann::json Running() const;

 private:
  std::string Label(int slot) const;

  const Options* const options_;
  Output output_;
  std::map<pid_t, Child> children_;
  int next_family_ = 1;
  std::optional<TimePoint> sweep_at_;
  bool sweeping_ = false;  // the last sweep has found some
};

}  // namespace ringmaster::launcher
