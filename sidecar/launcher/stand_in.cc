#include "sidecar/launcher/stand_in.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/worker_link/frame.h"

namespace ringmaster::launcher {

using nlohmann::json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

StandIn::StandIn(Place place, uint64_t incarnation, Events events)
    : place_(std::move(place)),
      events_(std::move(events)),
      incarnation_(incarnation),
      link_(
          place_.socket, [this] { return worker_link::EncodeFrame(Hello()); },
          [this](const json& frame) { OnFrame(frame); }) {}

json StandIn::Hello() const {
  return {{"t", "hello"},
          {"version", worker_link::kLinkVersion},
          {"role", "worker"},
          {"slot", place_.slot},
          {"incarnation", incarnation_},
          {"pid", 0},  // of its process the launcher tells
          {"standby", false},
          {"tcp", place_.address},
          {"shm", ""},
          {"epoch", installed_},
          {"given", installed_}};
}

void StandIn::Poll(TimePoint now) {
  link_.Poll(now);
  if (link_.fd() < 0) welcomed_ = false;
  if (welcomed_ && now >= ping_at_) {
    ping_at_ = now + ping_every_;
    // `ran`: what a process needs to go on is in its checkpoint, so all ranks of a view have it.
    link_.Send({{"t", "ping"},
                {"n", ++pings_},
                {"epoch", installed_},
                {"step", 0},
                {"ran", installed_},
                {"busy", false},
                {"values", json::object()},
                {"times", json::object()}});
    link_.Poll(now);
  }
  if (heard_ == TimePoint{} || now - heard_ < fence_) return;
  heard_ = now;
  events_.fenced();
}

TimePoint StandIn::wake_at() const {
  if (!welcomed_) return link_.wake_at();
  return std::min(ping_at_, heard_ + fence_);
}

// ---- From the sidecar

void StandIn::OnFrame(const json& frame) {
  const std::string type = fields::Text(frame, "t");
  heard_ = Clock::now();
  if (type == "welcome") {
    OnWelcome(frame);
  } else if (type == "view") {
    OnView(frame);
  } else if (type == "stop") {
    OnStop(fields::Unsigned(frame, "epoch"));
  } else if (type == "arm") {
    armed_ = true;
    link_.Send({{"t", "boundary"}, {"epoch", fields::Unsigned(frame, "epoch")}, {"step", 0}});
  } else if (type == "left") {
    // It also comes some seconds after the job has finished; then the process ends by itself.
    if (armed_) events_.left();
  } else if (type == "error") {
    events_.refused(fields::Text(frame, "message"));
  }
}

void StandIn::OnWelcome(const json& frame) {
  welcomed_ = true;
  ping_every_ = milliseconds(std::max<int64_t>(fields::Integer(frame, "pingMs", 250), 10));
  fence_ = milliseconds(std::max<int64_t>(fields::Integer(frame, "fenceMs", 10000), 100));
  if (fields::Text(frame, "state") != "member") return EnterWhenStopped();
  if (fields::Unsigned(frame, "epoch") == installed_) SayAgain();
}

void StandIn::SayAgain() {
  if (broken_why_) Broken(*broken_why_);
  if (finished_) Finished();
}

void StandIn::EnterWhenStopped() {
  enters_ = true;
  events_.stop();
}

void StandIn::OnView(const json& frame) {
  auto world =
      WorldOf(fields::Member(frame, "view"), static_cast<int>(fields::Integer(frame, "self", -1)));
  if (!world) return EnterWhenStopped();  // the others go on without us
  enters_ = armed_ = false;
  joined_ = world->joined;
  installed_ = world->epoch;
  broken_why_.reset();
  finished_ = false;
  view_came_ = Clock::now();
  link_.Send({{"t", "installed"}, {"epoch", installed_}, {"seconds", {{"connect", 0}}}});
  events_.began(std::move(*world));
}

void StandIn::OnStop(uint64_t epoch) {
  if (epoch < installed_) {  // of a view that we have left behind
    link_.Send({{"t", "stopped"}, {"epoch", epoch}});
    return;
  }
  stopping_ = std::max(stopping_, epoch);
  events_.stop();
}

// ---- To the sidecar

void StandIn::Stopped() {
  if (stopping_ != 0) link_.Send({{"t", "stopped"}, {"epoch", std::exchange(stopping_, 0)}});
  if (std::exchange(enters_, false)) link_.Send({{"t", "enter"}});
}

void StandIn::Started(TimePoint now) {
  if (joined_) return;  // only survivors know what the change has cost
  const double seconds = std::chrono::duration<double>(now - view_came_).count();
  link_.Send({{"t", "rebuilt"},
              {"epoch", installed_},
              {"seconds", {{"resume", seconds}}},
              {"step", 0},
              {"resumed", 0}});
}

void StandIn::Broken(const std::string& why) {
  broken_why_ = why;
  link_.Send({{"t", "broken"}, {"epoch", installed_}, {"rank", -1}, {"reason", why}});
}

void StandIn::Finished() {
  finished_ = true;
  link_.Send({{"t", "finished"}, {"epoch", installed_}});
}

void StandIn::Renew(uint64_t incarnation, TimePoint now) {
  incarnation_ = incarnation;
  welcomed_ = enters_ = armed_ = finished_ = false;
  broken_why_.reset();
  installed_ = stopping_ = 0;
  heard_ = {};
  link_.Drop(now);
}

}  // namespace ringmaster::launcher
