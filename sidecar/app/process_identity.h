// Which process of this pod a worker is: its slot and incarnation, and the process ids by which it
// is known.
//
// The launcher and the process itself both name it, over sockets of their own, in any order. Plain
// data of the sidecar's loop.
#pragma once

#include <cstdint>

#include "sidecar/app/process_name.h"

namespace ringmaster::app {

class ProcessIdentity {
 public:
  // `slot` -1: a standby.
  explicit ProcessIdentity(int slot = -1, uint64_t incarnation = 0)
      : slot_(slot), incarnation_(incarnation), standby_incarnation_(slot < 0 ? incarnation : 0) {}

  int slot() const { return slot_; }
  uint64_t incarnation() const { return incarnation_; }
  // By which a promoted standby says hello.
  uint64_t standby_incarnation() const { return standby_incarnation_; }
  bool standby() const { return slot_ < 0; }
  // A standby, also a promoted one, is known by its incarnation as a standby alone.
  bool Is(bool standby, int slot, uint64_t incarnation) const;

  // Of the process itself, where its process id is known, else of its launcher's child.
  int64_t pid() const { return pid_; }
  // Its launcher's child: the process, or a wrapper script that started it. 0: not named yet.
  int64_t launcher_pid() const { return launcher_pid_; }
  // The process, by the id that it has where its launcher runs.
  int64_t pid_at_launcher() const { return own_pid_ != 0 ? own_pid_ : launcher_pid_; }
  // The launcher started it, or gave it its slot, before then; true also if the launcher hasn't
  // said when.
  bool BeganBefore(SteadyTime time) const { return began_ < time; }
  // The process is known to be gone, or a zombie. False also where its ids are not ours to look at.
  bool HasEnded() const;

  void NamedByLauncher(const ProcessName& name);
  // In its hello. `peer_pid`: the process at the other end of the socket; 0: not known.
  void NamedByItself(int64_t own_pid, int64_t peer_pid);
  // The launcher gives a slot to a standby.
  void TakeSlot(int slot, uint64_t incarnation);

 private:
  int slot_;
  uint64_t incarnation_;
  uint64_t standby_incarnation_;
  SteadyTime began_{};
  int64_t pid_ = 0;
  int64_t launcher_pid_ = 0;
  int64_t own_pid_ = 0;     // that it calls itself: in its container, as the launcher sees it
  bool same_pids_ = false;  // its process ids are ours, so we can look whether it lives
};

// Whether the process is gone or a zombie. Its id must be of our pid namespace.
bool ProcessEnded(int64_t pid);

}  // namespace ringmaster::app
