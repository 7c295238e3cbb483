#include "sidecar/launcher/stand_in.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/worker_link/frame.h"
#include "common/worker_link/worker_frames.h"

namespace ringmaster::launcher {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

StandIn::StandIn(Place place, uint64_t incarnation, Events events)
    : place_(std::move(place)),
      events_(std::move(events)),
      incarnation_(incarnation),
      link_(
          place_.socket, [this] { return worker_link::EncodeFrame(Hello()); },
          [this](const json& frame) { OnFrame(frame); }) {}

json StandIn::Hello() const {
  // Without a process id: the launcher tells of its process.
  return worker_link::ToFrame(worker_link::WorkerHello{.slot = place_.slot,
                                                       .incarnation = incarnation_,
                                                       .tcp = place_.address,
                                                       .epoch = view_.epoch(),
                                                       .given = view_.epoch()});
}

void StandIn::Poll(TimePoint now) {
  link_.Poll(now);
  if (link_.fd() < 0) welcomed_ = false;
  if (const auto number = welcomed_ ? pulse_.TakePing(now) : std::nullopt) {
    // `ran`: what a process needs to go on is in its checkpoint, so all ranks of a view have it.
    link_.Send(worker_link::PingFrame(
        *number, worker_link::PingFields({.epoch = view_.epoch(), .ran = view_.epoch()})));
    link_.Poll(now);
  }
  if (pulse_.TakeFence(now)) events_.fenced();
}

TimePoint StandIn::wake_at() const {
  if (!welcomed_) return link_.wake_at();
  return pulse_.NextWake();
}

// ---- From the sidecar

void StandIn::OnFrame(const json& frame) {
  const std::string type = fields::Text(frame, "t");
  pulse_.Heard(Clock::now());
  if (type == "welcome") {
    OnWelcome(frame);
  } else if (type == "view") {
    OnView(frame);
  } else if (type == "stop") {
    OnStop(fields::Unsigned(frame, "epoch"));
  } else if (type == "arm") {
    const uint64_t epoch = fields::Unsigned(frame, "epoch");
    view_.Arm(epoch);
    link_.Send(worker_link::BoundaryFrame(epoch, /*step=*/0));
  } else if (type == "left") {
    // It also comes some seconds after the job has finished; then the process ends by itself.
    if (view_.armed()) events_.left();
  } else if (type == "error") {
    events_.refused(fields::Text(frame, "message"));
  }
}

void StandIn::OnWelcome(const json& frame) {
  welcomed_ = true;
  const worker_link::Welcome welcome = worker_link::ReadWelcome(frame);
  pulse_.Welcomed(welcome.ping_ms, welcome.fence_ms);
  if (welcome.state != "member") return EnterWhenStopped();
  if (welcome.epoch == view_.epoch()) RepeatNews();
}

void StandIn::RepeatNews() {
  if (const auto why = view_.broken_why()) Broken(*why);
  if (view_.finished()) Finished();
}

void StandIn::EnterWhenStopped() {
  view_.EnterWhenStopped();
  events_.stop();
}

void StandIn::OnView(const json& frame) {
  auto world =
      WorldOf(fields::Member(frame, "view"), static_cast<int>(fields::Integer(frame, "self", -1)));
  if (!world) return EnterWhenStopped();  // the others go on without us
  view_.Take(*world, Clock::now());
  link_.Send(worker_link::InstalledFrame(view_.epoch(), /*connect_seconds=*/std::nullopt));
  events_.began(std::move(*world));
}

void StandIn::OnStop(uint64_t epoch) {
  if (view_.Stop(epoch)) return events_.stop();
  link_.Send(worker_link::StoppedFrame(epoch, /*holds=*/std::nullopt));
}

// ---- To the sidecar

void StandIn::Stopped() {
  if (const auto epoch = view_.TakeStop())
    link_.Send(worker_link::StoppedFrame(*epoch, /*holds=*/std::nullopt));
  if (view_.TakeEntry()) link_.Send(worker_link::EnterFrame(/*takes_state=*/true));
}

void StandIn::Started(TimePoint now) {
  if (const auto seconds = view_.SecondsSince(now)) {
    link_.Send(worker_link::RebuiltFrame(view_.epoch(), {{job::kResume, *seconds}}, /*step=*/0,
                                         /*resumed=*/0));
  }
}

void StandIn::Broken(const std::string& why) {
  view_.Broken(why);
  link_.Send(worker_link::ToFrame(
      worker_link::ViewTrouble{.epoch = view_.epoch(), .reason = why, .broken = true}));
}

void StandIn::Finished() {
  view_.Finished();
  link_.Send(worker_link::FinishedFrame(view_.epoch()));
}

void StandIn::Renew(uint64_t incarnation, TimePoint now) {
  incarnation_ = incarnation;
  welcomed_ = false;
  view_ = {};
  pulse_.Forget();
  link_.Drop(now);
}

}  // namespace ringmaster::launcher
