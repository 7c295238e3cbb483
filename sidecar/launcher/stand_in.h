// Speaks the worker link for a process that does not: one whose collectives are not ours.
//
// To the sidecar it is the worker of a slot (docs/contracts.md, section 2). It is ready as soon as
// it is connected, stands at a boundary whenever it is asked to, and has stopped using a view when
// its process is gone. Thread rule: the launcher's one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sidecar/launcher/clock.h"
#include "sidecar/launcher/link.h"
#include "sidecar/launcher/stand_in_pulse.h"
#include "sidecar/launcher/stand_in_view.h"
#include "sidecar/launcher/world.h"

namespace ringmaster::launcher {

class StandIn {
 public:
  struct Events {
    std::function<void(World)> began;  // it is in a new view
    std::function<void()> stop;        // the view is over: end the process, then say Stopped()
    std::function<void()> left;        // the pod leaves by plan: end the process
    std::function<void()> fenced;      // the sidecar has not answered for long: Renew() it
    std::function<void(const std::string&)> refused;  // the job can't go on
  };
  struct Place {
    std::string socket;   // of the sidecar
    std::string address;  // host:port that is given to all ranks as this one's
    int slot = 0;
  };

  StandIn(Place place, uint64_t incarnation, Events events);

  void Poll(TimePoint now);
  int fd() const { return link_.fd(); }
  short events() const { return link_.events(); }
  TimePoint wake_at() const;

  // The process is gone, or there was none.
  void Stopped();
  // A process was started in the view.
  void Started(TimePoint now);
  // The process has ended and not been told to, so nobody can go on in this view.
  void Broken(const std::string& why);
  // The process has ended with exit code 0.
  void Finished();
  // Another worker comes in this one's place, and joins as a new one does.
  void Renew(uint64_t incarnation, TimePoint now);

 private:
  nlohmann::json Hello() const;
  void OnFrame(const nlohmann::json& frame);
  void OnWelcome(const nlohmann::json& frame);
  void OnView(const nlohmann::json& frame);
  void OnStop(uint64_t epoch);
  void EnterWhenStopped();
  // The sidecar starts again, and knows nothing of what it was told of the view.
  void RepeatNews();

  const Place place_;
  const Events events_;
  uint64_t incarnation_;
  Link link_;
  bool welcomed_ = false;
  StandInPulse pulse_;
  StandInView view_;
};

}  // namespace ringmaster::launcher
